#!/bin/sh
# own-stderr.sh DIRECTORY COMMAND...: a rank's command, its standard error in DIRECTORY/stderr.RANK. Launchers
# forward what several ranks write in pieces, and a verdict may end up in the middle of another.
set -eu
directory=$1
shift
rank=${OMPI_COMM_WORLD_RANK:-${PMI_RANK:-${PMIX_RANK:?no launcher has set a rank}}}
exec "$@" 2>"$directory/stderr.$rank"
