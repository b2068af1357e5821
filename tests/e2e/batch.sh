#!/usr/bin/env bash
# shellcheck disable=SC2086,SC2016 # Options and their values stand in variables, later commands in quotes.
# batch.sh CASE PROGRAMS: one case of two sites whose nodes belong to a Slurm each, for batch.rs. It runs on
# the head node of rennes; PROGRAMS is target/mpi. Says what comes out of causeway run, its status, and what
# is left at both sites when the allocations are given back.
set -u
case=$1
openmpi=$2/debian-openmpi mpich=$2/debian-mpich
# The head node of nancy, which takes ssh; its compute nodes take none.
nancy="ssh 198.51.100.5"
far=$nancy
# shellcheck source=tests/e2e/batch-common.sh
. "$(dirname "$0")/batch-common.sh"

# Debian's slurmctld, as the lab starts it, but with what it has saved.
controller="PATH=/usr/sbin:\$PATH slurmctld"
four="--sites rennes=4,nancy=4 --time 10min"

# Waits until the line of a job has this text.
until_job() { # job, text
    for _ in $(seq 400); do
        causeway jobs --json | grep "\"id\":$1," | grep "$2" >/dev/null && return
        read -rt 0.05 <> <(:) || :
    done
    echo "job $1 has not come to: $2"
}

gateway_again() {
    setsid "$(command -v causeway)" gateway --config /run/causeway-lab/gateway/rennes.toml </dev/null >/dev/null 2>&1 &
}

# Keeps nancy's nodes from others until scancel.
occupy() {
    n=$($nancy salloc --no-shell -N2 --exclusive -t 10 2>&1 | number)
}

case $case in
queue-*)
    exec 2>&1
    export HOME=$PWD/home
    mkdir -p "$HOME"
    case $case in
    queue-ends)
        id=$(causeway submit $four -- $mpirun -n 8 sh -c 'echo from $(hostname); exit 7')
        timeout 40 causeway output --follow "$id"
        causeway wait "$id"
        echo "wait $?"
        causeway jobs
        ;;
    queue-cancel)
        occupy
        id=$(causeway submit $four --idle 1min -- $mpirun hostname)
        until_job "$id" 'nancy: allocation'
        causeway cancel "$id"
        canceled=$?
        causeway wait "$id"
        echo "waits: cancel $canceled, wait $?"
        $nancy scancel "$n"
        id=$(causeway submit $four --own-mpi -- "$mpich/own_world" wait)
        until_job "$id" active
        causeway cancel "$id"
        canceled=$?
        causeway wait "$id"
        echo "runs: cancel $canceled, wait $?"
        causeway cancel "$id"
        id=$(causeway submit --sites rennes=1 --time 1min -- $mpirun -n 1 sh -c 'while :; do echo x; sleep 0.05; done')
        until_job "$id" active
        causeway cancel "$id"
        echo "prints: cancel $?"
        causeway jobs
        ;;
    queue-gateway)
        for what in 'carrier' 'gateway' 'gateway and all it has started'; do
            occupy
            id=$(causeway submit $four --idle 1min -- $mpirun -n 8 hostname)
            until_job "$id" 'nancy: allocation'
            case $what in
            carrier) pkill -KILL -f 'causeway carr[y]' ;;
            gateway) pkill -KILL -f 'causeway gatewa[y]' ;;
            *) pkill -KILL -f 'causeway (gatewa[y]|holde[r]|carr[y])' ;;
            esac
            until_job "$id" queued
            [ "$what" = carrier ] || gateway_again
            $nancy scancel "$n"
            timeout 50 causeway wait "$id"
            echo "$what: wait $?"
            causeway jobs
            causeway output "$id"
        done
        ;;
    queue-killed)
        id=$(causeway submit $four --own-mpi -- "$mpich/own_world" wait)
        until_job "$id" active
        pkill -KILL -f 'causeway carr[y]'
        other=$(causeway submit --sites rennes=1 --time 1min -- $mpirun hostname)
        causeway wait "$id"
        echo "wait $?"
        causeway wait "$other"
        ;;
    queue-start)
        config=$HOME/.config/causeway
        mkdir -p "$config"
        cp -r /run/causeway-lab/gateway/. "$config"
        pkill -KILL -f 'causeway gatewa[y]'
        $nancy pkill -KILL -f '"causeway gatewa[y]"'
        again="setsid $(command -v causeway) gateway --config /run/causeway-lab/gateway/nancy.toml </dev/null >/dev/null 2>&1 &"
        for nancys in '"false"' "\"ssh\", \"198.51.100.5\", \"$again\""; do
            cp "$config/rennes.toml" "$config/gateway.toml"
            printf '[start]\nrennes = ["causeway", "gateway", "--background"]\nnancy = [%s]\n' "$nancys" \
                >>"$config/gateway.toml"
            case $nancys in
            *false*) run $four -- $mpirun hostname ;;
            *) causeway gateway --drain ;;
            esac
        done
        id=$(causeway submit $four -- $mpirun -n 8 sh -c 'echo from $(hostname)')
        causeway wait "$id"
        echo "wait $?"
        causeway output "$id"
        ;;
    queue-full)
        mount -t tmpfs -o size=1m tmpfs "$HOME"
        id=$(causeway submit --sites rennes=1 --time 1min -- $mpirun -n 1 sh -c 'head -c 3000000 /dev/zero | tr "\0" x')
        causeway wait "$id"
        echo "wait $?"
        dd if=/dev/zero of="$HOME/rest" 2>&1 | grep -c 'No space'
        causeway submit --sites rennes=1 --time 1min -- $mpirun hostname
        echo "submit $?"
        umount "$HOME"
        ;;
    esac
    given_back
    exit
    ;;
