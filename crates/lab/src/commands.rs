//! The commands for `ip`, `tc` and `nft`, as text. Pure, so that a rule can be read and tested without a
//! namespace.

use std::fmt::Write;

use crate::plan::{Node, Plan, Role, SitePlan};
use crate::scenario::Firewall;
use crate::wan::TXQUEUELEN;

/// `ip -batch` for a router, before its TUN exists. `peer_netns` gives the path of each node's network
/// namespace.
pub(crate) fn router_links(site: &SitePlan, peer_netns: impl Fn(&Node) -> String) -> String {
    let mut text = String::from("link set lo up\n");
    let lan = format!("{}/{}", site.router_lan, site.site.subnet.prefix());
    if site.site.lan_rtt.is_zero() {
        // forward_delay 0 and no STP: otherwise a port forwards nothing for 30 s.
        text += "link add br0 type bridge stp_state 0 forward_delay 0 mcast_snooping 0\n";
        for (port, node) in site.nodes.iter().enumerate() {
            let netns = peer_netns(node);
            let _ = writeln!(text, "link add lan{port} type veth peer name eth0 netns {netns}");
            let _ = writeln!(text, "link set lan{port} master br0 up");
        }
    }
    let _ = writeln!(text, "addr add {lan} dev br0\nlink set br0 {}up", queue(site));
    for head in site.nodes.iter().filter(|node| node.role == Role::Head) {
        let _ = writeln!(
            text,
            "link add up0 type veth peer name eth1 netns {}",
            peer_netns(head)
        );
        let _ = writeln!(
            text,
            "addr add {}/30 dev up0\nlink set up0 up",
            site.uplink.nth(2)
        );
    }
    text
}

/// `ip -batch` for a router, once its TUN `wan0` exists.
pub(crate) fn router_routes(plan: &Plan, site: &SitePlan) -> String {
    let mut text = format!("link set wan0 mtu {WAN_MTU} txqueuelen {TXQUEUELEN} up\n");
    if site.is_nat() {
        let _ = writeln!(text, "addr add {}/32 dev wan0", site.public.nth(1));
    }
    for other in plan
        .sites
        .iter()
        .filter(|other| other.site.name != site.site.name)
    {
        for prefix in plan.prefixes(other) {
            let _ = writeln!(text, "route add {prefix} dev wan0");
        }
    }
    // Answered with "host unreachable", so that connect() fails at once with "No route to host".
    text += "route add unreachable default\n";
    text
}

/// `ip -batch` for a node.
pub(crate) fn node_links(plan: &Plan, site: &SitePlan, node: &Node) -> String {
    let mut text = String::from("link set lo up\n");
    let _ = writeln!(
        text,
        "addr add {}/{} dev eth0",
        node.lan,
        site.site.subnet.prefix()
    );
    let _ = writeln!(text, "link set eth0 mtu {LAN_MTU} {}up", queue(site));
    match node.uplink {
        Some(uplink) => {
            let _ = writeln!(
                text,
                "addr add {uplink}/30 dev eth1\nlink set eth1 mtu {WAN_MTU} up"
            );
            let _ = writeln!(text, "route add default via {}", site.uplink.nth(2));
            // Packets to other LANs have the LAN address: that is the one by which a job knows the head node.
            for other in plan
                .sites
                .iter()
                .filter(|other| plan.routed && other.site.name != site.site.name)
            {
                let _ = writeln!(
                    text,
                    "route add {} via {} dev eth0",
                    other.site.subnet, site.router_lan
                );
            }
        }
        None => {
            let _ = writeln!(text, "route add default via {}", site.router_lan);
        }
    }
    text
}

/// A device whose other end is an emulator needs a queue that outlasts a scheduling delay.
fn queue(site: &SitePlan) -> String {
    if site.site.lan_rtt.is_zero() {
        String::new()
    } else {
        format!("txqueuelen {TXQUEUELEN} ")
    }
}

/// `tc -batch` that limits these interfaces to the LAN's rate; empty when it is not limited or not a kernel
/// bridge.
pub(crate) fn lan_rate(site: &SitePlan, devices: &[String]) -> String {
    let Some(rate) = site
        .site
        .lan_rate_bits_per_second
        .filter(|_| site.site.lan_rtt.is_zero())
    else {
        return String::new();
    };
    // A bucket of 2 ms, but at least one full segment burst of 64 kB, or the rate asked for is never reached.
    let burst = (rate / 8 / 500).max(65_536);
    let line = |device: &String| {
        format!("qdisc add dev {device} root tbf rate {rate}bit burst {burst}b limit 1mb\n")
    };
    devices.iter().map(line).collect()
}

/// `nft -f` for a router: what may cross it. nft before 1.0 wants the word `type`.
pub(crate) fn firewall(plan: &Plan, site: &SitePlan) -> String {
    let mut text = String::from("table inet lab {\n  chain forward {\n");
    text += "    type filter hook forward priority filter; policy drop;\n";
    text += "    iifname \"br0\" oifname \"br0\" accept\n";
    if !plan.routed {
        text += "    iifname \"br0\" reject with icmp type admin-prohibited\n";
        text += "    oifname \"br0\" reject with icmp type admin-prohibited\n";
    }
    let inbound = inbound(&site.site.firewall);
    let _ = writeln!(text, "    iifname != \"wan0\" accept\n{inbound}  }}");
    let _ = writeln!(
        text,
        "  chain input {{\n    type filter hook input priority filter; policy accept;"
    );
    let _ = writeln!(text, "    iifname != \"wan0\" accept\n{inbound}  }}");
    if site.is_nat() {
        text += "  chain postrouting {\n    type nat hook postrouting priority srcnat; policy accept;\n";
        let ports = match site.site.firewall {
            Firewall::NatSymmetric => " fully-random",
            _ => "",
        };
        let _ = writeln!(text, "    oifname \"wan0\" masquerade{ports}\n  }}");
    }
    text + "}\n"
}

