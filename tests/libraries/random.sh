#!/usr/bin/env bash
# random.sh CASES: that many random collectives on random communicators with each MPI of launch.sh, on this
# host alone. Every result is compared with the MPI's own.
set -euo pipefail
. "$(dirname "$0")/launch.sh"
# Sites of the ranks, one word for each run; the cases are shared between them.
placements=(a,b a,a,b a,a,b,b a,b,a,c,b a,a,b,b,c a,b,b,a,c,c,a)
each=$(($1 / ${#placements[@]} / 3 + 1))

# try MPI SITES SEED: as many cases.
try() {
    found=$(launch "$1" "$2" "$(preloads "$1")" "$root/target/mpi/$1/compare" "$each" "$3") || { echo "$found" && exit 1; }
    echo "$1, sites $2${CAUSEWAY_COLLECTIVES_RULES:+, $CAUSEWAY_COLLECTIVES_RULES}: $(sed -n '/cases of/p' <<<"$found")"
}

for mpi in "${mpis[@]}"; do
    seed=1
    for sites in "${placements[@]}"; do
        try "$mpi" "$sites" "$seed"
        # What the model chooses for large messages alone, or on slow networks, and most messages in many
        # pieces.
        (
            export CAUSEWAY_COLLECTIVES_SEGMENT_BYTES=400
            CAUSEWAY_COLLECTIVES_RULES="allreduce multi-leader, reduce_scatter multi-leader, gather direct, scatter direct" try "$mpi" "$sites" $((seed + 1000))
            # MPICH then waits for the far side of each send, for which messages are copied.
            MPIR_CVAR_CH4_OFI_ENABLE_RMA=1 CAUSEWAY_COLLECTIVES_RULES="allreduce split" try "$mpi" "$sites" $((seed + 2000))
        )
        seed=$((seed + 1))
    done
done
