# shellcheck shell=bash disable=SC2034 # the tests use what is set here
# Sourced by the tests of this directory: where things are, how C is built, and how Debian's MPIs start ranks.
# With SANITIZED=1 C is built with the sanitizers for addresses and undefined behaviour.
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
root=$(cd "$here/../.." && pwd)
# The example, by the name of its test.
name=$(basename "$0" .sh)
out=$root/target/examples/$name
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
. "$root/tests/mpis.sh"
flags=(-O2 -g)
if [ "${SANITIZED:-}" ]; then
    out+=-sanitized
    flags=(-O1 -g -fsanitize=address,undefined -fno-sanitize-recover=undefined)
    # MPIs keep memory until they end.
    export ASAN_OPTIONS=detect_leaks=0
fi
strict=(-std=gnu11 -Wall -Wextra -Werror -Wno-stringop-overflow "${flags[@]}")
mkdir -p "$out"

# Tells programs of sites, where `make build` has made it.
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

# launch MPI RANKS PROGRAM...: with one of Debian's MPIs.
launch() {
    local words
    mpi_words "debian-$1"
    timeout 60 "${words[@]}" -n "$2" "${@:3}"
}

# make_for MPI [TARGET...]: builds the example for an MPI, with its library.
make_for() {
    make -s -j2 -C "$root/examples/${example:-$name}" "MPICC=mpicc.$1" "MPIF90=mpif90.$1" "OUT=$out/$1" "CFLAGS=-Werror ${flags[*]}" "${@:2}"
}

# beside NAME COMMAND...: runs it while others run; what it says is printed by wait_for_all.
pids=() logs=()
beside() {
    logs+=("$work/$1.log")
    "${@:2}" >"$work/$1.log" 2>&1 &
    pids+=($!)
}

wait_for_all() {
    local i
    for i in "${!pids[@]}"; do
        wait "${pids[i]}" || fail "$(cat "${logs[i]}")"
        cat "${logs[i]}"
    done
    pids=() logs=()
}

# Tells mpi4py which MPI the example was built for.
use_mpi4py() {
    export MPI4PY_MPIABI=openmpi MPI4PY_LIBMPI
    MPI4PY_LIBMPI=/usr/lib/$(cc -print-multiarch)/libmpi.so.40
}
