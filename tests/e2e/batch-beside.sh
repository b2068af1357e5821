#!/usr/bin/env bash
# shellcheck disable=SC2086,SC2016,SC2029,SC2034 # Options stand in variables, later commands in quotes.
# batch-beside.sh SYSTEM CASE PROGRAMS: one case of a site whose nodes belong to OAR or OpenPBS and one of
# Slurm, for batch.rs. It runs on the head node of rennes, that of SYSTEM (oar or pbs); PROGRAMS is
# target/mpi. What differs between the systems stands in their two tables of words.
set -u
system=$1 case=$2
openmpi=$3/debian-openmpi mpich=$3/debian-mpich
nancy="ssh 198.51.100.5"
# shellcheck source=tests/e2e/batch-common.sh
. "$(dirname "$0")/batch-common.sh"

both="--sites rennes=4,nancy=4 --time 10min"
own="$both --own-mpi -- $mpich/own_world"

case $system in
oar)
    name=OAR delete=oardel list="oarstat -u" no_job=999 held='it is held'
    too_long="--sites rennes=4 --time 3h" refused_option=--property=1 kill_server="pkill -KILL Almighty"
    all_slots=(-l /resource_id=8,walltime=0:MINUTES:0)
    three_on_each=(-l nodes=2/resource_id=3,walltime=0:10:0)
    both_nodes=(-l nodes=2,walltime=0:10:0)
    submit() { oarsub -d / -O /dev/null -E /dev/null "$@" | sed -n 's/^OAR_JOB_ID=//p'; }
    sleeper() { submit "$@" 'sleep 600'; }
    runs() { [ "$(oarstat -s -j "$1")" = "$1: Running" ]; }
    jobs_now() { oarstat -u | sed -n 's/^\([0-9]*\) .*/\1/p'; }
    start_server() { setsid Almighty </dev/null >/dev/null 2>&1 & }
    written_down() { find "$HOME/.cache/causeway/oar" -type f 2>/dev/null; }
    # The nodes take ssh from OAR's own user alone.
    on_node() { # node, command
        setpriv --reuid oar --regid oar --clear-groups env HOME=/var/lib/oar ssh -p 6667 "$1" "$2"
    }
    ;;
pbs)
    export PBS_CONF_FILE=/run/pbs/pbs.conf
    name=PBS delete=qdel list=qstat no_job=999.rennes-head held='the time'
    too_long="--sites rennes=4,nancy=4 --time 3h" refused_option=--partition=all
    kill_server="/opt/pbs/bin/qterm -t quick"
    # A younger job may begin first where it is smaller.
    all_slots=(-l select=8:ncpus=1 -l place=free -l walltime=0:MINUTES:0)
    three_on_each=(-l select=2:ncpus=4:mpiprocs=3 -l place=scatter)
    both_nodes=(-l select=2:ncpus=4:mpiprocs=4)
    submit() { qsub -o /dev/null -e /dev/null "$@"; }
    sleeper() { echo sleep 600 | submit "$@"; }
    runs() { qstat -f -F dsv "$1" | grep '|substate=42' >/dev/null; }
    jobs_now() { qselect; }
    start_server() { /opt/pbs/sbin/pbs_server; }
    written_down() { :; }
    on_node() { ssh "$1" "$2"; }
    ;;
*)
    echo "batch-beside.sh: there are no words of $system; it knows oar and pbs"
    exit 2
    ;;
esac

# Jobs of both sites' batch systems.
queued_everywhere() {
    $list
    $nancy squeue -h
    written_down
}

# Waits until a job of rennes runs.
until_runs() { # job
    for _ in $(seq 300); do
        runs "$1" && return
        read -rt 0.1 <> <(:) || :
    done
    echo "job $1 does not run"
}

