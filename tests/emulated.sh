# shellcheck shell=bash disable=SC2034 # who sources this uses what is set here
# Sourced by tests of other processors, below tools/setup/emulate.sh: Debian 12 for one of them, arm64 or
# s390x, which this machine emulates.
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
cd "$root" || exit
target=${CARGO_TARGET_DIR:-$root/target}

# emulated_system PROCESSOR LIBRARIES: sets ARM64_SYSTEM or S390X_SYSTEM to the system's root, in which the
# project is at the same path, and ARM64_LIBRARIES or S390X_LIBRARIES to where the preload libraries for it
# are. What is written there stays in memory. The mounts end with emulate.sh.
emulated_system() {
    local place=$target/$1/system shared
    tools/setup/root.sh "bookworm-$1"
    mkdir -p "$place"
    mount -t tmpfs "causeway-$1" "$place"
    mkdir "$place"/{root,changes,work}
    mount -t overlay -o "lowerdir=$root/.cache/roots/bookworm-$1,upperdir=$place/changes,workdir=$place/work" \
        overlay "$place/root"
    for shared in /dev /proc /sys "$root"; do
        mkdir -p "$place/root$shared"
        mount --rbind "$shared" "$place/root$shared"
    done
    # MPICH asks for the address of its host's name.
    echo "127.0.0.1 localhost $(hostname)" >"$place/root/etc/hosts"
    export "${1^^}_SYSTEM=$place/root" "${1^^}_LIBRARIES=$2"
}

# emulated_programs PROCESSOR PROGRAM...: each a source, or a directory of them, for both of its MPIs.
emulated_programs() {
    local mpi source program words sources directory
    for mpi in "$1-openmpi" "$1-mpich"; do
        mkdir -p "$root/target/mpi/$mpi"
        mpi_compiler "$mpi"
        for source in "${@:2}"; do
            program=$root/target/mpi/$mpi/$(basename "${source%.c}")
            sources=("$source") directory=$(dirname "$source")
            if [ -d "$source" ]; then sources=("$source"/*.c) directory=$source; fi
            if [ -e "$program" ] && [ -z "$(find "$directory" -maxdepth 1 -newer "$program" -print -quit)" ]; then
                continue
            fi
            "${words[@]}" -std=gnu11 -O2 -g "${sources[@]}" -o "$program"
        done
    done
}

# emulated_python PROCESSOR: mpi4py in the system, at /opt/mpi4py, for either of its MPIs. PyPI has it for
# arm64.
emulated_python() {
    local system=${1^^}_SYSTEM mpich
    system=${!system}
    # As this machine reaches PyPI.
    cp -L /etc/resolv.conf "$system/etc/resolv.conf"
    mkdir -p "$system/etc/ssl/certs"
    cp -L /etc/ssl/certs/ca-certificates.crt "$system/etc/ssl/certs/"
    chroot "$system" python3 -m venv /opt/mpi4py
    chroot "$system" /opt/mpi4py/bin/pip install --quiet --progress-bar off -r "$root/tools/setup/pypi-suite.txt"
    # It asks for the common name of MPICH's library, which Debian does not install.
    mkdir "$system/opt/mpi4py/mpich"
    mpich=$(chroot "$system" ldconfig -p | awk '/libmpich.so.12 / && !found++ { print $NF }')
    ln -s "$mpich" "$system/opt/mpi4py/mpich/libmpi.so.12"
}

# What check_all runs.
emulated_sources=(tests/libraries/compare.c mpi/programs/data tests/libraries/world/{numbers,unlike,messages,operations}.c
    tests/libraries/world/{communicators,topologies,intercomms,receives,creations,forms}.c)

# check PAIRING PROGRAM ARGUMENTS...: runs it as a world (tests/libraries/world/launch.sh), and says how it
# went and how long it took. It must end with status 0 and say that all is right.
check() {
    local log began=$EPOCHREALTIME right='all right|the same|Verification += +SUCCESSFUL'
    log=$(mktemp)
    # shellcheck disable=SC2086 # A pairing is several words.
    if ! world $1 -- "${@:2}" >"$log" 2>&1 || ! grep -aqE "$right" "$log"; then
        echo "$1: ${*:2} failed:" >&2
        cat "$log" >&2
        exit 1
    fi
    grep -aE "$right" "$log" | tr -s ' ' |
        sed "s/$/ ($1${COLLECTIVES:+, collectives}, $(bc <<<"$EPOCHREALTIME - $began") s)/"
    rm "$log"
}

# check_all PAIRING: the programs of worlds, with and without the library of collectives.
check_all() {
    local program
    for program in numbers unlike messages operations communicators topologies intercomms; do
        check "$1" "$program"
    done
    check "$1" receives 1
    check "$1" creations 15
    check "$1" forms "$((${CASES:-30} * 3))"
    for program in numbers unlike; do COLLECTIVES=1 check "$1" "$program"; done
    COLLECTIVES=1 check "$1" compare "${CASES:-30}" 1
    COLLECTIVES=1 check "$1" forms "$((${CASES:-30} * 3))" 1
    # MPICH 4.0.2 on s390x exchanges derived types wrongly by itself.
    [[ $1 != *s390x-mpich* ]] || return 0
    # Random bytes are a number in each order, but no long double in each form.
    COLLECTIVES=1 check "$1" data --seconds "${SECONDS_EACH:-10}" --block-bytes 15000 --without \
        MPI_LONG_DOUBLE,MPI_LONG_DOUBLE_INT,MPI_C_LONG_DOUBLE_COMPLEX,MPI_COMPLEX32,MPI_Allgatherv
}

# check_algorithms PAIRING: operations on long doubles and on structs with other numbers, by each algorithm of
# the library of collectives, because each sends in its own way.
check_algorithms() {
    local rule
    for rule in allreduce\ {leaders,segments,multi-leader,split,gathered,blocks} \
        reduce\ {leaders,segments,gathered,blocks} bcast\ {leaders,segments} {gather,scatter}\ {leaders,direct} \
        allgather\ {leaders,multi-leader} alltoall\ {leaders,direct} reduce_scatter\ {leaders,multi-leader} \
        scan\ {segments,gathered,direct,blocks}; do
        printf '%s: ' "$rule"
        COLLECTIVES=1 CAUSEWAY_COLLECTIVES_RULES=$rule check "$1" unlike
    done
}
