#!/usr/bin/env bash
# messages.sh [MPI...]: `causeway bench messages` counts what the program `counted` sends, call by call, and
# what a Fortran program sends, also where an option or a wrapper sets LD_PRELOAD; it tells where nothing was
# counted. Debian's MPIs are the default.
set -euo pipefail
. "$(dirname "$0")/launch.sh"
out=$root/target/messages
mkdir -p "$out"
causeway=$libraries/causeway
# Preloaded as a tool would be; it does nothing.
tool_library=$(ldconfig -p | awk '/libz.so.1 .*x86-64/ && !found++ { print $NF }')

fail() {
    echo "messages.sh: $1" >&2
    exit 1
}

expected() { # from,call,to,ranks,count,bytes of every rank
    local rank next before
    for rank in 0 1 2 3; do
        next=$(((rank + 1) % 4)) before=$(((rank + 3) % 4))
        echo "$rank,MPI_Isend,$next,0,1,40"
        echo "$rank,MPI_Issend,$next,0,1,44"
        echo "$rank,MPI_Send,$next,0,1,48"
        echo "$rank,MPI_Sendrecv,$next,0,1,24"
        echo "$rank,MPI_Sendrecv_replace,$next,0,1,32"
        echo "$rank,MPI_Send_init,$next,0,5,500"
        if [ "$rank" -lt 2 ]; then echo "$rank,MPI_Ssend,$((rank + 2)),0,1,56"; fi
        if [ $((rank % 2)) = 0 ]; then echo "$rank,MPI_Send,$((rank + 1)),0,1,4"; fi
        echo "$rank,MPI_Allreduce,,2,1,24"
        echo "$rank,MPI_Bcast,,4,2,128"
        echo "$rank,MPI_Alltoallv,,4,1,40"
        echo "$rank,MPI_Alltoall,,4,1,64"
        echo "$rank,MPI_Gather,,4,1,20"
        echo "$rank,MPI_Gather,,2,1,$((rank % 2 * 20))"
        echo "$rank,MPI_Allgatherv,,4,1,$((4 * rank + 4))"
        echo "$rank,MPI_Scatter,,4,1,24"
        echo "$rank,MPI_Iallgather,,4,1,9"
        echo "$rank,MPI_Reduce_scatter,,4,1,32"
        echo "$rank,MPI_Barrier,,4,1,0"
        echo "$rank,MPI_Neighbor_alltoall,,4,1,24"
        echo "$rank,MPI_Put,$next,0,1,20"
        echo "$rank,MPI_Get,$before,0,1,24"
    done | sort
}

expected_of_fortran() { # ring_mpi: arrays of 1 to a million numbers to the next rank
    local rank elements
    for rank in 0 1 2; do
        for elements in 1 10 100 1000 10000 100000 1000000; do
            echo "$rank,MPI_Sendrecv,$(((rank + 1) % 3)),0,1,$((8 * elements))"
        done
        echo "$rank,MPI_Allreduce,,3,1,4"
    done | sort
}

# Rows that Sendrecv of three numbers and the like share with others of their size are one row each.
counted() { # name: what was counted, in the same form
    tail -n +2 "$out/$1/messages.csv" | cut -d, -f1-6 | sort
}

count() { # MPI, name, arguments of the launcher
    local words
    mpi_words "$1"
    if [ "$1" = debian-openmpi ]; then words+=(--mca btl self,vader); fi
    timeout 120 "$causeway" bench messages --out "$out/$2" -- "${words[@]}" "${@:3}" >"$out/$2.text" 2>"$out/$2.errors"
}

is_as() { # name, function
    diff <("$2") <(counted "$1") >"$out/$1.diff" || fail "$1: counted otherwise: $(cat "$out/$1.diff")"
}

if [ $# = 0 ]; then set -- debian-openmpi debian-mpich; fi
for mpi in "$@"; do
    programs=$root/target/mpi/$mpi
    count "$mpi" "$mpi" -n 4 "$programs/counted" || fail "$mpi: $(tail -n 3 "$out/$mpi.errors")"
    is_as "$mpi" expected
    grep -q "Between sites of ranks 0 to 1 and 2 to 3: " "$out/$mpi.text" || fail "$mpi: $(cat "$out/$mpi.text")"
    status=0
    count "$mpi" "$mpi-abort" -n 4 "$programs/counted" abort || status=$?
    [ "$status" = 1 ] || fail "$mpi: status $status after MPI_Abort"
    [ "$(counted "$mpi-abort" | grep -c ^1,)" = "$(expected | grep -c ^1,)" ] ||
        fail "$mpi: the rank that aborts has not left its counts"
    if [ -x "$programs/ring_mpi" ]; then
        count "$mpi" "$mpi-fortran" -n 3 "$programs/ring_mpi" || fail "$mpi: $(tail -n 3 "$out/$mpi-fortran.errors")"
        is_as "$mpi-fortran" expected_of_fortran
    fi
    case $mpi in
    *openmpi) tool=(-x "LD_PRELOAD=$tool_library") ;;
    *) tool=(-genv LD_PRELOAD "$tool_library") ;;
    esac
    count "$mpi" "$mpi-tool" "${tool[@]}" -n 4 "$programs/counted" || fail "$mpi: $(tail -n 3 "$out/$mpi-tool.errors")"
    is_as "$mpi-tool" expected
    # shellcheck disable=SC2016 # the wrapper's own words
    count "$mpi" "$mpi-wrapper" -n 4 sh -c 'unset LD_PRELOAD; exec "$@"' sh "$programs/counted" ||
        fail "$mpi: $(tail -n 3 "$out/$mpi-wrapper.errors")"
    is_as "$mpi-wrapper" expected
    status=0
    count "$mpi" "$mpi-none" -n 2 true || status=$?
    if [ "$status" != 1 ] || ! grep -q "no rank has left its counts" "$out/$mpi-none.errors"; then
        fail "$mpi: status $status for a program without MPI: $(cat "$out/$mpi-none.errors")"
    fi
    echo "$mpi: each message is counted once"
done
