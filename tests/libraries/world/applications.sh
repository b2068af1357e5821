#!/usr/bin/env bash
# applications.sh [grid]: applications of Debian, which has each for Open MPI and for MPICH, over a site of
# each. Nothing of them is changed. Each must say what it says under Open MPI alone, apart from numbers with
# a decimal point, which are times and sizes of residuals: the testers of ScaLAPACK, which are Fortran and
# send COMPLEX*16; those of PBLAS and BLACS below it; a parallel ray tracer, whose image must be the same; and
# the tests of Yorick's parallel interpreter. On this host by default; with `grid` over the gateways of an
# emulated grid. APPLICATIONS, a regular expression, selects among them.
set -euo pipefail
# Testers take seconds on idle cores, and minutes where other programs want them too. launch.sh reads it.
export WORLD_SECONDS=${WORLD_SECONDS:-400}
. "$(dirname "$0")/launch.sh"
rank=$root/tests/libraries/world/application-rank.sh
out=${APPLICATIONS_OUT:-$root/target/applications}
data=/usr/share/scalapack
failed=0
export CURE=$libraries/libcauseway_ucx.so

# Ranks of MPICH never yield to others, so it has one: then this takes seconds on two cores.
pairings=("debian-openmpi:3 debian-mpich:1" "debian-mpich:1 debian-openmpi:3")
ranks=4

missing=()
while read -r package _; do
    case $package in '' | '#'*) continue ;; esac
    [ "$(dpkg-query -W -f='${Status}' "$package" 2>/dev/null)" = "install ok installed" ] || missing+=("$package")
done <"$root/tools/setup/apt-applications.txt"
if [ ${#missing[@]} -gt 0 ]; then
    echo "applications: not installed; apt-get install --no-install-recommends ${missing[*]}" >&2
    exit 1
fi

if [ "${1:-}" = grid ]; then
    shift
    exec "$causeway" lab run rennes-nancy --name applications -- "$root/tests/libraries/world/applications.sh" in-grid "$@"
fi
is_grid=${1:-}
where=${is_grid:+over the grid}
where=${where:-on this host}
rm -rf "$out" && mkdir -p "$out/BLACS"
cp "$data"/BLACS/*.dat "$out/BLACS"
# The last of the auxiliary tests aborts, and waits for its end without a call of MPI.
sed -i "/Run AUX/s/'T'/'F'/" "$out/BLACS/bt.dat"
zcat /usr/share/doc/yorick-mpy-common/examples/testmp.i.gz >"$out/testmp.i"
printf 'testmp;\nquit;\n' >"$out/serial.i"

# over PAIRING COMMAND...: over two sites, on this host or in the grid.
over() {
    local pairing=$1 names=(rennes nancy) sites=() words word
    shift
    # shellcheck disable=SC2086 # A pairing is several words.
    if [ -z "$is_grid" ]; then
        world $pairing -- "$@"
        return
    fi
    for word in $pairing; do
        mpi_words "${word%:*}"
        sites+=(--at "${names[0]}" "SITE_MPI=${word%:*} ${words[*]} -n ${word#*:} $*")
        names=("${names[@]:1}")
    done
    timeout "$seconds" "$causeway" run "${sites[@]}"
}

# What an application says, without what differs from run to run.
said() {
    sed -E 's/[-+]?[0-9]*\.[0-9]*([EDed][-+]?[0-9]+)?/#/g; s/[ *]+/ /g; /^ ?$/d' "$1"
}

# What went wrong by the application's own account.
complaints() {
    grep -aE '[1-9][0-9]* (tests completed and failed|FAILED)|completed and failed\. *[1-9]|(FAILED|failed) on|nerrors=[1-9]| FAILED$' "$1"
}

# application NAME ARGUMENTS...: over each pairing against Open MPI alone. Of one that makes an image,
# OUTPUT in the arguments is its file.
application() {
    local name=$1 pairing number=0 begin verdict file
    shift
    [[ $name =~ ${APPLICATIONS:-} ]] || return 0
    file=$out/$name.alone
    rendezvous='' site debian-openmpi alone "$ranks" "$rank" "${@/OUTPUT/$file.image}" >"$file" 2>"$file.errors" </dev/null ||
        { echo "$name, Open MPI alone: failed: $file" >&2 && failed=1 && return; }
    for pairing in "${pairings[@]}"; do
        number=$((number + 1)) file=$out/$name.$number verdict="the same"
        begin=$(date +%s%N)
        over "$pairing" "$rank" "${@/OUTPUT/$file.image}" >"$file" 2>"$file.errors" </dev/null || verdict="FAILED with status $?"
        local took=$((($(date +%s%N) - begin) / 1000000))
        [ ! -e "$out/$name.alone.image" ] || cmp "$out/$name.alone.image" "$file.image" || verdict=DIFFERENT
        diff <(said "$out/$name.alone") <(said "$file") >"$file.differences" || [ "$verdict" != "the same" ] || verdict=DIFFERENT
        ! complaints "$file" >&2 || verdict="FAILED by its own account"
        [ "$verdict" = "the same" ] || failed=1
        echo "$name $where, $pairing: $verdict, $(grep -aciE 'passed' "$file" || :) lines say passed, $took ms"
    done
}

# Most testers of ScaLAPACK do nothing but wait for small messages: over the grid they take minutes.
testers=(xzdblu xzgblu xzdtlu xzptllt)
parallel_blas=(zpb1tst)
[ -n "$is_grid" ] || {
    testers+=(xzlu xzllt xzpbllt xzinv xzqr xzls xzevc xznep xzhrd xzbrd xztrd xzsep xzgsep xzheevr)
    parallel_blas+=(zpb2tst zpb3tst)
    for program in xFbtest xCbtest; do application "$program" scalapack "$out/BLACS" "$program"; done
}
for program in "${testers[@]}"; do application "$program" scalapack "$data" "$program"; done
for program in "${parallel_blas[@]}"; do application "$program" scalapack "$data/PBLAS" "PBLAS/$program"; done
for scene in balls dnadof; do application "tachyon-$scene" tachyon "/usr/share/doc/tachyon/examples/scenes/$scene.dat" OUTPUT; done
# Open MPI alone waits for ever in Yorick's start with three ranks and more.
pairings=("debian-openmpi:1 debian-mpich:1" "debian-mpich:1 debian-openmpi:1") ranks=2
application mpy mpy "$out/testmp.i" "$out/serial.i"
[ "$failed" = 0 ] || echo "what each said, and its differences: $out" >&2
exit "$failed"
