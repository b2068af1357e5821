#!/bin/sh
# own-core.sh COMMAND...: a rank's command on a core of its own, as on hosts of its own. The nodes of a lab share their cores:
# two ranks that busy-wait on one of them measure its time slices.
set -eu
rank=${OMPI_COMM_WORLD_RANK:-${PMI_RANK:-${PMIX_RANK:?no launcher has set a rank}}}
exec taskset -c $((rank % $(nproc))) "$@"
