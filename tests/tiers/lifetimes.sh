#!/usr/bin/env bash
# what: communicators made, used, freed and left, under the sanitizers for addresses, leaks and undefined
#   behaviour
# needs: the network once
# takes: two minutes
set -euo pipefail
. "$(dirname "$0")/common.sh"
made setup build programs
tools/setup/pypi.sh mpich
tests/libraries/lifetimes.sh 40
