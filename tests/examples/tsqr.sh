#!/usr/bin/env bash
# tsqr.sh [SEED [CASES]]: the library causeway_tsqr on this host: CASES random factorisations for each of
# Debian's MPIs and 1 to 7 ranks, in one to five groups, against LAPACK and ScaLAPACK's threshold,
# and mistakes; the tree over sites in virtual time; then its programs in C, Fortran and Python, ScaLAPACK's
# count of messages, and a rank that is killed. With SANITIZED=1 C is built with the sanitizers for addresses
# and undefined behaviour.
set -euo pipefail
. "$(dirname "$0")/common.sh"
seed=${1:-$RANDOM} cases=${2:-8}
targets=(all)
[ "${SANITIZED:-}" ] || targets+=(fortran)

build() { # MPI
    make_for "$1" "${targets[@]}"
    "mpicc.$1" "${strict[@]}" "$here/tsqr/check.c" "$out/$1/libcauseway_tsqr.a" -o "$out/$1/check" -llapack -lblas -lm
    [ "$1" = mpich ] || cc "${strict[@]}" "$here/tsqr/site_tree.c" "$root/lib/tsqr/src/site_tree.c" -o "$out/site_tree"
}

# killed MPI PATTERN: a rank is killed while all factorise; the job must end by itself and say why.
killed() {
    local status=0
    mkfifo "$work/$1"
    # shellcheck disable=SC2016 # the ranks' shells expand this
    launch "$1" 3 sh -c 'echo $$ >"$0.${OMPI_COMM_WORLD_RANK:-$PMI_RANK}"; exec "$@"' "$work/$1.rank" \
        "$out/$1/tsqr" --rows 20000 --columns 16 --runs 1000000 --no-q >"$work/$1.said" 2>"$work/$1" &
    # Once a factorisation has ended, all ranks are in the next ones.
    { grep -m 1 -q 'run 1 of' && kill -9 "$(cat "$work/$1.rank.$((seed % 3))")" && cat >>"$work/$1.said"; } <"$work/$1"
    wait $! || status=$?
    case $status in
    0 | 124) echo "tsqr: $1 ends a job with a killed rank with $status" >&2 && exit 1 ;;
    esac
    expect "$2" "$(tail -n 40 "$work/$1.said")"
}

echo "tsqr: seed $seed"
build openmpi
# One core builds while the other has the first tests.
build mpich &
building=$!
"$out/site_tree" "$seed" 500
killings=()
declare -A most=([openmpi]=7 [mpich]=5)
for mpi in openmpi mpich; do
    [ "$mpi" = openmpi ] || wait "$building"
    # More ranks than cores take turns, and MPICH's never yield.
    for ranks in 1 2 3 4 "${most[$mpi]}"; do
        launch "$mpi" "$ranks" "$out/$mpi/check" "$seed" $((ranks < 3 ? cases : (cases + ranks - 1) / ranks + 1))
        seed=$((seed + 1))
    done
    # Two edges between three groups, each with a message up and one back.
    said=$(CAUSEWAY_TSQR_GROUPS=2,1,1 launch "$mpi" 4 "$out/$mpi/tsqr" --rows 5000 --columns 16 --runs 1 2>/dev/null)
    expect '^tsqr: 5000 x 16, ranks 4, sites 3,' "$said"
    expect ' 4 *$' "$(tail -n 1 <<<"$said")"
    [ "${SANITIZED:-}" ] || expect '3.0000, right: T' "$(launch "$mpi" 2 "$out/$mpi/line_fortran" 500)"
    # Launchers take a second to end such a job, most of which they wait.
    killed "$mpi" '[Ss][Ii][Gg][Nn][Aa][Ll]:* 9' &
    killings+=($!)
