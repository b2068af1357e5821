#!/usr/bin/env bash
# what: all compiled for arm64, which this machine emulates: the unit and model tests of wire, tunnel, shim
#   and mpis; the world's engine, joining and streams; worlds of ranks on arm64 and x86-64, with Debian's MPIs
#   of both, and mpi4py's tests over them; emulated grids with sites of arm64; the tar and the .deb of
#   `make dist` for arm64, and `causeway up` over both processors
# needs: root; the network once; 1.2 GB for a root
# takes: an hour, most of it to compile twice
set -euo pipefail
. "$(dirname "$0")/common.sh"
tools/setup/arm64.sh
made setup build
. tests/arm64/common.sh
arm64_build
cargo test --release --target "$arm64_triple" --package=causeway-{wire,tunnel,mpis} --lib --tests
cargo test --release --target "$arm64_triple" -p causeway-shim --lib
export CC=$arm64_compiler EMULATOR=$arm64_emulator
tests/libraries/signatures.sh
tests/libraries/world/long_double.sh 100000
tests/libraries/world/engine.sh "${ENGINE_CASES:-2000}"
tests/libraries/world/sockets.sh
unset CC EMULATOR
tests/arm64/shim.sh
tests/arm64/worlds.sh
tests/arm64/mpi4py.sh
tests/arm64/grid.sh
tests/dist/arm64.sh
tests/arm64/up.sh
