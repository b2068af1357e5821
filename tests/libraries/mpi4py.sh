#!/usr/bin/env bash
# mpi4py.sh [MPI [RANKS...]]: mpi4py's own tests of collectives and of communicators with Open MPI and MPICH,
# on 2, 3, 5, 7 and 8 ranks: without the library, and with it over 1, 2 and 3 sites. Each test must come to
# the same end at each rank; what an MPI gets wrong by itself it may get wrong with the library.
# MPI4PY_MODULES, a regular expression, selects among mpi4py's test modules.
set -euo pipefail
. "$(dirname "$0")/launch.sh"
if [ $# -gt 0 ]; then mpis=("$1") && shift; else mpis=(debian-openmpi mpich); fi
if [ $# -gt 0 ]; then ranks=("$@"); else ranks=(2 3 5 7 8); fi
main=$root/.cache/mpi/suite/source/test/main.py
out=${MPI4PY_OUT:-$root/target/mpi4py}
modules=${MPI4PY_MODULES:-'cco|test_comm|test_op|test_msgspec'}
# Eight ranks on two idle cores take a few minutes; twenty are a hang.
most_seconds=1200
differ=0

sites() { # of so many ranks over one, two, three sites
    case $1 in
    2) echo "a,a a,b" ;;
    3) echo "a,a,a a,b,a a,b,c" ;;
    5) echo "a,a,a,a,a a,a,a,b,b a,b,a,c,b" ;;
    7) echo "a,a,a,a,a,a,a a,b,a,b,a,b,b a,b,b,a,c,c,a" ;;
    8) echo "a,a,a,a,a,a,a,a a,a,a,a,b,b,b,b a,b,c,a,b,c,a,b" ;;
    *) echo "mpi4py.sh: 2, 3, 5, 7 or 8 ranks" >&2 && exit 2 ;;
    esac
}

# suite MPI SITES PRELOADS DIRECTORY: what each rank said in DIRECTORY/stderr.RANK, and how each test ended in
# DIRECTORY/ends.RANK.
suite() {
    local directory=$4 file python
    rm -rf "$directory"
    mkdir -p "$directory"
    case $1 in
    debian-openmpi) python=(env MPI4PY_MPIABI=openmpi "MPI4PY_LIBMPI=/usr/lib/$(cc -print-multiarch)/libmpi.so.40" "$root/.cache/mpi/suite/bin/python") ;;
    *) python=("$root/.cache/mpi/mpich/bin/python") ;;
    esac
    launch "$1" "$2" "$3" timeout "$most_seconds" "$root/tests/e2e/own-stderr.sh" "$directory" \
        "${python[@]}" "$root/tests/libraries/mpi4py_main.py" "$main" -v -i "$modules" >"$directory/stdout" 2>&1 || true
    for file in "$directory"/stderr.*; do
        grep -E '^test.* \.\.\. (ok|FAIL|ERROR|skipped|expected failure|unexpected success)' "$file" | sort >"${file/stderr/ends}" || true
    done
}

messages() { # in a directory of `suite`
    awk '/^messages between sites: / { sum += $NF } END { print sum + 0 }' "$1"/stderr.*
}

ended() { # at every rank of so many
    [ "$(cat "$1"/stderr.* | grep -c '^Ran ')" = "$2" ]
}

for mpi in "${mpis[@]}"; do
    for count in "${ranks[@]}"; do
        placements=$(sites "$count")
        without=$out/$mpi-$count-without
        suite "$mpi" "${placements%% *}" "" "$without"
        [ -s "$without/ends.0" ] || { echo "$mpi, $count ranks: no test has ended without the library: $without" >&2 && exit 1; }
        ended "$without" "$count" || echo "$mpi, $count ranks, without the library: some rank has not come to the end: $without"
        for placement in $placements; do
            with=$out/$mpi-$count-$placement
            suite "$mpi" "$placement" "$(preloads "$mpi")" "$with"
            found="the same"
            for ends in "$without"/ends.*; do
                diff "$ends" "$with/${ends##*/}" >"$with/differences.${ends##*.}" || found=DIFFERENT
            done
            ended "$with" "$count" || found="not ended"
            # One site's ranks have nothing to send between sites; all others have.
            case $placement in *b*) [ "$(messages "$with")" -gt 0 ] || found="without the library" ;; esac
            echo "$mpi, $count ranks, sites $placement: $(wc -l <"$with/ends.0") tests, $(grep -c ' ok$' "$with/ends.0") ok," \
                "$(messages "$with") messages between sites: $found"
            [ "$found" = "the same" ] || { echo "  see $with/differences.*" && differ=1; }
        done
    done
done
exit $differ
