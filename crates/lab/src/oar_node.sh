#!/usr/bin/env bash
# oar_node.sh PLACE: starts OAR's sshd on a node, also on the head node. PLACE is what oar_head.sh has made.
set -eu
place=$1
export PATH=/usr/sbin:/usr/bin:/sbin:/bin LC_ALL=C
own=/run/oar
mkdir -p $own/etc $own/home /run/sshd /dev/cpuset
# OAR puts a job's processes into a cpuset. Here that is a group without processors, in a hierarchy of cgroups
# of its own. Groups of grids that have ended are empty, and are removed.
mount -t cgroup -o none,name=causeway-oar none /dev/cpuset
find /dev/cpuset -mindepth 1 -depth -type d -exec rmdir {} + 2>/dev/null || :
group=/dev/cpuset/$(hostname)-$(stat -Lc %i /proc/self/ns/mnt)
for _ in 1 2 3; do
    mkdir -p "$group" && echo $$ >"$group/tasks" && break
done
mount --bind "$group" /dev/cpuset
cp -r /etc/oar/. $own/etc
cp "$place/oar.conf" "$place/jobs.pl" $own/etc
cp -r "$place/ssh" $own/home/.ssh
chown -R oar:oar $own/home $own/etc/oar.conf
chmod 700 $own/home/.ssh
chmod 600 $own/etc/oar.conf
mount --bind $own/etc /etc/oar
mount --bind $own/home /var/lib/oar
# As Debian's, without what today's sshd knows no more. SHLVL: see ssh.rs.
cat >/etc/oar/sshd_config <<END
Port 6667
HostKey /etc/ssh/lab_host_key
PidFile none
AllowUsers oar
PasswordAuthentication no
AcceptEnv OAR_CPUSET OAR_USER_CPUSET OAR_USER_GPUDEVICE OAR_JOB_USER
SetEnv SHLVL=1
PermitUserEnvironment yes
UseDNS no
PrintMotd no
MaxStartups 1000
MaxSessions 1000
LogLevel ERROR
END
/usr/sbin/sshd -f /etc/oar/sshd_config -E $own/sshd.log
