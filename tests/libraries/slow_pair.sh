#!/usr/bin/env bash
# slow_pair.sh: over three sites, two of which have a slow way between them, or none, nothing of a broadcast
# or reduction crosses it, each site sends each other one what it must, and random collectives give the MPI's
# own results; and several ranks carry a large allreduce where a rule says so. With Debian's Open MPI, on this
# host alone.
set -euo pipefail
. "$(dirname "$0")/launch.sh"

run() { # sites, program and arguments
    launch debian-openmpi "$1" "$(preloads debian-openmpi)" "$root/target/mpi/debian-openmpi/$2" "${@:3}"
}

for slow in "300000 10" "10000 0"; do
    export CAUSEWAY_COLLECTIVES_LINKS="a b 10000 1000, b c 10000 1000, a c $slow"
    run a,a,b,b,c crossings slow 2 2 1
    run a,b,b,a,c,c,a compare 150 1 | sed -n 1p
    CAUSEWAY_COLLECTIVES_SEGMENT_BYTES=400 run a,b,b,a,c,c,a compare 150 2 | sed -n 1p
done

unset CAUSEWAY_COLLECTIVES_LINKS
export CAUSEWAY_COLLECTIVES_RULES="allreduce 256k.. multi-leader"
run a,a,b,b crossings 2 2
run a,a,a,b,b crossings 3 2
run a,a,b,c,c crossings 2 1 2
