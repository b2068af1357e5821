# shellcheck shell=bash
# Sourced by the tests of this directory: where things are, how C is built, and how Debian's MPIs start ranks.
# The script that sources it is called by its own name in what it says. With SANITIZED=1 C is built with the
# sanitizers for addresses and undefined behaviour.
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
root=$(cd "$here/../.." && pwd)
name=$(basename "$0" .sh)
out=$root/target/examples/$name
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
# Ranks share cores.
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 OMPI_MCA_mpi_yield_when_idle=1
flags=(-O2 -g)
if [ "${SANITIZED:-}" ]; then
    out+=-sanitized
    flags=(-O1 -g -fsanitize=address,undefined -fno-sanitize-recover=undefined)
    # MPIs keep memory until they end.
    export ASAN_OPTIONS=detect_leaks=0
fi
strict=(-std=gnu11 -Wall -Wextra -Werror -Wno-stringop-overflow "${flags[@]}")
mkdir -p "$out"

# What tells programs of sites, where it has been built.
library=${CARGO_TARGET_DIR:-$root/target}/release/libcauseway_mpi_openmpi.so
# Python as `make setup` installs it.
suite=$root/.cache/mpi/suite/bin/python

fail() {
    echo "$name: $*" >&2
    exit 1
}

# expect PATTERN TEXT
expect() {
    grep -q -e "$1" <<<"$2" || fail "there is no \"$1\" in: $2"
}

# launch MPI RANKS PROGRAM...
launch() {
    case $1 in
    openmpi) timeout 60 mpirun.openmpi --oversubscribe --bind-to none -n "$2" "${@:3}" ;;
    mpich) timeout 60 mpirun.mpich -n "$2" "${@:3}" ;;
    esac
}

# library MPI [TARGET...]: builds the example of this name for an MPI, with its library or its program.
make_for() {
    make -s -j2 -C "$root/examples/$name" "MPICC=mpicc.$1" "MPIF90=mpif90.$1" "OUT=$out/$1" "CFLAGS=-Werror ${flags[*]}" "${@:2}"
}

# mpi4py_with LIBRARY...: tells mpi4py which MPI the examples were built for.
use_mpi4py() {
    export MPI4PY_MPIABI=openmpi MPI4PY_LIBMPI
    MPI4PY_LIBMPI=/usr/lib/$(cc -print-multiarch)/libmpi.so.40
}
