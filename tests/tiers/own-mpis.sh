#!/usr/bin/env bash
# what: the same with MPICH 5, Intel MPI and three sites; random programs for each pairing, sanitizers and a
#   soak; applications of Debian, also over the grid
# needs: the network once
# takes: an hour or two; `PROGRAMS` (20000) for each pairing
set -euo pipefail
. "$(dirname "$0")/common.sh"
made setup build programs
tools/setup/install.sh applications
mpis mpich abi intel
tests/libraries/world/sanitized.sh
tests/libraries/world/applications.sh
tests/libraries/world/applications.sh grid
tests/libraries/world/long.sh "${PROGRAMS:-20000}"
tests/libraries/world/mpi4py.sh
