# shellcheck shell=bash disable=SC2034 # who sources this uses what is set here
# Sourced by the tests of arm64 on another machine: how Causeway is compiled for it, and what runs that.
. "$(dirname "${BASH_SOURCE[0]}")/../emulated.sh"
arm64_triple=aarch64-unknown-linux-gnu
arm64_compiler=aarch64-linux-gnu-gcc
# The libraries that the cross compiler links with. Without them an arm64 machine runs programs itself.
arm64_emulator="qemu-aarch64-static -L /usr/aarch64-linux-gnu"
arm64_built=$target/$arm64_triple/release
export CARGO_TARGET_AARCH64_UNKNOWN_LINUX_GNU_LINKER=$arm64_compiler
export CARGO_TARGET_AARCH64_UNKNOWN_LINUX_GNU_RUNNER=$arm64_emulator

# The command and the preload libraries, laid out as `make build` does.
arm64_build() {
    cargo build --release --target "$arm64_triple" --workspace --bins --lib
    CC=$arm64_compiler mpi/build.sh "$arm64_built"
}
