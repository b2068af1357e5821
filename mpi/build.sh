#!/usr/bin/env bash
# build.sh DIRECTORY [PART...]: compiles what is written in C into it. Parts are collectives, world, messages,
# ucx and programs; without one it builds all.
#
# collectives, world and messages are libraries over common/, one for each binary interface of MPI whose
# header is found: openmpi and mpich of Debian's packages, abi (the standard one, MPI 5) of MPICH's package
# from PyPI. Each MPI program is a library, too, which causeway-loader starts.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
out=$1
parts=${*:2}
warnings=(-std=gnu11 -O2 -g -Wall -Wextra -Werror)
shared=(-fPIC -fvisibility=hidden -shared)
machine=$("${CC:-cc}" -print-multiarch)
declare -A header=(
    [openmpi]=/usr/lib/$machine/openmpi/include/mpi.h
    [openmpi5]=/usr/lib/$machine/openmpi/include/mpi.h
    [mpich]=/usr/include/$machine/mpich/mpi.h
    [abi]=$here/../.cache/mpi/mpich/include/mpi_abi.h
)
declare -A defines=([openmpi5]=-DCAUSEWAY_OPEN_MPI_5 [abi]=-DCAUSEWAY_STANDARD_ABI)

# Compiled beside and renamed: what is loaded or runs is never written to.
compile() { # name, words for the compiler
    # shellcheck disable=SC2086 # CFLAGS are several words.
    "${CC:-cc}" "${warnings[@]}" ${CFLAGS:-} -I "$here" "${@:2}" -o "$out/$1.part" -ldl
    mv "$out/$1.part" "$out/$1"
}

is_wanted() { # part
    [ -z "$parts" ] || [[ " $parts " == *" $1 "* ]]
}

has_header() { # interface, what is built
    [ -e "${header[$1]}" ] || { echo "$2 for $1: no ${header[$1]}, left out" >&2 && return 1; }
}

sources() { # folder...: sets `sources`
    mapfile -t sources < <(find "${@/#/$here/}" -name '*.c' | sort)
}

library() { # folder, its libraries' name, interface, words for the compiler
    has_header "$3" "$1" || return 0
    sources common "$1"
    compile "libcauseway_$2_$3.so" "${shared[@]}" -Wl,-z,defs -pthread ${defines[$3]:+"${defines[$3]}"} "${@:4}" \
        -I "$(dirname "${header[$3]}")" "${sources[@]}"
}

program() { # folder, name, interface
    has_header "$3" "$2" || return 0
    sources "$1"
    compile "libcauseway_$2_$3.so" "${shared[@]}" "-DCAUSEWAY_${2^^}_LIBRARY" -I "$(dirname "${header[$3]}")" "${sources[@]}"
}

for part in $parts; do
    case $part in
    collectives | world | messages | ucx | programs) ;;
    *)
        echo "build.sh: there is no part \"$part\"; parts are collectives, world, messages, ucx and programs" >&2
        exit 2
        ;;
    esac
done
mkdir -p "$out"
if is_wanted collectives; then
    for interface in openmpi openmpi5 mpich abi; do
        # Open MPI 5 has one world library with version 4.
        library collectives mpi "$interface" "-DCAUSEWAY_WORLD_LIBRARY=\"libcauseway_world_${interface%5}.so\""
    done
    sources programs/explain collectives/select
    compile causeway-collectives "${sources[@]}"
fi
if is_wanted world; then
    for interface in openmpi mpich abi; do
        # Calls of its own go to itself, whatever else is preloaded.
        library world world "$interface" -Wl,-soname,"libcauseway_world_$interface.so" -Wl,-Bsymbolic-functions
    done
fi
if is_wanted messages; then
    for interface in openmpi mpich abi; do
        library messages messages "$interface"
    done
fi
if is_wanted ucx; then
    compile libcauseway_ucx.so -shared -fPIC -pthread "$here"/ucx/*.c
fi
if is_wanted programs; then
    for interface in openmpi mpich; do
        program programs/data data "$interface"
        program programs/bench bench "$interface"
    done
    compile causeway-loader "$here/programs/loader/loader.c"
fi
