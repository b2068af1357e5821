#!/usr/bin/env bash
# hostile.sh MPI: jobs over both sites of rennes-nancy while another user of the head node does what he can
# (tests/programs/hostile_neighbour.py). "all right" where every job ended well and the neighbour had held
# connections to programs of jobs.
set -eu
mpi=$1
root=$(cd "$(dirname "$0")/../.." && pwd)
programs=${CARGO_TARGET_DIR:-$root/target}/mpi/debian-$mpi
mkfifo said
"$root/tests/programs/hostile_neighbour.py" rennes-1 rennes-2 >said &
neighbour=$!
trap 'kill -9 "$neighbour" 2>/dev/null || true' EXIT
exec 3<said
read -r ready <&3
[ "$ready" = ready ]
for job in 1 2 3; do
    causeway run --sites rennes=2,nancy=2 -- "mpirun.$mpi" -n 4 "$programs/ring"
    echo "job $job ended well"
done
kill -TERM "$neighbour"
read -r report <&3
wait "$neighbour"
echo "$report"
[[ "$report" =~ hostile:\ [1-9][0-9]*\ connections\ to\ programs ]] && echo "all right"
