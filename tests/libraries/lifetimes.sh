#!/usr/bin/env bash
# lifetimes.sh ROUNDS: communicators made, used and freed in many orders, with the library and the program
# built for the address, leak and undefined behaviour sanitizers. An MPI has leaks of its own: of leaks, those
# count in whose stack is a function of the library.
set -euo pipefail
. "$(dirname "$0")/launch.sh"
rounds=$1
built=$root/target/sanitized
reports=$built/reports
mkdir -p "$built"
libraries=$built
CFLAGS='-fsanitize=address,undefined -fno-omit-frame-pointer -fno-sanitize-recover=undefined' "$root/mpi/build.sh" "$built" collectives

build() { # MPI, its library
    local words
    mpi_compiler "$1"
    # The library is linked: what is preloaded would come before the sanitizers.
    "${words[@]}" -std=gnu11 -O1 -g -fsanitize=address,undefined -fno-omit-frame-pointer "$root/tests/libraries/lifetimes.c" -o "$built/lifetimes-$1" \
        -Wl,--no-as-needed "$built/libcauseway_mpi_$2.so" -Wl,-rpath,"$built"
}

# Stacks of leaks that hold a function of the library, but not of what an MPI allocates for itself as it
# begins, and keeps of attributes for communicators that the program left.
ours() {
    awk -v RS= '/(Direct|Indirect) leak/ && /mpi\/(common|collectives)\// && !/ in P?MPI_(Init|Comm_set_attr|Comm_create_keyval)/' "$@"
}

for mpi in "${mpis[@]}"; do
    build "$mpi" "${mpi#debian-}"
    for seed in 1 2; do
        rm -rf "$reports"
        mkdir -p "$reports"
        # Whole stacks; and the program's own status, for the leaks of an MPI are none of ours.
        export ASAN_OPTIONS=detect_leaks=1:fast_unwind_on_malloc=0:log_path=$reports/report UBSAN_OPTIONS=print_stacktrace=1
        export LSAN_OPTIONS=exitcode=0:print_suppressions=0
        launch "$mpi" a,b,a,c,b "" "$built/lifetimes-$mpi" "$rounds" "$seed" || { cat "$reports"/* && exit 1; }
        found=$(find "$reports" -type f)
        if [ -n "$found" ]; then
            # shellcheck disable=SC2086
            errors=$(grep -l 'ERROR: AddressSanitizer\|runtime error' $found || true)
            # shellcheck disable=SC2086
            leaks=$(ours $found)
            # shellcheck disable=SC2086 # Several files.
            [ -z "$errors$leaks" ] || { cat ${errors:-/dev/null} && head -n 60 <<<"$leaks" && exit 1; }
        fi
    done
done
