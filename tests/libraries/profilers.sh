#!/usr/bin/env bash
# Tools that look at a program's MPI calls, preloaded before the library as `causeway run` orders them: one
# that calls the next by PMPI names, and EZTrace, which calls it by MPI names. The tool sees each call of the
# program once and none of the library's, and the library sees all that the tool hands on: the program
# `crossings` counts what crosses between sites.
set -euo pipefail
. "$(dirname "$0")/launch.sh"
out=$root/target/profilers
rm -rf "$out"
mkdir -p "$out"
system=/usr/lib/$(cc -print-multiarch)

fail() {
    echo "profilers.sh: $1" >&2
    exit 1
}

for mpi in debian-openmpi debian-mpich; do
    program=$root/target/mpi/$mpi/crossings
    module=${mpi#debian-}
    own=$libraries/libcauseway_mpi_$module.so
    mpi_compiler "$mpi"
    "${words[@]}" -O2 -Wall -Wextra -Werror -shared -fPIC "$root/tests/libraries/profiler.c" -o "$out/profiler-$mpi.so"
    # What the program calls: told that all ranks are at one site, the library hands everything on, of which
    # the program, which expected two, complains.
    counted=$({ launch "$mpi" a,a "$out/profiler-$mpi.so:$own" "$program" 1 1 2>&1 || true; } | grep '^profiler: ') || fail "$mpi: no counts at one site"
    read -r _ bcasts _ allreduces _ <<<"$counted"
    said=$(launch "$mpi" a,b "$out/profiler-$mpi.so:$own" "$program" 1 1) || fail "$mpi with a profiler: $said"
    for text in "as they must be" "$counted"; do
        grep -q "$text" <<<"$said" || fail "$mpi with a profiler does not say \"$text\" but: $said"
    done

    export EZTRACE_TRACE=$module EZTRACE_TRACE_DIR=$out/$mpi EZTRACE_LIBRARY_PATH=$system
    tool=$system/libeztrace-core.so:$system/libeztrace-lib.so:$system/libeztrace-$module.so
    said=$(launch "$mpi" a,b "$tool:$own" "$program" 1 1) || fail "$mpi with EZTrace: $said"
    grep -q "as they must be" <<<"$said" || fail "$mpi with EZTrace does not say \"as they must be\" but: $said"
    trace=$out/$mpi/crossings_trace/eztrace_log.otf2
    for expected in MPI_Bcast="$bcasts" MPI_Allreduce="$allreduces"; do
        call=${expected%=*}
        seen=$(otf2-print "$trace" 2>/dev/null | grep -c "^ENTER .*\"$call\"") || true
        [ "$seen" = "${expected#*=}" ] || fail "$mpi: EZTrace saw $seen calls of $call, not ${expected#*=}: $trace"
    done
    echo "$mpi: a PMPI profiler and EZTrace see the program's calls, and so does the library"
done
