//! Decides to which of the addresses that somebody else named this gateway sends anything.
//!
//! At such an address there may be somebody who has nothing to do with the grid. So only addresses are used
//! that can be a gateway's: never those of this site's own nodes, and those of this host only if the other
//! gateway is on it, too.

use causeway_wire::Cidr;
use std::net::{IpAddr, SocketAddr};

/// Ports below this belong to other programs, which somebody has started as root.
const MIN_PORT: u16 = 1024;

/// Whether another site's gateway may be at an address that is named for it.
pub(crate) fn may_be_gateway(address: SocketAddr, on_loopback: bool, subnets: &[Cidr]) -> bool {
    let ip = address.ip().to_canonical();
    let is_link_local = match ip {
        IpAddr::V4(ip) => ip.is_link_local(),
        IpAddr::V6(ip) => ip.is_unicast_link_local(),
    };
    is_of_a_host(address)
        && address.port() >= MIN_PORT
        && !is_link_local
        && (!ip.is_loopback() || on_loopback)
        && !subnets.iter().any(|subnet| subnet.contains(ip))
}

/// Where the broker sees a member, and where it sees this gateway.
pub(crate) struct Places {
    pub(crate) member: Option<IpAddr>,
    pub(crate) own: Option<IpAddr>,
}

/// Picks, from the addresses in a member's record, those at which this gateway dials it. Addresses of this
/// host count only if the member is on it, too: a service here might trust a connection because it comes from
/// this host.
pub(crate) fn dialled(
    named: Vec<SocketAddr>,
    places: &Places,
    is_here: impl Fn(IpAddr) -> bool,
    on_loopback: bool,
    subnets: &[Cidr],
) -> Vec<SocketAddr> {
    let is_beside = || {
        let member = places.member.map(|ip| ip.to_canonical());
        member.is_some_and(|ip| places.own.map(|ip| ip.to_canonical()) == Some(ip) || is_here(ip))
    };
    let may = |address: &SocketAddr| {
        may_be_gateway(*address, on_loopback, subnets)
            && (on_loopback || !is_here(address.ip().to_canonical()) || is_beside())
    };
    named.into_iter().filter(may).collect()
}

/// Picks, from the addresses that were named by a site seen as `mapped`, those that a gateway seen as `own`
/// tries: addresses in the other's own network only if both are behind one NAT.
pub(crate) fn connectable(
    named: &[SocketAddr],
    mapped: SocketAddr,
    own: SocketAddr,
    subnets: &[Cidr],
) -> Vec<SocketAddr> {
    let behind_one = mapped.ip() == own.ip();
    let may = |address: &&SocketAddr| {
        address.is_ipv4() == own.is_ipv4()
            && may_be_gateway(**address, own.ip().is_loopback(), subnets)
            && (behind_one || **address == mapped)
    };
    named.iter().filter(may).copied().collect()
}

/// Whether a datagram to this address reaches a single host.
pub(crate) fn is_of_a_host(address: SocketAddr) -> bool {
    let ip = address.ip().to_canonical();
    let is_broadcast = matches!(ip, IpAddr::V4(v4) if v4.is_broadcast());
    address.port() != 0 && !ip.is_unspecified() && !ip.is_multicast() && !is_broadcast
}

#[cfg(test)]
mod tests {
    use super::*;

    fn address(text: &str) -> SocketAddr {
        text.parse().unwrap()
    }

    #[test]
    fn nobody_is_made_to_connect_to_what_is_no_gateway_of_another_site() {
        let subnets: Vec<Cidr> = vec!["10.1.0.0/24".parse().unwrap()];
        let to = |mapped: &str, local: &[&str], own: &str| {
            let local: Vec<_> = local.iter().map(|text| address(text)).collect();
            let named = [&[address(mapped)][..], &local].concat();
            connectable(&named, address(mapped), address(own), &subnets)
        };
        let local = ["10.2.0.1:5000", "10.1.0.9:5000", "10.2.0.1:22", "127.0.0.1:5000"];
        let (mapped, own) = ("192.0.2.1:5000", "192.0.2.2:6000");
        assert_eq!(to(mapped, &local, own), [address(mapped)]);
        let one_nat = to(mapped, &local, "192.0.2.1:6000");
        assert_eq!(one_nat, [address(mapped), address("10.2.0.1:5000")]);
        for none in [
            "192.0.2.1:443",
            "10.1.0.7:5000",
            "127.0.0.1:5000",
            "[2001:db8::1]:5000",
        ] {
            assert_eq!(to(none, &[], own), []);
        }
        assert_eq!(
            to("127.0.0.1:5000", &[], "127.0.0.1:6000"),
            [address("127.0.0.1:5000")]
        );
    }

    #[test]
    fn nobody_is_dialled_where_a_members_record_leads_to_this_site_or_to_no_gateway() {
        let subnets: Vec<Cidr> = vec!["10.1.0.0/24".parse().unwrap()];
        let may = |text: &str| may_be_gateway(address(text), false, &subnets);
        assert!(may("192.0.2.1:7001") && may("10.2.0.1:7001") && may("[2001:db8::1]:7001"));
        for text in [
            "192.0.2.1:22",
            "127.0.0.1:7001",
            "[::1]:7001",
            "[::ffff:127.0.0.1]:7001",
            "[::ffff:10.1.0.7]:7001",
            "10.1.0.253:7001",
            "169.254.169.254:8080",
            "[fe80::1]:7001",
            "0.0.0.0:7001",
            "224.0.0.1:7001",
        ] {
            assert!(!may(text), "{text}");
        }
        assert!(may_be_gateway(address("127.0.0.1:7001"), true, &subnets));
    }

    #[test]
    fn this_host_is_dialled_only_for_a_member_that_the_broker_sees_at_it_or_where_it_sees_this_gateway() {
        let own = ["192.0.2.2", "10.9.0.1"].map(|text| text.parse::<IpAddr>().unwrap());
        let to = |named: &str, member: &str, seen: &str| {
            let ip = |text: &str| text.parse().ok();
            let places = Places {
                member: ip(member),
                own: ip(seen),
            };
            dialled(vec![address(named)], &places, |ip| own.contains(&ip), false, &[])
        };
        let elsewhere = "198.51.100.7";
        for here in ["192.0.2.2:7001", "10.9.0.1:7001", "[::ffff:10.9.0.1]:7001"] {
            assert_eq!(to(here, elsewhere, "192.0.2.2"), [], "{here}");
            assert_eq!(to(here, "", "192.0.2.2"), [], "{here}");
            assert_eq!(to(here, "10.9.0.1", ""), [address(here)]);
            // Both gateways are behind one NAT.
            assert_eq!(to(here, elsewhere, elsewhere), [address(here)]);
        }
        assert_eq!(to("198.51.100.7:7001", elsewhere, "192.0.2.2").len(), 1);
    }
}
