#!/usr/bin/env bash
# grid.sh: emulated grids with sites of arm64, which this machine emulates. First gateways of arm64 meet and
# carry data. Then two such sites run jobs of one MPI, and one of them and one of x86-64 are a world. There
# launchers, ssh, ranks and preload libraries are of arm64, and the command and gateways of x86-64, because
# qemu 7.2 lets no process inherit orphans (PR_SET_CHILD_SUBREAPER). Needs root.
set -euo pipefail
. "$(dirname "$0")/common.sh"
[ -n "${EMULATED:-}" ] || EMULATED=1 exec "$root/tools/setup/emulate.sh" "$0" "$@"
. tests/mpis.sh
place=$target/arm64
sources=(tests/programs/ring.c tests/programs/alltoall.c tests/programs/own_world.c tests/libraries/world/unlike.c)
emulated_system arm64 "$arm64_built"
emulated_programs arm64 "${sources[@]}"
tests/programs/build.sh debian-openmpi debian-mpich

# Each system has Causeway at the same path.
install_in() { # root, where the command was built, where the libraries were
    local to=$1/opt/causeway
    mkdir -p "$to/lib/causeway" "$to/bin"
    cp "$2/causeway" "$3"/libcauseway_*.so "$to/lib/causeway/"
    ln -sfn ../lib/causeway/causeway "$to/bin/causeway"
}
mount -t tmpfs causeway-native /opt
install_in "" "$target/release" "$target/release"
causeway=/opt/causeway/bin/causeway

scenario() { # root of the first site, of the second
    local number=0 site
    printf 'name = "arm64"\nrouted = false\ncongestion_control = "cubic"\n'
    for site in north south; do
        number=$((number + 1))
        printf '[[site]]\nname = "%s"\nnodes = 1\nslots = 2\nsubnet = "10.%s.0.0/24"\n' "$site" "$number"
        [ -z "${!number}" ] || printf 'root = "%s"\n' "${!number}"
    done
    printf '[[link]]\nbetween = ["north", "south"]\nrtt = "10ms"\nrate = "1Gbit/s"\n'
}

lab() { # roots of the sites
    "$causeway" lab down arm64 >/dev/null 2>&1 || :
    scenario "$@" >"$place/scenario.toml"
    "$causeway" lab up "$place/scenario.toml" --name arm64 --logs "$place/logs"
}
trap '"$causeway" lab down arm64 >/dev/null 2>&1 || :' EXIT

expect() { # title, command of `causeway run`...
    local log began=$EPOCHREALTIME
    log=$place/$(tr -c 'a-zA-Z0-9\n' - <<<"$1").log
    if ! timeout 300 "$causeway" lab exec --lab arm64 north-head -- causeway run "${@:2}" >"$log" 2>&1 </dev/null ||
        ! grep -aq 'all right' "$log"; then
        echo "grid.sh: $1 failed:" >&2
        cat "$log" >&2
        exit 1
    fi
    printf '%s: all right, %.1f s\n' "$1" "$(bc <<<"$EPOCHREALTIME - $began")"
}

install_in "$ARM64_SYSTEM" "$arm64_built" "$arm64_built"
lab "$ARM64_SYSTEM" "$ARM64_SYSTEM"
on_north="$causeway lab exec --lab arm64 north-head --"
for command in "causeway ping --count 3 --interval 0.1 south" "causeway probe --measure=16 south" "uname -m"; do
    # shellcheck disable=SC2086 # each is several words
    timeout 120 $on_north $command
done

# The command of x86-64, and what it is linked with, beside the libraries of arm64.
"$causeway" lab down arm64
mkdir -p "$ARM64_SYSTEM"/{lib/x86_64-linux-gnu,lib64}
cp -L /lib/x86_64-linux-gnu/{libc.so.6,libm.so.6,libgcc_s.so.1} "$ARM64_SYSTEM/lib/x86_64-linux-gnu/"
cp -L /lib64/ld-linux-x86-64.so.2 "$ARM64_SYSTEM/lib64/"
install_in "$ARM64_SYSTEM" "$target/release" "$arm64_built"
programs=$root/target/mpi
open_mpi=(--oversubscribe --bind-to none --mca mpi_yield_when_idle 1 --mca btl_vader_single_copy_mechanism none)
export UCX_TLS=^cma
lab "$ARM64_SYSTEM" "$ARM64_SYSTEM"
for program in ring alltoall; do
    expect "$program over two sites of arm64, Open MPI" -- mpirun.openmpi "${open_mpi[@]}" -n 2 "$programs/arm64-openmpi/$program"
    expect "$program over two sites of arm64, MPICH" -- mpiexec.hydra -n 2 "$programs/arm64-mpich/$program"
done
lab "" "$ARM64_SYSTEM"
for program in own_world unlike; do
    expect "$program at sites of x86-64 and arm64, Open MPI" \
        --at north "mpirun.openmpi ${open_mpi[*]} -n 2 $programs/debian-openmpi/$program" \
        --at south "mpirun.openmpi --allow-run-as-root ${open_mpi[*]} -n 2 $programs/arm64-openmpi/$program"
    expect "$program at sites of x86-64 and arm64, MPICH and Open MPI" \
        --at north "mpiexec.hydra -n 1 $programs/debian-mpich/$program" \
        --at south "mpirun.openmpi --allow-run-as-root ${open_mpi[*]} -n 2 $programs/arm64-openmpi/$program"
done
