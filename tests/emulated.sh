# shellcheck shell=bash
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

# check PAIRING PROGRAM ARGUMENTS...: runs it as a world (tests/libraries/world/launch.sh), and says how it
# went and how long it took.
check() {
    local log began=$EPOCHREALTIME
    log=$(mktemp)
    # shellcheck disable=SC2086 # A pairing is several words.
    if ! world $1 -- "${@:2}" >"$log" 2>&1; then
        echo "$1: ${*:2} failed:" >&2
        cat "$log" >&2
        exit 1
    fi
    grep -aE 'all right|the same|no byte wrong' "$log" |
        sed "s/$/ ($1${COLLECTIVES:+, collectives}, $(bc <<<"$EPOCHREALTIME - $began") s)/"
    rm "$log"
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
