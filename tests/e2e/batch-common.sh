# Functions of batch.sh, batch-three.sh and batch-beside.sh. The first two set `far`: ssh commands of the
# other sites' head nodes, a line each.
# shellcheck shell=bash disable=SC2034,SC2086,SC2154

mpirun="mpirun.openmpi --allow-run-as-root --oversubscribe"

run() { # sites and commands...
    timeout 50 causeway run "$@" 2>&1
    echo "status $?"
}

number() { # of the allocation that salloc has granted
    sed -n 's/.*Granted job allocation \([0-9]*\).*/\1/p'
}

# Jobs of all sites' batch systems.
queued_everywhere() {
    squeue -h
    while read -r head; do $head squeue -h </dev/null; done <<<"$far"
}

# Nothing is allocated, written down or being given back any more.
given_back() {
    local left
    for _ in $(seq 300); do
        left=$(
            queued_everywhere 2>&1
            find /run/causeway-lab/gateway/allocations-* -type f
            pgrep -fa '[r]elease-allocation|causeway-ho[l]d|causeway ho[l]d'
        )
        [ -z "$left" ] && break
        read -rt 0.1 <> <(:) || :
    done
    echo "${left:-all is given back}"
}

# Starts a run, and carries out a command once this text has come so many times.
once() { # text, times, command, run's arguments...
    local text=$1 times=$2 then=$3 pid
    shift 3
    # Job control: else the shell would have it ignore SIGINT.
    set -m
    causeway run "$@" >output 2>&1 &
    pid=$!
    set +m
    until [ "$(grep -c "$text" output)" -ge "$times" ]; do
        kill -0 $pid || break
        read -rt 0.05 <> <(:) || :
    done
    eval "$then"
    wait $pid
    echo "status $?"
    cat output
}
