#!/usr/bin/env bash
# minute.sh [SYSTEM...]: from nothing to a job over two sites of a system (bullseye, bookworm, trixie and
# forky, or these): one command installs a package, `causeway up` makes the grid, and each MPI of the system
# runs a job. Prints what each step took as rows of a table; ROWS names a file that gets them, too.
set -euo pipefail
. "$(dirname "$0")/common.sh"
systems=("$@")
[ $# -gt 0 ] || systems=(bullseye bookworm trixie forky)
dist=$(dirname "$place")/dist
shopt -s nullglob
tar=("$dist"/causeway-*-linux-x86_64.tar.gz)
deb=("$dist"/causeway_*.deb)
wheel=("$dist"/causeway_mpi-*.whl)

# Each package's one command, and where the command it brings lies.
declare -A install=(
    [tar]="tar -xzf ${tar[0]} -C ~"
    [deb]="dpkg --install ${deb[0]}"
    [wheel]="python3 -m venv ~/venv && ~/venv/bin/pip --quiet install --no-index ${wheel[0]}"
)
# shellcheck disable=SC2088 # the node's shell expands it
declare -A brings=(
    [tar]='~/causeway-*/bin/causeway'
    [deb]=/usr/bin/causeway
    [wheel]='~/venv/bin/causeway'
)

launch() { # MPI
    case $1 in
    openmpi) echo "mpirun.openmpi --allow-run-as-root -n 4" ;;
    mpich) echo "mpiexec.hydra -n 2" ;;
    esac
}

# timed TITLE TEXT COMMAND...: as `expect`; sets `took` to its seconds.
timed() {
    local began=$EPOCHREALTIME
    expect "$@"
    took=$(printf '%.1f' "$(bc <<<"$EPOCHREALTIME - $began")")
}

# bookworm is this host itself, on which no package is installed.
wanted=()
for system in "${systems[@]}"; do [ "$system" = bookworm ] || wanted+=("$system"); done
[ ${#wanted[@]} -eq 0 ] || "$root/tools/setup/root.sh" "${wanted[@]}"
mkdir -p "$place"
rows=()
for system in "${systems[@]}"; do
    from=$system
    [ "$system" != bookworm ] || from=/
    sed "s|SYSTEM|$from|" tests/systems/pair.toml >"$place/$system.toml"
    for package in tar deb wheel; do
        UP_OPTIONS=--no-gateways lab_up "$place/$system.toml" "minute-$system"
        compile north "$system"
        timed "$package on $system" "installed" on north-head sh -c "${install[$package]} && echo installed"
        installed=$took
        timed "causeway up from the $package on $system" "2 sites are one grid" on north-head sh -c \
            "cd; unset CAUSEWAY_CONTROL; exec ${brings[$package]} up north=. south=south-head.wan --node north=north-1:4 --node south=south-1:4 --yes"
        up=$took
        for mpi in openmpi mpich; do
            read -ra words < <(launch $mpi)
            # shellcheck disable=SC2016 # the node's shell expands it
            timed "a job of $mpi from the $package on $system" "all right" on north-head env -u CAUSEWAY_CONTROL \
                sh -c 'PATH=$HOME/.local/bin:$PATH; exec causeway run -- "$@"' sh "${words[@]}" \
                "$place/$system/$mpi/ring"
            rows+=("$system,$package,$mpi,$installed,$up,$took,$(printf '%.1f' "$(bc <<<"$installed + $up + $took")")")
        done
        "$causeway" lab down "$LAB"
    done
done
printf '%s\n' "system,package,mpi,install_s,up_s,job_s,together_s" "${rows[@]}" | tee ${ROWS:+"$ROWS"}
for row in "${rows[@]}"; do
    # Not a failure: another program may take the processors.
    [ "$(bc <<<"${row##*,} < 60")" = 1 ] || echo "more than a minute: $row" >&2
done
summary
