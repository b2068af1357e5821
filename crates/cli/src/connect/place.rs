//! Where a host that was typed lies, from what the gateway knows of the grid.

use causeway_gateway::control::{JobReply, SiteInfo};
use std::net::{IpAddr, SocketAddr};

/// Where a host lies.
#[derive(Debug, PartialEq, Eq)]
pub enum Place {
    /// In this site.
    Here(SocketAddr),
    /// In another one, behind the gateway of this site.
    At {
        /// The other site.
        site: String,
        /// The host there.
        address: SocketAddr,
        /// Where this site's gateway takes connections, in the host's address family.
        gateway: SocketAddr,
    },
}

/// Why there is no way to a host.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum PlaceError {
    /// It is in no site that is known.
    #[error(
        "no site of the grid has {host}: give a node's name or address as 'causeway status --json' shows them{unknown}"
    )]
    Nowhere {
        /// As typed.
        host: String,
        /// Sites that have not said what they have.
        unknown: String,
    },
    /// Its site cannot be reached.
    #[error("{host} is at {site}, to which there is no tunnel: {why}")]
    NoTunnel {
        /// As typed.
        host: String,
        /// Where it is.
        site: String,
        /// What the gateway says.
        why: String,
    },
    /// Its gateway would not understand.
    #[error("{host} is at {site}, whose gateway is of a version without 'causeway connect': upgrade it")]
    Old {
        /// As typed.
        host: String,
        /// Where it is.
        site: String,
    },
    /// This site's gateway has no address of its family.
    #[error(
        "{address} is at {site}, and this site's gateway listens at no address of that family: add one to [listen] lan"
    )]
    NoGateway {
        /// The host's.
        address: IpAddr,
        /// Where it is.
        site: String,
    },
}

/// Finds a host by its node's name or by its address.
///
/// # Errors
/// See [`PlaceError`].
pub fn find(job: &JobReply, host: &str, port: u16) -> Result<Place, PlaceError> {
    let known = job
        .sites
        .iter()
        .filter_map(|site| Some((site, site.info.as_ref()?)));
    let found = known
        .into_iter()
        .find_map(|(site, info)| Some((site, info, address_in(info, host, site.name == job.site)?)));
    let Some((site, info, ip)) = found else {
        return Err(PlaceError::Nowhere {
            host: host.to_owned(),
            unknown: unknown_sites(job),
        });
    };
    let address = SocketAddr::new(ip, port);
    if site.name == job.site {
        let real = info.site().map_or(ip, |site| site.real(ip));
        return Ok(Place::Here(SocketAddr::new(real, port)));
    }
    let (host, name) = (host.to_owned(), site.name.clone());
    if let Some(why) = site.unreachable.clone() {
        return Err(PlaceError::NoTunnel {
            host,
            site: name,
            why,
        });
    }
    if info.low_ports.is_none() {
        return Err(PlaceError::Old { host, site: name });
    }
    let own = job.sites.iter().find(|site| site.name == job.site);
    let mut gateways = own
        .and_then(|own| own.info.as_ref())
        .map_or(&[][..], |own| &own.gateways)
        .iter();
    match gateways.find(|gateway| gateway.is_ipv4() == ip.is_ipv4()) {
        Some(gateway) => Ok(Place::At {
            site: name,
            address,
            gateway: *gateway,
        }),
        None => Err(PlaceError::NoGateway {
            address: ip,
            site: name,
        }),
    }
}

/// The address, as the grid knows it, of a host that is of a site. At the own one it may be asked for by its real one.
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

fn unknown_sites(job: &JobReply) -> String {
    let unknown = job.sites.iter().filter(|site| site.info.is_none());
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
        false => format!("; not heard of yet: {}", unknown.join(", ")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use causeway_gateway::control::{NodeInfo, SiteStatus};

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
                nodes: vec![NodeInfo {
                    name: format!("{name}-1"),
                    address: [10, net, 0, 1].into(),
                    slots: 1,
                }],
                low_ports: Some(Vec::new()),
            }),
            unreachable: None,
        }
    }

    fn job() -> JobReply {
        let silent = SiteStatus {
            name: "bordeaux".into(),
            info: None,
            unreachable: Some("refused".into()),
        };
        JobReply {
            token: String::new(),
            grid: String::new(),
            site: "rennes".into(),
            sites: vec![site("rennes", 1), site("nancy", 2), silent],
        }
    }

    #[test]
    fn hosts_are_found_by_name_and_by_address() {
        let far = |last: u8| Place::At {
            site: "nancy".into(),
            address: ([10, 2, 0, last], 22).into(),
            gateway: ([10, 1, 0, 253], 7000).into(),
        };
        assert_eq!(find(&job(), "nancy-1", 22), Ok(far(1)));
        assert_eq!(find(&job(), "10.2.0.77", 22), Ok(far(77)));
        assert_eq!(find(&job(), "::ffff:10.2.0.77", 22), Ok(far(77)));
        assert_eq!(
            find(&job(), "rennes-1", 22),
            Ok(Place::Here(([10, 1, 0, 1], 22).into()))
        );
    }

    #[test]
    fn what_cannot_be_reached_says_why() {
        let said = |job: &JobReply, host: &str| find(job, host, 22).unwrap_err().to_string();
        let nowhere = said(&job(), "192.0.2.1");
        assert!(
            nowhere.contains("no site") && nowhere.contains("bordeaux (refused)"),
            "{nowhere}"
        );
        let mut down = job();
        down.sites[1].unreachable = Some("connection refused".into());
        assert!(said(&down, "nancy-1").contains("no tunnel: connection refused"));
        let mut old = job();
        old.sites[1].info.as_mut().unwrap().low_ports = None;
        assert!(said(&old, "nancy-1").contains("upgrade"));
        let mut other_family = job();
        other_family.sites[0].info.as_mut().unwrap().gateways = vec!["[fd00::1]:7000".parse().unwrap()];
        assert!(said(&other_family, "nancy-1").contains("[listen] lan"));
    }
}
