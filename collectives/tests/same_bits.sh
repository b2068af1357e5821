#!/usr/bin/env bash
# same_bits.sh: with CAUSEWAY_COLLECTIVES_SAME_BITS sums have the same bits wherever the ranks are, on one site too; and without it they do not, or
# the sums would show nothing. With Debian's Open MPI and, where it is installed, MPICH from PyPI, on this host alone.
set -euo pipefail
root=$(cd "$(dirname "$0")/../.." && pwd)
libraries=${CARGO_TARGET_DIR:-$root/target}/release
placements=(a,a,b,b a,b,a,b a,a,a,a a,b,b,b a,b,c,a)
directory=$(mktemp -d)
trap 'rm -rf "$directory"' EXIT

placement() { # option, placement, command... -n: prints the bits
    CAUSEWAY_COLLECTIVES_SAME_BITS=$1 CAUSEWAY_COLLECTIVES_SITES=$2 "${@:3}" 4 "$program"
}

compare() { # name, command... -n
    local name=$1 sites
    shift
    placement 1 "${placements[0]}" "$@" >"$directory/first"
    for sites in "${placements[@]:1}"; do
        placement 1 "$sites" "$@" >"$directory/other"
        cmp "$directory/first" "$directory/other" || { echo "$name: sites $sites: other bits than sites ${placements[0]}" && exit 1; }
    done
    placement 0 a,a,b,b "$@" >"$directory/first"
    placement 0 a,b,b,b "$@" >"$directory/other"
    if cmp -s "$directory/first" "$directory/other"; then
        echo "$name: these sums have the same bits in any order" && exit 1
    fi
    echo "$name: the same $(wc -l <"$directory/first") sums over ${#placements[@]} placements"
}

program=$root/target/mpi/debian-openmpi/same_bits
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
compare "Open MPI" mpirun.openmpi --oversubscribe --mca mpi_yield_when_idle 1 --mca pml ob1 --mca btl tcp,vader,self \
    -x CAUSEWAY_COLLECTIVES_SITES -x CAUSEWAY_COLLECTIVES_SAME_BITS -x "LD_PRELOAD=$libraries/libcauseway_mpi_openmpi.so" -n

mpich=$root/.cache/mpi/mpich/bin/mpirun
[ -x "$mpich" ] || exit 0
# Over sockets alone its ranks, more than there are cores, let each other run.
export FI_PROVIDER=tcp MPIR_CVAR_CH4_NETMOD=ofi MPIR_CVAR_NOLOCAL=1
for interface in mpich abi; do
    program=$root/target/mpi/$interface/same_bits
    compare "MPICH ($interface)" "$mpich" -genv LD_PRELOAD "$libraries/libcauseway_mpi_abi.so:$libraries/libcauseway_mpi_mpich.so" -n
done
