#!/usr/bin/env bash
# soak.sh SECONDS [MPI...]: random collectives, each compared with the MPI's own, on communicators that are
# made and freed all the while; so long with each MPI. Memory must not grow.
set -euo pipefail
. "$(dirname "$0")/launch.sh"
seconds=$1
shift
[ $# -gt 0 ] && mpis=("$@")
# Three sites, one of them of a single rank, and none whose ranks follow each other.
sites=a,b,a,c,b

for mpi in "${mpis[@]}"; do
    echo "$mpi, sites $sites:"
    launch "$mpi" "$sites" "$(preloads "$mpi")" "$root/target/mpi/$mpi/compare" "${seconds}s" "${SOAK_SEED:-1}"
done
