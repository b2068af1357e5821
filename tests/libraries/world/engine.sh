#!/usr/bin/env bash
# engine.sh [CASES]: the engine of the world library, without an MPI: random programs against MPI rules, in
# virtual time (3000 cases under sanitizers, then CASES without), damaged frames, and who gets credit first.
# EMULATOR runs what CC compiles for another processor, without sanitizers.
set -euo pipefail
root=$(cd "$(dirname "$0")/../../.." && pwd)
out=${CARGO_TARGET_DIR:-$root/target}/world-tests${EMULATOR:+-emulated}
mkdir -p "$out"

compile() { # program, flags...
    "${CC:-cc}" -std=gnu11 -g -Wall -Wextra -Werror -DCAUSEWAY_SMALL_SIZES "${@:2}" -I "$root/mpi" \
        "$root/tests/libraries/world/${1%-*}.c" "$root"/mpi/world/{engine,frames}/*.c -o "$out/$1"
}

checks=(-O1)
[ -n "${EMULATOR:-}" ] || checks+=(-fsanitize=address,undefined -fno-sanitize-recover=all)
compile engine_model-checked "${checks[@]}"
compile frames_fuzz-checked "${checks[@]}"
compile engine_order-checked "${checks[@]}"
compile engine_model-fast -O2
# shellcheck disable=SC2086 # EMULATOR is several words.
{
    ${EMULATOR:-} "$out/frames_fuzz-checked" 20000
    ${EMULATOR:-} "$out/engine_order-checked"
    ${EMULATOR:-} "$out/engine_model-checked" 3000
    ${EMULATOR:-} "$out/engine_model-fast" "${1:-20000}" 3001
}
