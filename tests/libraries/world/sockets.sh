#!/usr/bin/env bash
# sockets.sh: how a world comes together and the streams of its processes, on loopback without an MPI, under
# sanitizers. EMULATOR runs what CC compiles for another processor, without sanitizers.
set -euo pipefail
root=$(cd "$(dirname "$0")/../../.." && pwd)
out=${CARGO_TARGET_DIR:-$root/target}/world-tests${EMULATOR:+-emulated}
mkdir -p "$out"
read -ra emulator <<<"${EMULATOR:-}"
checks=(-std=gnu11 -g -O1 -Wall -Wextra -Werror)
[ -n "${EMULATOR:-}" ] || checks+=(-fsanitize=address,undefined -fno-sanitize-recover=all)

run() { # program, sources...
    "${CC:-cc}" "${checks[@]}" \
        -I "$root/mpi" "${@:2}" -o "$out/$1" -ldl
    "${emulator[@]}" "$out/$1"
}

# The same inputs each time, made of the seeds of a fuzz target (fuzz/run.sh).
draw() { # target, cases, sources...
    "${CC:-cc}" "${checks[@]}" \
        -DCAUSEWAY_SMALL_SIZES -I "$root/mpi" -include "$here/fuzz_kernel.h" \
        "$here"/{"$1"_fuzz,fuzz_random}.c "${@:3}" -o "$out/$1_fuzz"
    "${emulator[@]}" "$out/$1_fuzz" "$2" "$root/fuzz/corpus-seeds/world_$1"/*
}

here=$root/tests/libraries/world
run rendezvous "$here/rendezvous.c" "$root"/mpi/world/rendezvous/{message,settings}.c
run streams "$here"/{streams,plain_engine}.c "$root"/mpi/world/streams/*.c
draw messages 20000 "$root"/mpi/world/rendezvous/{rendezvous,message,settings}.c
draw streams 5000 "$root"/mpi/world/{engine,frames,streams}/*.c

# Two sites of one process each, if the command is built: they meet at its rendezvous and exchange 5 MB.
causeway=${CAUSEWAY:-${CARGO_TARGET_DIR:-$root/target}/release/causeway}
[ -x "$causeway" ] || exit 0
standin=$out/standin
"${CC:-cc}" "${checks[@]}" \
    -I "$root/mpi" "$here"/{standin,plain_engine}.c "$root"/mpi/world/{rendezvous,streams}/*.c -o "$standin" -ldl
export CAUSEWAY_TOKEN=00112233445566778899aabbccddeeff
exec 3< <(exec timeout 60 "$causeway" rendezvous --token "$CAUSEWAY_TOKEN" --site a --site b)
rendezvous=$!
read -r address <&3
CAUSEWAY_WORLD=2,b,$address timeout 60 "${emulator[@]}" "$standin" 5000000 &
CAUSEWAY_WORLD=2,a,$address timeout 60 "${emulator[@]}" "$standin" 5000000
wait $!
wait "$rendezvous"
