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
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
token=00112233445566778899aabbccddeeff
# How long a job may take.
seconds=${WORLD_SECONDS:-100}

# The libraries of a process. With COLLECTIVES the library of collectives is above the world's. CURE is
# preloaded before them.
preloaded() {
    local name list=${CURE:-}
    for name in $interfaces; do
        [ -e "$libraries/libcauseway_world_$name.so" ] || continue
        list+=${COLLECTIVES:+:$libraries/libcauseway_mpi_${name/openmpi/openmpi5}.so}:$libraries/libcauseway_world_$name.so
    done
    echo "${list#:}"
}

# site MPI NAME RANKS COMMAND...: one site's job, in the world whose rendezvous is $rendezvous; without one
# the MPI alone. A rank finds the first two in SITE_MPI and SITE_NAME. More ranks than cores let each other
# run: none is bound to a core, where another site's rank that never yields may be.
site() {
    local mpi=$1 name=$2 ranks=$3 options=() set
    local preload=("SITE_MPI=$mpi" "SITE_NAME=$name")
    shift 3
    if [ -n "${rendezvous:-}" ]; then
        preload+=("LD_PRELOAD=$(preloaded)" "CAUSEWAY_WORLD=1,$name,$rendezvous" "CAUSEWAY_TOKEN=$token")
        for set in "${!CAUSEWAY_COLLECTIVES_@}"; do preload+=("$set=${!set}"); done
    fi
    case $mpi in
    debian-openmpi)
        for set in "${preload[@]}"; do options+=(-x "$set"); done
        timeout "$seconds" mpirun.openmpi --oversubscribe --bind-to none --mca mpi_yield_when_idle 1 --mca pml ob1 --mca btl vader,self \
            "${options[@]}" -n "$ranks" "$@"
        ;;
    openmpi)
        for set in "${preload[@]}"; do options+=(-x "$set"); done
        PRTE_MCA_rmaps_default_mapping_policy=:oversubscribe timeout "$seconds" "$root/.cache/mpi/openmpi/bin/mpirun" \
            --allow-run-as-root --bind-to none --mca mpi_yield_when_idle 1 "${options[@]}" -n "$ranks" "$@"
        ;;
    debian-mpich)
        for set in "${preload[@]}"; do options+=(-genv "${set%%=*}" "${set#*=}"); done
        timeout "$seconds" mpiexec.hydra "${options[@]}" -n "$ranks" "$@"
        ;;
    mpich | abi)
        for set in "${preload[@]}"; do options+=(-genv "${set%%=*}" "${set#*=}"); done
        FI_PROVIDER=tcp MPIR_CVAR_CH4_NETMOD=ofi timeout "$seconds" "$root/.cache/mpi/mpich/bin/mpiexec" \
            "${options[@]}" -n "$ranks" "$@"
        ;;
    intel)
        for set in "${preload[@]}"; do options+=(-genv "${set%%=*}" "${set#*=}"); done
        I_MPI_PIN=0 I_MPI_WAIT_MODE=1 I_MPI_FABRICS=shm timeout "$seconds" "$root/.cache/mpi/intel/bin/mpiexec.hydra" "${options[@]}" -n "$ranks" "$@"
        ;;
    esac
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
