#!/usr/bin/env bash
# what: three clusters of Debian's Slurm that give nodes for one job at the same time, while controllers,
#   nodes and gateways go, accounts have limits, and clocks differ; two clusters of which one is busy or
#   cannot be asked
# needs: root, or user namespaces
# takes: three minutes; two clusters are part of `make test`
set -euo pipefail
. "$(dirname "$0")/common.sh"
made setup build programs
tools/setup/install.sh accounting
e2e batch::long_
