#!/usr/bin/env bash
# tsqr.sh [SEED [CASES]]: the library causeway_tsqr on this host: CASES random factorisations for each of
# Debian's MPIs and 1, 2, 3, 4 and 7 ranks, in one to three groups, against LAPACK and ScaLAPACK's threshold,
# and mistakes; then its program. With SANITIZED=1 C is built with the sanitizers for addresses and undefined
# behaviour.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
root=$(cd "$here/../.." && pwd)
seed=${1:-$RANDOM} cases=${2:-8}
out=$root/target/examples/tsqr
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 OMPI_MCA_mpi_yield_when_idle=1
flags=(-O2 -g)
if [ "${SANITIZED:-}" ]; then
    out+=-sanitized
    flags=(-O1 -g -fsanitize=address,undefined -fno-sanitize-recover=undefined)
    # MPIs keep memory until they end.
    export ASAN_OPTIONS=detect_leaks=0
fi
strict=(-std=gnu11 -Wall -Wextra -Werror -Wno-stringop-overflow "${flags[@]}")

# launch MPI RANKS PROGRAM...
launch() {
    case $1 in
    openmpi) timeout 60 mpirun.openmpi --oversubscribe --bind-to none -n "$2" "${@:3}" ;;
    mpich) timeout 60 mpirun.mpich -n "$2" "${@:3}" ;;
    esac
}

# expect PATTERN TEXT
expect() {
    grep -q -e "$1" <<<"$2" || { echo "tsqr: there is no \"$1\" in: $2" >&2 && exit 1; }
}

echo "tsqr: seed $seed"
for mpi in openmpi mpich; do
    mkdir -p "$out/$mpi"
    make -s -j2 -C "$root/examples/tsqr" "MPICC=mpicc.$mpi" "OUT=$out/$mpi" "CFLAGS=-Werror ${flags[*]}"
    "mpicc.$mpi" "${strict[@]}" "$here/tsqr/check.c" "$out/$mpi/libcauseway_tsqr.a" -o "$out/$mpi/check" -llapack -lblas -lm
    for ranks in 1 2 3 4 7; do
        # Seven ranks on few cores take turns.
        launch "$mpi" "$ranks" "$out/$mpi/check" "$seed" $((ranks < 7 ? cases : (cases + 1) / 3))
        seed=$((seed + 1))
    done
    # Two edges between three groups, each with a message up and one back.
    said=$(CAUSEWAY_TSQR_GROUPS=2,1,1 launch "$mpi" 4 "$out/$mpi/tsqr" --rows 5000 --columns 16 --runs 1 2>/dev/null)
    expect '^tsqr: 5000 x 16, ranks 4, sites 3,' "$said"
    expect ' 4 *$' "$(tail -n 1 <<<"$said")"
    said=$(launch "$mpi" 2 "$out/$mpi/tsqr" --rows 5 --columns 16 2>&1 || :)
    expect 'tsqr: rank 0: all ranks together have fewer rows than columns' "$said"
    said=$(CAUSEWAY_TSQR_GROUPS=2,1 launch "$mpi" 2 "$out/$mpi/tsqr" --rows 5 --columns 1 2>&1 || :)
    expect 'tsqr: CAUSEWAY_TSQR_GROUPS is no list' "$said"
    said=$(launch "$mpi" 1 "$out/$mpi/tsqr" --rows many 2>&1 || :)
    expect 'tsqr: --rows many: it is a whole number' "$said"
done
# Sites as Causeway tells them, where its library has been built: two sites whose ranks alternate.
library=${CARGO_TARGET_DIR:-$root/target}/release/libcauseway_mpi_openmpi.so
if [ -e "$library" ] && [ ! "${SANITIZED:-}" ]; then
    said=$(CAUSEWAY_COLLECTIVES_SITES=a,b,a,b,b launch openmpi 5 env "LD_PRELOAD=$library" "$out/openmpi/tsqr" --rows 3000 --columns 8 2>/dev/null)
    expect '^tsqr: 3000 x 8, ranks 5, sites 2,' "$said"
    expect ' 2 *$' "$(tail -n 1 <<<"$said")"
else
    echo "tsqr: sites are not tested: they need $library, which make build makes, and no sanitizers"
fi
