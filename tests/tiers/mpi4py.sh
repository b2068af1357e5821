#!/usr/bin/env bash
# what: mpi4py's tests of collectives on 2, 3, 5, 7 and 8 ranks over 1, 2 and 3 sites of this host; each
#   test must end at each rank as it does without the library
# needs: the network once
# takes: half an hour
set -euo pipefail
. "$(dirname "$0")/common.sh"
made setup build
tools/setup/pypi.sh mpich
mpi/build.sh "$target/release"
tests/libraries/mpi4py.sh