time-*)
    case $case in
    time-one-mpi)
        run --sites rennes=8,nancy=8 --time 10min -- $mpirun -n 16 "$openmpi/ring_mpi"
        run $four --batch 'nancy:--partition=all' -- mpirun.mpich -n 8 "$mpich/ring_mpi"
        ;;
    time-own-mpi)
        run $four --own-mpi -- "$mpich/own_world"
        run $four --at rennes "$mpirun -n 4 $openmpi/own_world" --at nancy "srun -n 4 --mpi=pmi2 $mpich/own_world"
        run --sites rennes=4 --time 10min --at rennes hostname --at nancy hostname
        run --sites rennes=4 --at rennes hostname
        ;;
    time-script)
        printf '#!/bin/sh\n%s -n 8 %s/ring_mpi\nmpirun.mpich -n 8 %s/ring_mpi\nexit 5\n' "$mpirun" "$openmpi" "$mpich" >driver.sh
        chmod +x driver.sh
        run --script $four -- ./driver.sh
        ;;
    time-refused)
        run --sites rennes=80,nancy=8 --time 10min -- $mpirun hostname
        run --sites rennes=8,nancy=8 --time 10h -- $mpirun hostname
        run $four --batch nancy:--wrap=id -- $mpirun hostname
        run $four --batch nancy:--partition=none -- $mpirun hostname
        run --sites rennes,nancy --time 10min -- $mpirun hostname
        run $four --batch nancy:--partition=all@other.example -- $mpirun hostname
        ;;
    time-drained)
        # Nobody is in these nodes: sbatch queues what they are asked for, with --test-only it refuses.
        scontrol update NodeName=rennes-[1-2] State=drain Reason=test
        once 'waits: ReqNodeNotAvail' 1 'scontrol update NodeName=rennes-[1-2] State=resume' $four -- mpirun.mpich -n 8 "$mpich/ring_mpi"
        ;;
    time-budget)
        # Four ranks for ten minutes are 0.6 core-hours; what an allocation has not used is there again.
        nancys=/run/causeway-lab/gateway/nancy.toml
        again="$(command -v causeway) gateway --config $nancys --drain"
        $nancy "sed -i 's/^system = .*/&\ncore_hours_a_day = 1/' $nancys && $again" >/dev/null
        for _ in 1 2; do run $four -- mpirun.mpich -n 8 true; done
        run --sites rennes=4,nancy=8 --time 10min -- mpirun.mpich -n 8 true
        $nancy "CAUSEWAY_CONTROL=$CAUSEWAY_CONTROL $(command -v causeway) status" | grep 'allocations for'
        $nancy "sed -i 's/^core_hours_a_day.*/max_allocations = 1/' $nancys && $again" >/dev/null
        once 'is there' 4 "timeout 50 causeway run $four -- mpirun.mpich -n 8 true; echo second \$?; kill -INT \$pid" \
            $four --own-mpi -- "$mpich/own_world" wait 2>&1
        ;;
    time-busy | time-idle | time-interrupt)
        # Until then rennes asks two minutes before nancy can begin, or at once.
        minutes=10
        [ "$case" = time-idle ] && minutes=1
        n=$($nancy salloc --no-shell -N2 --exclusive -t $minutes 2>&1 | number)
        case $case in
        time-busy) run $four --idle 2s --wait 8s -- $mpirun hostname ;;
        # The second attempt asks the site that is busy first, and so keeps no node idle.
        time-idle) run --sites rennes=8,nancy=8 --time 10min --idle 2s --wait 16s -- $mpirun hostname ;;
        *) once 'nancy: allocation .* waits' 1 'kill -INT $pid' $four -- $mpirun hostname ;;
        esac
        $nancy scancel "$n"
        ;;
    time-compete)
        # Each needs all nodes of both sites.
        $nancy "cd /tmp && CAUSEWAY_CONTROL=$CAUSEWAY_CONTROL timeout 50 $(command -v causeway) run --sites rennes=8,nancy=8 --time 10min --idle 2s -- \
            mpirun.mpich -n 16 $mpich/ring_mpi 2>&1; echo status \$?" >other &
        run --sites nancy=8,rennes=8 --time 10min --idle 2s -- mpirun.mpich -n 16 "$mpich/ring_mpi"
        wait
        echo "the other: $(cat other)"
        ;;
    time-killed) once 'is there' 4 'kill -KILL $pid' $four --own-mpi -- "$mpich/own_world" wait ;;
    time-cancelled) once 'is there' 4 "$nancy scancel -u root" $four --own-mpi -- "$mpich/own_world" wait ;;
    time-controller)
        # It is away when the job ends: what it has given is given back when it is there again.
        once 'is there' 4 "$nancy pkill -TERM slurmctld; kill -INT \$pid" $four --own-mpi -- "$mpich/own_world" wait
        $nancy "$controller"
        # Its nodes have to tell it that they are there.
        for _ in $(seq 300); do
            [ "$($nancy sinfo -h -t idle -o %D)" = 2 ] && break
            read -rt 0.1 <> <(:) || :
        done
        ;;
    time-gateway)
        # With all that would give back: a gateway that starts again finds what is written down.
        once 'is there' 4 "$nancy pkill -KILL -f \"'causeway (gatewa[y]|holde[r]|release-allocatio[n])'\"" \
            $four --own-mpi -- "$mpich/own_world" wait
        echo "left: $($nancy squeue -h | wc -l)"
        $nancy "setsid $(command -v causeway) gateway --config /run/causeway-lab/gateway/nancy.toml </dev/null >/dev/null 2>&1 &"
        ;;
    esac
    given_back
    exit
    ;;
