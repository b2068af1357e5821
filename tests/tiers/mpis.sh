#!/usr/bin/env bash
# what: Open MPI 5, MPICH 5 over ofi and ucx, Intel MPI, all from PyPI, end to end; every option in the help
#   of five launchers, against the tables of `causeway run` and the launcher
# needs: root, or user namespaces; the network once
# takes: half an hour
set -euo pipefail
. "$(dirname "$0")/common.sh"
made setup build programs
mpis "${pypi[@]}" abi
tests/libraries/messages.sh "${pypi[@]}" abi
cargo test --release --quiet -p causeway-mpis -- --ignored takes_what_the_table_says
e2e pypi all_programs
