#!/usr/bin/env bash
# hostile-all.sh MPI DIRECTORY PHASES SECONDS: one job that checks its data and one that only sends, over
# orsay and rennes, while a member of the grid (hostile_member.py, which acts while DIRECTORY/attack is
# there) and another user of this head node do what they can. Of three phases the first has nobody else, the
# second these two, the third a loop of the lowest priority, which shows what losing idle cores alone costs.
# HOSTILE_CGROUP, if set, is a directory of cgroup v1 that bounds what of a core these and the loop have.
# DIRECTORY/rates.csv says what each phase brought, in rounds of the one program and bytes of the other. "all
# right" where both jobs ended well.
set -eu
mpi=$1 directory=$2 phases=$3 seconds=$4
root=$(cd "$(dirname "$0")/../.." && pwd)
programs=${CARGO_TARGET_DIR:-$root/target}/mpi/debian-$mpi
cd "$directory"
as_elsewhere() {
    [ -z "${HOSTILE_CGROUP-}" ] || echo "$BASHPID" >"$HOSTILE_CGROUP/cgroup.procs"
    exec nice -n 19 "$@"
}
[ -e rates.csv ] || echo "mpi,program,phase,beside,seconds,amount" >rates.csv
mkfifo "said-$mpi"
as_elsewhere "$root/tests/programs/hostile_neighbour.py" orsay-1 orsay-2 >"said-$mpi" &
neighbour=$!
job='' loop=''
trap 'rm -f attack; kill -9 "$neighbour" $job $loop 2>/dev/null || true' EXIT
exec 3<"said-$mpi"
read -r ready <&3
[ "$ready" = ready ]
kill -STOP "$neighbour"

now() { date +%s.%N; }
# What has come so far; a file's last line may be half written.
amount() {
    case $1 in
    traffic) cat rounds 2>/dev/null || echo 0 ;;
    bulk) awk -F, '/^[0-9.]+,[0-9]+$/ { last = $2 } END { print last + 0 }' bulk.csv 2>/dev/null ;;
    esac
}

phases_of() { # program
    local kinds=(nobody hostile loop) beside phase at before
    until [ "$(amount "$1")" -gt 0 ]; do
        kill -0 "$job" || return 1
        sleep 0.1
    done
    for ((phase = 0; phase < phases; phase++)); do
        beside=${kinds[phase % 3]}
        case $beside in
        hostile)
            touch attack
            kill -CONT "$neighbour"
            ;;
        loop)
            as_elsewhere sh -c 'while :; do :; done' &
            loop=$!
            ;;
        esac
        # What was under way ends.
        sleep 0.5
        at=$(now) before=$(amount "$1")
        sleep "$seconds"
        echo "$mpi,$1,$phase,$beside,$(now),$at,$(amount "$1"),$before" |
            awk -F, '{ printf "%s,%s,%s,%s,%.3f,%d\n", $1, $2, $3, $4, $5 - $6, $7 - $8 }' >>rates.csv
        rm -f attack
        kill -STOP "$neighbour"
        [ -z "$loop" ] || kill "$loop"
        loop=
    done
    # The jobs end beside all of it.
    touch attack
    kill -CONT "$neighbour"
}

rm -f enough rounds bulk.csv attack
causeway run --sites orsay=1,rennes=1 -- "mpirun.$mpi" -n 2 "$programs/traffic" "$PWD" &
job=$!
phases_of traffic
# The member has done each of its ten acts.
until [ "$(grep -o : attack.count | wc -l)" -ge 10 ]; do
    kill -0 "$job"
    sleep 0.1
done
touch enough
wait "$job"
rm -f attack
kill -STOP "$neighbour"
causeway run --sites orsay=1,rennes=1 -- "mpirun.$mpi" -n 2 "$programs/bulk" "$PWD/bulk.csv" "$((phases * (seconds + 1) + 2))" &
job=$!
phases_of bulk
wait "$job"
job=''
kill -CONT "$neighbour"
kill -TERM "$neighbour"
read -r report <&3
echo "$report"
echo "all right"
