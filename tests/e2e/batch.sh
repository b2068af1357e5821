#!/usr/bin/env bash
# batch.sh CASE PROGRAMS: one case of two sites whose nodes belong to a Slurm each, for batch.rs. It runs on
# the head node of rennes; PROGRAMS is target/mpi. Says what comes out of causeway run, its status, and what
# is left at both sites when the allocations are given back.
set -u
case=$1
openmpi=$2/debian-openmpi mpich=$2/debian-mpich
# The head node of nancy, which takes ssh; its compute nodes take none.
nancy="ssh 198.51.100.5"
mpirun="mpirun.openmpi --allow-run-as-root --oversubscribe"

run() { # sites and commands...
    timeout 50 causeway run "$@" 2>&1
    echo "status $?"
}

number() { # of the allocation that salloc has granted
    sed -n 's/.*Granted job allocation \([0-9]*\).*/\1/p'
}

r=$(salloc --no-shell -N2 --ntasks-per-node=4 -t 10 2>&1 | number)
n=$($nancy salloc --no-shell -N2 --ntasks-per-node=4 -t 10 2>&1 | number)
both="--alloc rennes:$r --alloc nancy:$n"

# What runs below the gateways' processes on the nodes, as Slurm counts it. Steps end some moments after what
# they ran.
steps() {
    { squeue -s -h && $nancy squeue -s -h; } | grep -vw extern
}

left() {
    local steps
    for _ in $(seq 150); do
        steps=$(steps)
        [ -z "$steps" ] && break
        read -rt 0.1 <> <(:) || :
    done
    echo "${steps:-no step is left}"
    cat >look <<'END'
pgrep -fa "own_[w]orld|ring_[m]pi|sleep 97[7]" || echo "nothing is left on $(hostname)"
END
    here="srun --overlap -N2 --ntasks-per-node=1"
    $here --jobid="$r" sh "$PWD/look" 2>&1
    $nancy "$here --jobid=$n" sh "$PWD/look" 2>&1
}

# Ends an allocation, or kills the run, once four ranks have said that they are there.
meanwhile() { # command, run's arguments...
    local then=$1 pid
    shift
    causeway run "$@" >output 2>&1 &
    pid=$!
    until [ "$(grep -c 'is there' output)" -ge 4 ]; do
        kill -0 $pid || break
        read -rt 0.05 <> <(:) || :
    done
    eval "$then"
    wait $pid
    echo "status $?"
    cat output
}

case $case in
one-mpi)
    # shellcheck disable=SC2086 # Two options and their values each.
    for start in "$mpirun -n 8 $openmpi" "mpirun.mpich -n 8 $mpich"; do
        run $both -- $start/ring_mpi
    done
    # shellcheck disable=SC2016,SC2086 # Each rank says what it has.
    run $both -- mpirun.mpich -n 8 sh -c 'env | grep -c "^SLURM\|^SRUN" | sed "s/^/variables of Slurm: /"' | sort -u
    ;;
own-mpi)
    # shellcheck disable=SC2086
    run $both --own-mpi --sites rennes=4,nancy=4 -- "$mpich/own_world"
    # shellcheck disable=SC2086
    run $both --at rennes "$mpirun -n 4 $openmpi/own_world" --at nancy "mpirun.mpich -n 4 $mpich/own_world"
    ;;
inside)
    scancel "$r"
    salloc -N1 --ntasks-per-node=4 -t 5 causeway run --sites rennes -- mpirun.mpich -n 2 "$mpich/ring_mpi" 2>&1
    echo "status $?"
    r=$(salloc --no-shell -N2 -t 10 2>&1 | number)
    ;;
refused)
    run --alloc rennes:999 -- mpirun.mpich -n 2 hostname
    run --alloc nancy:999 -- mpirun.mpich -n 2 hostname
    run --sites rennes -- mpirun.openmpi -n 2 hostname
    # shellcheck disable=SC2086
    run $both -- mpirun.openmpi -n 20 hostname
    run --alloc "rennes:$r" -- mpirun.openmpi --host rennes-1,10.1.0.77 -n 2 hostname
    ;;
cancelled)
    # shellcheck disable=SC2086
    meanwhile "$nancy scancel $n" $both --own-mpi --sites rennes=2,nancy=2 -- "$mpich/own_world" wait
    n=$($nancy salloc --no-shell -N2 -t 10 2>&1 | number)
    ;;
killed)
    # shellcheck disable=SC2086,SC2016
    meanwhile 'kill -KILL $pid' $both --own-mpi --sites rennes=2,nancy=2 -- "$mpich/own_world" wait
    ;;
esac
left
scancel "$r"
$nancy scancel "$n"
