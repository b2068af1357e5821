#!/usr/bin/env bash
# sockets.sh: how a world comes together and the streams of its processes, on loopback without an MPI, under
# sanitizers.
set -euo pipefail
root=$(cd "$(dirname "$0")/../../.." && pwd)
out=${CARGO_TARGET_DIR:-$root/target}/world-tests
mkdir -p "$out"

run() { # program, sources...
    "${CC:-cc}" -std=gnu11 -g -O1 -Wall -Wextra -Werror -fsanitize=address,undefined -fno-sanitize-recover=all \
        -I "$root/mpi/src" "${@:2}" -o "$out/$1" -ldl
    "$out/$1"
}

here=$root/mpi/tests/world
run join "$here/join.c" "$root"/mpi/src/world/join/{message,settings}.c
run streams "$here"/{streams,plain_engine}.c "$root"/mpi/src/world/streams/*.c
