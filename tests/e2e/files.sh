#!/usr/bin/env bash
# shellcheck disable=SC2016,SC2029 # Commands for other hosts stand in quotes, with what is known here.
# files.sh PROGRAMS: jobs whose program and input are on the head node of rennes alone, for files.rs. It runs
# there; PROGRAMS is target/mpi. The nodes of rennes share a home with their head node, those of nancy have
# one each.
set -u
mpich=$1/debian-mpich openmpi=$1/debian-openmpi
here=$PWD/of-rennes
mkdir -p "$here/home" "$here/work"
nancy="ssh 198.51.100.5"

own="mkdir -p /run/home && mount --bind /run/home ~"
for node in rennes-1 rennes-2; do ssh $node "mount --bind $here/home ~"; done
$nancy "$own; ssh nancy-1 '$own'; ssh nancy-2 '$own'"
mount --bind "$here/home" ~
# What is sent must not be found where it was.
for host in rennes-1 rennes-2; do ssh $host "mount -t tmpfs tmpfs $here/work"; done
hide="mount -t tmpfs tmpfs $here/work"
$nancy "$hide; ssh nancy-1 '$hide'; ssh nancy-2 '$hide'"

cd "$here/work" || exit 1
mkdir -p input/deep
echo "a case" >input/deep/case.dat
ln -s deep/case.dat input/link
cp "$mpich/ring_mpi" ring-mpich
cp "$openmpi/ring_mpi" ring-openmpi
cp "$mpich/own_world" own_world
cat >work.sh <<'END'
#!/bin/sh
cat input/link >"out-$(hostname)" && echo "$(hostname)" >same
ln -s /etc/passwd out-leads-away 2>/dev/null
exit 3
END
chmod +x work.sh

left() { # what is left of the job's files, anywhere
    local look='ls -d /tmp/causeway-files-* ~/.cache/causeway/files/* 2>/dev/null'
    local found
    for _ in $(seq 100); do
        found=$(eval "$look"; ssh rennes-1 "$look"; ssh rennes-2 "$look"; $nancy "ssh nancy-1 '$look'; ssh nancy-2 '$look'")
        [ -z "$found" ] && break
        read -rt 0.1 <> <(:) || :
    done
    echo "${found:-nothing is left}"
}

causeway run --send ring-mpich -- mpirun.mpich -n 4 ./ring-mpich
causeway run --send ring-openmpi -- mpirun.openmpi --allow-run-as-root --oversubscribe -n 4 ./ring-openmpi
causeway run --own-mpi --sites rennes=4,nancy=4 --send own_world -- ./own_world
# One rank on each node.
causeway run --send input --send work.sh --fetch 'out-*' --fetch same -- mpirun.mpich -ppn 1 -n 4 ./work.sh
echo "status $?"
ls -d out-* same*
cat out-* same*
left
causeway run --send work.sh --send input -- mpirun.mpich -n 4 sh -c 'echo it is there; sleep 97' >killed &
pid=$!
until [ "$(grep -c there killed)" = 4 ]; do read -rt 0.1 <> <(:) || :; done
kill -KILL $pid
wait $pid
echo "status $?"
echo "killed: $(left)"
# A fetch that is broken off takes nothing from the nodes: a later one brings it.
causeway run --send work.sh --fetch 'late-*' -- mpirun.mpich -ppn 1 -n 4 sh -c 'truncate -s 50G late-$(hostname)' &
pid=$!
until compgen -G '.causeway-fetch-*' >/dev/null; do read -rt 0.1 <> <(:) || :; done
kill -INT $pid
wait $pid
echo "broken off with status $?, here:" .causeway-fetch-* late-*
small='for file in ~/.cache/causeway/files/*/late-*; do echo late >"$file"; done'
eval "$small"
$nancy "ssh nancy-1 '$small'; ssh nancy-2 '$small'"
(mkdir later && cd later && causeway fetch && echo late-* && cat late-*)
echo "fetched: $(left)"
causeway fetch
rm -r later
# Large files are sent once. What stays is used as long as it is right.
head -c 3000000 /dev/urandom >input/large
copies='cd ~/.cache/causeway/sent 2>/dev/null && sha256sum -- *'
wanted=$(sha256sum <input/large | cut -d' ' -f1)
held() { # how many of the nodes have a copy that is right
    (eval "$copies"; $nancy "ssh nancy-1 '$copies'; ssh nancy-2 '$copies'") | grep -c "^$wanted  $wanted\$"
}
causeway run --send input --send-anew -- mpirun.mpich -ppn 1 -n 4 sha256sum input/large | grep -c "$wanted"
echo "copies after --send-anew: $(held)"
causeway run --send input -- mpirun.mpich -ppn 1 -n 4 true
echo "copies: $(held)"
$nancy "ssh nancy-1 'echo wrong >~/.cache/causeway/sent/$wanted'"
causeway run --send input -- mpirun.mpich -ppn 1 -n 4 sha256sum input/large | grep -c "$wanted"
echo "copies again: $(held)"
# One site gets a file of its own under the name of another, and nothing beyond what it takes.
cp work.sh other.sh
sed -i 's/^exit 3/echo "of its own"/' other.sh
causeway run --send input --send work.sh --send nancy:../work/other.sh=work.sh -- mpirun.mpich -ppn 1 -n 4 sh -c './work.sh || true'
conf=/run/causeway-lab/gateway/nancy.toml
$nancy "sed -i 's/^jobs = /files = \"5MB\"\n&/' $conf && $(command -v causeway) gateway --config $conf --drain"
head -c 2100000 /dev/urandom >input/larger
causeway run --send input -- mpirun.mpich -n 4 hostname
rm input/larger
causeway run --send lyon:input -- mpirun.mpich -n 4 hostname
causeway run --send ../of-rennes -- mpirun.mpich -n 4 hostname
causeway run --send nowhere -- mpirun.mpich -n 4 hostname
causeway run --send input --fetch '$(id)' -- mpirun.mpich -n 4 hostname
exit 0
