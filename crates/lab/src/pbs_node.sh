#!/usr/bin/env bash
# pbs_node.sh PROGRAMS CONF HEAD: starts OpenPBS's daemon on a compute node.
set -eu
programs=$1 conf=$2 head=$3
export PATH=$programs/sbin:/usr/sbin:/usr/bin:/sbin:/bin PBS_CONF_FILE=$conf LC_ALL=C
home=${conf%/*}/home
mkdir -p "$home"
cat >"$conf" <<END
PBS_SERVER=$head
PBS_START_SERVER=0
PBS_START_SCHED=0
PBS_START_COMM=0
PBS_START_MOM=1
PBS_EXEC=$programs
PBS_HOME=$home
END
cd "$home"
install -d -m 755 aux mom_logs
install -d -m 1777 spool undelivered
install -d -m 700 checkpoint
install -d -m 751 mom_priv mom_priv/jobs
install -d -m 750 mom_priv/hooks mom_priv/hooks/tmp
echo PATH=/usr/local/bin:/bin:/usr/bin >pbs_environment
# Users' files are the same on all nodes.
cat >mom_priv/config <<END
\$clienthost $head
\$usecp *:/ /
END
pbs_mom
