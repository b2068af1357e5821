#!/usr/bin/env bash
# what: a cluster of OpenPBS, built from its source, and one of Debian's Slurm that give nodes for one job at
#   the same time
# needs: root, and OpenPBS: `tools/setup/openpbs.sh`
# takes: two minutes
set -euo pipefail
. "$(dirname "$0")/common.sh"
made setup build programs
e2e batch::openpbs_
