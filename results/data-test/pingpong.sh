#!/usr/bin/env bash
# pingpong.sh BEFORE OUT: MPICH 4.0.2 over rennes-nancy in four ways in turn, five times; BEFORE is a
# directory with a causeway whose libcauseway_ucx.so has no unpack.c. Run as: causeway lab run --routed true
# rennes-nancy -- pingpong.sh ...
set -euo pipefail
before=$1 out=$2
root=$(cd "$(dirname "$0")/../.." && pwd)
sizes=1,1024,16384,65536,262144,1048576,4194304
one() { # way, command that runs, its options
    "${@:2}" --sites rennes=1,nancy=1 -- mpirun.mpich -n 2 "$root/tests/programs/own-core.sh" "$root/target/mpi/debian-mpich/pingpong" \
        "$out/part.csv" --sizes $sizes --count 20 >/dev/null
    awk -v way="$1" -v turn="$turn" 'NR > 1 { print way "," turn "," $0 }' "$out/part.csv" >>"$out/pingpong.csv"
}
echo way,turn,size_bytes,iteration,one_way_us >"$out/pingpong.csv"
for turn in 1 2 3 4 5; do
    one direct "$root/target/release/causeway" run --direct
    one before "$before/causeway" run
    one now "$root/target/release/causeway" run
    UCX_RNDV_THRESH=auto one "no threshold" "$root/target/release/causeway" run
done
rm -f "$out/part.csv"
