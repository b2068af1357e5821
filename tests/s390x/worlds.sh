#!/usr/bin/env bash
# worlds.sh [PAIRING...]: worlds of ranks on x86-64, which is little-endian, and on s390x, which is big-endian
# and which this machine emulates, on this host without gateways: each MPI of Debian for s390x with each for
# x86-64, and both for s390x; then one of three processors, with arm64. Every number arrives as what it is,
# with and without the library of collectives. Needs root.
set -euo pipefail
. "$(dirname "$0")/../emulated.sh"
[ -n "${EMULATED:-}" ] || EMULATED=1 exec "$root/tools/setup/emulate.sh" "$0" "$@"
. tests/libraries/world/launch.sh
for processor in s390x arm64; do
    compiled=$target/$processor/libraries machine=$processor-linux-gnu
    CC=${machine/arm64/aarch64}-gcc mpi/build.sh "$compiled" world collectives
    emulated_system "$processor" "$compiled"
    emulated_programs "$processor" "${emulated_sources[@]}"
done
tests/programs/build.sh debian-openmpi debian-mpich
seconds=300
pairings=("debian-openmpi:2 s390x-openmpi:2" "debian-mpich:1 s390x-openmpi:2" "s390x-mpich:1 debian-openmpi:2"
    "debian-mpich:1 s390x-mpich:1" "s390x-openmpi:1 s390x-mpich:1" "arm64-mpich:1 s390x-openmpi:2 debian-openmpi:2")
if [ $# -gt 0 ]; then pairings=("$@"); fi

for pairing in "${pairings[@]}"; do check_all "$pairing"; done
check_algorithms "debian-openmpi:2 s390x-openmpi:2"
