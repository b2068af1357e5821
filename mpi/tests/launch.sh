# shellcheck shell=bash
# Sourced by the tests of this directory: starts MPI programs on this host alone, with the library told where
# their ranks are.
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
libraries=${libraries:-${CARGO_TARGET_DIR:-$root/target}/release}
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
# Over sockets alone the ranks of PyPI's MPICH, more than there are cores, let each other run.
export FI_PROVIDER=tcp MPIR_CVAR_CH4_NETMOD=ofi MPIR_CVAR_NOLOCAL=1

# Open MPI of Debian, and, where it is installed, MPICH of PyPI in both its binary interfaces.
mpis=(debian-openmpi)
if [ -x "$root/.cache/mpi/mpich/bin/mpirun" ]; then mpis+=(mpich abi); fi

# preloads MPI: the libraries, as `causeway run` orders them.
preloads() {
    case $1 in
    debian-openmpi) echo "$libraries/libcauseway_mpi_openmpi.so" ;;
    *) echo "$libraries/libcauseway_mpi_abi.so:$libraries/libcauseway_mpi_mpich.so" ;;
    esac
}

# launch MPI SITES PRELOADS PROGRAM ARGUMENTS...: as many ranks as SITES (a,a,b) has words; without PRELOADS
# nothing is preloaded.
launch() {
    local mpi=$1 sites=$2 preloads=$3 ranks
    shift 3
    ranks=$(tr , '\n' <<<"$sites" | wc -l)
    export CAUSEWAY_COLLECTIVES_SITES=$sites
    case $mpi in
    debian-openmpi)
        mpirun.openmpi --oversubscribe --mca mpi_yield_when_idle 1 --mca pml ob1 --mca btl tcp,vader,self \
            -x CAUSEWAY_COLLECTIVES_SITES ${preloads:+-x "LD_PRELOAD=$preloads"} -n "$ranks" "$@"
        ;;
    debian-mpich) mpirun.mpich ${preloads:+-genv LD_PRELOAD "$preloads"} -n "$ranks" "$@" ;;
    *) "$root/.cache/mpi/mpich/bin/mpirun" ${preloads:+-genv LD_PRELOAD "$preloads"} -n "$ranks" "$@" ;;
    esac
}