# Keeps rennes' nodes from others, for so many minutes.
occupy() {
    p=$(sleeper "${all_slots[@]/MINUTES/$1}")
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

# What is left of programs on the nodes of rennes.
left() {
    for node in rennes-1 rennes-2; do
        on_node $node 'pgrep -fa "own_[w]orld|ring_[m]pi|node-exe[c]" || echo "nothing is left on $(hostname)"'
    done
}

# A home directory that the nodes share, as clusters have it.
shared_home() {
    export HOME=$PWD/home
    mkdir -p "$HOME/.config/causeway"
}

# Users of the emulated site: ada, whose home directory its nodes share.
ada() { # command...
    setpriv --reuid 61001 --regid 61001 --clear-groups env -i HOME="$PWD/home" USER=ada PATH="$PATH" \
        XDG_RUNTIME_DIR="$PWD/home" "$@"
}

# One who is not root cannot end OAR's commands, which run as another user.
as_user_of_oar() {
    install -d -o 61001 -g 61001 -m 700 home
    echo "ada:x:61001:61001::$PWD/home:/bin/bash" | cat /etc/passwd - >passwd
    mount --bind passwd /etc/passwd
    for node in rennes-1 rennes-2; do
        on_node $node "oardodo mount --bind $PWD/passwd /etc/passwd"
    done
    printf '%s\n' '[site]' 'name = "rennes"' 'subnets = ["10.1.0.0/24"]' '[listen]' 'lan = ["10.1.0.253:7100"]' \
        '[grid]' 'key_file = "grid.key"' '[batch]' 'system = "oar"' | ada sh -c 'cat >$HOME/gateway.toml'
    ada sh -c 'umask 077; echo "nobody beyond this test needs it" >$HOME/grid.key'
    ada causeway gateway --config "$PWD/home/gateway.toml" >log 2>&1 &
    for _ in $(seq 100); do
        ada causeway status >/dev/null 2>&1 && break
        read -rt 0.1 <> <(:) || :
    done
    ada timeout 50 causeway run --sites rennes=8 --time 10min -- mpirun.mpich -n 8 "$mpich/ring_mpi" 2>&1
    echo "as ada: $?"
    p=$(ada oarsub -d / -O /dev/null -E /dev/null -l nodes=2 'sleep 600' | sed -n 's/^OAR_JOB_ID=//p')
    until_runs "$p"
    ada timeout 50 causeway run --alloc "rennes:$p" -- mpirun.mpich -n 8 sh -c 'id -un; sleep 600' >said 2>&1 &
    pid=$!
    until [ "$(grep -c '^ada' said)" = 8 ]; do
        kill -0 $pid || break
        read -rt 0.1 <> <(:) || :
    done
    ada oardel "$p" >/dev/null
    wait $pid
    echo "as ada, cancelled: $?"
    cat log said
    pkill -u 61001
}

case $case in
all)
    run --sites rennes=8,nancy=8 --time 10min -- $mpirun -n 16 "$openmpi/ring_mpi"
    run $both -- mpirun.mpich -n 8 "$mpich/ring_mpi"
    run $own
    run $both --at rennes "$mpirun -n 4 $openmpi/own_world" --at nancy "mpirun.mpich -n 4 $mpich/own_world"
    run --sites rennes=8 --time 10min -- mpirun.mpich -n 8 \
        sh -c "env | grep -c '^$name' | sed 's/^/variables of $name: /'" | sort -u
    ;;
cgroups)
    run --sites rennes=8 --time 10min -- mpirun.mpich -n 8 \
        sh -c 'grep -c "causeway-oar:/.*/oar/root_" /proc/self/cgroup | sed "s/^/ranks of a job: /"' | sort -u
    ;;
