#!/usr/bin/env bash
# what: the counts of `causeway bench messages`, against what a program sends with the usual calls, and
#   against what a Fortran program sends
# needs: nothing
# takes: ten seconds; part of `make test`
set -euo pipefail
. "$(dirname "$0")/common.sh"
made setup build programs
tests/libraries/messages.sh
