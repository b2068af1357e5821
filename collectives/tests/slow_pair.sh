#!/usr/bin/env bash
# slow_pair.sh: over three sites, two of which have a slow way between them, or none, nothing of a broadcast or reduction crosses it, each site sends
# each other one what it must, and random collectives give the MPI's own results. With Debian's Open MPI, on this host alone.
set -euo pipefail
root=$(cd "$(dirname "$0")/../.." && pwd)
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
libraries=${CARGO_TARGET_DIR:-$root/target}/release

run() { # sites, ranks, program and arguments
    CAUSEWAY_COLLECTIVES_SITES=$1 mpirun.openmpi --oversubscribe --mca mpi_yield_when_idle 1 --mca pml ob1 --mca btl tcp,vader,self \
        -x CAUSEWAY_COLLECTIVES_SITES -x CAUSEWAY_COLLECTIVES_LINKS -x "LD_PRELOAD=$libraries/libcauseway_mpi_openmpi.so" \
        -n "$2" "$root/target/mpi/debian-openmpi/$3" "${@:4}"
}

for slow in "300000 10" "10000 0"; do
    export CAUSEWAY_COLLECTIVES_LINKS="a b 10000 1000, b c 10000 1000, a c $slow"
    run a,a,b,b,c 5 crossings slow 2 2 1
    run a,b,b,a,c,c,a 7 compare 150 1 | head -n 1
done
