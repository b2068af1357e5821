#!/usr/bin/env bash
# measure.sh PROGRAMS FILE [TURNS [ROWS...]]: times tsqr and pdgeqrf, which are in the directory PROGRAMS, in
# turn on one, two and four emulated sites, and adds a line for each run to FILE. ROWS are numbers of rows;
# those in one word, "1000 100000", run together. CAUSEWAY names causeway, WANTS is r or q, PLACEMENTS are
# ranks at sites. BEFORE is put before what runs together, such as "flock FILE" where others measure as well.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
causeway=${CAUSEWAY:-causeway}
wants=${WANTS:-r}
export CAUSEWAY_TSQR_TREE=${CAUSEWAY_TSQR_TREE:-links}
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 OMPI_MCA_mpi_yield_when_idle=1

# causeway_run PLACEMENT PROGRAM...: what a job says whose ranks are placed so.
causeway_run() {
    local ranks
    ranks=$(($(sed 's/[^,]*=//g; s/,/+/g' <<<"$1")))
    "$causeway" lab exec --lab "$lab" orsay-head -- timeout 60 "$causeway" run --sites "$1" -- \
        mpirun.openmpi -x CAUSEWAY_TSQR_TREE -n "$ranks" "${@:2}" 2>/dev/null
}

# cores PLACEMENT: on how many cores its ranks may compute together. All sites have the same ones.
cores() {
    causeway_run "$1" "$causeway" bench-part cores | sed 's/.* //' | tr , '\n' | sort -u | wc -l
}

# run TURN PLACEMENT ROWS PROGRAM CORES: one line
run() {
    local ranks said tree option=--no-check
    ranks=$(($(sed 's/[^,]*=//g; s/,/+/g' <<<"$2")))
    [ "$wants" = q ] || option=--no-q
    said=$(causeway_run "$2" "$programs/$4" --rows "$3" --runs 1 "$option" | tail -n 1) ||
        { echo "measure.sh: $4, $2, $3 rows: it did not end well, and has no line" >&2 && return 0; }
    read -r _ seconds _ <<<"$said"
    tree=$CAUSEWAY_TSQR_TREE
    [ "$4" = tsqr ] || tree=
    echo "$(tr , '\n' <<<"$2" | wc -l),$ranks,$3,$4,$tree,$1,$seconds,$5" | tee -a "$file"
}

programs=$(realpath "$1") file=$(realpath "$2") turns=${3:-3}
if [ "$turns" = together ]; then # PROGRAMS FILE together TURN PLACEMENT ROWS: the script calls itself
    there=$(cores "$5")
    for count in $6; do
        for program in tsqr pdgeqrf; do
            run "$4" "$5" "$count" "$program" "$there"
        done
    done
    exit
fi

rows=("${@:4}")
[ ${#rows[@]} -gt 0 ] || rows=("1000 100000 400000 1000000" 4000000)
read -ra before <<<"${BEFORE:-env}"
export lab=tsqr-$$
"$causeway" lab up "$here/four-sites.toml" --name "$lab"
trap '"$causeway" lab down "$lab"' EXIT
[ -s "$file" ] || echo sites,ranks,rows,program,tree,turn,time_s,cores >"$file"
for turn in $(seq "$turns"); do
    for placement in ${PLACEMENTS:-orsay=1 orsay=2 orsay=4 orsay=1,bordeaux=1 orsay=2,bordeaux=2 \
        orsay=1,bordeaux=1,sophia=1,toulouse=1}; do
        for together in "${rows[@]}"; do
            "${before[@]}" "$0" "$programs" "$file" together "$turn" "$placement" "$together"
        done
    done
done
