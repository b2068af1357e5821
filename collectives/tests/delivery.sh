#!/usr/bin/env bash
# delivery.sh: MPICH does not wait for the far side of each send (src/delivery.h) where a job has several sites and its program makes no windows, unless it is told itself; one
# that makes windows can use them. On this host alone.
set -euo pipefail
. "$(dirname "$0")/launch.sh"

for mpi in "${mpis[@]:1}"; do
    programs=$root/target/mpi/$mpi
    check() { # what, sites, program and arguments
        found=$(launch "$mpi" "$2" "$(preloads "$mpi")" "$programs/$3" "${@:4}") || { echo "$mpi, $1: $found" && exit 1; }
        echo "$mpi, $1: $found"
    }
    check "two sites" a,b delivery 0
    check "two sites, windows" a,b delivery_windows -1
    MPIR_CVAR_CH4_OFI_ENABLE_RMA=1 check "told to wait" a,b delivery 1 1
    MPIR_CVAR_CH4_OFI_ENABLE_RMA=0 check "told not to" a,b delivery 0 0
    check "one site" "" delivery -1
done
