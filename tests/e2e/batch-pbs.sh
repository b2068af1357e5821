#!/usr/bin/env bash
# shellcheck disable=SC2086,SC2016 # Options and their values stand in variables, later commands in quotes.
# batch-pbs.sh CASE PROGRAMS: one case of a site whose nodes belong to OpenPBS and one of Slurm, for batch.rs.
# It runs on the head node of rennes, that of OpenPBS; PROGRAMS is target/mpi.
set -u
case=$1
openmpi=$2/debian-openmpi mpich=$2/debian-mpich
nancy="ssh 198.51.100.5"
export PBS_CONF_FILE=/run/pbs/pbs.conf
# shellcheck source=tests/e2e/batch-common.sh
. "$(dirname "$0")/batch-common.sh"

both="--sites rennes=4,nancy=4 --time 10min"
own="$both --own-mpi -- $mpich/own_world"

# Jobs of both sites' batch systems.
queued_everywhere() {
    qstat
    $nancy squeue -h
}

# Waits until a job of rennes runs.
until_runs() { # job
    for _ in $(seq 300); do
        qstat -f -F dsv "$1" | grep '|substate=42' >/dev/null && return
        read -rt 0.1 <> <(:) || :
    done
    echo "job $1 does not run"
}

# Keeps rennes' nodes from others, for so many minutes: a younger job may begin first where it is smaller.
occupy() {
    p=$(echo sleep 600 | qsub -l select=8:ncpus=1 -l place=free -l walltime="0:$1:0" -o /dev/null -e /dev/null)
    until_runs "$p"
}

occupy_nancy() {
    n=$($nancy salloc --no-shell -N2 --exclusive -t "$1" 2>&1 | number)
}

# Interrupts a run once this text has come so many times.
interrupted() { # state, text, times, run's arguments...
    local state=$1 text=$2 times=$3
    shift 3
    once "$text" "$times" 'kill -INT $pid' "$@" >said
    sed -n "s/^status/$state:/p" said
}

# What is left of programs on the nodes of rennes, which take ssh.
left() {
    for node in rennes-1 rennes-2; do
        ssh $node 'pgrep -fa "own_[w]orld|ring_[m]pi|node-exe[c]" || echo "nothing is left on $(hostname)"'
    done
}

case $case in
all)
    run --sites rennes=8,nancy=8 --time 10min -- $mpirun -n 16 "$openmpi/ring_mpi"
    run $both -- mpirun.mpich -n 8 "$mpich/ring_mpi"
    run $own
    run $both --at rennes "$mpirun -n 4 $openmpi/own_world" --at nancy "mpirun.mpich -n 4 $mpich/own_world"
    run --sites rennes=8 --time 10min -- mpirun.mpich -n 8 \
        sh -c 'env | grep -c "^PBS" | sed "s/^/variables of PBS: /"' | sort -u
    ;;
alloc)
    p=$(echo sleep 600 | qsub -l select=2:ncpus=4:mpiprocs=3 -l place=scatter -o /dev/null -e /dev/null)
    n=$($nancy salloc --no-shell -N2 --ntasks-per-node=4 -t 10 2>&1 | number)
    until_runs "$p"
    run --alloc "rennes:$p" --alloc "nancy:$n" -- $mpirun -n 8 "$openmpi/ring_mpi"
    run --alloc "rennes:$p" -- mpirun.openmpi -n 7 hostname
    run --alloc rennes:999.rennes-head -- $mpirun -n 2 hostname
    # What PBS ends in its job are all processes that ssh has started there.
    once 'is there' 4 "qdel $p" --alloc "rennes:$p" --alloc "nancy:$n" --own-mpi --sites rennes=2,nancy=2 -- \
        "$mpich/own_world" wait
    $nancy scancel "$n"
    ;;
script)
    # A home directory that the nodes share, as clusters have it.
    export HOME=$PWD/home
    mkdir -p "$HOME/.config/causeway"
    cp /run/causeway-lab/gateway/rennes.host "$HOME/.config/causeway/gateway.host"
    cat >script <<END
export HOME=$HOME
cd $PWD
$(command -v causeway) run --sites rennes=4,nancy=4 --alloc nancy:$(
        $nancy salloc --no-shell -N1 --ntasks-per-node=4 -t 10 2>&1 | number
    ) -- mpirun.mpich -n 8 $mpich/ring_mpi >script-output 2>&1
echo "status \$?" >script-end
END
    qsub -l select=2:ncpus=4:mpiprocs=4 -o /dev/null -e /dev/null script >/dev/null
    for _ in $(seq 400); do
        [ -e script-end ] && break
        read -rt 0.1 <> <(:) || :
    done
    cat script-output script-end
    $nancy scancel -u root
    ;;
refused)
    run --sites rennes=9,nancy=4 --time 10min -- $mpirun hostname
    run --sites rennes=4,nancy=4 --time 3h -- $mpirun hostname
    run $both --batch rennes:--queue=none -- $mpirun hostname
    run $both --batch rennes:--partition=all -- $mpirun hostname
    ;;
busy)
    occupy 10
    run --sites rennes=8,nancy=8 --time 10min --wait 15s -- $mpirun hostname
    qdel "$p"
    ;;
later)
    # Rennes is to begin two minutes before nancy; it begins at once when nancy does.
    occupy_nancy 10
    once 'rennes: allocation .* waits: the time' 1 "$nancy scancel $n" $both -- mpirun.mpich -n 8 "$mpich/ring_mpi"
    ;;
interrupt)
    interrupted asked 'could begin' 1 $own wait
    occupy 1
    interrupted queued 'rennes: allocation .* waits' 1 --idle 1min $own wait
    qdel "$p"
    # For so short that rennes begins at once.
    occupy_nancy 1
    interrupted held 'rennes: holds' 1 --idle 1min $own wait
    $nancy scancel "$n"
    interrupted runs 'is there' 8 $own wait
    ;;
killed) once 'is there' 8 'kill -KILL $pid' $own wait ;;
canceled) once 'is there' 8 'qdel $(qselect)' $own wait ;;
server)
    # The job goes on, and what it had is given back when the server is there again.
    once 'is there' 8 '/opt/pbs/bin/qterm -t quick' $both -- mpirun.mpich -n 8 \
        sh -c 'echo a rank is there; sleep 4; echo it has run without a server'
    /opt/pbs/sbin/pbs_server
    ;;
gateway)
    # With all that would give back: a gateway that starts again finds what is written down.
    once 'is there' 8 "pkill -KILL -f 'causeway (gatewa[y]|holde[r]|release-allocatio[n]|ru[n])'" $own wait
    echo "left: $(qselect | wc -l)"
    setsid "$(command -v causeway)" gateway --config /run/causeway-lab/gateway/rennes.toml </dev/null >/dev/null 2>&1 &
    ;;
queued)
    export HOME=$PWD/home
    mkdir -p "$HOME"
    id=$(causeway submit $both -- mpirun.mpich -n 8 "$mpich/ring_mpi")
    timeout 50 causeway output --follow "$id"
    causeway wait "$id"
    echo "wait $?"
    causeway resources
    ;;
esac
left
given_back
