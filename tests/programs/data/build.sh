#!/usr/bin/env bash
# build.sh DIRECTORY: compiles causeway-data into it, and libcauseway_data_NAME.so for each binary interface
# of MPI whose headers are found, as mpi/build.sh does. `causeway check --data` runs them.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
out=$1
flags=(-std=gnu11 -O2 -g -Wall -Wextra -Werror)

# Compiled beside and renamed: what runs is never written to.
build() { # name, header that shows the interface is there, flags
    local library=$out/libcauseway_data_$1.so
    if [ ! -e "$2" ]; then
        echo "data test for $1: no $2, left out" >&2
        return
    fi
    "${CC:-cc}" "${flags[@]}" -fPIC -fvisibility=hidden -shared -DCAUSEWAY_DATA_LIBRARY "${@:3}" -I "$(dirname "$2")" "$here"/*.c -o "$library.part"
    mv "$library.part" "$library"
}

mkdir -p "$out"
"${CC:-cc}" "${flags[@]}" "$here/loader/loader.c" -o "$out/causeway-data.part" -ldl
mv "$out/causeway-data.part" "$out/causeway-data"
machine=$("${CC:-cc}" -print-multiarch)
build openmpi "/usr/lib/$machine/openmpi/include/mpi.h"
build mpich "/usr/include/$machine/mpich/mpi.h"
