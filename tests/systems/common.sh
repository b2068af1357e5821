# shellcheck shell=bash
# Sourced by the tests of this directory, which run the tar of `make dist` over sites with systems of their
# own. Says how a lab is entered, and how each system's MPIs start a program.
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
# Below the directory the lab is started in, which its sites see at the same path.
place=${CARGO_TARGET_DIR:-$root/target}/systems
causeway=${CAUSEWAY:-$place/tar/bin/causeway}
cd "$root" || exit

# lab_up SCENARIO NAME: as `causeway lab up`; ends with this script. LAB is its name.
lab_up() {
    LAB=$2
    trap 'status=$?; "$causeway" lab down "$LAB" >/dev/null 2>&1 || :; exit $status' EXIT
    "$causeway" lab down "$LAB" >/dev/null 2>&1 || :
    # shellcheck disable=SC2086 # options are several words
    "$causeway" lab up "$1" --name "$LAB" ${UP_OPTIONS:---logs $place/logs-$LAB}
}

# on NODE COMMAND...: runs it there, with a deadline.
on() { timeout "${SECONDS_EACH:-150}" "$causeway" lab exec --lab "$LAB" "$1" -- "${@:2}"; }

# A system's MPIs in the order of a table: what starts RANKS processes there, to be followed by the program.
# More ranks than cores let each other run.
start_words() { # system MPI ranks [options...]
    case $1-$2 in
    bullseye-openmpi | bookworm-openmpi)
        echo "mpirun.openmpi --allow-run-as-root --oversubscribe --bind-to none --mca mpi_yield_when_idle 1 -n $3 ${*:4}"
        ;;
    *-openmpi)
        echo "env PRTE_MCA_rmaps_default_mapping_policy=:oversubscribe mpirun.openmpi --allow-run-as-root --bind-to none" \
            "--mca mpi_yield_when_idle 1 -n $3 ${*:4}"
        ;;
    *-mpich) echo "mpiexec.hydra -n $3 ${*:4}" ;;
    esac
}

# world PROGRAM MPI...: sets `at` to the words of `causeway run` for that program, one rank in each of
# `systems`, with these MPIs in turn.
world() {
    local number=0 system mpi
    at=()
    # shellcheck disable=SC2154 # who sources this sets it
    for system in "${systems[@]}"; do
        mpi=${*:2 + number:1}
        at+=(--at "$system" "$(start_words "$system" "$mpi" 1) $place/$system/$mpi/$1")
        number=$((number + 1))
    done
}

# compile SITE [SYSTEM]: the test programs with each MPI of its system, into target/systems/SYSTEM/MPI; a site
# has its system's name, or SYSTEM is that. Those that are newer than their sources stay.
compile() {
    # shellcheck disable=SC2016 # the node's shell expands it
    on "$1-head" sh -euc 'for mpi in openmpi mpich; do
        to=$1/$2/$mpi
        mkdir -p "$to"
        for source in tests/programs/ring tests/programs/alltoall tests/programs/own_world \
            tests/libraries/world/operations; do
            program=$to/${source##*/}
            [ "$program" -nt "$source.c" ] || mpicc.$mpi -O2 -std=gnu11 -o "$program" "$source.c" -ldl
        done
    done' sh "$place" "${2:-$1}"
}

# expect TITLE TEXT COMMAND...: it ends with status 0 and says TEXT, or everything it said is shown.
expect() {
    local title=$1 text=$2 log began=$EPOCHREALTIME status=0
    log=$place/$(tr -c 'a-zA-Z0-9\n' - <<<"$title").log
    "${@:3}" >"$log" 2>&1 </dev/null || status=$?
    if [ $status -ne 0 ] || ! grep -aqF "$text" "$log"; then
        failed+=("$title")
        printf 'FAILED %s: status %s, and no "%s" in %s:\n' "$title" "$status" "$text" "$log" >&2
        tail -n 30 "$log" >&2
        return
    fi
    printf '%s: all right, %.1f s\n' "$title" "$(bc <<<"$EPOCHREALTIME - $began")"
}

# killed SITE NODE... -- WORDS...: kills the gateway of SITE under `causeway run WORDS...` on the first node,
# whose ranks say that they are there. Says "nothing is left" where the run then ends by itself with an error,
# and no process of the program is on any of the nodes.
killed() {
    local site=$1 nodes=() output=$place/killed.out pid status=0 node first began
    shift
    while [ "$1" != -- ]; do nodes+=("$1") && shift; done
    first=${nodes[0]}
    # Else the words of the run before could be taken for this one's.
    : >"$output"
    on "$first" causeway run "${@:2}" >"$output" 2>&1 &
    pid=$!
    until grep -q 'rank 0 is there' "$output"; do
        kill -0 $pid 2>/dev/null || { cat "$output" && return 1; }
        sleep 0.1
    done
    on "$site-head" pkill -9 -f 'causeway gatewa[y]'
    began=$SECONDS
    wait $pid || status=$?
    cat "$output"
    echo "status $status after $((SECONDS - began)) s"
    [ $status -ne 124 ] || return 1
    [ $status -ne 0 ] || return 1
    for node in "${nodes[@]}"; do
        # What ends a job's processes at a site without a gateway may be some moments behind.
        # shellcheck disable=SC2016 # the node's shell expands it
        on "$node" sh -c 'for _ in $(seq 50); do
            pgrep -f own_[w]orld >/dev/null || exit 0
            sleep 0.1
        done
        pgrep -fa own_[w]orld
        exit 1' || { echo "these are left on $node" && return 1; }
    done
    echo "nothing is left"
}

# restart SITE OTHER: its gateway, which was killed, and waits for the tunnel to OTHER.
restart() {
    on "$1-head" sh -c "setsid causeway gateway --config /run/causeway-lab/gateway/$1.toml >>$place/restarted.log 2>&1 &"
    # shellcheck disable=SC2016 # the node's shell expands it
    on "$1-head" sh -c 'for _ in $(seq 100); do
        causeway ping --count 1 "$1" >/dev/null 2>&1 && exit 0
        sleep 0.2
    done
    echo "no tunnel to $1 after a restart"
    exit 1' sh "$2"
}

# Ends a test: status 1 where something failed.
summary() {
    if [ ${#failed[@]} -ne 0 ]; then
        echo "systems: ${#failed[@]} failed: $(IFS=';' && echo "${failed[*]}")" >&2
        exit 1
    fi
    echo "systems: all right"
}
failed=()
