#!/usr/bin/env bash
# worlds.sh: worlds of ranks on x86-64 and, by emulation, on arm64, on this host without gateways: each MPI of
# Debian for arm64 with each for x86-64, and both for arm64. Long doubles arrive as what they are, with and
# without the library of collectives. Needs root.
set -euo pipefail
. "$(dirname "$0")/common.sh"
[ -n "${EMULATED:-}" ] || EMULATED=1 exec "$root/tools/setup/emulate.sh" "$0" "$@"
. tests/libraries/world/launch.sh
sources=(tests/libraries/world/{unlike,messages,operations,receives}.c tests/libraries/compare.c)
arm64_system
arm64_programs "${sources[@]}"
tests/programs/build.sh debian-openmpi debian-mpich
seconds=300
pairings=("debian-openmpi:2 arm64-openmpi:2" "debian-mpich:1 arm64-openmpi:2" "arm64-mpich:1 debian-openmpi:2"
    "debian-mpich:1 arm64-mpich:1" "arm64-openmpi:1 arm64-mpich:1")

run() { # PAIRING PROGRAM ARGUMENTS...
    local log began=$EPOCHREALTIME
    log=$(mktemp)
    # shellcheck disable=SC2086 # A pairing is several words.
    if ! world $1 -- "${@:2}" >"$log" 2>&1; then
        echo "$1: ${*:2} failed:" >&2
        cat "$log" >&2
        exit 1
    fi
    grep -aE 'all right|the same' "$log" | sed "s/$/ ($1${COLLECTIVES:+, collectives}, $(bc <<<"$EPOCHREALTIME - $began") s)/"
    rm "$log"
}

for pairing in "${pairings[@]}"; do
    for program in unlike messages operations; do run "$pairing" "$program"; done
    run "$pairing" receives 1
    COLLECTIVES=1 run "$pairing" unlike
    COLLECTIVES=1 run "$pairing" compare "${CASES:-30}" 1
done
# Each algorithm sends in its own way.
for rule in allreduce\ {leaders,segments,multi-leader,split,gathered,blocks} reduce\ {leaders,segments,gathered,blocks} \
    bcast\ {leaders,segments} {gather,scatter}\ {leaders,direct} allgather\ {leaders,multi-leader} alltoall\ {leaders,direct} \
    reduce_scatter\ {leaders,multi-leader} scan\ {segments,gathered,direct,blocks}; do
    printf '%s: ' "$rule"
    COLLECTIVES=1 CAUSEWAY_COLLECTIVES_RULES=$rule run "debian-openmpi:2 arm64-openmpi:2" unlike
done
