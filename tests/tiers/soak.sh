#!/usr/bin/env bash
# what: random collectives on communicators that are made and freed all the while; memory must not grow
# needs: the network once
# takes: `SOAK_SECONDS` (600) with each MPI
set -euo pipefail
. "$(dirname "$0")/common.sh"
made setup build programs
mpis mpich
tests/libraries/soak.sh "${SOAK_SECONDS:-600}" debian-openmpi mpich
