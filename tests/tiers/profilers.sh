#!/usr/bin/env bash
# what: a PMPI tool and EZTrace, loaded before the collectives library
# needs: nothing
# takes: part of `make test`
set -euo pipefail
. "$(dirname "$0")/common.sh"
made setup build programs
tests/libraries/profilers.sh
