#!/usr/bin/env bash
# delivery.sh: MPICH does not wait for the far side of each send (mpi/collectives/binding/delivery.h) where a
# job has several sites and nothing in its processes may make a window. What may, however it comes by them,
# has windows with the right data in them; what makes one that nobody could know of is ended and told why. On
# this host alone.
set -euo pipefail
. "$(dirname "$0")/launch.sh"
here=$root/tests/libraries
# mpirun's own deadline, which it names: for a job that hangs.
export MPIEXEC_TIMEOUT=120

fail() {
    echo "delivery.sh: $mpi, $1" >&2
    exit 1
}

for mpi in "${mpis[@]:1}"; do
    programs=$root/target/mpi/$mpi out=$root/target/delivery/$mpi
    own=$(preloads "$mpi")
    rm -rf "$out"
    mkdir -p "$out"
    mkfifo "$out/fifo"
    mpi_compiler "$mpi"
    c=("${words[@]}" -O2 -Wall -Wextra -Werror -std=gnu11)

    says() { # what, text that must be said, sites, program and arguments; with $tool before the library
        local found
        found=$(launch "$mpi" "$3" "${tool:+$tool:}$own" "${@:4}" 2>&1) || fail "$1: $found"
        grep -qF "$2" <<<"$found" || fail "$1: does not say \"$2\" but: $found"
        echo "$mpi, $1: $2"
    }
    check() { says "$1" "all right" a,b "${@:2}"; } # what, program and arguments
    refused() {                                     # what, call, program and arguments
        local found
        if found=$(launch "$mpi" a,b "$own" "${@:3}" 2>&1); then fail "$1: is not ended but says: $found"; fi
        for text in "causeway collectives: $2: " "MPIR_CVAR_CH4_OFI_ENABLE_RMA=1"; do
            grep -qF "$text" <<<"$found" || fail "$1: does not say \"$text\" but: $found"
        done
        echo "$mpi, $1: ended, and told why"
    }

    # Without windows: the setting is there, and does what it is for.
    check "two sites" "$programs/delivery" 0
    says "one site" "all right" "" "$programs/delivery" -1
    MPIR_CVAR_CH4_OFI_ENABLE_RMA=1 check "told to wait" "$programs/delivery" 1 1
    MPIR_CVAR_CH4_OFI_ENABLE_RMA=0 check "told not to" "$programs/delivery" 0 0
    "${c[@]}" "$here/delivery_send.c" -o "$out/send"
    says "a send of two sites" "the send ended alone" a,b "$out/send" "$out/fifo"
    MPIR_CVAR_CH4_OFI_ENABLE_RMA=1 says "a send that is told to wait" "the send waited for its receiver" \
        a,b "$out/send" "$out/fifo"
    # What Fortran, C++ and OpenMP bring with them, by which a program's windows do not come.
    "${c[@]}" "$here/delivery.c" -o "$out/runtimes" \
        -Wl,--no-as-needed -lgfortran -lquadmath -lstdc++ -lgomp
    check "the libraries of Fortran, C++ and OpenMP" "$out/runtimes" 0

    # What comes by windows in ways of its own.
    check "windows" "$programs/delivery_windows" -1
    "${c[@]}" "$here/delivery_by_name.c" -o "$out/by_name" -ldl
    check "windows by dlsym" "$out/by_name" -1
    "${c[@]}" -shared -fPIC "$here/delivery_put.c" -o "$out/plugin.so"
    export DELIVERY_PLUGIN=$out/plugin.so
    # The second is called as a library that loads no windows: nothing tells of what it loads.
    for host in libplugin_host.so libhwloc.so.15; do
        "${c[@]}" -shared -fPIC "$here/delivery_host.c" -o "$out/$host" -ldl
        "${c[@]}" -DPUT "$here/delivery.c" "$out/$host" -o "$out/with_$host"
    done
    check "windows of what a library loads later" "$out/with_libplugin_host.so" -1
    "${c[@]}" -shared -fPIC "$here/delivery_tool.c" -o "$out/tool.so"
    tool=$out/tool.so check "windows of a tool" "$programs/delivery" -1
    # The names that Fortran and tools have for them, and those by which any may be found, in data too.
    for name in mpi_win_create_ MPI_WIN_CREATE pmpi_win_create__ __mpi_f08_MOD_mpi_win_create \
        PMPI_Precv_init dlopen dlmopen dlsym dlvsym; do
        echo "extern void $name(void) __attribute__((weak)); void (*const it)(void) = $name;" |
            cc -shared -fPIC -fno-builtin -xc - -o "$out/$name.so" -ldl
        tool=$out/$name.so check "a library that knows $name" "$programs/delivery" -1
    done

    # What nobody could know of.
    unknown=$out/with_libhwloc.so.15
    for pair in create=MPI_Win_create allocate=MPI_Win_allocate dynamic=MPI_Win_create_dynamic \
        create_c=MPI_Win_create_c allocate_c=MPI_Win_allocate_c partitions=MPI_Psend_init; do
        refused "${pair#*=} of an unknown library" "${pair#*=}" "$unknown" 0 - "${pair%=*}"
        MPIR_CVAR_CH4_OFI_ENABLE_RMA=1 check "${pair#*=} of one, set as it was told to" \
            "$unknown" 1 1 "${pair%=*}"
    done
    MPIR_CVAR_NOLOCAL=0 check "memory that it shares on a host" "$unknown" 0 - shared
    check "its windows, where MPICH had been asked for its settings before" "$unknown" -1 - allocate early

    # Where the setting was not seen to be right.
    MPIR_CVAR_CH4_OFI_ENABLE_TAGGED=0 check "another setting of MPICH's" "$programs/delivery" -1
    ROMIO_WRITE_AGGMETHOD=1 check "windows of MPI-IO" "$programs/delivery" -1
    FI_PROVIDER=sockets check "another provider" "$programs/delivery" -1
    # Another version: the same with its number written over.
    mkdir "$out/version"
    from=$root/.cache/mpi/mpich/lib
    ln -s "$from/mpich" "$out/version/mpich"
    for library in libmpi.so.12 libmpi_abi.so.1; do
        LC_ALL=C sed 's/5\.0\.\([0-9]\)/5.1.\1/g' "$from/$library" >"$out/version/$library"
    done
    LD_LIBRARY_PATH=$out/version check "MPICH of another version" "$programs/delivery" -1
done
