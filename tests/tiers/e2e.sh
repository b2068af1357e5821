#!/usr/bin/env bash
# what: release binaries with Debian's Open MPI and MPICH over two and three sites: see below
# needs: root, or user namespaces
# takes: part of `make test`
set -euo pipefail
. "$(dirname "$0")/common.sh"
made setup build programs
# What waits for batch systems, cuts and ends runs beside what computes, and says at the end what it has said.
waits=(accounts batch chaos cuts endure files newcomers own_mpi punching relays tune)
leaves=()
for each in "${waits[@]}"; do leaves+=(--skip "$each::"); done
said=$target/e2e-beside.txt
# A process group of its own, which ends with this one.
set -m
e2e "${waits[@]/%/::debian_}" >"$said" 2>&1 &
beside=$!
set +m
trap 'kill -- "-$beside" 2>/dev/null || :' EXIT
status=0
e2e debian_ plain_sockets --skip all_programs --skip all_at_once --skip mpi4py_ "${leaves[@]}" || status=$?
wait "$beside" || status=$?
cat "$said"
exit "$status"
