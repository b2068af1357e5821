#!/usr/bin/env bash
# workers.sh [SEED [CASES [RUNS]]]: the workers library on this host. First RUNS whole runs in virtual time,
# then CASES random jobs for each of Debian's MPIs and 1, 2, 3, 4 and 7 ranks, in one group or several,
# against the run of one rank; then the example in C, Fortran and Python. With SANITIZED=1 C is built with the
# sanitizers for addresses and undefined behaviour.
set -euo pipefail
. "$(dirname "$0")/common.sh"
example=collatz
seed=${1:-$RANDOM} cases=${2:-8} runs=${3:-3000}
targets=(all)
[ "${SANITIZED:-}" ] || targets+=(fortran)

build() { # MPI
    make_for "$1" "${targets[@]}"
    "mpicc.$1" "${strict[@]}" "$here/workers/check.c" "$out/$1/libcauseway_workers.a" -o "$out/$1/check" -lm
}

# same GROUPS SHAPE MPI RANKS PROGRAM...: its last line must be that of one rank.
same() {
    local found
    found=$(CAUSEWAY_WORKERS_GROUPS=$1 CAUSEWAY_WORKERS_SHAPE=$2 launch "${@:3}" 20000)
    expect "^of 20000 numbers 17647 takes most steps, 278; check $check\$" "$found"
}

# with MPI SEED: all tests of the library with one MPI.
with() {
    local mpi=$1 seed=$2 check said
    build "$mpi"
    for ranks in 1 2 3 4 7; do
        # Seven ranks on few cores take turns.
        launch "$mpi" "$ranks" "$out/$mpi/check" "$seed" $((ranks < 7 ? cases : (cases + 1) / 2)) "$work/$mpi"
        seed=$((seed + cases))
    done
    # MPI_Abort ends it, which no launcher takes for success.
    said=$(launch "$mpi" 4 "$out/$mpi/check" silent 1 "$work/$mpi" 2>&1 || :)
    [ -e "$work/$mpi/all-results-are-there" ] || fail "not all results are there without the silent rank: $said"
    check=$(launch "$mpi" 1 "$out/$mpi/collatz" 20000 | sed -n 's/.*check //p')
    echo "$check" >"$work/check.$mpi"
    same 2+1,2 hierarchical "$mpi" 5 "$out/$mpi/collatz"
    said=$(CAUSEWAY_WORKERS_PROGRESS=1 launch "$mpi" 2 "$out/$mpi/collatz" 20000 2>&1)
    expect '20000 of 20000 items (100.0 %)' "$said"
    expect "check $check\$" "$said"
    said=$(CAUSEWAY_WORKERS_SHAPE=round launch "$mpi" 1 "$out/$mpi/collatz" 20000 2>&1 || :)
    expect 'CAUSEWAY_WORKERS_SHAPE=round: it is one of auto flat hierarchical' "$said"
    [ "${SANITIZED:-}" ] || same 2,2 hierarchical "$mpi" 4 "$out/$mpi/collatz_fortran"
}

model() {
    local sources=("$root"/lib/workers/src/{schedule,sums,memory,tree}.c)
    cc "${strict[@]}" "$here/workers/model.c" "${sources[@]}" -o "$out/model" -lm
    "$out/model" "$seed" "$runs"
}

# Both MPIs and the model at once: launchers mostly wait.
echo "workers: seed $seed"
mkdir "$work"/{openmpi,mpich}
beside tests-openmpi with openmpi "$seed"
beside tests-mpich with mpich $((seed + 5 * cases))
model
wait_for_all
check=$(cat "$work/check.openmpi")
[ "$check" ] && [ "$check" = "$(cat "$work/check.mpich")" ]
# Sites and groups as Causeway tells them, where its library has been built: two sites whose ranks alternate.
if [ -e "$library" ] && [ ! "${SANITIZED:-}" ]; then
    for levels in site,group site,host; do
        said=$(CAUSEWAY_COLLECTIVES_SITES=a,b,a,b,b CAUSEWAY_COLLECTIVES_GROUPS=0-1=x,2=y,@b=z CAUSEWAY_WORKERS_LEVELS=$levels \
            CAUSEWAY_WORKERS_SHAPE=hierarchical launch openmpi 5 env "LD_PRELOAD=$library" "$out/openmpi/collatz" 20000)
        expect "^5 ranks, a boss a group.* [1-9][0-9]* with other groups" "$said"
        expect "check $check\$" "$said"
    done
else
    echo "workers: sites are not tested: they need $library, which make build makes, and no sanitizers"
fi
if [ -x "$suite" ] && [ ! "${SANITIZED:-}" ]; then
    use_mpi4py
    export PYTHONPATH=$root/lib/workers CAUSEWAY_WORKERS_LIBRARY=$out/openmpi/libcauseway_workers.so
    same 2,1 hierarchical openmpi 3 "$suite" "$root/examples/collatz/collatz.py"
    launch openmpi 3 "$suite" "$here/workers/check.py"
else
    echo "workers: Python is not tested: it needs $suite, which make setup installs, and no sanitizers"
fi
