#!/usr/bin/env bash
# what: release binaries with Debian's Open MPI and MPICH over two and three sites: see below
# needs: root, or user namespaces
# takes: part of `make test`
set -euo pipefail
. "$(dirname "$0")/common.sh"
made setup build programs
# Tests that mostly wait run in the background. Their output follows that of the others.
waiting=(accounts batch chaos cuts endure files newcomers own_mpi punching relays tune)
skips=(--skip all_programs --skip all_at_once --skip mpi4py_)
for each in "${waiting[@]}"; do skips+=(--skip "$each::"); done
output=$target/e2e-background.txt
# Job control gives it a process group of its own, which the trap ends with this script.
set -m
e2e "${waiting[@]/%/::debian_}" >"$output" 2>&1 &
background=$!
set +m
trap 'kill -- "-$background" 2>/dev/null || :' EXIT
status=0
e2e debian_ plain_sockets "${skips[@]}" || status=$?
wait "$background" || status=$?
cat "$output"
exit "$status"
