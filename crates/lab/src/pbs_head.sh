#!/usr/bin/env bash
# pbs_head.sh PROGRAMS CONF HEAD SLOTS NODE...: starts OpenPBS's daemons on the head node, as its own
# pbs_postinstall and pbs_habitat would; these write to /etc, which is the host's.
set -eu
programs=$1 conf=$2 head=$3 slots=$4
shift 4
export PATH=$programs/bin:$programs/sbin:/usr/sbin:/usr/bin:/sbin:/bin PBS_CONF_FILE=$conf LC_ALL=C
export PBS_EXEC=$programs PBS_HOME=${conf%/*}/home PBS_SERVER=$head
export PBS_DATA_SERVICE_USER=postgres PBS_DATA_SERVICE_PORT=15007
mkdir -p "${conf%/*}" /run/postgresql
chown "$PBS_DATA_SERVICE_USER" /run/postgresql
cat >"$conf" <<END
PBS_SERVER=$PBS_SERVER
PBS_START_SERVER=1
PBS_START_SCHED=1
PBS_START_COMM=1
PBS_START_MOM=0
PBS_EXEC=$PBS_EXEC
PBS_HOME=$PBS_HOME
END
mkdir -p "$PBS_HOME"
cd "$PBS_HOME"
install -d -m 755 server_logs sched_logs comm_logs
install -d -m 1777 spool
install -d -m 750 server_priv sched_priv server_priv/jobs server_priv/users server_priv/hooks
install -d -m 750 server_priv/hooks/tmp
install -d -m 755 server_priv/accounting
echo PATH=/bin:/usr/bin >pbs_environment
(
    umask 077
    printf %s "$PBS_DATA_SERVICE_USER" >server_priv/db_user
)
for file in dedicated:dedicated_time holidays:holidays resource_group:resource_group; do
    cp "$programs/etc/pbs_${file%:*}" "sched_priv/${file#*:}"
done
# Jobs that wait have an estimated start then.
sed 's/^strict_ordering:.*/strict_ordering: true ALL/' "$programs/etc/pbs_sched_config" >sched_priv/sched_config

# It reads variables that need not be there.
set +u
# shellcheck source=/dev/null
. "$programs/libexec/pbs_db_env"
set -u
"$programs/libexec/pbs_db_utility" install_db
pbs_comm
pbs_server -t create
# It is in the background before it listens.
for _ in $(seq 100); do
    qstat -B >/dev/null 2>&1 && break
    sleep 0.1
done
# Jobs of root, who is the lab's user.
qmgr <<END
create queue workq
set queue workq queue_type = Execution
set queue workq resources_max.walltime = 2:00:00
set queue workq enabled = True
set queue workq started = True
set server default_queue = workq
set server acl_roots = root@*
set server scheduling = True
END
for node in "$@"; do
    qmgr -c "create node $node resources_available.ncpus=$slots"
done
pbs_sched
