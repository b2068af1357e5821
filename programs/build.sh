#!/usr/bin/env bash
# build.sh DIRECTORY: compiles into it what `causeway check --data` and `causeway bench` start as MPI
# programs: causeway-loader, and libcauseway_data_NAME.so and libcauseway_bench_NAME.so for each binary
# interface of MPI whose headers are found, as mpi/build.sh does.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
out=$1
flags=(-std=gnu11 -O2 -g -Wall -Wextra -Werror)

# Compiled beside and renamed: what runs is never written to.
build() { # interface, header that shows the interface is there
    if [ ! -e "$2" ]; then
        echo "MPI programs for $1: no $2, left out" >&2
        return
    fi
    one "$1" "$2" data "$here"/../tests/programs/data/*.c
    one "$1" "$2" bench "$here"/bench/*.c
}

one() { # interface, header, program, sources
    local library=$out/libcauseway_$3_$1.so
    "${CC:-cc}" "${flags[@]}" -fPIC -fvisibility=hidden -shared "-DCAUSEWAY_${3^^}_LIBRARY" -I "$(dirname "$2")" "${@:4}" -o "$library.part"
    mv "$library.part" "$library"
}

mkdir -p "$out"
"${CC:-cc}" "${flags[@]}" "$here/loader/loader.c" -o "$out/causeway-loader.part" -ldl
mv "$out/causeway-loader.part" "$out/causeway-loader"
machine=$("${CC:-cc}" -print-multiarch)
build openmpi "/usr/lib/$machine/openmpi/include/mpi.h"
build mpich "/usr/include/$machine/mpich/mpi.h"
