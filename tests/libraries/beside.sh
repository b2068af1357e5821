#!/usr/bin/env bash
# beside.sh: collectives that go on beside the program (beside.c) with each MPI of launch.sh, on this host
# alone; and with an MPI that has as few tags as MPI allows.
set -euo pipefail
. "$(dirname "$0")/launch.sh"

run() { # MPI
    launch "$1" a,b,a "$(preloads "$1")" "$root/target/mpi/$1/beside"
}

for mpi in "${mpis[@]}"; do run "$mpi"; done
# Of MPICH: 15 bits.
if [[ " ${mpis[*]} " == *" mpich "* ]]; then MPIR_CVAR_CH4_OFI_TAG_BITS=16 run mpich; fi
