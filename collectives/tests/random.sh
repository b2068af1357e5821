#!/usr/bin/env bash
# random.sh CASES: that many random collectives on random communicators with each MPI of launch.sh, on this host alone. Every result is compared with
# the MPI's own.
set -euo pipefail
. "$(dirname "$0")/launch.sh"
# Sites of the ranks, one word for each run; the cases are shared between them.
placements=(a,b a,a,b a,a,b,b a,b,a,c,b a,a,b,b,c a,b,b,a,c,c,a)
each=$(($1 / ${#placements[@]} + 1))

for mpi in "${mpis[@]}"; do
    seed=1
    for sites in "${placements[@]}"; do
        found=$(launch "$mpi" "$sites" "$(preloads "$mpi")" "$root/target/mpi/$mpi/compare" "$each" "$seed") || { echo "$found" && exit 1; }
        echo "$mpi, sites $sites: $(sed -n '/cases of/p' <<<"$found")"
        seed=$((seed + 1))
    done
done
