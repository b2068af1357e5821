#!/usr/bin/env bash
# npb.sh SOURCE DIRECTORY: builds LU and SP of the NAS Parallel Benchmarks, class S on four ranks, for
# Debian's Open MPI: DIRECTORY/lu.S.4 and DIRECTORY/sp.S.4. SOURCE is a directory or a tar of their sources.
set -euo pipefail
source=$1 directory=$2
[ -x "$directory/lu.S.4" ] && [ -x "$directory/sp.S.4" ] && exit
mkdir -p "$directory/copy"
if [ -d "$source" ]; then cp -rL "$source/." "$directory/copy"; else tar -xf "$source" --no-same-owner -C "$directory/copy"; fi
chmod -R u+w "$directory/copy"
# The tar may have the version for MPI among others.
version=$(realpath "$(dirname "$(find "$directory/copy" -path '*/IS/is.c' | sort | tail -n 1)")/..")
flags="-O3 -fallow-argument-mismatch -fallow-invalid-boz"
printf '%s = %s\n' MPIF77 mpif77.openmpi FLINK mpif77.openmpi FFLAGS "$flags" FLINKFLAGS "-O3" MPICC mpicc.openmpi \
    CLINK mpicc.openmpi CFLAGS -O3 CLINKFLAGS -O3 CC cc BINDIR ../bin RAND randi8 >"$version/config/make.def"
mkdir -p "$version/bin"
for program in lu sp; do
    make -C "$version" "$program" CLASS=S NPROCS=4 >"$directory/log" 2>&1 || { cat "$directory/log" >&2 && exit 1; }
    cp "$version/bin/$program.S.4" "$directory/"
done
rm -r "$directory/copy"
