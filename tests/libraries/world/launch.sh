# shellcheck shell=bash
# Sourced by the tests of this directory: starts jobs of two MPIs on this host as one world, over loopback,
# without gateways.
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../../.." && pwd)
built=${CARGO_TARGET_DIR:-$root/target}/release
causeway=${CAUSEWAY:-$built/causeway}
libraries=${WORLD_LIBRARIES:-$built}
# In the order of `causeway run --at`; MPICH of PyPI has the standard interface, too.
interfaces="openmpi abi mpich"
programs=$root/target/mpi
. "$root/tests/mpis.sh"
token=00112233445566778899aabbccddeeff
# How long a job may take.
seconds=${WORLD_SECONDS:-100}

# The libraries of a process. With COLLECTIVES the library of collectives is above the world's. CURE is
# preloaded before them.
preloaded() { # MPI
    local name list=${CURE:-} libraries=$libraries foreign=${1%%-*}_LIBRARIES
    foreign=${foreign^^}
    case $1 in arm64-* | s390x-*) libraries=${!foreign} ;; esac
    for name in $interfaces; do
        list+=${COLLECTIVES:+:$libraries/libcauseway_mpi_${name/openmpi/openmpi5}.so}:$libraries/libcauseway_world_$name.so
    done
    echo "${list#:}"
}

# site MPI NAME RANKS COMMAND...: one site's job, in the world whose rendezvous is $rendezvous; without one
# the MPI alone. A rank finds the first two in SITE_MPI and SITE_NAME. More ranks than cores let each other
# run: none is bound to a core, where another site's rank that never yields may be.
site() {
    local mpi=$1 name=$2 ranks=$3 words set
    local preload=("SITE_MPI=$mpi" "SITE_NAME=$name")
    shift 3
    if [ -n "${rendezvous:-}" ]; then
        preload+=("LD_PRELOAD=$(preloaded "$mpi")" "CAUSEWAY_WORLD=2,$name,$rendezvous" "CAUSEWAY_TOKEN=$token")
        for set in "${!CAUSEWAY_COLLECTIVES_@}"; do preload+=("$set=${!set}"); done
    fi
    mpi_words "$mpi" "${preload[@]}"
    # Ranks of one site exchange messages over memory, where that is not so anyway or by chance.
    case $mpi in
    debian-openmpi | arm64-openmpi | s390x-openmpi) words+=(--mca pml ob1 --mca btl vader,self) ;;
    mpich | abi) local -x FI_PROVIDER=tcp MPIR_CVAR_CH4_NETMOD=ofi ;;
    intel) local -x I_MPI_FABRICS=shm ;;
    esac
    timeout "$seconds" "${words[@]}" -n "$ranks" "$@"
}

# world SITE... -- PROGRAM ARGUMENTS...: each SITE is MPI:RANKS, and PROGRAM is the name of one in the MPI's
# directory. Status 0 where all sites and the rendezvous end with 0.
world() {
    local sites=() words=() status=0 pids=() number=0 rendezvous out
    while [ "$1" != -- ]; do
        sites+=("$1") words+=(--site "s$number-${1%:*}")
        number=$((number + 1))
        shift
    done
    shift
    out=$(mktemp -d)
    timeout "$((seconds + 20))" "$causeway" rendezvous --token "$token" "${words[@]}" >"$out/address" &
    pids+=($!)
    until [ -s "$out/address" ]; do
        kill -0 "${pids[0]}" || return 1
        read -rt 0.05 <> <(:) || :
    done
    rendezvous=$(head -n 1 "$out/address")
    number=0
    for word in "${sites[@]}"; do
        local program=$1
        case $program in /*) ;; *) program=$programs/${word%:*}/$program ;; esac
        site "${word%:*}" "s$number-${word%:*}" "${word#*:}" "$program" "${@:2}" &
        pids+=($!)
        number=$((number + 1))
    done
    for pid in "${pids[@]:1}"; do wait "$pid" || status=$?; done
    # Of a site whose job has not begun it never hears.
    [ "$status" = 0 ] || kill "${pids[0]}" 2>/dev/null || :
    wait "${pids[0]}" || status=$?
    rm -r "$out"
    return "$status"
}
