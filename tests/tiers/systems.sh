#!/usr/bin/env bash
# what: the tar of `make dist`: in Debian 11 (glibc 2.31) it runs a job of each MPI there over two sites, from
#   any directory; made twice in different folders, it has the same bytes
# needs: root; the network once
# takes: a quarter of an hour
set -euo pipefail
. "$(dirname "$0")/common.sh"
tools/setup/install.sh systems
made dist
tests/dist/bullseye.sh
tests/dist/same_bytes.sh
