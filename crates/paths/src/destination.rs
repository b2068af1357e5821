//! Finds the site of a host that was typed, from what the gateway knows about the grid.

use causeway_control::{SiteInfo, SiteStatus, Status};
use std::net::{IpAddr, SocketAddr};

/// Where a host is.
#[derive(Debug, PartialEq, Eq)]
pub enum Destination {
    /// An address in this site.
    Here(SocketAddr),
    /// An address in another site, behind the gateway of this one.
    At {
        /// The other site.
        site: String,
        /// The address of the host there.
        address: SocketAddr,
        /// Where this site's gateway accepts connections, in the host's address family.
        gateway: SocketAddr,
    },
}

/// Why a host cannot be reached.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum DestinationError {
    /// The host is in no known site.
    #[error(
        "no site of the grid has {host}; give a node's name or address, as shown by 'causeway status --json'{unknown}"
    )]
    Nowhere {
        /// The host as it was typed.
        host: String,
        /// Sites that have not announced what they have.
        unknown: String,
    },
    /// More than one site has a node with that name.
    #[error(
        "nodes at several sites have the name {host}; give the address by which the grid knows the one you mean: {nodes}"
    )]
    Ambiguous {
        /// The host as it was typed.
        host: String,
        /// The address and the site of each.
        nodes: String,
    },
    /// Nodes of other sites have the address as their real one, and nobody here can mean them by it.
    #[error("only a site's own nodes use the address {address}; from here, the grid knows it as {known}")]
    Real {
        /// The address as it was typed.
        address: IpAddr,
        /// Each virtual address and its site.
        known: String,
    },
    /// The host's site cannot be reached, or does not accept connections from here.
    #[error("{host} is at {site}, and {site} takes no connection from here: {why}")]
    Unusable {
        /// The host as it was typed.
        host: String,
        /// The site at which it is.
        site: String,
        /// The gateway's reason.
        why: String,
    },
    /// This site's gateway has no address of its family.
    #[error(
        "{address} is at {site}, but this site's gateway listens on no address of that family; add one to [listen] lan"
    )]
    NoGateway {
        /// The address of the host.
        address: IpAddr,
        /// The site to which the address belongs.
        site: String,
    },
}

/// Finds a host by its node's name or by its address.
///
/// # Errors
/// See [`DestinationError`].
pub fn find(status: &Status, host: &str, port: u16) -> Result<Destination, DestinationError> {
    let known = status
        .sites
        .iter()
        .filter_map(|site| Some((site, site.info.as_ref()?)));
    let found = known
        .filter_map(|(site, info)| Some((site, info, address_in(info, host, site.name == status.site)?)));
    let found: Vec<(&SiteStatus, &SiteInfo, IpAddr)> = found.collect();
    let (site, info, ip) = match found[..] {
        [] => return Err(nowhere(status, host)),
        // For an address, this site takes precedence: from here, it means a neighbour.
        [first] => first,
        [first, ..] if host.parse::<IpAddr>().is_ok() => {
            let own = found.iter().find(|(site, ..)| site.name == status.site);
            own.copied().unwrap_or(first)
        }
        [..] => {
            let nodes = found
                .iter()
                .map(|(site, _, address)| (*address, site.name.as_str()));
            return Err(DestinationError::Ambiguous {
                host: host.to_owned(),
                nodes: listed(nodes),
            });
        }
    };
    let address = SocketAddr::new(ip, port);
    if site.name == status.site {
        let real = info.site().map_or(ip, |site| site.real(ip));
        return Ok(Destination::Here(SocketAddr::new(real, port)));
    }
    let (host, name) = (host.to_owned(), site.name.clone());
    if let Some(why) = site.unreachable.clone() {
        return Err(DestinationError::Unusable {
            host,
            site: name,
            why,
        });
    }
    let own = status.sites.iter().find(|site| site.name == status.site);
    let mut gateways = own
        .and_then(|own| own.info.as_ref())
        .map_or(&[][..], |own| &own.gateways)
        .iter();
    match gateways.find(|gateway| gateway.is_ipv4() == ip.is_ipv4()) {
        Some(gateway) => Ok(Destination::At {
            site: name,
            address,
            gateway: *gateway,
        }),
        None => Err(DestinationError::NoGateway {
            address: ip,
            site: name,
        }),
    }
}

/// The address, as the grid knows it, of a host of a site. At this site, the host may also be given by its
/// real address.
fn address_in(info: &SiteInfo, host: &str, is_own: bool) -> Option<IpAddr> {
    if let Some(node) = info.nodes.iter().find(|node| node.name == host) {
        return Some(node.address);
    }
    let address = host.parse::<IpAddr>().ok()?.to_canonical();
    let site = info.site().ok()?;
    if is_own && site.has_node(address) {
        return Some(site.in_grid(address));
    }
    site.contains(address).then_some(address)
}

fn nowhere(status: &Status, host: &str) -> DestinationError {
    let infos = status.sites.iter().filter_map(|site| site.info.as_ref());
    let virtual_ones: Vec<_> = infos
        .filter_map(|info| info.site().ok().filter(|site| site.is_virtual()))
        .collect();
    if let Ok(address) = host.parse::<IpAddr>() {
        let have = virtual_ones.iter().filter(|site| site.has_node(address));
        let known = listed(have.map(|site| (site.in_grid(address), site.name.as_str())));
        if !known.is_empty() {
            return DestinationError::Real { address, known };
        }
    }
    DestinationError::Nowhere {
        host: host.to_owned(),
        unknown: unknown_sites(status),
    }
}

