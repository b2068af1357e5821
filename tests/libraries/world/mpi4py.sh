#!/usr/bin/env bash
# mpi4py.sh [PAIRING...]: mpi4py's own tests over sites that each run their own MPI, against the same on
# one site with each of these MPIs: every test must come to the same end at each rank, but may succeed where
# the MPIs alone skip it, because the world has calls that Open MPI 4 lacks. A PAIRING is several words of
# MPI and ranks: "debian-openmpi:2 mpich:2". Left out are tests that the MPIs do not all pass by themselves,
# those in which a rank of one MPI communicates and a rank of another, which lacks the function, does not, and
# those of mpi4py-differences.txt, each with its reason. MPI4PY_MODULES, a regular expression, selects among
# the modules.
set -euo pipefail
# Six ranks on two busy cores take some minutes. launch.sh reads it.
export WORLD_SECONDS=${WORLD_SECONDS:-900} COLLECTIVES=1
. "$(dirname "$0")/launch.sh"
pairings=("$@")
if [ $# = 0 ]; then pairings=("debian-openmpi:1 mpich:1" "debian-openmpi:2 mpich:1" "mpich:2 debian-openmpi:2" "debian-openmpi:2 mpich:2 intel:2"); fi
out=${MPI4PY_OUT:-$root/target/mpi4py-world}
modules=${MPI4PY_MODULES:-'p2p|cco|test_comm|test_group|test_request|test_status|test_msg'}
differences=$root/tests/libraries/world/mpi4py-differences.txt
differ=0

# outcomes FILE...: each test and how it ended, as one sorted list.
outcomes() {
    cat "$@" | sed -nE 's/^test[^ ]* \((.*)\) \.\.\. (ok|FAIL|ERROR|skipped|expected failure|unexpected success).*/\1 \2/p' | sort
}

# as_expected FILE: outcomes, but a test that succeeds stays what FILE has, where it has it skipped.
as_expected() {
    awk 'NR == FNR { end[$1] = $2; next } { print $1, $2 == "ok" && end[$1] == "skipped" ? "skipped" : $2 }' "$1" -
}

# alone MPI RANKS: the tests on one site; what each rank said is kept for the next pairing.
alone() {
    local directory=$out/alone-$1-$2
    [ "$(cat "$directory/done" 2>/dev/null)" != "$modules" ] || return 0
    rm -rf "$directory" && mkdir -p "$directory"
    rendezvous='' site "$1" alone "$2" "$root/tests/libraries/world/mpi4py-rank.sh" "$directory" -i "$modules" -e p2p_buf_part >"$directory/stdout" 2>&1 || :
    [ "$(cat "$directory"/stderr.* | grep -c '^Ran ')" = "$2" ] || { echo "$1, $2 ranks, alone: some rank has not come to the end within $seconds s: $directory" >&2 && exit 1; }
    echo "$modules" >"$directory/done"
}

# left_out PAIRING RANKS: the tests that this pairing goes without, in its directory.
left_out() {
    local directory=$out/${1// /,} word rank
    rm -rf "$directory" && mkdir -p "$directory/ends"
    for word in $1; do
        alone "${word%:*}" "$2"
        for ((rank = 0; rank < $2; rank++)); do outcomes "$out/alone-${word%:*}-$2/stderr.alone.$rank" >"$directory/ends/${word%:*}.$rank"; done
        sed -nE 's/^\((.*)\) \.\.\. is not there$/\1/p' "$out/alone-${word%:*}-$2"/stderr.*
    done | sort -u >"$directory/missing"
    # Each rank of each MPI has one line of a test that is alike everywhere.
    sort "$directory"/ends/* | uniq -c | awk -v all="$(find "$directory/ends" -type f | wc -l)" \
        '$1 != all || ($3 != "ok" && $3 != "skipped") { print $2 }' | sort -u >"$directory/unlike"
    sed -E '/^(#|$)/d; s/ .*//' "$differences" >"$directory/known"
    cat "$directory"/{missing,unlike,known} >"$directory/left-out"
}

for pairing in "${pairings[@]}"; do
    count=$(($(sed 's/[^ ]*://g; s/ /+/g' <<<"$pairing")))
    left_out "$pairing" "$count"
    directory=$out/${pairing// /,}
    # shellcheck disable=SC2086 # A pairing is several words.
    world $pairing -- "$root/tests/libraries/world/mpi4py-rank.sh" "$directory" -i "$modules" -e p2p_buf_part --xfile "$directory/left-out" >"$directory/stdout" 2>&1 || :
    found="the same"
    for said in "$directory"/stderr.*; do
        mpi=${said##*/stderr.s?-}
        # Where no test is left out, the pattern of nothing would be the pattern of all.
        outcomes "$out/alone-${mpi%.*}-$count/stderr.alone.0" | grep -vFf <(sed 's/[*]//g; $a nothing' "$directory/left-out") >"$directory/expected" || :
        diff "$directory/expected" <(outcomes "$said" | as_expected "$directory/expected") >"$directory/differences.${said##*/stderr.}" || found=DIFFERENT
    done
    [ "$(cat "$directory"/stderr.* | grep -c '^Ran ')" = "$count" ] || found="not ended within $seconds s"
    echo "$pairing: $(wc -l <"$directory/expected") tests, $(grep -c ' ok$' "$directory/expected") ok," \
        "left out $(wc -l <"$directory/missing") of functions that an MPI lacks, $(wc -l <"$directory/unlike") that an MPI alone skips or fails: $found"
    [ "$found" = "the same" ] || { echo "  see $directory/differences.*" && differ=1; }
done
exit $differ
