#!/usr/bin/env bash
# peer.sh direct|wireguard|ssh: has packets between the two sites of an emulated grid go directly, or
# through a tunnel between the head nodes as people make one by hand: WireGuard in user space, or ssh (-w)
# over a TCP connection with BBR. It runs on the head node of rennes, as root of the grid, and undoes what
# it did before. The ranks' nodes have the route to the far site through the head node then.
# shellcheck disable=SC2029 # Variables are of this side.
set -eu
way=$1
far='ssh nancy-head.wan'
state=/run/causeway-peer-rennes far_state=/run/causeway-peer-nancy
rennes=10.1.0.0/24 nancy=10.2.0.0/24

# A tunnel has room for less in a packet than the nodes' networks, which not every node learns in time.
clamp='add table inet peer; add chain inet peer out { type filter hook forward priority mangle; };
    add rule inet peer out tcp flags syn tcp option maxseg size set rt mtu'

# Here and at nancy: the interface, the route to the other site, and a node's route through its head node.
joined() { # interface
    ip route replace $nancy dev "$1" src 10.1.0.253
    $far "ip route replace $rennes dev $1 src 10.2.0.253"
    nft "$clamp"
    $far "nft '$clamp'"
    sysctl -qw net.ipv4.ip_forward=1
    $far sysctl -qw net.ipv4.ip_forward=1
    ssh rennes-1 "ip route replace $nancy via 10.1.0.253"
    $far "ssh nancy-1 ip route replace $rennes via 10.2.0.253"
}

undo() {
    ssh rennes-1 "ip route del $nancy" 2>/dev/null || :
    $far "ssh nancy-1 ip route del $rennes" 2>/dev/null || :
    if [ -e $state/ssh.pid ]; then kill "$(cat $state/ssh.pid)" 2>/dev/null || :; fi
    $far "kill \$(cat $far_state/sshd.pid)" 2>/dev/null || :
    nft delete table inet peer 2>/dev/null || :
    $far nft delete table inet peer 2>/dev/null || :
    ip link del peer0 2>/dev/null || :
    $far ip link del peer0 2>/dev/null || :
    rm -rf $state
    $far rm -rf $far_state
    mkdir -m 700 $state
    $far mkdir -m 700 $far_state
}

with_wireguard() {
    (umask 077 && wg genkey >$state/key)
    $far "umask 077 && wg genkey >$far_state/key"
    wireguard-go peer0 2>/dev/null
    $far wireguard-go peer0 2>/dev/null
    # Either side may be the first to send.
    at() { getent hosts "$1-head.wan" | cut -d' ' -f1; }
    wg set peer0 listen-port 51820 private-key $state/key \
        peer "$($far "wg pubkey <$far_state/key")" allowed-ips $nancy endpoint "$(at nancy):51820"
    $far wg set peer0 listen-port 51820 private-key $far_state/key \
        peer "$(wg pubkey <$state/key)" allowed-ips $rennes endpoint "$(at rennes):51820"
    ip link set peer0 up
    $far ip link set peer0 up
}

with_ssh() {
    old=$(sysctl -n net.ipv4.tcp_congestion_control)
    for place in '' "$far"; do $place sysctl -qw net.ipv4.tcp_congestion_control=bbr; done
    $far "/usr/sbin/sshd -f /etc/ssh/sshd_config -o Port=2222 -o PermitTunnel=yes -o PermitRootLogin=yes -o PidFile=$far_state/sshd.pid"
    ssh -p 2222 -N -w 0:0 -o ExitOnForwardFailure=yes nancy-head.wan >$state/ssh.log 2>&1 </dev/null &
    echo $! >$state/ssh.pid
    for _ in $(seq 200); do
        ip link show tun0 >/dev/null 2>&1 && $far ip link show tun0 >/dev/null 2>&1 && break
        read -rt 0.05 <> <(:) || :
    done
    for place in '' "$far"; do
        $place ip link set tun0 name peer0
        $place ip link set peer0 up
        $place sysctl -qw net.ipv4.tcp_congestion_control="$old"
    done
}

undo
case $way in
direct) ;;
wireguard | ssh)
    "with_$way"
    joined peer0
    ;;
*)
    echo "peer.sh: direct, wireguard or ssh, not $way" >&2
    exit 2
    ;;
esac