alloc)
    p=$(sleeper "${three_on_each[@]}")
    n=$($nancy salloc --no-shell -N2 --ntasks-per-node=4 -t 10 2>&1 | number)
    until_runs "$p"
    run --alloc "rennes:$p" --alloc "nancy:$n" -- $mpirun -n 8 "$openmpi/ring_mpi"
    run --alloc "rennes:$p" -- mpirun.openmpi -n 7 hostname
    run --alloc rennes:$no_job -- $mpirun -n 2 hostname
    # A job ends with all processes that its system, or ssh, has started in it.
    once 'is there' 4 "$delete $p" --alloc "rennes:$p" --alloc "nancy:$n" --own-mpi --sites rennes=2,nancy=2 -- \
        "$mpich/own_world" wait
    $nancy scancel "$n"
    ;;
script)
    shared_home
    cp /run/causeway-lab/gateway/rennes.host "$HOME/.config/causeway/gateway.host"
    cat >script <<END
#!/bin/sh
export HOME=$HOME
cd $PWD
$(command -v causeway) run --sites rennes=4,nancy=4 --alloc nancy:$(
        $nancy salloc --no-shell -N1 --ntasks-per-node=4 -t 10 2>&1 | number
    ) -- mpirun.mpich -n 8 $mpich/ring_mpi >script-output 2>&1
echo "status \$?" >script-end
END
    chmod +x script
    submit "${both_nodes[@]}" "$PWD/script" >/dev/null
    for _ in $(seq 400); do
        [ -e script-end ] && break
        read -rt 0.1 <> <(:) || :
    done
    cat script-output script-end
    $nancy scancel -u root
    ;;
refused)
    run --sites rennes=9,nancy=4 --time 10min -- $mpirun hostname
    run $too_long -- $mpirun hostname
    run $both --batch rennes:--queue=none -- $mpirun hostname
    run $both --batch rennes:$refused_option -- $mpirun hostname
    ;;
busy)
    occupy 10
    run --sites rennes=8,nancy=8 --time 10min --wait 15s -- $mpirun hostname
    $delete "$p"
    ;;
later)
    # Rennes is to begin two minutes before nancy; it begins at once when nancy does.
    occupy_nancy 10
    once "rennes: allocation .* waits: $held" 1 "$nancy scancel $n" $both -- mpirun.mpich -n 8 "$mpich/ring_mpi"
    ;;
timer)
    # Rennes begins two minutes before nancy could, which begins earlier then.
    occupy_nancy 2:20
    once 'rennes: holds' 1 "$nancy scancel $n" $both -- mpirun.mpich -n 8 "$mpich/ring_mpi"
    ;;
interrupt)
    interrupted asked 'could begin' 1 $own wait
    occupy 1
    interrupted queued 'rennes: allocation .* waits' 1 --idle 1min $own wait
    $delete "$p"
    # For so short that rennes begins at once.
    occupy_nancy 1
    interrupted held 'rennes: holds' 1 --idle 1min $own wait
    $nancy scancel "$n"
    interrupted runs 'is there' 8 $own wait
    ;;
killed) once 'is there' 8 'kill -KILL $pid' $own wait ;;
canceled) once 'is there' 8 '$delete $(jobs_now)' $own wait ;;
server)
    # The job goes on, and what it had is given back when the server is there again.
    once 'is there' 8 "$kill_server" $both -- mpirun.mpich -n 8 \
        sh -c 'echo a rank is there; sleep 4; echo it has run without a server'
    start_server
    ;;
gateway)
    # With all that would give back: a gateway that starts again finds what is written down.
    once 'is there' 8 "pkill -KILL -f 'causeway (gatewa[y]|holde[r]|release-allocatio[n]|ru[n])'" $own wait
    echo "left: $(jobs_now | wc -l)"
    setsid "$(command -v causeway)" gateway --config /run/causeway-lab/gateway/rennes.toml </dev/null >/dev/null 2>&1 &
    ;;
user) as_user_of_oar ;;
queued)
    shared_home
    id=$(causeway submit $both -- mpirun.mpich -n 8 "$mpich/ring_mpi")
    timeout 50 causeway output --follow "$id"
    causeway wait "$id"
    echo "wait $?"
    causeway resources
    ;;
esac
left
given_back
