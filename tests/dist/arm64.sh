#!/usr/bin/env bash
# arm64.sh: the tar and the .deb of `ARCH=aarch64 make dist` in a system of arm64, which this machine
# emulates: the command runs, its files are whole, its libraries make a world with x86-64, and the package is
# installed and purged. Needs root.
set -euo pipefail
. "$(dirname "$0")/../arm64/common.sh"
if [ -z "${EMULATED:-}" ]; then
    ARCH=aarch64 tools/dist/dist.sh
    EMULATED=1 exec tools/setup/emulate.sh "$0" "$@"
fi
. tests/libraries/world/launch.sh
emulated_system arm64 "$arm64_built"
emulated_programs arm64 tests/libraries/world/unlike.c
tests/programs/build.sh debian-openmpi
dist=$target/dist-aarch64
tree=$(echo "$dist"/causeway-*-linux-aarch64)
inside=(chroot "$ARM64_SYSTEM")

"${inside[@]}" "$tree/bin/causeway" --version
# shellcheck disable=SC2016 # the inner shell expands it
"${inside[@]}" sh -euc 'cd "$0" && sha256sum --check --quiet SHA256SUMS' "$tree"
export ARM64_LIBRARIES=$tree/lib/causeway
for mpi in arm64-openmpi arm64-mpich; do COLLECTIVES=1 world debian-openmpi:1 "$mpi:1" -- unlike; done

# What dpkg itself writes is no file of the package.
files() { find "$ARM64_SYSTEM" -xdev -path "$ARM64_SYSTEM/var" -prune -o -print | sort; }
before=$(files)
"${inside[@]}" dpkg --install "$dist"/causeway_*_arm64.deb
"${inside[@]}" causeway -V
"${inside[@]}" dpkg --purge causeway
if left=$(comm -13 <(echo "$before") <(files) | grep .); then
    printf 'arm64.sh: the package has left:\n%s\n' "$left" >&2
    exit 1
fi
echo "dist: the tar and the .deb for arm64: all right"