fn inbound(firewall: &Firewall) -> String {
    let replies = "    ct state established,related accept\n";
    match firewall {
        // No conntrack here: an open site's packets should cost no more than forwarding.
        Firewall::Open => "    accept\n".to_owned(),
        Firewall::OutboundOnly | Firewall::Nat | Firewall::NatSymmetric => format!("{replies}    drop\n"),
        Firewall::Ports(ranges) => {
            let ranges: Vec<String> = ranges.iter().map(|(low, high)| format!("{low}-{high}")).collect();
            let ports = ranges.join(", ");
            format!("{replies}    meta l4proto {{ tcp, udp }} th dport {{ {ports} }} accept\n    drop\n")
        }
    }
}

/// `/etc/hosts` of a node: every node it could mean by that name. Where LANs overlap, the other sites' LAN
/// addresses belong to other hosts here, so only its own site is listed.
pub(crate) fn hosts(plan: &Plan, own: &SitePlan) -> String {
    let mut text = String::from("127.0.0.1 localhost\n");
    for site in &plan.sites {
        let is_own = site.site.name == own.site.name;
        if is_own || !site.site.subnet.overlaps(&own.site.subnet) {
            for node in &site.nodes {
                let _ = writeln!(text, "{} {}", node.lan, node.name);
            }
        }
        for node in &site.nodes {
            if let Some(wan) = node.wan {
                let _ = writeln!(text, "{wan} {}.wan", node.name);
            }
        }
    }
    text
}

/// Settings under /proc/sys of a network namespace: path, value, and whether the lab is wrong without it.
pub(crate) fn settings(router: bool) -> Vec<(&'static str, &'static str, bool)> {
    let mut settings = vec![
        // Without IPv6 no MPI prefers an address that leads nowhere (FACTS 3.7).
        ("net/ipv6/conf/all/disable_ipv6", "1", false),
        ("net/ipv6/conf/default/disable_ipv6", "1", false),
        // 32 MB: three times the bandwidth-delay product of 1 Gbit/s and 90 ms, because half is kept for
        // overhead.
        ("net/ipv4/tcp_rmem", "4096 131072 33554432", false),
        ("net/ipv4/tcp_wmem", "4096 65536 33554432", false),
        // sshd on port 22 as an ordinary user.
        ("net/ipv4/ip_unprivileged_port_start", "0", true),
        // ping without a raw socket; group 0 of the namespace's owner is the user himself.
        ("net/ipv4/ping_group_range", "0 0", false),
        ("net/ipv4/conf/all/rp_filter", "0", false),
        ("net/ipv4/conf/default/rp_filter", "0", false),
    ];
    if router {
        settings.push(("net/ipv4/ip_forward", "1", true));
    }
    settings
}

/// Ethernet's; also what the papers' testbeds used.
const LAN_MTU: u32 = 1500;
const WAN_MTU: u32 = 1500;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scenario::Scenario;

    fn plan(routed: bool, firewall: Firewall) -> Plan {
        let mut scenario = Scenario::find("rennes-nancy").unwrap();
        scenario.routed = routed;
        scenario.sites[0].firewall = firewall;
        Plan::of(&scenario)
    }

    #[test]
    fn an_unrouted_router_knows_only_wan_addresses_of_other_sites() {
        let plan = plan(false, Firewall::Open);
        let routes = router_routes(&plan, &plan.sites[0]);
        assert!(routes.contains("route add 198.51.100.4/30 dev wan0") && !routes.contains("10.2.0.0/24"));
    }

    #[test]
    fn a_routed_router_knows_the_other_lan_too() {
        let plan = plan(true, Firewall::Open);
        assert!(router_routes(&plan, &plan.sites[0]).contains("route add 10.2.0.0/24 dev wan0"));
        assert!(!firewall(&plan, &plan.sites[0]).contains("admin-prohibited"));
    }

    #[test]
    fn each_firewall_lets_in_what_its_name_says() {
        let rules = |kind| {
            let plan = plan(false, kind);
            firewall(&plan, &plan.sites[0])
        };
        assert!(!rules(Firewall::Open).contains("drop\n"));
        assert!(rules(Firewall::OutboundOnly).contains("established,related accept\n    drop\n"));
        assert!(rules(Firewall::Nat).contains("masquerade\n"));
        assert!(rules(Firewall::NatSymmetric).contains("masquerade fully-random\n"));
        assert!(
            rules(Firewall::Ports(vec![(7000, 7100), (80, 80)]))
                .contains("th dport { 7000-7100, 80-80 } accept")
        );
    }

    #[test]
    fn hosts_of_an_overlapping_site_do_not_name_the_other_sites_lan() {
        let plan = Plan::of(&Scenario::find("overlap").unwrap());
        let hosts = hosts(&plan, &plan.sites[0]);
        assert!(hosts.contains("192.168.1.1 rennes-1\n") && !hosts.contains(" nancy-1\n"));
        assert!(hosts.contains("198.51.100.5 nancy-head.wan\n"));
    }
}
