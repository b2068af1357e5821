#!/usr/bin/env bash
# what: jobs of both Debian MPIs and a world of sites' own MPIs that check every byte while the workers of
#   their gateways are killed by signals of every kind every 0.2 to 2 s, get no more memory, or are stopped
#   for 5 s, behind a NAT, through relays and TLS, while connections are cut, two brokers die and return or
#   lose each other, and disks of gateways are full
# needs: root, or user namespaces
# takes: eleven minutes; one minute of it is part of `make test`
set -euo pipefail
. "$(dirname "$0")/common.sh"
made setup build programs
CHAOS_SECONDS=${CHAOS_SECONDS:-600} e2e chaos::
