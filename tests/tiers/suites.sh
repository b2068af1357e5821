#!/usr/bin/env bash
# what: all point-to-point and collective tests of mpi4py with every MPI, on one site and over two
# needs: root, or user namespaces; the network once
# takes: half an hour
set -euo pipefail
. "$(dirname "$0")/common.sh"
made setup build
mpis "${pypi[@]}"
tests/programs/build.sh "${debian[@]}"
e2e mpi4py
