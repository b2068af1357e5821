#!/usr/bin/env bash
# what: ranks of both of Debian's MPIs in containers of Podman, over two sites; a container that drops the
#   shim, or does not see it, is told of
# needs: root
# takes: a minute
set -euo pipefail
. "$(dirname "$0")/common.sh"
made setup build programs
tools/setup/install.sh podman
e2e containers::
