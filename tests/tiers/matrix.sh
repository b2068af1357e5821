#!/usr/bin/env bash
# what: every kind of site with every kind of site (open, port range, outbound only, NAT, symmetric NAT):
#   how they meet, and a job over them
# needs: root, or user namespaces
# takes: five minutes
set -euo pipefail
. "$(dirname "$0")/common.sh"
made setup build programs
e2e matrix_
