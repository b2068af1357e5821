#!/usr/bin/env bash
# odd.sh: `causeway up` makes a grid of four systems whose accounts and hosts are unlike those of a tidy
# cluster: umask 077 at one site; a home that is not shared, a host name that means 127.0.1.1 and a /tmp of
# 1 MB at another; an ordinary user at a third; and a home without programs, which it has to refuse.
set -euo pipefail
. "$(dirname "$0")/common.sh"
systems=(bullseye bookworm trixie forky)

# as_root NODE SCRIPT: changes a node.
change() { on "$1" sh -euc "$2"; }

"$root/tools/setup/root.sh" bullseye trixie forky
mkdir -p "$place"
UP_OPTIONS=--no-gateways lab_up tests/systems/four.toml odd-systems
for system in "${systems[@]}"; do compile "$system"; done

# bullseye: all that its user makes is the user's alone.
for node in head 1 2; do
    change bullseye-$node 'printf "#!/bin/bash\numask 077\nexec /bin/bash \"\$@\"\n" >/usr/local/bin/shell
        chmod 755 /usr/local/bin/shell
        sed -i "/^root:/s|[^:]*\$|/usr/local/bin/shell|" /etc/passwd'
done
# trixie: Debian's installer gives a host's own name 127.0.1.1. This checkout may itself lie below /tmp.
for node in head 1 2; do
    change trixie-$node "hosts=\$(grep -v ' trixie-$node\$' /etc/hosts)
        printf '127.0.1.1 trixie-$node\n%s\n' \"\$hosts\" >/etc/hosts
        mkdir /run/checkout && mount --bind $root /run/checkout
        mount -t tmpfs -o size=1m,mode=1777 tmpfs /tmp
        mkdir -p $root && mount --bind /run/checkout $root"
done
# forky: an ordinary user, whose home is shared as that of root is.
for node in head 1 2; do
    # A password that nothing fits: sshd without PAM refuses who has none.
    change forky-$node 'useradd -u 4321 -d /root/ada -s /bin/bash ada && usermod -p "*" ada && chmod 711 /root'
done
change forky-head 'mkdir -p /root/ada/.ssh && cp /etc/ssh/lab_key /root/ada/.ssh/id_ed25519
    echo "IdentityFile ~/.ssh/id_ed25519" >/root/ada/.ssh/config
    chown -R ada: /root/ada'

up=(causeway up bullseye=. bookworm=bookworm-head.wan trixie=trixie-head.wan forky=ada@forky-head.wan --yes)
for system in "${systems[@]}"; do
    for node in 1 2; do up+=(--node "$system=$system-$node:4"); done
done
# as_user COMMAND...: at bullseye, whose user has that umask, with what `causeway up` has put in the home.
# shellcheck disable=SC2016 # the node expands it
as_user() { on bullseye-head bash -c 'umask 077; cd; PATH=$HOME/.local/bin:$PATH; "$@"' bash env -u CAUSEWAY_CONTROL "$@"; }
expect "causeway up over ${systems[*]}" "4 sites are one grid" as_user "${up[@]}"

for mpis in "openmpi openmpi openmpi openmpi" "mpich mpich mpich mpich"; do
    # shellcheck disable=SC2086 # one word for each system
    for program in own_world ring; do
        world $program $mpis
        expect "$program on odd hosts with ${mpis%% *}" "4 ranks" as_user causeway run "${at[@]}"
    done
done
# The sites start the program, which lies at one path, from causeways that do not.
for system in "${systems[@]}"; do
    for node in head 1; do change "$system-$node" "cp $place/$system/mpich/own_world /srv"; done
done
expect "own_world on odd hosts with --own-mpi" "4 ranks" \
    as_user causeway run --own-mpi --sites bullseye=1,bookworm=1,trixie=1,forky=1 -- /srv/own_world
# It fails where jobs and the gateway share an account, as they do here.
# shellcheck disable=SC2016 # the node expands it
expect "causeway check on odd hosts" "bullseye-2: reached" as_user sh -c 'causeway check --nodes || [ $? -eq 1 ]'

# bookworm: homes that its nodes do not share.
for node in 1 2; do change bookworm-$node 'mount -t tmpfs tmpfs /root'; done
refused() { # TEXT COMMAND...: it fails, and says TEXT
    local said status=0
    said=$("${@:2}" 2>&1) || status=$?
    echo "$said"
    if [ $status -eq 0 ] || [[ $said != *"$1"* ]]; then return 1; fi
    echo "refused as it has to be"
}
world own_world openmpi openmpi openmpi openmpi
expect "a home that is not shared" "refused as it has to be" refused "bookworm" as_user causeway run "${at[@]}"
expect "causeway down" "" as_user causeway down --force --yes

# trixie: a home without programs.
change trixie-head 'mount -o remount,bind,noexec /root'
expect "a home without programs" "refused as it has to be" refused "programs do not run in /root" as_user "${up[@]}"
# And one without room, which is told of before anything is copied.
change trixie-head 'mount -o remount,bind,exec /root && mount -t tmpfs -o size=8m none /root'
expect "a home without room" "refused as it has to be" refused "No space left on device" as_user "${up[@]}"
expect "nothing is left there" "0" on trixie-head sh -c 'find /root -type f | wc -l'
summary
