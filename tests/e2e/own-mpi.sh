#!/usr/bin/env bash
# own-mpi.sh CASE PROGRAMS: one case of sites that each run their own MPI, for own_mpi.rs. It runs on the
# first site's head node; PROGRAMS is target/mpi. Says what comes out of causeway run, its status, and what is
# left of the job at either site.
set -u
case=$1
openmpi=$2/debian-openmpi mpich=$2/debian-mpich
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
# Two cores carry all ranks.
mpirun="mpirun.openmpi --allow-run-as-root --oversubscribe --mca mpi_yield_when_idle 1"

run() { # sites and commands...
    causeway run "$@" 2>&1
    echo "status $?"
}

both() { # what own_world does, at rennes with Open MPI and at nancy with MPICH
    run --at rennes "$mpirun -n 2 $openmpi/own_world $1" --at nancy "mpirun.mpich -n 2 $mpich/own_world $1"
}

# Nothing runs the programs of the tests any more. A bracket keeps the pattern from finding itself.
left() {
    for site in rennes nancy; do
        causeway run --at "$site" "pgrep -fa 'own_[w]orld|sleep 97[7]' || echo nothing is left at $site" 2>/dev/null
    done
}

# Waits for what ends by itself: the gateways see the end of a job, and end what it has started.
gone() {
    for _ in $(seq 100); do
        [ "$(left | grep -c nothing)" = 2 ] && break
        read -rt 0.1 <> <(:) || :
    done
}

# A site of Slurm: no job is there any more, and on no node a process of the tests; the nodes themselves are
# asked by Slurm, which is the only way to them.
left_by_slurm() {
    local jobs
    # An allocation is given back some moments after srun has ended.
    for _ in $(seq 100); do
        jobs=$(squeue -h)
        [ -z "$jobs" ] && break
        read -rt 0.1 <> <(:) || :
    done
    echo "${jobs:-nothing is allocated}"
    # shellcheck disable=SC2016 # Each node says its own name.
    srun -N 2 --ntasks-per-node=1 sh -c 'pgrep -fa own_[w]orld || echo nothing is left on $(hostname)'
}

# Ends a run by a signal once this text has come so many times.
interrupted() { # signal, text, times, sites and commands...
    local signal=$1 text=$2 times=$3 pid
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
    kill "-$signal" $pid
    wait $pid
    echo "status $?"
    cat output
}

case $case in
exchange) both exchange ;;
turned) run --at nancy "mpirun.mpich -n 1 $mpich/own_world" --at rennes "$mpirun -n 3 $openmpi/own_world" ;;
nodes)
    run --at rennes "$mpirun --host rennes-1,rennes-2 -n 2 $openmpi/own_world" \
        --at nancy "mpirun.mpich -hosts nancy-1,nancy-2 -n 2 $mpich/own_world"
    ;;
exported)
    # An option -x of the user's, in a command, in a script and of the program; ranks are on two nodes.
    printf '#!/bin/sh\nexec %s --host rennes-1,rennes-2 -x HELLO=world -n 2 "$@"\n' "$mpirun" >start
    chmod +x start
    for start in "$mpirun --host rennes-1,rennes-2 -x HELLO=world -n 2" "$PWD/start"; do
        # shellcheck disable=SC2016 # The ranks' shell says what it has.
        run --at rennes "$start sh -c 'echo HELLO=\$HELLO; exec \"\$@\"' sh $openmpi/own_world exchange -x 5" \
            --at nancy "mpirun.mpich -n 2 $mpich/own_world"
    done
    ;;
collectives)
    for program in collectives_mpif collectives_mpi collectives_f08; do
        run --at rennes "$mpirun -n 2 $openmpi/$program" --at nancy "mpirun.mpich -n 2 $mpich/$program"
    done
    ;;
groups)
    # As --groups, a profile with a program, and a profile with another program have them.
    printf '[groups.first]\nranks = "0"\n[groups.there]\nsites = ["nancy"]\n' >groups.toml
    run --groups groups.toml --at rennes "$mpirun -n 2 $openmpi/topology" --at nancy "mpirun.mpich -n 2 $mpich/topology"
    printf '%s\n' "program = '$mpich/topology'" '[groups.master]' 'ranks = 1' 'sites = ["rennes"]' \
        '[groups.work]' 'ranks = 2' 'sites = ["nancy"]' >job.toml
    run --profile job.toml
    run --own-mpi --profile job.toml -- "$mpich/own_world"
    ;;
imports)
    run --at rennes "$mpirun -n 2 $openmpi/own_imports" --at nancy "mpirun.mpich -n 2 $mpich/own_imports"
    both exchange | grep 'this program uses' || echo "a program without such calls is told nothing"
    ;;
fabric)
    # UCX says of each rank which transports it takes. Open MPI goes by its own list of nodes, whatever these
    # share: its ranks are on one, and have no transport but memory.
    run --at nancy "UCX_LOG_LEVEL=info mpirun.mpich -hosts nancy-1,nancy-2 -n 2 $mpich/own_fabric" \
        --at rennes "$mpirun --host rennes-1:2 --mca pml ob1 --mca btl vader,self -n 2 $openmpi/own_fabric"
    run --at nancy "UCX_TLS=tcp,self mpirun.mpich -hosts nancy-1,nancy-2 -n 2 $mpich/own_fabric"
    ;;
