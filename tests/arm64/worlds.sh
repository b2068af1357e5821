#!/usr/bin/env bash
# worlds.sh: worlds of ranks on x86-64 and, by emulation, on arm64, on this host without gateways: each MPI of
# Debian for arm64 with each for x86-64, and both for arm64. Long doubles arrive as what they are, with and
# without the library of collectives. Needs root.
set -euo pipefail
. "$(dirname "$0")/common.sh"
[ -n "${EMULATED:-}" ] || EMULATED=1 exec "$root/tools/setup/emulate.sh" "$0" "$@"
. tests/libraries/world/launch.sh
emulated_system arm64 "$arm64_built"
emulated_programs arm64 "${emulated_sources[@]}"
tests/programs/build.sh debian-openmpi debian-mpich
seconds=300
pairings=("debian-openmpi:2 arm64-openmpi:2" "debian-mpich:1 arm64-openmpi:2" "arm64-mpich:1 debian-openmpi:2"
    "debian-mpich:1 arm64-mpich:1" "arm64-openmpi:1 arm64-mpich:1")

for pairing in "${pairings[@]}"; do check_all "$pairing"; done
check_algorithms "debian-openmpi:2 arm64-openmpi:2"