esac

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

case $case in
one-mpi)
    for start in "$mpirun -n 8 $openmpi" "mpirun.mpich -n 8 $mpich"; do
        run $both -- $start/ring_mpi
    done
    run $both -- mpirun.mpich -n 8 sh -c 'env | grep -c "^SLURM\|^SRUN" | sed "s/^/variables of Slurm: /"' | sort -u
    ;;
own-mpi)
    run $both --own-mpi --sites rennes=4,nancy=4 -- "$mpich/own_world"
    run $both --at rennes "$mpirun -n 4 $openmpi/own_world" --at nancy "mpirun.mpich -n 4 $mpich/own_world"
    ;;
inside)
    scancel "$r"
    salloc -N1 --ntasks-per-node=4 -t 5 causeway run --sites rennes -- mpirun.mpich -n 2 "$mpich/ring_mpi" 2>&1
    echo "status $?"
    r=$(salloc --no-shell -N2 -t 10 2>&1 | number)
    ;;
script)
    scancel "$r"
    # A home directory that the nodes share, as clusters have it.
    export HOME=$PWD/home
    mkdir -p "$HOME/.config/causeway"
    cp /run/causeway-lab/gateway/rennes.host "$HOME/.config/causeway/gateway.host"
    script() { # text
        printf '#!/usr/bin/env bash\n%s\necho "status $?" >>script-end\n' "$1" >script
        rm -f script-end
        sbatch -N2 --ntasks-per-node=4 -t 5 -o script-output script >/dev/null
        for _ in $(seq 400); do
            [ -e script-end ] && break
            read -rt 0.1 <> <(:) || :
        done
        cat script-output script-end
    }
    script "causeway run --sites rennes=4,nancy=4 --alloc nancy:$n -- $mpirun -n 8 $openmpi/ring_mpi"
    script "causeway run -- mpirun.mpich -n 8 sh -c 'echo from \$(hostname)'"
    script "causeway run --at rennes 'srun -n 4 --mpi=pmi2 $mpich/own_world' --at nancy 'srun -n 4 --mpi=pmi2 $mpich/own_world' --alloc nancy:$n"
    script "ls -d \${TMPDIR:-/tmp}/causeway-run-*; pgrep -fa '[s]sh -nNT'"
    script "causeway run -- mpirun.mpich -n 8 sleep 97 &
        until pgrep -x sleep >/dev/null; do read -rt 0.1 <> <(:) || :; done
        pkill -f '[s]sh -nNT'; wait %1"
    sed -i 's/"host":"[^"]*"/"host":"nobody.invalid"/' "$HOME/.config/causeway/gateway.host"
    script "causeway run -- mpirun.mpich -n 2 hostname"
    r=$(salloc --no-shell -N2 -t 10 2>&1 | number)
    ;;
