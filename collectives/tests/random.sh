#!/usr/bin/env bash
# random.sh CASES: that many random collectives on random communicators with Debian's Open MPI and, where it is installed, MPICH from PyPI in both its
# binary interfaces, on this host alone: the library is told that its ranks are at several sites. Every result is compared with the MPI's own.
set -euo pipefail
root=$(cd "$(dirname "$0")/../.." && pwd)
cases=$1
libraries=${CARGO_TARGET_DIR:-$root/target}/release
# Sites of the ranks, one word for each run; the cases are shared between them.
placements=(a,b a,a,b a,a,b,b a,b,a,c,b a,a,b,b,c a,b,b,a,c,c,a)
each=$((cases / ${#placements[@]} + 1))

run() { # name, command... -n: what is compared, for each placement
    local name=$1 seed=1 sites ranks found
    shift
    for sites in "${placements[@]}"; do
        ranks=$(tr , '\n' <<<"$sites" | wc -l)
        found=$(CAUSEWAY_COLLECTIVES_SITES=$sites "$@" "$ranks" "$program" "$each" "$seed") || { echo "$found" && exit 1; }
        echo "$name, sites $sites: $(sed -n '/cases of/p' <<<"$found")"
        seed=$((seed + 1))
    done
}

program=$root/target/mpi/debian-openmpi/compare
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
run "Open MPI" mpirun.openmpi --oversubscribe --mca mpi_yield_when_idle 1 --mca pml ob1 --mca btl tcp,vader,self \
    -x CAUSEWAY_COLLECTIVES_SITES -x "LD_PRELOAD=$libraries/libcauseway_mpi_openmpi.so" -n

mpich=$root/.cache/mpi/mpich/bin/mpirun
[ -x "$mpich" ] || exit 0
# Over sockets alone its ranks, more than there are cores, let each other run.
export FI_PROVIDER=tcp MPIR_CVAR_CH4_NETMOD=ofi MPIR_CVAR_NOLOCAL=1
for interface in mpich abi; do
    program=$root/target/mpi/$interface/compare
    run "MPICH ($interface)" "$mpich" -genv LD_PRELOAD "$libraries/libcauseway_mpi_abi.so:$libraries/libcauseway_mpi_mpich.so" -n
done
