#!/usr/bin/env bash
# run.sh [SEEDS [PAIRING...]]: programs over sites of this host that each run their own MPI, in either order
# and with three sites; SEEDS (4) for each pairing of the random receives. A PAIRING is several words of MPI
# and ranks: "debian-openmpi:2 mpich:2". CASES (100) random collectives of each pairing, with the library of
# collectives above, are compared with the world's own, and three times as many with what has to come out.
set -euo pipefail
. "$(dirname "$0")/launch.sh"

pairings=("debian-openmpi:2 debian-mpich:2" "debian-mpich:2 debian-openmpi:2"
    "debian-openmpi:1 debian-mpich:3" "debian-mpich:1 debian-openmpi:2 debian-mpich:2")

if [ $# -gt 1 ]; then pairings=("${@:2}"); fi

run() { # PAIRING PROGRAM ARGUMENTS...
    local log
    log=$(mktemp)
    # shellcheck disable=SC2086 # A pairing is several words.
    if ! world $1 -- "${@:2}" >"$log" 2>&1; then
        echo "$1: ${*:2} failed:" >&2
        cat "$log" >&2
        exit 1
    fi
    grep -aE 'all right|the same' "$log" | sed "s/$/ ($1)/"
    rm "$log"
}

for pairing in "${pairings[@]}"; do
    for program in messages communicators operations topologies pending intercomms statuses bottom mistakes unlike numbers; do run "$pairing" "$program"; done
    run "$pairing" receives "${1:-4}"
    run "$pairing" forms "$((${CASES:-100} * 3))"
    run "$pairing" texts
    run "$pairing" creations 15
done
if [ $# -gt 1 ]; then exit; fi
# Counts that no int holds: 5 GB of memory, and a quarter of a minute.
run "debian-openmpi:1 debian-mpich:1" large
# Fortran 77, 90 and 2008.
for program in hello_mpif ring_mpi hello_f08 collectives_mpif collectives_mpi collectives_f08 bottom_mpi lists_mpif lists_mpi lists_f08; do
    for pairing in "${pairings[@]:0:2}"; do run "$pairing" "$program"; done
done
# The library of collectives above the world: every form of every operation, on communicators of all kinds.
seed=1
for pairing in "${pairings[@]}"; do
    export COLLECTIVES=1
    for program in collectives_mpif collectives_f08 bottom bottom_mpi mistakes unlike numbers; do run "$pairing" "$program"; done
    run "$pairing" compare "${CASES:-100}" "$seed"
    run "$pairing" forms "$((${CASES:-100} * 3))" "$seed"
    run "$pairing" texts
    run "$pairing" creations 15 "$seed"
    seed=$((seed + 1))
done
run "debian-openmpi:4 debian-mpich:4" few
# As many communicators as MPICH has.
run "debian-openmpi:1 debian-mpich:1" many
