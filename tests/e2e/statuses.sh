#!/usr/bin/env bash
# shellcheck disable=SC2086 # Launchers and their options stand in variables.
# statuses.sh PROGRAMS: the status of jobs of which one rank ends before its time, by a launcher alone over
# two hosts of rennes and by Causeway over rennes and nancy, for statuses.rs. It runs on the head node of
# rennes; PROGRAMS is target/mpi.
set -u
openmpi="mpirun.openmpi --allow-run-as-root --oversubscribe"

# The status of a command; 124 where it does not end.
status() {
    timeout -k 2 60 "$@" >>said 2>&1
    echo $?
}

# The same of a launcher alone. MPICH's may not end where a rank ends last with a status of its own: then it
# is no measure, and runs again.
ends_by_itself() {
    local status
    for _ in 1 2 3; do
        status=$(status "$@")
        [ "$status" = 124 ] || break
    done
    echo "$status"
}

compare() { # name, launcher, its hosts, ways...
    local name=$1 launcher=$2 hosts=$3
    local program=$programs/debian-$name/ends
    shift 3
    for how in "$@"; do
        for rank in 0 3; do
            native=$(ends_by_itself $launcher $hosts -n 4 "$program" "$how" "$rank")
            ours=$(status causeway run --sites rennes=2,nancy=2 -- $launcher -n 4 "$program" "$how" "$rank")
            # For ranks that a signal has ended, MPICH's launcher gives 255, 15 or the signal, run by run.
            case $name-$how-$native-$ours in
            *-124-* | *-124) verdict=unlike ;;
            mpich-*-0-* | mpich-*-0) verdict=unlike ;;
            mpich-segv-* | mpich-kill-* | mpich-abrt-*) verdict=alike ;;
            *) [ "$native" = "$ours" ] && verdict=alike || verdict=unlike ;;
            esac
            echo "$name $how rank $rank: $native, Causeway $ours: $verdict"
        done
    done
}

programs=$1
compare openmpi "$openmpi" "-H rennes-1:2,rennes-2:2" segv kill abrt abort5 exit3 last3
# Where a rank of MPICH ends without MPI_Finalize, the others wait for ever, natively, too.
compare mpich mpirun.mpich "-launcher ssh -hosts rennes-1,rennes-2 -ppn 2" segv kill abrt abort5 last3
