#!/usr/bin/env bash
# shellcheck disable=SC2029 # Commands for other hosts stand in quotes, with what is known here.
# measure.sh FILES BYTES RUNS: how long FILES files of BYTES bytes each take to another site and back, with
# --send and --fetch, scp -r and rsync -a in turn, as rows of CSV. It runs on the head node of rennes:
#
#     causeway lab run --routed true rennes-nancy -- tools/files/measure.sh 20000 1000 3 >rows.csv
#
# scp speaks its own protocol (-O), because the hosts of a grid have no sftp, and waits for a round trip or
# two for each file: it is left out where there are many. The current directory is on the disk of all hosts
# of the grid, and has room for six times the bytes.
set -eu
most_for_scp=1000
files=$1 bytes=$2 runs=$3
launcher=(mpirun.mpich -n 1)
here=$PWD/files-of-rennes there=$PWD/files-of-nancy head=198.51.100.5
mkdir -p "$here/home" "$here/work" "$there/home" "$there/work"
# Each site has a home on the disk: that of the grid's hosts is in memory.
mount --bind "$here/home" ~
ssh $head "mount --bind $there/home ~; ssh nancy-1 'mount --bind $there/home ~'"
cd "$here/work"
mkdir data
for ((i = 0; i < files; i++)); do
    directory=data/$((i / 100))
    [ -d "$directory" ] || mkdir "$directory"
    head -c "$bytes" /dev/urandom >"$directory/$i"
done
cat >give.sh <<END
#!/bin/sh
cp -r $there/work/data data && date +%s.%N >$here/work/ended
END
chmod +x give.sh
total=$((files * bytes))
now() { date +%s.%N; }
row() { # direction way run began
    awk -v began="$4" -v ended="$(now)" -v row="$1,$2,$3,$files,$total" 'BEGIN { printf "%s,%.2f\n", row, ended - began }'
}
right() { [ "$(find "$1" -type f | wc -l)" = "$files" ] && diff -rq data "$1" >&2; }
echo direction,way,run,files,bytes,seconds
for ((run = 0; run < runs; run++)); do
    began=$(now)
    causeway run --sites nancy=1 --send data --send-anew -- "${launcher[@]}" true
    row there causeway "$run" "$began"
    if [ "$files" -le $most_for_scp ]; then
        began=$(now)
        scp -Oqr data "$head:$there/work/data"
        row there scp "$run" "$began"
        right "$there/work/data" && rm -r "$there/work/data"
    fi
    began=$(now)
    rsync -a data "$head:$there/work/"
    row there rsync "$run" "$began"
    right "$there/work/data"
    mkdir back
    cd back
    causeway run --sites nancy=1 --send "$here/work/give.sh=give.sh" --fetch data -- "${launcher[@]}" ./give.sh
    row back causeway "$run" "$(<"$here/work/ended")"
    cd ..
    right back/data && rm -r back/data
    if [ "$files" -le $most_for_scp ]; then
        began=$(now)
        scp -Oqr "$head:$there/work/data" back/data
        row back scp "$run" "$began"
        right back/data && rm -r back/data
    fi
    began=$(now)
    rsync -a "$head:$there/work/data" back/
    row back rsync "$run" "$began"
    right back/data && rm -r back "$there/work/data"
done
cd /
rm -rf "$here" "$there"
