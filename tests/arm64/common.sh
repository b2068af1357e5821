# shellcheck shell=bash disable=SC2034 # who sources this uses what is set here
# Sourced by the tests of arm64 on another machine: how Causeway is compiled for it, and what runs that.
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
cd "$root" || exit
target=${CARGO_TARGET_DIR:-$root/target}
arm64_triple=aarch64-unknown-linux-gnu
arm64_compiler=aarch64-linux-gnu-gcc
# The libraries that the cross compiler links with. Without them an arm64 machine runs programs itself.
arm64_emulator="qemu-aarch64-static -L /usr/aarch64-linux-gnu"
arm64_built=$target/$arm64_triple/release
export CARGO_TARGET_AARCH64_UNKNOWN_LINUX_GNU_LINKER=$arm64_compiler
export CARGO_TARGET_AARCH64_UNKNOWN_LINUX_GNU_RUNNER=$arm64_emulator

# arm64_system: sets ARM64_SYSTEM to Debian's root for arm64, in which the project is at the same path. What
# is written there stays in memory. To be called below tools/setup/emulate.sh, whose mounts end with it.
arm64_system() {
    local place=$target/arm64/system shared
    tools/setup/root.sh bookworm-arm64
    mkdir -p "$place"
    mount -t tmpfs causeway-arm64 "$place"
    mkdir "$place"/{root,changes,work}
    mount -t overlay -o "lowerdir=$root/.cache/roots/bookworm-arm64,upperdir=$place/changes,workdir=$place/work" \
        overlay "$place/root"
    export ARM64_SYSTEM=$place/root ARM64_LIBRARIES=$arm64_built
    for shared in /dev /proc /sys "$root"; do
        mkdir -p "$ARM64_SYSTEM$shared"
        mount --rbind "$shared" "$ARM64_SYSTEM$shared"
    done
    # MPICH asks for the address of its host's name.
    echo "127.0.0.1 localhost $(hostname)" >"$ARM64_SYSTEM/etc/hosts"
}

# arm64_programs PROGRAM...: sources of tests/libraries and tests/programs, for both MPIs.
arm64_programs() {
    local mpi source program words
    for mpi in arm64-openmpi arm64-mpich; do
        mkdir -p "$root/target/mpi/$mpi"
        mpi_compiler "$mpi"
        for source in "$@"; do
            program=$root/target/mpi/$mpi/$(basename "${source%.c}")
            [ "$program" -nt "$source" ] || "${words[@]}" -std=gnu11 -O2 -g "$source" -o "$program"
        done
    done
}

# The command and the preload libraries, laid out as `make build` does.
arm64_build() {
    cargo build --release --target "$arm64_triple" --workspace --bins --lib
    CC=$arm64_compiler mpi/build.sh "$arm64_built"
}
