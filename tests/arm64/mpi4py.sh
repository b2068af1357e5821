#!/usr/bin/env bash
# mpi4py.sh [PAIRING...]: mpi4py's own tests over sites of x86-64 and of arm64, which this machine emulates,
# as tests/libraries/world/mpi4py.sh has them. Needs root and the network.
set -euo pipefail
. "$(dirname "$0")/common.sh"
[ -n "${EMULATED:-}" ] || EMULATED=1 exec "$root/tools/setup/emulate.sh" "$0" "$@"
emulated_system arm64 "$arm64_built"
emulated_python arm64
pairings=("$@")
if [ $# = 0 ]; then pairings=("debian-openmpi:2 arm64-openmpi:2" "arm64-mpich:1 debian-openmpi:2"); fi
tests/libraries/world/mpi4py.sh "${pairings[@]}"
