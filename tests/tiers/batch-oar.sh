#!/usr/bin/env bash
# what: a cluster of Debian's OAR and one of its Slurm that give nodes for one job at the same time
# needs: root
# takes: four minutes
set -euo pipefail
. "$(dirname "$0")/common.sh"
made setup build programs
tools/setup/install.sh oar
e2e batch::oar_
