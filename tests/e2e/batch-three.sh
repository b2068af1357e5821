#!/usr/bin/env bash
# shellcheck disable=SC2086,SC2016 # Options and their values stand in variables, later commands in quotes.
# batch-three.sh CASE PROGRAMS: one case of three sites whose nodes belong to a Slurm each, for batch.rs. It
# runs on the head node of orsay; PROGRAMS is target/mpi.
set -u
case=$1
openmpi=$2/debian-openmpi mpich=$2/debian-mpich
rennes="ssh 198.51.100.5" bordeaux="ssh 198.51.100.9"
far=$rennes$'\n'$bordeaux
# shellcheck source=tests/e2e/batch-common.sh
. "$(dirname "$0")/batch-common.sh"

three="--sites orsay=4,rennes=4,bordeaux=4 --time 10min"
few="--sites orsay=2,rennes=2,bordeaux=2 --time 10min"
own="$few --own-mpi -- $mpich/own_world"

# Keeps bordeaux' nodes from others.
occupy() { # minutes, words before salloc
    n=$($bordeaux "${2-} salloc --no-shell -N2 --exclusive -t $1" 2>&1 | number)
}

stop_controller() { $bordeaux pkill -TERM slurmctld; }

# Its nodes have to tell it that they are there.
start_controller() { # environment
    $bordeaux "PATH=/usr/sbin:\$PATH ${1-} slurmctld"
    for _ in $(seq 300); do
        [ "$($bordeaux sinfo -h -t idle,alloc -o %D | paste -sd+ | bc)" = 2 ] && break
        read -rt 0.1 <> <(:) || :
    done
}

# A node of bordeaux is gone, as far as Slurm sees it.
lose_node() { # allocation, node
    $bordeaux "srun --jobid=$1 --overlap -N1 -n1 -w $2 pkill -KILL -x slurmd"
}

# Interrupts a run once this text has come so many times.
interrupted() { # state, text, times, run's arguments...
    local state=$1 text=$2 times=$3
    shift 3
    once "$text" "$times" 'kill -INT $pid' "$@" >said
    sed -n "s/^status/$state:/p" said
}

case $case in
all)
    run $three -- $mpirun -n 12 "$openmpi/ring_mpi"
    run $three -- mpirun.mpich -n 12 "$mpich/ring_mpi"
    run $own
    # From a profile: each site's batch system has room for eight.
    cat >job.toml <<END
time = "10min"
command = ["mpirun.mpich", "$mpich/ring_mpi"]
[groups.master]
ranks = 2
sites = ["orsay"]
[groups.work]
ranks = 4
sites = ["rennes"]
[groups.more]
ranks = 4
sites = ["bordeaux"]
END
    causeway place job.toml 2>&1
    run --profile job.toml
    ;;
full)
    # Another user has the nodes, where the lab has others.
    grep -q 4294967295 /proc/self/uid_map && other='setpriv --reuid=games --regid=games --clear-groups'
    occupy 10 "${other-}"
    run --sites orsay=8,rennes=8,bordeaux=8 --time 10min --wait 6s -- $mpirun hostname
    $bordeaux scancel "$n"
    ;;
refused)
    run $three --batch bordeaux:--partition=none -- $mpirun hostname
    run --sites orsay=2,bordeaux=2 --time 10h -- $mpirun hostname
    ;;
controller-before)
    stop_controller
    run $few -- $mpirun hostname
    start_controller
    ;;
controller-while)
    # The job goes on, and what it had is given back when the controller is there again.
    once 'is there' 6 stop_controller $few -- mpirun.mpich -n 6 \
        sh -c 'echo a rank is there; sleep 4; echo it has run without a controller'
    start_controller
    ;;
interrupt)
    interrupted asked 'could begin' 1 $own wait
    # For so short that the others begin at once.
    occupy 1
    interrupted queued 'bordeaux: allocation .* waits' 1 $own wait
    interrupted held 'orsay: holds' 1 --idle 1min $own wait
    $bordeaux scancel "$n"
    interrupted runs 'is there' 6 $own wait
    ;;
host)
    # With all that would give back here. The others hear of it by their tunnels.
    once 'is there' 6 "pkill -KILL -f 'causeway (gatewa[y]|holde[r]|release-allocatio[n]|ru[n])'" $own wait
    for _ in $(seq 300); do
        left=$($rennes squeue -h && $bordeaux squeue -h)
        [ -z "$left" ] && break
        read -rt 0.1 <> <(:) || :
    done
    echo "orsay is gone: ${left:-nothing is left at the others}"
    setsid "$(command -v causeway)" gateway --config /run/causeway-lab/gateway/orsay.toml </dev/null >/dev/null 2>&1 &
    ;;
node-waits)
    occupy 10
    once 'bordeaux: allocation .* waits' 1 "lose_node $n bordeaux-2; $bordeaux scancel $n" \
        --sites orsay=8,rennes=8,bordeaux=8 --time 10min --wait 25s -- $mpirun hostname
    ;;
node-runs)
    # The other one was lost before.
    once 'is there' 6 'lose_node $(sed -n "s/.*bordeaux: holds .*allocation //p" output) bordeaux-1' $own wait
    ;;
accounts)
    accounts="$bordeaux $(dirname "$0")/slurm-accounts.sh"
    $accounts || exit
    p7="--batch bordeaux:--account=p7"
    echo "no account: $(run $few --batch bordeaux:--account=p8 -- $mpirun hostname)"
    echo "the account: $(run $few $p7 -- $mpirun -n 6 "$openmpi/ring_mpi")"
    $accounts set MaxTRESPerJob=cpu=1
    echo "too many: $(run $few $p7 -- $mpirun hostname)"
    $accounts set MaxTRESPerJob=cpu=-1 MaxWall=3
    $bordeaux CAUSEWAY_CONTROL="$CAUSEWAY_CONTROL" "$(command -v causeway)" resources | tr -s ' '
    echo "too long: $(run $few $p7 -- $mpirun hostname)"
    $accounts set MaxWall=-1 GrpJobs=1
    n=$($bordeaux salloc --no-shell -A p7 -n1 -t 10 2>&1 | number)
    echo "one at a time: $(run $few $p7 --wait 8s -- $mpirun hostname)"
    $bordeaux scancel "$n"
    $accounts set GrpJobs=-1 MaxSubmitJobs=0
    echo "none at all: $(run $few $p7 -- $mpirun hostname)"
    ;;
clocks)
    # The daemons of bordeaux, and all that they start, have a clock that is 90 s ahead.
    ahead='env LD_PRELOAD=/usr/lib/x86_64-linux-gnu/faketime/libfaketimeMT.so.1 FAKETIME=+90s'
    $bordeaux 'pkill -TERM slurmctld; pkill -TERM -f "causeway gatewa[y]"'
    for _ in $(seq 100); do
        $bordeaux 'pgrep -x slurmctld || pgrep -f "causeway gatewa[y]"' >/dev/null || break
        read -rt 0.1 <> <(:) || :
    done
    $bordeaux "setsid $ahead $(command -v causeway) gateway --config /run/causeway-lab/gateway/bordeaux.toml </dev/null >/dev/null 2>&1 &"
    start_controller "$ahead"
    clock=$($bordeaux "$ahead date +%s")
    echo "bordeaux is ahead by $((clock - $(date +%s))) s"
    occupy 1
    once 'bordeaux: allocation .* waits' 1 '$bordeaux scancel $n' $few -- mpirun.mpich -n 6 "$mpich/ring_mpi"
    grep -qE 'bordeaux: could begin in (60|5[0-9]) s' output && echo "the estimate is right"
    ;;
esac
given_back
