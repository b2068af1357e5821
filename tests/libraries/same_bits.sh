#!/usr/bin/env bash
# same_bits.sh: with CAUSEWAY_COLLECTIVES_SAME_BITS sums have the same bits wherever the ranks are, on one
# site too; and without it they do not, or the sums would show nothing. With each MPI of launch.sh.
set -euo pipefail
. "$(dirname "$0")/launch.sh"
placements=(a,a,b,b a,b,a,b a,a,a,a a,b,b,b a,b,c,a)
directory=$(mktemp -d)
trap 'rm -rf "$directory"' EXIT

placement() { # option, MPI, placement: prints the bits
    CAUSEWAY_COLLECTIVES_SAME_BITS=$1 launch "$2" "$3" "$(preloads "$2")" "$root/target/mpi/$2/same_bits"
}

compare() { # MPI
    local name=$1 sites
    placement 1 "$name" "${placements[0]}" >"$directory/first"
    for sites in "${placements[@]:1}"; do
        placement 1 "$name" "$sites" >"$directory/other"
        cmp "$directory/first" "$directory/other" || { echo "$name: sites $sites: other bits than sites ${placements[0]}" && exit 1; }
    done
    placement 0 "$name" a,a,b,b >"$directory/first"
    placement 0 "$name" a,b,b,b >"$directory/other"
    if cmp -s "$directory/first" "$directory/other"; then
        echo "$name: these sums have the same bits in any order" && exit 1
    fi
    echo "$name: the same $(wc -l <"$directory/first") sums over ${#placements[@]} placements"
}

for mpi in "${mpis[@]}"; do compare "$mpi"; done
