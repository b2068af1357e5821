#!/usr/bin/env bash
# what: the world of unlike MPIs, as far as it needs none: the engine against MPI rules, joining, streams,
#   the list of MPI's arguments against MPIs' headers, and long doubles in the forms of processors
# needs: nothing
# takes: a minute; `ENGINE_CASES` (20000) random programs; part of `make test`
set -euo pipefail
. "$(dirname "$0")/common.sh"
tests/libraries/signatures.sh
tests/libraries/world/engine.sh "${ENGINE_CASES:-20000}"
tests/libraries/world/sockets.sh
tests/libraries/world/long_double.sh
