#!/usr/bin/env bash
# worlds.sh: Debian 11, 12, 13 and 14 as four sites with their own MPIs, and the tar of `make dist`: each MPI
# of one kind in all its versions as one world, unlike ones together, several nodes of a site, each system's
# own way to start, and a gateway that is killed.
set -euo pipefail
. "$(dirname "$0")/common.sh"
systems=(bullseye bookworm trixie forky)

"$root/tools/setup/root.sh" bullseye trixie forky
lab_up tests/systems/four.toml four-systems
for system in "${systems[@]}"; do compile "$system"; done

for mpis in "openmpi openmpi openmpi openmpi" "mpich mpich mpich mpich" "openmpi mpich openmpi mpich" \
    "mpich openmpi mpich openmpi"; do
    for program in own_world ring alltoall operations; do
        # shellcheck disable=SC2086 # one word for each system
        world $program $mpis
        expect "$program on ${systems[*]} with $mpis" "all right" on bullseye-head causeway run "${at[@]}"
    done
done

# Several nodes of a site, by that system's own ssh.
for mpi in openmpi mpich; do
    at=()
    for system in "${systems[@]}"; do
        hosts="-hosts $system-1,$system-2 -ppn 1"
        [ $mpi = mpich ] || hosts="--host $system-1:1,$system-2:1"
        # Debian 14 has Open MPI use the loopback interface alone (docs/own-mpi.md).
        [ "$mpi-$system" != openmpi-forky ] || hosts+=" --mca btl_tcp_if_include eth0"
        at+=(--at "$system" "$(start_words "$system" $mpi 2 "$hosts") $place/$system/$mpi/own_world")
    done
    expect "two nodes of each system with $mpi" "8 ranks, all right" on bullseye-head causeway run "${at[@]}"
done

world own_world openmpi mpich openmpi mpich
nodes=()
for system in "${systems[@]}"; do nodes+=("$system-head" "$system-1"); done
expect "a killed gateway" "nothing is left" killed forky "${nodes[@]}" -- "${at[@]/%own_world/own_world wait}"
summary
