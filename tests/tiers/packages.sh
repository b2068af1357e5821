#!/usr/bin/env bash
# what: the packages of `make dist`: the .deb, the .rpm and the wheel are installed in the root of a Debian 11,
#   run a job over two sites, and are removed without a trace
# needs: root; the network once
# takes: a quarter of an hour
set -euo pipefail
. "$(dirname "$0")/common.sh"
tools/setup/install.sh systems
tools/setup/pypi.sh mpich
made dist
tests/dist/packages.sh
