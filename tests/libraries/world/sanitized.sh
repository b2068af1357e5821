#!/usr/bin/env bash
# sanitized.sh [SECONDS]: the programs of run.sh and SECONDS (30) of the test of data with both libraries
# under the sanitizers for addresses and undefined behaviour.
set -euo pipefail
here=$(dirname "$0")
root=$(cd "$here/../../.." && pwd)
out=$root/target/world-sanitized
CFLAGS="-fsanitize=address,undefined -fno-sanitize-recover=undefined -fno-omit-frame-pointer" "$root/mpi/build.sh" "$out" collectives world
# They must be the first libraries of a process, and let its MPI replace what it allocates with.
CURE=$(cc -print-file-name=libasan.so):$(cc -print-file-name=libubsan.so):${CARGO_TARGET_DIR:-$root/target}/release/libcauseway_ucx.so
# The MPIs keep memory until the process ends; lifetimes.sh looks for leaks of ours.
export CURE WORLD_LIBRARIES=$out ASAN_OPTIONS=detect_leaks=0:alloc_dealloc_mismatch=0 OMPI_MCA_memory=^patcher
"$here/run.sh" 2 "debian-openmpi:2 debian-mpich:2"
COLLECTIVES=1 "$here/run.sh" 2 "debian-mpich:2 debian-openmpi:1"
"$here/data.sh" "${1:-30}"
