#!/usr/bin/env bash
# measure.sh PROGRAMS FILE [TURNS [ROWS...]]: times tsqr and pdgeqrf, which are in the directory PROGRAMS, on one,
# two and four emulated sites, in turn, and adds a line for each run to FILE. CAUSEWAY names causeway. BEFORE is
# put before each run, such as "flock FILE" where others measure as well.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
programs=$(realpath "$1") file=$(realpath "$2") turns=${3:-3}
rows=("${@:4}")
[ ${#rows[@]} -gt 0 ] || rows=(1000 100000 400000 1000000 4000000)
causeway=${CAUSEWAY:-causeway}
read -ra before <<<"${BEFORE:-env}"
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 OMPI_MCA_mpi_yield_when_idle=1

"$causeway" lab up "$here/four-sites.toml" --name tsqr
trap '"$causeway" lab down tsqr' EXIT

# measure TURN PLACEMENT ROWS Q PROGRAM OPTION...
measure() {
    local ranks said option=--no-check
    ranks=$(tr , '\n' <<<"$2" | sed 's/.*=//' | paste -sd+ | bc)
    [ "$4" = q ] || option=--no-q
    said=$("${before[@]}" "$causeway" lab exec --lab tsqr orsay-head -- timeout 60 "$causeway" run --sites "$2" -- \
        mpirun.openmpi -n "$ranks" "$programs/$5" --rows "$3" --runs 1 "$option" "${@:6}" 2>/dev/null | tail -n 1)
    read -r _ seconds _ _ _ messages <<<"$said"
    echo "$(tr -cd , <<<"$2" | wc -c | awk '{print $1 + 1}'),$ranks,$3,$4,$5,$1,$seconds,$messages" | tee -a "$file"
}

[ -s "$file" ] || echo sites,ranks,rows,wants,program,turn,time_s,messages_between_sites >"$file"
for turn in $(seq "$turns"); do
    for placement in ${PLACEMENTS:-orsay=1 orsay=2 orsay=4 orsay=1,bordeaux=1 orsay=2,bordeaux=2 \
        orsay=1,bordeaux=1,sophia=1,toulouse=1}; do
        for count in "${rows[@]}"; do
            for wants in ${WANTS:-r}; do
                for program in tsqr pdgeqrf; do
                    measure "$turn" "$placement" "$count" "$wants" "$program"
                done
            done
        done
    done
done
