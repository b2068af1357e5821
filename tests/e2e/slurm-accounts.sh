#!/usr/bin/env bash
# slurm-accounts.sh: gives a site's Slurm accounts with limits, as most clusters have them. It runs on the
# site's head node. Debian's slurmdbd and its MariaDB keep their data in /run, which goes with the lab.
# `slurm-accounts.sh set LIMIT=VALUE` changes a limit of the account.
set -eu
export PATH=/usr/sbin:$PATH

until_true() { # words of a command
    for _ in $(seq 300); do
        "$@" >/dev/null 2>&1 && return
        read -rt 0.1 <> <(:) || :
    done
    echo "slurm-accounts.sh: not within 30 s: $*" >&2
    exit 1
}

if [ "${1:-}" = set ]; then
    shift
    sacctmgr -i modify account p7 set "$@" >/dev/null
    exit
fi

data=/run/accounting
address=$(hostname -I | cut -d ' ' -f 1)
mkdir -p $data /run/mysqld
mariadb-install-db --no-defaults --user="$(id -un)" --datadir=$data/db \
    --auth-root-authentication-method=normal >$data/install.log 2>&1
setsid mariadbd --no-defaults --user="$(id -un)" --datadir=$data/db --socket=/run/mysqld/mysqld.sock \
    --skip-networking --innodb-buffer-pool-size=64M --pid-file=$data/pid </dev/null >$data/mariadbd.log 2>&1 &
until_true test -S /run/mysqld/mysqld.sock
umask 077
cat >/etc/slurm/slurmdbd.conf <<END
AuthType=auth/munge
AuthInfo=socket=/run/munge/munge.socket.2
DbdHost=$(hostname)
DbdAddr=$address
SlurmUser=$(id -un)
StorageType=accounting_storage/mysql
StorageHost=localhost
StorageUser=$(id -un)
StorageLoc=slurm
LogFile=$data/slurmdbd.log
PidFile=$data/slurmdbd.pid
END
umask 022
slurmdbd
pkill -TERM slurmctld
sed -i "s,^AccountingStorageType=.*,AccountingStorageType=accounting_storage/slurmdbd\nAccountingStorageHost=$address\n\
AccountingStorageEnforce=associations\,limits\,qos," /etc/slurm/slurm.conf
until_true sacctmgr -n show cluster
cluster=$(sed -n 's/^ClusterName=//p' /etc/slurm/slurm.conf)
for words in "cluster $cluster" "account p7 Description=p7 Organization=p7" "user $(id -un) account=p7"; do
    # shellcheck disable=SC2086 # Words.
    sacctmgr -i add $words >/dev/null
done
until_true sh -c '! pgrep -x slurmctld'
slurmctld
idle() { [ "$(sinfo -h -t idle -o %D)" = "$(grep -c ^NodeName= /etc/slurm/slurm.conf)" ]; }
until_true idle
