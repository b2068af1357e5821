#!/usr/bin/env bash
# container.sh OPTIONS COMMAND...: runs a command in a container of Podman, as a rank of an MPI program may be
# run. Its image is the host's own root without what is below the repository: the options (words) say what of
# that is bound, and whether the container gets the environment (--env-host). For containers.rs.
set -eu
options=$1
shift
repository=$(cd "$(dirname "$0")/../.." && pwd)
# MPICH's launcher speaks with a rank through a descriptor, and Podman hands on those that follow 2.
if [ -n "${PMI_FD:-}" ]; then
    eval "exec 3<&$PMI_FD"
    export PMI_FD=3
    options+=" --preserve-fds=1 --env=PMI_FD"
fi
# Each emulated node keeps its containers in its own memory. Limits, since root here may be unable to raise
# them; runc, since crun refuses hosts with cgroups of both versions.
# shellcheck disable=SC2086 # Words.
exec podman --root /run/podman --runroot /run/podman/run --runtime runc run --rm \
    --ulimit nofile=1024:1024 --ulimit nproc=1024:1024 \
    --network=host --ipc=host --pid=host --volume=/tmp:/tmp \
    --mount="type=tmpfs,destination=$repository,notmpcopyup" $options --rootfs /:O "$@"
