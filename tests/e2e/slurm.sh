#!/usr/bin/env bash
# slurm.sh DIRECTORY NODE...: gives the site on whose head node it runs Slurm as its only way to the nodes:
# munge on all, slurmctld here, slurmd on each node, and then no sshd there any more. DIRECTORY, which every
# node sees, gets slurm.conf and the logs. The daemons are processes of the lab's nodes and end with these.
set -eu
directory=$1
shift
mkdir -p "$directory"
export SLURM_CONF=$directory/slurm.conf
head -c 1024 /dev/urandom >"$directory/munge.key"
chmod 600 "$directory/munge.key"
nodes=$(IFS=, && echo "$*")
user=$(id -un)
cat >"$SLURM_CONF" <<END
ClusterName=lab
SlurmctldHost=$(hostname)
SlurmUser=$user
SlurmdUser=$user
AuthType=auth/munge
StateSaveLocation=/run/slurm
SlurmdSpoolDir=/run/slurm
SlurmctldPidFile=/run/slurm/slurmctld.pid
SlurmdPidFile=/run/slurm/slurmd.pid
SlurmctldLogFile=$directory/slurmctld.log
SlurmdLogFile=$directory/slurmd.%n.log
# Nodes of the lab have no cgroups of their own, and share the host's processors.
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SlurmdParameters=config_overrides
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
SchedulerType=sched/builtin
ReturnToService=2
NodeName=$nodes CPUs=4
PartitionName=all Nodes=ALL Default=YES State=UP
END
# The key lies in the node's own memory: munged wants a path that others cannot write.
munge="mkdir -m 755 /run/munge /run/slurm && install -m 400 '$directory/munge.key' /run/munge/key &&
    munged --key-file=/run/munge/key --socket=/run/munge/munge.socket.2 --pid-file=/run/munge/pid \
        --log-file=/run/munge/log --seed-file=/run/munge/seed"
sh -c "$munge"
slurmctld
for node in "$@"; do
    # The daemons must not keep ssh's output open.
    # shellcheck disable=SC2029 # The paths are those of this host: all nodes see its files.
    ssh "$node" "$munge && SLURM_CONF='$SLURM_CONF' slurmd -N $node" >"$directory/$node.start" 2>&1 </dev/null ||
        { cat "$directory/$node.start"; exit 1; }
done
for _ in $(seq 300); do
    idle=$(sinfo -h -t idle -o %D 2>/dev/null || :)
    [ "${idle:-0}" -eq $# ] && break
    read -rt 0.1 <> <(:) || :
done
sinfo
for node in "$@"; do
    # The oldest is the one that listens.
    # shellcheck disable=SC2016 # That of the node.
    ssh "$node" 'kill $(pgrep -ox sshd)' || :
    for _ in $(seq 50); do
        ssh -o ConnectTimeout=5 "$node" true 2>/dev/null || break
        read -rt 0.1 <> <(:) || :
    done
    ssh -o ConnectTimeout=5 "$node" true && { echo "$node still takes ssh"; exit 1; }
    echo "$node refuses ssh"
done
[ "${idle:-0}" -eq $# ] && echo "slurm has $# idle nodes"
