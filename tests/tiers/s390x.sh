#!/usr/bin/env bash
# what: the libraries of worlds and collectives compiled for s390x, a big-endian processor that this machine
#   emulates: the world's engine, joining and streams; worlds of ranks on s390x, x86-64 and arm64, with
#   Debian's MPIs of each, and IS and CG over them if NPB names their sources. No job runs there: the
#   shim is for x86-64 and arm64
# needs: root; the network once; 2.4 GB for two roots
# takes: four minutes, and 12 once to make the roots
set -euo pipefail
. "$(dirname "$0")/common.sh"
tools/setup/install.sh s390x
tools/setup/install.sh arm64
made setup build
export CC=s390x-linux-gnu-gcc EMULATOR="qemu-s390x-static -L /usr/s390x-linux-gnu"
tests/libraries/world/engine.sh "${ENGINE_CASES:-2000}"
tests/libraries/world/sockets.sh
unset CC EMULATOR
tests/s390x/worlds.sh
tests/s390x/npb.sh