own-mpi | srun-own) run --verbose --own-mpi --sites rennes=2,nancy=2 -- "$mpich/own_world" ;;
setup)
    # shellcheck disable=SC2016 # Each site's shell says what it has.
    run --at rennes 'echo "rennes has $LAB_SETUP"; mpirun.mpich -n 1 '"$mpich/own_world" \
        --at nancy 'echo "nancy has $LAB_SETUP"; mpirun.mpich -n 1 '"$mpich/own_world"
    ;;
wrong-count) MOST=1 run --own-mpi --sites rennes=2,nancy=2 -- "$mpich/own_world" ;;
one-site) run --at nancy "mpirun.mpich -n 2 $mpich/own_world" ;;
wrong-site) run --at rennes "sleep 977" --at lyon "sleep 977" ;;
not-found) run --at rennes "sleep 977" --at nancy "mpirun.nowhere -n 2 app" ;;
no-mpi) run --at rennes "sleep 977" --at nancy "echo no MPI here" ;;
singletons) run --at rennes "$mpirun -n 2 $mpich/own_world" --at nancy "sleep 977" ;;
abort | exit | kill) both "$case" ;;
interrupt)
    interrupted INT 'is there' 4 --at rennes "$mpirun -n 2 $openmpi/own_world wait" \
        --at nancy "mpirun.mpich -n 2 $mpich/own_world wait"
    ;;
waiting)
    interrupted TERM 'waiting for nancy' 1 --verbose --at rennes "$mpirun -n 2 $openmpi/own_world" --at nancy "sleep 977"
    ;;
killed)
    interrupted KILL 'is there' 4 --at rennes "$mpirun -n 2 $openmpi/own_world wait" \
        --at nancy "mpirun.mpich -n 2 $mpich/own_world wait"
    gone
    ;;
slurm)
    for node in rennes-1 rennes-2; do
        ssh -o ConnectTimeout=5 $node true || echo "$node refuses ssh"
    done
    echo "slurm has $(sinfo -h -t idle -o %D) idle nodes"
    ;;
srun-mpich)
    run --at rennes "srun -N 2 -n 2 --mpi=pmi2 $mpich/own_world" --at nancy "$mpirun -n 2 $openmpi/own_world"
    ;;
srun-openmpi)
    run --at rennes "srun -N 2 -n 2 --mpi=pmix $openmpi/own_world" --at nancy "mpirun.mpich -n 2 $mpich/own_world"
    ;;
salloc-mpich)
    run --at rennes "salloc -N 2 -n 2 mpirun.mpich -n 2 $mpich/own_world" --at nancy "$mpirun -n 2 $openmpi/own_world"
    ;;
salloc-openmpi)
    run --at rennes "salloc -N 2 -n 2 $mpirun -n 2 $openmpi/own_world" --at nancy "mpirun.mpich -n 2 $mpich/own_world"
    ;;
# What `causeway bench messages` counts needs no world.
srun-messages-mpich | srun-messages-openmpi)
    case $case in *mpich) kind=pmi2 programs=$mpich ;; *) kind=pmix programs=$openmpi ;; esac
    causeway bench messages --out "$PWD/../$case" -- srun -N 2 -n 4 --mpi=$kind "$programs/ring" 2>&1
    ;;
srun-singletons) run --at rennes "srun -n 2 --mpi=none $mpich/own_world" --at nancy "sleep 977" ;;
srun-kill | srun-abort)
    run --at nancy "$mpirun -n 2 $openmpi/own_world ${case#srun-}" \
        --at rennes "srun -N 2 -n 2 --mpi=pmi2 $mpich/own_world ${case#srun-}"
    ;;
srun-other)
    run --at rennes "srun -N 2 -n 2 --mpi=pmix $openmpi/own_world exit" --at nancy "mpirun.mpich -n 2 $mpich/own_world exit"
    ;;
srun-interrupt | srun-killed)
    signal=INT
    [ "$case" = srun-killed ] && signal=KILL
    interrupted $signal 'is there' 4 --at rennes "srun -N 2 -n 2 --mpi=pmi2 $mpich/own_world wait" \
        --at nancy "$mpirun -n 2 $openmpi/own_world wait"
    gone
    ;;
cut)
    run --at rennes "$mpirun -n 2 $openmpi/own_world wait" --at nancy "mpirun.mpich -n 2 $mpich/own_world wait" >output
    cat output
    # The test looks at both sites, and mends the WAN, before anything is asked through it.
    until [ -e mended ]; do
        read -rt 0.05 <> <(:) || :
    done
    gone
    ;;
gateway)
    # One gateway is killed, so the test looks at both sites itself, until the grid is needed no more.
    both wait >output
    cat output
    until [ -e looked ]; do
        read -rt 0.05 <> <(:) || :
    done
    exit 0
    ;;
input) echo one line | run --at rennes "cat; exit 3" --at nancy "cat; sleep 977" ;;
esac
case $case in
slurm) ;;
srun-* | salloc-*) left_by_slurm ;;
esac
left
# Right or wrong is the test's to say.
exit 0
