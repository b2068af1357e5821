#!/usr/bin/env bash
# overhead.sh CALLS [ROUNDS]: what a call costs with the library where it has nothing to improve: in a job of
# one process, on one site, and on communicators of one rank in a job on two. Fails when it has sent anything
# or made a communicator there.
set -euo pipefail
. "$(dirname "$0")/launch.sh"

echo "mpi,sites,communicator,round,calls,native_ns,library_ns"
for mpi in "${mpis[@]}"; do
    for sites in a a,a a,b; do
        rows=$(launch "$mpi" "$sites" "$(preloads "$mpi")" "$root/target/mpi/$mpi/overhead" "$1" "${2:-1}" "$sites")
        sed "s/^$sites,/$mpi,${sites//,/+},/" <<<"$rows"
    done
done
