#!/usr/bin/env bash
# what: release binaries with Debian's Open MPI and MPICH over two and three sites: see below
# needs: root, or user namespaces
# takes: part of `make test`
set -euo pipefail
. "$(dirname "$0")/common.sh"
made setup build programs
# Two cores: most tests wait for the WAN, for batch systems or for an end, and their deadlines are long.
AT_ONCE=2 e2e debian_ plain_sockets punching:: --skip all_ --skip mpi4py_
