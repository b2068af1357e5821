#!/usr/bin/env bash
# unlike.sh: somebody at a laptop makes a grid of a Debian 11 and a Debian 14 by one command, as an ordinary
# user at both. The head node of nancy takes ssh from rennes alone. RECORD names a file that gets what was
# typed and said.
set -euo pipefail
. "$(dirname "$0")/common.sh"
"$root/tools/setup/root.sh" bullseye forky
mkdir -p "$place"
UP_OPTIONS=--no-gateways lab_up tests/systems/unlike.toml unlike

change() { on "$1" sh -euc "$2"; }
for site in rennes nancy; do
    for node in head 1 2; do
        # A password that nothing fits: sshd without PAM refuses who has none.
        change $site-$node 'useradd -u 4321 -d /root/ada -s /bin/bash ada && usermod -p "*" ada && chmod 711 /root'
    done
    # The key opens the site's nodes, too.
    change $site-head 'mkdir -p /root/ada/.ssh && cp /etc/ssh/lab_key /root/ada/.ssh/id_ed25519
        echo "IdentityFile ~/.ssh/id_ed25519" >/root/ada/.ssh/config
        chown -R ada: /root/ada'
done
rennes=$(on laptop-head getent hosts rennes-head.wan | cut -d " " -f 1)
nancy=$(on laptop-head getent hosts nancy-head.wan | cut -d " " -f 1)
change nancy-head "nft 'add table inet door; add chain inet door in { type filter hook input priority 0; };
    add rule inet door in tcp dport 22 ip saddr != { $rennes, 10.2.0.0/24, 127.0.0.1 } reject with tcp reset'"
# What the user has had in ~/.ssh/config since long before Causeway.
change laptop-head "mkdir /run/home && mount --bind /run/home ~ && mkdir ~/.ssh
    printf 'Host login.rennes\n  HostName $rennes\nHost login.nancy\n  HostName $nancy\n  ProxyJump ada@login.rennes\n' \
        >~/.ssh/config"

expect "nancy's door" "Connection refused" on laptop-head sh -c "ssh -F none ada@$nancy true || :"

# typed WORDS...: `causeway WORDS...` at the laptop, as its user.
# shellcheck disable=SC2016 # the node's shell expands it
typed() { on laptop-head env -u CAUSEWAY_CONTROL sh -c 'cd; PATH=$0:$PATH; exec causeway "$@"' "$(dirname "$causeway")" "$@"; }
up=(up rennes=ada@login.rennes nancy=ada@login.nancy)
for site in rennes nancy; do up+=(--node "$site=$site-1:4" --node "$site=$site-2:4"); done
record=$place/unlike.txt
: >"$record"
# recorded WORDS...: the same, and writes down what was typed and said.
recorded() {
    printf 'laptop$ causeway %s\n' "$*" >>"$record"
    typed "$@" 2>&1 | sed "s|$root/target/systems/tar|/home/ada/causeway-0.1.0-linux-x86_64|" | tee -a "$record"
    printf '\n' >>"$record"
}
# left SITE: what is still there, but for logs and the audit.
# shellcheck disable=SC2016 # the node's shell expands it
left() { on "$1-head" sh -c 'pgrep -fa "causewa[y] (gateway|broker)"; find /root/ada -path "*causeway*" ! -type d ! -path "*/.local/state*" ! -name "audit-*"; echo "that is all"'; }
nothing_is_left() {
    local site said
    for site in rennes nancy; do
        said=$(left $site)
        # shellcheck disable=SC2016 # the inner shell expands it
        expect "nothing is left at $site" "nothing" bash -c 'echo "$0"; [ "$0" = "that is all" ] && echo nothing' "$said"
    done
}
expect "causeway up over a Debian 11 and a Debian 14" "2 sites are one grid" recorded "${up[@]}" --yes
expect "the same again" "All sites are in the grid" typed "${up[@]}" --yes
compile rennes bullseye
compile nancy forky
for mpi in openmpi mpich; do
    for program in ring own_world; do
        expect "$program with the $mpi of both" "all right" on rennes-head su - ada -c \
            "PATH=\$HOME/.local/bin:\$PATH && causeway run --at rennes '$(start_words bullseye $mpi 2) $place/bullseye/$mpi/$program' \
                --at nancy '$(start_words forky $mpi 2) $place/forky/$mpi/$program'"
    done
done
expect "causeway down" "" recorded down --yes
nothing_is_left

# interrupted TEXT: `causeway up`, until Ctrl-C as soon as it has said TEXT; or to its end, without TEXT.
interrupted() {
    # shellcheck disable=SC2016 # the node's shell expands it
    on laptop-head env -u CAUSEWAY_CONTROL sh -c 'cd; PATH=$0:$PATH; text=$1; shift
        setsid env --default-signal=INT causeway "$@" >up.log 2>&1 &
        until grep -qF -- "$text" up.log || ! kill -0 $! 2>/dev/null; do sleep 0.01; done
        kill -s INT -- -$! 2>/dev/null && echo "interrupted after: $text"
        wait $!; cat up.log' "$(dirname "$causeway")" "$1" "${up[@]}" --yes
}
# Each goes on where the one before was interrupted.
for text in "tar -C" "grid grid is in" "broker of grid runs" "gateway of rennes runs" "gateway of nancy runs"; do
    expect "Ctrl-C after '$text'" "interrupted after" interrupted "$text"
done
expect "causeway up after all that" "2 sites are one grid" typed "${up[@]}" --yes
expect "causeway down after all that" "" typed down --yes
nothing_is_left
[ -z "${RECORD:-}" ] || cp "$record" "$RECORD"
summary
