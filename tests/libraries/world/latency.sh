#!/usr/bin/env bash
# latency.sh ROUNDS [MPI...]: what a message between two ranks of one site takes, in its MPI alone and with
# the world library beside one rank of another site, in turn ROUNDS times. Prints all rows as CSV, and to
# standard error the medians and their difference. It needs two idle cores.
set -euo pipefail
. "$(dirname "$0")/launch.sh"
rounds=$1
mpis=(debian-openmpi debian-mpich)
if [ $# -gt 1 ]; then mpis=("${@:2}"); fi
export CURE=$libraries/libcauseway_ucx.so
rows=$(mktemp)
trap 'rm -f "$rows"' EXIT

measured() { # HOW ROUND COMMAND...: its rows
    "${@:3}" | sed -n "/^[a-z-]*,[0-9]/s/^/$mpi,$1,$2,/p" | tee -a "$rows"
}

echo "mpi,how,round,way,bytes,least_ns,median_ns"
for mpi in "${mpis[@]}"; do
    far=debian-mpich
    [ "$mpi" != debian-mpich ] || far=debian-openmpi
    for round in $(seq "$rounds"); do
        measured alone "$round" site "$mpi" alone 2 "$programs/$mpi/latency" 20
        measured world "$round" world "$mpi:2" "$far:1" -- latency 20
    done
done
awk -F, '
    # Medians of rounds are compared by their median, too.
    { key = $1 "," $4 "," $5; at = key SUBSEP $2; value[at, ++many[at]] = $7; keys[key] }
    function median(at,   n, i, k, x, list) {
        n = many[at]
        for (i = 1; i <= n; i++) list[i] = value[at, i]
        for (i = 2; i <= n; i++) { x = list[i]; for (k = i - 1; k && list[k] > x; k--) list[k + 1] = list[k]; list[k + 1] = x }
        return list[int((n + 1) / 2)]
    }
    END {
        for (key in keys) {
            alone = median(key SUBSEP "alone"); world = median(key SUBSEP "world")
            printf "%s: alone %.0f ns, world %.0f ns, %+.0f ns, %+.2f %%\n", key, alone, world, world - alone, 100 * (world / alone - 1)
        }
    }' "$rows" | sort >&2
