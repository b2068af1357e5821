#!/bin/sh
# own-core.sh COMMAND...: the first and the last rank of a job, which measure, each on a core of its own, as
# on hosts of their own. The nodes of a lab share their cores: two ranks that busy-wait on one of them measure
# its time slices. Ranks between run where there is room. --all: a launcher may have bound this rank to one
# core already, and nproc then counts that one.
set -eu
rank=${OMPI_COMM_WORLD_RANK:-${PMI_RANK:-${PMIX_RANK:?no launcher has set a rank}}}
size=${OMPI_COMM_WORLD_SIZE:-${PMI_SIZE:-2}}
case $rank in
0) exec taskset -c 0 "$@" ;;
$((size - 1))) exec taskset -c $(($(nproc --all) - 1)) "$@" ;;
esac
exec "$@"
