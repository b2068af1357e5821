#!/usr/bin/env bash
# what: each site sends each other site exactly what it must, even around a slow path
# needs: nothing
# takes: ten seconds; part of `make test`
set -euo pipefail
. "$(dirname "$0")/common.sh"
made setup build programs
tests/libraries/slow_pair.sh
