#!/usr/bin/env bash
# what: the WAN down for 7 s to 5 min, lanes reset, a NAT that forgets, each under a running job
# needs: root, or user namespaces
# takes: eleven minutes; cuts of two seconds are part of `make test`
set -euo pipefail
. "$(dirname "$0")/common.sh"
made setup build programs
e2e cuts::long_ endure::long_
