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
# trixie: Debian's installer gives a host's own name 127.0.1.1.
for node in head 1 2; do
    change trixie-$node "sed -i '/ trixie-$node\$/d; 1i 127.0.1.1 trixie-$node' /etc/hosts
        mount -t tmpfs -o size=1m,mode=1777 tmpfs /tmp"
done
# forky: an ordinary user.
for node in head 1 2; do
    change forky-$node 'useradd -m -u 4321 ada && echo "causeway ada may come in" >/etc/motd'
done

up=(causeway up bullseye=. bookworm=bookworm-head.wan trixie=trixie-head.wan forky=ada@forky-head.wan --yes)
for system in "${systems[@]}"; do
    for node in 1 2; do up+=(--node "$system=$system-$node:4"); done
done
end_of_up() { on bullseye-head bash -c 'umask 077; cd; "$@"' bash "${up[@]}"; }
expect "causeway up over ${systems[*]}" "is one grid" end_of_up
summary
