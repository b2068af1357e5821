# shellcheck shell=bash
# Sourced by the tests of this directory: starts MPI programs on this host alone, with the library told where
# their ranks are.
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
libraries=${libraries:-${CARGO_TARGET_DIR:-$root/target}/release}
. "$root/tests/mpis.sh"
# Over sockets of this host, as between sites.
export OMPI_MCA_pml=ob1 OMPI_MCA_btl=tcp,vader,self
# Over sockets alone the ranks of PyPI's MPICH, more than there are cores, let each other run.
export FI_PROVIDER=tcp MPIR_CVAR_CH4_NETMOD=ofi MPIR_CVAR_NOLOCAL=1

# Open MPI of Debian, and, where it is installed, MPICH of PyPI in both its binary interfaces.
mpis=(debian-openmpi)
if mpi_is_there mpich; then mpis+=(mpich abi); fi

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
    local mpi=$1 sites=$2 preloads=$3 ranks words
    shift 3
    ranks=$(tr , '\n' <<<"$sites" | wc -l)
    export CAUSEWAY_COLLECTIVES_SITES=$sites
    mpi_words "$mpi" "CAUSEWAY_COLLECTIVES_SITES=$sites" ${preloads:+"LD_PRELOAD=$preloads"}
    "${words[@]}" -n "$ranks" "$@"
}
