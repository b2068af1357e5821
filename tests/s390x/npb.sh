#!/usr/bin/env bash
# npb.sh: IS and CG of the NAS Parallel Benchmarks, class S, over sites of x86-64, arm64 and s390x, of which
# this machine emulates two. They verify their results. NPB is the directory or the tar of their sources,
# as for `make papers`; without it nothing is run. Needs root.
set -euo pipefail
. "$(dirname "$0")/../emulated.sh"
if [ -z "${NPB:-}" ]; then
    echo "npb: skipped; NPB=DIR or NPB=TAR names the sources of the NAS Parallel Benchmarks"
    exit
fi
[ -n "${EMULATED:-}" ] || EMULATED=1 exec "$root/tools/setup/emulate.sh" "$0" "$@"
. tests/libraries/world/launch.sh
given=$NPB
if [ -f "$NPB" ]; then
    given=$(mktemp -d)
    trap 'rm -r "$given"' EXIT
    tar -xf "$NPB" -C "$given"
fi
# The tar may have the version for MPI among others.
version=$(find "$given" -path '*/IS/is.c' | sort | tail -n 1)
version=$(realpath "$(dirname "$version")/..")

# In CG each rank makes its part of one random matrix. Compilers for arm64 and s390x contract products and
# sums by default, and that for x86-64 does not: the parts would not fit.
flags="-O2 -ffp-contract=off"

# build MPI: both programs for it.
build() {
    local words fortran c to program
    to=$(mktemp -d)
    cp -r "$version/." "$to"
    mpi_compiler "$1"
    c="${words[*]}"
    case $1 in
    debian-*) fortran=mpif77.${1#debian-} ;;
    *) fortran="${c/gcc/gfortran} -lmpi_mpifh" ;;
    esac
    printf '%s = %s\n' MPIF77 "$fortran" FLINK "$fortran" FFLAGS "$flags -fallow-argument-mismatch -fallow-invalid-boz" \
        FLINKFLAGS "$flags" MPICC "$c" CLINK "$c" CFLAGS "$flags" CLINKFLAGS "$flags" CC cc BINDIR ../bin RAND randi8 \
        >"$to/config/make.def"
    mkdir -p "$to/bin"
    for program in is cg; do
        make -C "$to" "$program" CLASS=S NPROCS=4 >"$to/log" 2>&1 || { cat "$to/log" >&2 && exit 1; }
    done
    cp "$to"/bin/{is,cg}.S.4 "$programs/$1/"
    rm -r "$to"
}

for processor in arm64 s390x; do
    emulated_system "$processor" "$target/$processor/libraries"
    build "$processor-openmpi"
done
build debian-openmpi
seconds=300
for pairing in "debian-openmpi:2 arm64-openmpi:2" "debian-openmpi:2 s390x-openmpi:2" "debian-openmpi:1 arm64-openmpi:2 s390x-openmpi:1"; do
    for program in is cg; do
        for collectives in "" 1; do
            printf '%s:' "$program"
            COLLECTIVES=$collectives check "$pairing" "$program.S.4"
        done
    done
done
