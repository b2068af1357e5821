#!/usr/bin/env bash
# build.sh DIRECTORY: compiles causeway-collectives into it (explain.c), and libcauseway_mpi_NAME.so for each
# binary interface of MPI whose headers are found: openmpi and mpich of Debian's packages, abi (the standard
# one, MPI 5) of MPICH's package from PyPI. Likewise it builds the libraries that
# make a world of several MPIs, and those that count messages.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
root=$(cd "$here/.." && pwd)
out=$1
warnings=(-std=gnu11 -O2 -g -Wall -Wextra -Werror)
flags=("${warnings[@]}" -fPIC -fvisibility=hidden -shared -Wl,-z,defs -pthread)

# Open MPI 5 has one world library with version 4.
build() { # name, header that shows the interface is there, flags
    local library=$out/libcauseway_mpi_$1.so
    if [ ! -e "$2" ]; then
        echo "collectives for $1: no $2, left out" >&2
        return
    fi
    # Compiled beside and renamed: a library that is loaded is never written to.
    # shellcheck disable=SC2086 # CFLAGS are several words.
    "${CC:-cc}" "${flags[@]}" ${CFLAGS:-} "${@:3}" "-DCAUSEWAY_WORLD_LIBRARY=\"libcauseway_world_${1%5}.so\"" \
        -I "$here/src" -I "$here/include" -I "$(dirname "$2")" "$here"/src/*/*.c -o "$library.part" -ldl
    mv "$library.part" "$library"
}

# Calls of its own go to itself, whatever else is preloaded.
world() { # name, header that shows the interface is there, flags: libcauseway_world_NAME.so, from binding, coroutine and world
    local library=$out/libcauseway_world_$1.so
    [ -e "$2" ] || return 0
    # shellcheck disable=SC2086 # CFLAGS are several words.
    "${CC:-cc}" "${flags[@]}" ${CFLAGS:-} "${@:3}" -Wl,-soname,"libcauseway_world_$1.so" -Wl,-Bsymbolic-functions \
        -I "$here/src" -I "$(dirname "$2")" \
        "$here"/src/binding/{mpi_calls,combiner,bottom,texts}.c "$here"/src/coroutine/*.c "$here"/src/world/*/*.c -o "$library.part" -ldl
    mv "$library.part" "$library"
}

messages() { # name, header that shows the interface is there, flags: libcauseway_messages_NAME.so
    local library=$out/libcauseway_messages_$1.so
    [ -e "$2" ] || return 0
    # shellcheck disable=SC2086 # CFLAGS are several words.
    "${CC:-cc}" "${flags[@]}" ${CFLAGS:-} "${@:3}" -I "$here/src" -I "$here/messages" -I "$(dirname "$2")" \
        "$here"/src/binding/mpi_calls.c "$here"/messages/*.c -o "$library.part" -ldl
    mv "$library.part" "$library"
}

mkdir -p "$out"
"${CC:-cc}" "${warnings[@]}" -I "$here/src" "$here"/explain.c "$here"/src/select/*.c -o "$out/causeway-collectives.part"
mv "$out/causeway-collectives.part" "$out/causeway-collectives"
machine=$("${CC:-cc}" -print-multiarch)
build openmpi "/usr/lib/$machine/openmpi/include/mpi.h"
build openmpi5 "/usr/lib/$machine/openmpi/include/mpi.h" -DCAUSEWAY_OPEN_MPI_5
build mpich "/usr/include/$machine/mpich/mpi.h"
build abi "$root/.cache/mpi/mpich/include/mpi_abi.h" -DCAUSEWAY_STANDARD_ABI
world openmpi "/usr/lib/$machine/openmpi/include/mpi.h"
world mpich "/usr/include/$machine/mpich/mpi.h"
world abi "$root/.cache/mpi/mpich/include/mpi_abi.h" -DCAUSEWAY_STANDARD_ABI
messages openmpi "/usr/lib/$machine/openmpi/include/mpi.h"
messages mpich "/usr/include/$machine/mpich/mpi.h"
messages abi "$root/.cache/mpi/mpich/include/mpi_abi.h" -DCAUSEWAY_STANDARD_ABI
