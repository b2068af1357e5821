#!/usr/bin/env bash
# what: the packages of `make dist`: the .deb, the .rpm and the wheel are installed in the root of a Debian
#   11, run a job over two sites, and are removed without a trace; the tar of `make source`, built by
#   EasyBuild without a network
# needs: root; the network once
# takes: twenty minutes
set -euo pipefail
. "$(dirname "$0")/common.sh"
made setup
for list in systems recipes; do tools/setup/install.sh $list; done
tools/setup/pypi.sh mpich recipes
made dist source
tests/dist/packages.sh
tests/dist/source.sh