done
# More sites than rows: the sixth has none.
said=$(CAUSEWAY_TSQR_GROUPS=1,1,1,1,1,1 launch openmpi 6 "$out/openmpi/tsqr" --rows 5 --columns 2 --runs 1 2>/dev/null)
expect '^tsqr: 5 x 2, ranks 6, sites 6,' "$said"
expect ' 10 *$' "$(tail -n 1 <<<"$said")"
said=$(launch mpich 2 "$out/mpich/tsqr" --rows 5 --columns 16 2>&1 || :)
expect 'tsqr: rank 0: all ranks together have fewer rows than columns' "$said"
said=$(CAUSEWAY_TSQR_GROUPS=2,1 launch mpich 2 "$out/mpich/tsqr" --rows 5 --columns 1 2>&1 || :)
expect 'tsqr: CAUSEWAY_TSQR_GROUPS is no list' "$said"
said=$(launch mpich 1 "$out/mpich/tsqr" --rows many 2>&1 || :)
expect 'tsqr: --rows many: it is a whole number' "$said"
# Sites as Causeway tells them, where its library has been built: two sites whose ranks alternate.
if [ -e "$library" ] && [ ! "${SANITIZED:-}" ]; then
    said=$(CAUSEWAY_COLLECTIVES_SITES=a,b,a,b,b launch openmpi 5 env "LD_PRELOAD=$library" "$out/openmpi/tsqr" --rows 3000 --columns 8 2>/dev/null)
    expect '^tsqr: 3000 x 8, ranks 5, sites 2,' "$said"
    expect ' 2 *$' "$(tail -n 1 <<<"$said")"
else
    echo "tsqr: sites are not tested: they need $library, which make build makes, and no sanitizers"
fi
# ScaLAPACK's factors of the same matrix are right as well, and R takes as many messages as results/tsqr says,
# (5 N - 4 + 2 N / NB) an edge; Q takes more.
if [ -e "/usr/lib/$(cc -print-multiarch)/libscalapack-openmpi.so" ] && [ ! "${SANITIZED:-}" ]; then
    make_for openmpi scalapack
    said=$(CAUSEWAY_TSQR_GROUPS=1,1 launch openmpi 2 "$out/openmpi/pdgeqrf" --rows 2000 --runs 1 --no-q 2>/dev/null)
    expect ' 324 *$' "$(tail -n 1 <<<"$said")"
    said=$(CAUSEWAY_TSQR_GROUPS=1,1 launch openmpi 2 "$out/openmpi/pdgeqrf" --rows 2000 --runs 1 2>/dev/null)
    awk 'END { exit !($4 < 5 && $5 < 5) }' <<<"$said" || { echo "tsqr: ScaLAPACK is not exact: $said" >&2 && exit 1; }
else
    echo "tsqr: ScaLAPACK is not compared: it needs libscalapack-openmpi-dev, and no sanitizers"
fi
# Python as `make setup` and test-examples install it.
numpy=$(echo "$root"/.cache/mpi/rays/lib/python3*/site-packages)
if [ -x "$suite" ] && [ -d "$numpy/numpy" ] && [ ! "${SANITIZED:-}" ]; then
    use_mpi4py
    export PYTHONPATH=$root/lib/tsqr:$root/examples/tsqr:$numpy OPENBLAS_NUM_THREADS=1 CAUSEWAY_TSQR_LIBRARY=$out/openmpi/libcauseway_tsqr.so
    CAUSEWAY_TSQR_GROUPS=1,2 launch openmpi 3 "$suite" "$here/tsqr/check.py"
    said=$(CAUSEWAY_TSQR_GROUPS=1,1 launch openmpi 2 "$suite" "$root/examples/tsqr/modes.py" --side 30 --times 10 --steps 5 2>&1)
    expect '^modes: time 10 of 10' "$said"
    # Up and back with R, and Q times the small modes.
    expect '^modes: 900 places, 10 times, 2 ranks, 2 sites: .* s, 3 messages between sites' "$said"
else
    echo "tsqr: Python is not tested: it needs $suite and $numpy, which setup installs, and no sanitizers"
fi
for killing in "${killings[@]}"; do
    wait "$killing"
done