fn listed<'a>(nodes: impl Iterator<Item = (IpAddr, &'a str)>) -> String {
    let nodes: Vec<String> = nodes
        .map(|(address, site)| format!("{address} at {site}"))
        .collect();
    nodes.join(", ")
}

fn unknown_sites(status: &Status) -> String {
    let unknown = status.sites.iter().filter(|site| site.info.is_none());
    let unknown: Vec<String> = unknown
        .map(|site| {
            format!(
                "{} ({})",
                site.name,
                site.unreachable.as_deref().unwrap_or("no reason")
            )
        })
        .collect();
    match unknown.is_empty() {
        true => String::new(),
        false => format!("; nothing known yet of: {}", unknown.join(", ")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use causeway_control::NodeInfo;

    fn site(name: &str, net: u8) -> SiteStatus {
        SiteStatus {
            name: name.into(),
            info: Some(SiteInfo {
                name: name.into(),
                subnets: vec![format!("10.{net}.0.0/24")],
                real_subnets: vec![],
                gateways: vec![([10, net, 0, 253], 7000).into()],
                delivery_ports: "20000-32767".into(),
                relays: false,
                transparent: false,
                local: vec![],
                nodes: vec![NodeInfo {
                    name: format!("{name}-1"),
                    address: [10, net, 0, 1].into(),
                    slots: 1,
                }],
            }),
            unreachable: None,
        }
    }

    fn status() -> Status {
        let silent = SiteStatus {
            name: "bordeaux".into(),
            info: None,
            unreachable: Some("refused".into()),
        };
        Status {
            site: "rennes".into(),
            sites: vec![site("rennes", 1), site("nancy", 2), silent],
            ..Status::default()
        }
    }

    #[test]
    fn hosts_are_found_by_name_and_by_address() {
        let far = |last: u8| Destination::At {
            site: "nancy".into(),
            address: ([10, 2, 0, last], 22).into(),
            gateway: ([10, 1, 0, 253], 7000).into(),
        };
        assert_eq!(find(&status(), "nancy-1", 22), Ok(far(1)));
        assert_eq!(find(&status(), "10.2.0.77", 22), Ok(far(77)));
        assert_eq!(find(&status(), "::ffff:10.2.0.77", 22), Ok(far(77)));
        assert_eq!(
            find(&status(), "rennes-1", 22),
            Ok(Destination::Here(([10, 1, 0, 1], 22).into()))
        );
    }

    /// The grid as seen from lyon, whose addresses no other site has: rennes and nancy have the same ones,
    /// and a node-1 each.
    fn overlap() -> Status {
        let mut status = status();
        for (at, site) in status.sites[..2].iter_mut().enumerate() {
            let info = site.info.as_mut().unwrap();
            info.subnets = vec![format!("100.64.{at}.0/24")];
            info.real_subnets = vec!["192.168.1.0/24".into()];
            info.nodes[0].name = "node-1".into();
            info.nodes[0].address = [100, 64, at as u8, 7].into();
        }
        status.sites.push(self::site("lyon", 3));
        status.site = "lyon".into();
        status
    }

    #[test]
    fn a_name_that_nodes_of_two_sites_have_is_not_guessed_at_even_if_one_is_here() {
        for own in ["lyon", "rennes", "nancy"] {
            let mut status = overlap();
            status.site = own.into();
            let said = find(&status, "node-1", 22).unwrap_err().to_string();
            assert!(
                said.contains("several sites") && said.contains("100.64.0.7 at rennes, 100.64.1.7 at nancy"),
                "{said}"
            );
        }
        let mut status = overlap();
        assert!(matches!(find(&status, "lyon-1", 22), Ok(Destination::Here(_))));
        status.site = "nancy".into();
        let neighbour = Destination::Here(([192, 168, 1, 7], 22).into());
        assert_eq!(find(&status, "192.168.1.7", 22), Ok(neighbour));
    }

    #[test]
    fn a_real_address_of_virtual_sites_is_answered_with_those_by_which_the_grid_knows_it() {
        for typed in ["192.168.1.9", "::ffff:192.168.1.9"] {
            let said = find(&overlap(), typed, 22).unwrap_err().to_string();
            assert!(
                said.contains("100.64.0.9 at rennes, 100.64.1.9 at nancy"),
                "{said}"
            );
        }
        let nowhere = find(&overlap(), "192.168.2.9", 22).unwrap_err();
        assert!(matches!(nowhere, DestinationError::Nowhere { .. }), "{nowhere}");
    }

    #[test]
    fn what_cannot_be_reached_says_why() {
        let said = |status: &Status, host: &str| find(status, host, 22).unwrap_err().to_string();
        let nowhere = said(&status(), "192.0.2.1");
        assert!(
            nowhere.contains("no site") && nowhere.contains("bordeaux (refused)"),
            "{nowhere}"
        );
        let mut down = status();
        down.sites[1].unreachable = Some("connection refused".into());
        assert!(said(&down, "nancy-1").contains("from here: connection refused"));
        let mut other_family = status();
        other_family.sites[0].info.as_mut().unwrap().gateways = vec!["[fd00::1]:7000".parse().unwrap()];
        assert!(said(&other_family, "nancy-1").contains("[listen] lan"));
    }
}
