#!/usr/bin/env bash
# long_double.sh [CASES]: numbers from one processor's form of long double to another's, against the
# compiler's own. EMULATOR runs what CC compiles for another processor.
set -euo pipefail
root=$(cd "$(dirname "$0")/../../.." && pwd)
out=${CARGO_TARGET_DIR:-$root/target}/world-tests${EMULATOR:+-emulated}
mkdir -p "$out"
read -ra emulator <<<"${EMULATOR:-}"
"${CC:-cc}" -std=gnu11 -g -O2 -Wall -Wextra -Werror -I "$root/mpi" "$root"/tests/libraries/world/long_double.c \
    "$root"/mpi/common/forms/long_double.c -o "$out/long_double"
"${emulator[@]}" "$out/long_double" "${1:-1000000}"
