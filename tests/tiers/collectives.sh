#!/usr/bin/env bash
# what: random collectives: each is compared with the MPI's own, and nothing may be sent if nothing is
#   improved; non-blocking ones are also run with as few tags as MPI allows
# needs: the network once
# takes: five minutes; `CASES` (20000) for each MPI
set -euo pipefail
. "$(dirname "$0")/common.sh"
made setup build programs
mpis mpich abi
tests/libraries/slow_pair.sh
tests/libraries/random.sh "${CASES:-20000}"
tests/libraries/beside.sh
tests/libraries/overhead.sh 1000
tests/libraries/same_bits.sh
tests/libraries/delivery.sh
