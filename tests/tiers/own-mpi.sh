#!/usr/bin/env bash
# what: sites that each run their own MPI, as one MPI_COMM_WORLD: Open MPI with MPICH of Debian on this
#   host, the test of data, and mpi4py's tests
# needs: nothing
# takes: a minute and a half; part of `make test`
set -euo pipefail
. "$(dirname "$0")/common.sh"
made setup build programs
tests/libraries/world/run.sh
tests/libraries/world/data.sh 10
MPI4PY_MODULES="p2p|cco_buf|cco_obj|cco_nb_buf|test_comm|test_group|test_request|test_status|test_msg" \
    tests/libraries/world/mpi4py.sh "debian-openmpi:1 debian-mpich:1"