parts)
    scancel "$r"
    $nancy scancel "$n"
    r=$(sbatch --parsable --output=/dev/null --array=1-2 --ntasks=2 -t 5 --wrap 'sleep 60')
    n=$($nancy sbatch --parsable --output=/dev/null --ntasks=1 -t 5 : --ntasks=2 -t 5 --wrap "'sleep 60'")
    until [ "$(squeue -h -t R | wc -l)$($nancy squeue -h -t R | wc -l)" = 22 ]; do
        read -rt 0.1 <> <(:) || :
    done
    run --alloc "rennes:${r}_2" --alloc "nancy:$n+1" -- mpirun.mpich -n 4 "$mpich/ring_mpi"
    run --alloc "nancy:$n+1" --sites nancy -- $mpirun -n 2 "$openmpi/ring_mpi"
    scancel "$r"
    $nancy scancel "$n"
    r=$(salloc --no-shell -N2 -t 10 2>&1 | number)
    n=$($nancy salloc --no-shell -N2 -t 10 2>&1 | number)
    ;;
refused)
    run --alloc rennes:999 -- mpirun.mpich -n 2 hostname
    run --alloc nancy:999 -- mpirun.mpich -n 2 hostname
    run --sites rennes -- mpirun.openmpi -n 2 hostname
    run $both -- mpirun.openmpi -n 20 hostname
    run --alloc "rennes:$r" -- mpirun.openmpi --host rennes-1,10.1.0.77 -n 2 hostname
    ;;
resources)
    # How wide its columns are depends on the times in them.
    causeway resources | tr -s ' '
    causeway resources --jgf >graph
    CAUSEWAY_CONTROL=/nowhere causeway resources --from graph --json
    export HOME=$PWD
    { causeway resources --measure --alloc "rennes:$r" --alloc "nancy:$n" >measured; } 2>&1
    # Cores, memory and speed are this machine's.
    causeway resources | awk '$2 == "all*" { print "later:", $1, ($5 > 0), ($6 > 0), ($8 > 0) }'
    ;;
cancelled)
    once 'is there' 4 "$nancy scancel $n" $both --own-mpi --sites rennes=2,nancy=2 -- "$mpich/own_world" wait
    n=$($nancy salloc --no-shell -N2 -t 10 2>&1 | number)
    ;;
killed)
    once 'is there' 4 'kill -KILL $pid' $both --own-mpi --sites rennes=2,nancy=2 -- "$mpich/own_world" wait
    ;;
esac
left
scancel "$r"
$nancy scancel "$n"
