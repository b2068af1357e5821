#!/usr/bin/env bash
# data.sh [SECONDS [PAIRING]]: the test of data (mpi/programs/data) over sites of this host that each run
# their own MPI. Left out is what an MPI does wrong by itself (crates/mpis/src/versions.toml).
set -euo pipefail
. "$(dirname "$0")/launch.sh"
# The cure for MPICH over UCX, as `causeway run` preloads it.
export CURE=${CURE:-$libraries/libcauseway_ucx.so} COLLECTIVES=1
seconds=$((${1:-20} + 60))
pairing=${2:-debian-openmpi:2 debian-mpich:2}
without=MPI_C_LONG_DOUBLE_COMPLEX,MPI_COMPLEX32,MPI_Allgatherv
case $pairing in *" mpich:"* | "mpich:"* | *abi:*)
    without+=,MPI_REAL16,MPI_SHORT_INT,MPI_FLOAT_INT,MPI_DOUBLE_INT,MPI_LONG_INT,MPI_LONG_DOUBLE_INT,mixed
    ;;
esac
# By the standard interface MPICH 5.0.2 makes other darrays than by its own, also without Causeway.
case $pairing in *abi:*) without+=,darray ;; esac
case $pairing in *intel:*) without+=,MPI_REAL16,darray,MPI_Gather,MPI_Allgather ;; esac
# shellcheck disable=SC2086 # A pairing is several words.
world $pairing -- data --seconds "${1:-20}" --seed "${SEED:-1}" --block-bytes 15000 \
    --without "$without"
