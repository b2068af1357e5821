#!/usr/bin/env bash
# pairs.sh [SYSTEM...]: two sites of one system (bullseye, trixie and forky, or these), over which each of its
# MPIs runs as one; the test of data for DATA_SECONDS (20); and jobs that end because a gateway is killed.
set -euo pipefail
. "$(dirname "$0")/common.sh"
systems=("$@")
[ $# -gt 0 ] || systems=(bullseye trixie forky)

# With three ranks or more MPICH's, which never yield, take turns by the scheduler on two cores.
launch() { # MPI
    case $1 in
    openmpi) echo "mpirun.openmpi -n 4" ;;
    mpich) echo "mpiexec.hydra -n 2" ;;
    esac
}

# What the test of data has to say: these versions receive other data than was sent, on one host and without
# Causeway, too (docs/install.md).
verdict() { # system-MPI
    case $1 in
    bullseye-* | trixie-openmpi) echo "the MPI makes errors without Causeway, too" ;;
    *) echo "0 wrong, all right" ;;
    esac
}

"$root/tools/setup/root.sh" "${systems[@]}"
for system in "${systems[@]}"; do
    mkdir -p "$place"
    sed "s/SYSTEM/$system/" tests/systems/pair.toml >"$place/$system.toml"
    lab_up "$place/$system.toml" "pair-$system"
    compile north "$system"
    for mpi in openmpi mpich; do
        read -ra words < <(launch "$mpi")
        for program in own_world ring alltoall operations; do
            expect "$program on two sites of $system with $mpi" "all right" \
                on north-head causeway run "${words[@]}" "$place/$system/$mpi/$program"
        done
        expect "the test of data on two sites of $system with $mpi" "$(verdict "$system-$mpi")" \
            on north-head causeway check --mpi "${words[0]}" "--data=${DATA_SECONDS:-20}"
    done
    for mpi in openmpi mpich; do
        read -ra words < <(launch "$mpi")
        expect "a killed gateway on two sites of $system with $mpi" "nothing is left" \
            killed south north-head north-1 south-1 -- "${words[@]}" "$place/$system/$mpi/own_world" wait
        restart south north
    done
    "$causeway" lab down "$LAB"
done
summary
