#!/usr/bin/env bash
# job.sh ROOT GRID [many]: the jobs of one emulated grid, run on rennes' head node; `regress.py` reads what
# they leave in this directory. The programs are those of ROOT, whichever build of Causeway runs them.
set -euo pipefail
root=$1 grid=$2 many=${3:-}
programs=$root/target/mpi/debian-openmpi
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
# Labs of some builds set this, and those of others do not: a rank that mpirun has not bound looks for all of
# the node's hardware in MPI_Init, which takes 50 ms.
export OMPI_MCA_hwloc_base_binding_policy=none

# ranks at each site, a command of mpirun's
job() {
    local each=$1
    shift
    causeway run --sites "rennes=$each,nancy=$each" -- mpirun.openmpi -n $((2 * each)) "$@"
}

job 1 "$root/tests/programs/own-core.sh" "$programs/steady" steady.csv 4 9 9
[ "$grid" = tls ] || exit 0
job 1 "$root/tests/programs/own-core.sh" "$programs/steady" large.csv 6 9 9 1048576 16777216
yields=(--oversubscribe --mca mpi_yield_when_idle 1)
job 2 "${yields[@]}" "$programs/beginning" begin-4.csv
job 2 "${yields[@]}" "$programs/collective_time" collectives.csv 20 allreduce,bcast 8,16384,262144
for program in "$root"/target/regress/npb/*.S.4; do
    [ ! -x "$program" ] || job 2 "${yields[@]}" "$program" >"npb-$(basename "$program")"
done
[ -z "$many" ] || job 32 "${yields[@]}" "$programs/beginning" begin-64.csv
