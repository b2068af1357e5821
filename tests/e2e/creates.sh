#!/usr/bin/env bash
# shellcheck disable=SC2016,SC2029 # Commands for other hosts stand in quotes, with what is known here.
# creates.sh CAUSEWAY PROGRAMS: a user's way from nothing through jobs of all kinds and back, for creates.rs.
# It runs on the head node of rennes; PROGRAMS is target/mpi.
set -eux
causeway=$1 own_world=$2/debian-openmpi/own_world
own="mkdir -p /run/home && mount --bind /run/home ~"
eval "$own"
ssh 198.51.100.5 "$own"
work=$(mktemp -d ~/work-XXXX)
cd "$work"
# MPICH starts ranks in the directory of its launcher.
ssh 198.51.100.5 "mkdir $work"
"$causeway" up --yes rennes=. nancy=198.51.100.5
export PATH=~/.local/bin:$PATH
causeway status
causeway check || : # It finds nodes of the emulated grid that are busy.
ours="causeway run --sites rennes=1,nancy=1"
$ours -- mpirun.openmpi -n 2 hostname
$ours -- mpirun.mpich -n 2 "$2/debian-mpich/ring"
$ours --own-mpi -- "$own_world"
echo "a case" >input
$ours --send input --fetch 'out-*' -- mpirun.openmpi -n 2 sh -c 'cat input >out-$(hostname)'
ls out-*
printf '#!/bin/sh\nmpirun.mpich -n 2 sh -c "sleep 1; hostname"\n' >driver.sh
chmod +x driver.sh
$ours --script -- ./driver.sh
causeway submit --sites rennes=1,nancy=1 -- mpirun.openmpi -n 2 hostname
causeway wait 1
causeway output 1
causeway jobs
causeway ping -c 3 nancy
causeway probe nancy
causeway tune
causeway resources
causeway audit
cd
causeway down --yes
echo "all was done"
