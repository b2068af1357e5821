#!/usr/bin/env bash
# long.sh PROGRAMS [SOAK_SECONDS [PAIRING...]]: as many random programs over each pairing of MPIs:
# collective operations in every form on communicators of all kinds, compared with the world's own, and for
# every forty of them one program of random receives, judged by MPI's rules. Then the test of data, and a
# soak of SOAK_SECONDS (600) with the first pairing, in which memory must not grow. Seeds are printed.
set -euo pipefail
. "$(dirname "$0")/launch.sh"
many=$1 soak_seconds=${2:-600}
pairings=("debian-openmpi:2 debian-mpich:2" "debian-openmpi:2 abi:2" "debian-openmpi:2 mpich:2" "debian-openmpi:2 intel:2" "debian-mpich:2 mpich:2")
if [ $# -gt 2 ]; then pairings=("${@:3}"); fi
# The longest takes an hour on two cores.
seconds=4000
log=$(mktemp)
trap 'rm -f "$log"' EXIT

run() { # PAIRING WHAT PROGRAM ARGUMENTS...
    # shellcheck disable=SC2086 # A pairing is several words.
    if ! world $1 -- "${@:3}" >"$log" 2>&1; then
        echo "$1: ${*:3} failed:" >&2
        cat "$log" >&2
        exit 1
    fi
    echo "$1: $2: $(grep -aE 'all right|the same' "$log")"
}

export CURE=$libraries/libcauseway_ucx.so
seed=1
for pairing in "${pairings[@]}"; do
    run "$pairing" "seeds $seed to $((seed + many / 40 - 1))" receives $((many / 40 + 1)) "$seed"
    COLLECTIVES=1 run "$pairing" "seed $seed" compare "$many" "$seed"
    SEED=$seed "$root/tests/libraries/world/data.sh" 60 "$pairing"
    seed=$((seed + many))
done
COLLECTIVES=1 run "${pairings[0]}" soak compare "${soak_seconds}s" 1
