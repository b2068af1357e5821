#!/usr/bin/env bash
# oar_head.sh PLACE HEAD SLOTS NODE...: makes in PLACE what the site's nodes share, and starts OAR's server
# and its database on the head node. That is PostgreSQL: MariaDB of today refuses a name in OAR's tables.
set -eu
place=$1 head=$2 slots=$3
shift 3
export PATH=/usr/sbin:/usr/bin:/sbin:/bin LC_ALL=C
own=/run/oar
mkdir -p "$place/ssh" $own
ssh-keygen -q -t ed25519 -N '' -C oar -f "$place/ssh/id_ed25519"
echo "environment=\"OAR_KEY=1\" $(cat "$place/ssh/id_ed25519.pub")" >"$place/ssh/authorized_keys"
printf '%s\n' 'IdentityFile ~/.ssh/id_ed25519' 'StrictHostKeyChecking no' 'PasswordAuthentication no' \
    'ForwardX11 no' 'LogLevel ERROR' >"$place/ssh/config"
# Of two equal settings, the last one counts. Tests see soon what a job's end brings.
cat /etc/oar/oar.conf - >"$place/oar.conf" <<END
DB_TYPE="Pg"
DB_HOSTNAME="127.0.0.1"
DB_PORT="5432"
DB_BASE_PASSWD="oar"
DB_BASE_PASSWD_RO="oar_ro"
SERVER_HOSTNAME="$head"
DEPLOY_HOSTNAME="$head"
COSYSTEM_HOSTNAME="$head"
LOG_LEVEL="3"
LOG_FILE="$own/oar.log"
SCHEDULER_JOB_SECURITY_TIME="1"
SCHEDULER_MIN_TIME_BETWEEN_2_CALLS="1"
FINAUD_FREQUENCY="0"
JOB_RESOURCE_MANAGER_FILE="/etc/oar/jobs.pl"
GET_CURRENT_CPUSET_CMD="sed -n 's,^[0-9]*:name=causeway-oar:/[^/]*,,p' /proc/self/cgroup"
END
bash "$place/node.sh" "$place"

for programs in /usr/lib/postgresql/*/bin; do :; done
install -d -o postgres -g postgres $own/db /run/postgresql
as_postgres() { setpriv --reuid postgres --regid postgres --clear-groups --reset-env "$@"; }
as_postgres "$programs/initdb" -D $own/db --auth=trust --no-sync
as_postgres "$programs/pg_ctl" -D $own/db -w -t 60 -l $own/db/log -o '-F -c listen_addresses=127.0.0.1' start
oar-database --create --db-admin-user postgres --db-admin-pass none -y
# Root is the lab's user. Each processor is a resource.
psql -q -h 127.0.0.1 -U postgres oar <<END
DELETE FROM admission_rules WHERE rule LIKE '%root and oar users are not allowed%';
INSERT INTO admission_rules (priority, enabled, rule) VALUES (20, 'YES', '
foreach my \$asked (@{\$ref_resource_list}) {
    die("[ADMISSION RULE] A job may take two hours at most.\\n") if \$asked->[1] > 7200;
}');
INSERT INTO resources (network_address, state, state_num, cpuset)
    SELECT node, 'Alive', 1, slot - 1
    FROM unnest(string_to_array('$*', ' ')) AS node, generate_series(1, $slots) AS slot ORDER BY node, slot;
INSERT INTO resource_logs (resource_id, attribute, value, date_start)
    SELECT resource_id, 'state', 'Alive', EXTRACT(EPOCH FROM now()) FROM resources;
END
touch $own/oar.log
chown oar $own/oar.log
setsid Almighty </dev/null >$own/almighty.log 2>&1 &
