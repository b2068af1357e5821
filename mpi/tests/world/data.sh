#!/usr/bin/env bash
# data.sh [SECONDS [PAIRING]]: the test of data (tests/programs/data) over sites of this host that each run
# their own MPI. Left out is what MPICH 4.0.2 does wrong by itself.
set -euo pipefail
. "$(dirname "$0")/launch.sh"
# The cure for MPICH over UCX, as `causeway run` preloads it.
export CURE=${CURE:-$libraries/libcauseway_ucx.so} COLLECTIVES=1
seconds=$((${1:-20} + 60))
# shellcheck disable=SC2086 # A pairing is several words.
world ${2:-debian-openmpi:2 debian-mpich:2} -- data --seconds "${1:-20}" --seed "${SEED:-1}" --block-bytes 15000 \
    --without MPI_C_LONG_DOUBLE_COMPLEX,MPI_COMPLEX32,MPI_Allgatherv
