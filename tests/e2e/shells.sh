#!/usr/bin/env bash
# shellcheck disable=SC2016,SC2029 # Commands for other hosts stand in quotes, with what is known here.
# shells.sh PROGRAMS: jobs of users whose login shell reads no lines of sh, for shells.rs. It runs on the head
# node of rennes; PROGRAMS is target/mpi. Each shell also prints something as it starts.
set -u
mpich=$1/debian-mpich openmpi=$1/debian-openmpi
nancy="ssh 198.51.100.5"
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1

# A home of each host's own, with start-up files that print a line.
home='mkdir -p /run/home/.config/fish && mount --bind /run/home ~ &&
    echo "echo a message of the day" | tee ~/.tcshrc >~/.config/fish/config.fish'
# The user's login shell.
shell='mkdir -p /run/passwd/bin /run/passwd/usr/bin && sed "s,^\(root:.*:\)[^:]*$,\1$SHELL_IS," /etc/passwd >/run/passwd$SHELL_IS && mount --bind /run/passwd$SHELL_IS /etc/passwd'

# Nancy's nodes are reached from its head alone: what runs there is a file, which no shell between reads.
spread() { # script of sh
    printf '%s\n' "$1" | $nancy 'exec /bin/bash -c "cat >/run/causeway-shell"'
    for host in nancy-1 nancy-2; do
        printf '%s\n' "$1" | $nancy "exec ssh $host 'exec /bin/bash -c \"cat >/run/causeway-shell\"'"
    done
}

run_script() { # script of sh: at every host
    spread "$1"
    bash -c "$1"
    for host in rennes-1 rennes-2; do printf '%s\n' "$1" | ssh $host 'exec /bin/bash -s'; done
    $nancy 'exec /bin/bash /run/causeway-shell'
    for host in nancy-1 nancy-2; do $nancy "exec ssh $host 'exec /bin/bash /run/causeway-shell'"; done
}

run_script "$home" >/dev/null
echo "an input" >input
cat >work.sh <<'END'
#!/bin/sh
cat input >"out-$(hostname)"
END
chmod +x work.sh

for login in /bin/tcsh /usr/bin/fish; do
    run_script "SHELL_IS=$login; $shell" >/dev/null
    name=$(basename "$login")
    echo "$name: $($nancy 'printenv SHELL' | tail -n 1)"
    causeway run --sites rennes=2,nancy=2 -- mpirun.openmpi -n 4 "$openmpi/ring" 2>&1 | sed "s/^/$name, Open MPI: /"
    causeway run --sites rennes=2,nancy=2 -- mpirun.mpich -n 4 "$mpich/ring" 2>&1 | sed "s/^/$name, MPICH: /"
    causeway run --at rennes "mpirun.openmpi --oversubscribe -n 2 '$openmpi/own_world'" \
        --at nancy "mpiexec.hydra -n 2 '$mpich/own_world'" 2>&1 | sed "s/^/$name, --at: /"
    rm -rf got && mkdir got
    (cd got && cp ../input ../work.sh . && causeway run --sites rennes=1,nancy=1 --send input --send work.sh --fetch 'out-*' \
        -- mpirun.mpich -n 2 ./work.sh 2>&1; echo "status $?"; ls out-* 2>&1) | sed "s/^/$name, files: /"
    causeway check 2>&1 | grep -c '\[FAIL\]' | sed "s/^/$name, what check finds wrong: /"
done
