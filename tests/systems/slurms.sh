#!/usr/bin/env bash
# slurms.sh: three clusters with a Slurm of their own each (22.05, 24.11 and 26.05), of which one job gets
# nodes at the same time: as one world of the systems' own MPIs, and queued; where the run is killed, all is
# given back.
set -euo pipefail
. "$(dirname "$0")/common.sh"
systems=(bookworm trixie forky)
sites=bookworm=2,trixie=2,forky=2

"$root/tools/setup/root.sh" trixie forky
mkdir -p "$place"
lab_up tests/systems/slurms.toml slurms
for system in "${systems[@]}"; do
    compile "$system"
    # The sites start what lies at one path.
    for node in head 1 2; do
        on "$system-$node" sh -euc "for mpi in openmpi mpich; do mkdir /srv/\$mpi && cp $place/$system/\$mpi/* /srv/\$mpi; done"
    done
done

# Debian 14's Slurm has no pmix, so that mpirun starts its site's part, which takes root for a mistake.
# shellcheck disable=SC2016 # the node's shell expands it
on forky-head sh -euc 'echo "[mpi]\nsetup = \"export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1\"" >>$1
    causeway gateway --config $1 --drain' sh /run/causeway-lab/gateway/forky.toml

# given_back: no allocation, and no process of the program, is at any site, once what is on its way has ended.
given_back() {
    local system
    for system in "${systems[@]}"; do
        # shellcheck disable=SC2016 # the node's shell expands it
        on "$system-head" sh -c 'for _ in $(seq 300); do
            [ -n "$(squeue --noheader)$(pgrep -f own_[w]orld)" ] || exit 0
            sleep 0.1
        done
        squeue; pgrep -fa own_[w]orld
        exit 1' || return 1
    done
    echo "nothing is left"
}

# shellcheck disable=SC2016 # the node's shell expands it
versions='for s in 22.05 24.11 26.05; do echo "$*" | grep -F "slurm-wlm $s" || exit 1; done; echo "three of them"'
said=$(for system in "${systems[@]}"; do on "$system-head" sinfo --version; done)
expect "three versions of Slurm" "three of them" bash -c "$versions" bash "$said"
for mpi in openmpi mpich; do
    for program in own_world ring operations; do
        expect "$program over three Slurms with each site's $mpi" "all right" \
            on bookworm-head causeway run --sites $sites --time 10min --own-mpi -- "/srv/$mpi/$program"
        expect "what they gave for $program is given back" "nothing is left" given_back
    done
done

# A run that is killed while the program runs.
killed_run() {
    local pid
    # Else the words of the run before could be taken for this one's.
    : >"$place/killed-run"
    on bookworm-head sh -c 'echo $$ >/run/killed && exec causeway run "$@"' sh --sites $sites --time 10min --own-mpi -- \
        /srv/mpich/own_world wait >"$place/killed-run" 2>&1 &
    pid=$!
    until grep -q 'rank 0 is there' "$place/killed-run"; do
        kill -0 $pid 2>/dev/null || { cat "$place/killed-run" && return 1; }
        sleep 0.1
    done
    # shellcheck disable=SC2016 # the node's shell expands it
    on bookworm-head sh -c 'kill -KILL $(cat /run/killed)'
    wait $pid || :
    given_back
}
expect "a run over three Slurms that is killed" "nothing is left" killed_run

# shellcheck disable=SC2016 # the node's shell expands it
expect "a queued job over three Slurms" "all right" on bookworm-head sh -ec '
    id=$(causeway submit "$@")
    causeway wait "$id"
    causeway output "$id"' sh --sites $sites --time 10min --own-mpi -- /srv/openmpi/own_world
expect "what they gave for the queued job is given back" "nothing is left" given_back
summary
