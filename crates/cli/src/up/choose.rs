//! What `causeway up` concludes from what the head nodes report about themselves. Pure.

use super::facts::{Address, Facts, Found};
use super::ports::Ports;
use causeway_wire::Cidr;
use std::collections::{BTreeMap, BTreeSet};
use std::net::{IpAddr, SocketAddr};

/// Interfaces of containers and virtual machines, whose networks only this host has.
const VIRTUAL: [&str; 7] = ["docker", "br-", "virbr", "veth", "podman", "cni", "lxc"];

/// A site, and what the user has said about it.
#[derive(Debug, Clone)]
pub struct Looked {
    /// Its name.
    pub site: String,
    /// What its head node reports.
    pub facts: Facts,
    /// Its nodes' addresses, as the user gave them.
    pub subnets: Vec<String>,
    /// Its nodes, as the user gave them.
    pub nodes: Vec<String>,
    /// Words for its connection through a web proxy, as the user gave them.
    pub proxy: Vec<String>,
}

/// The options with which a site joins.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Joins {
    /// Its nodes' addresses.
    pub subnets: Vec<String>,
    /// Its nodes, as `--node` takes them.
    pub nodes: Vec<String>,
    /// Its batch system, which has the nodes.
    pub batch: Option<String>,
    /// Where its nodes find its gateway, if not at the usual port.
    pub lan: Option<SocketAddr>,
    /// Where other gateways dial it, if they can.
    pub wan: Option<SocketAddr>,
    /// Whether another site has the same addresses.
    pub overlaps: bool,
    /// Words for its connection through a web proxy.
    pub proxy: Vec<String>,
}

impl Joins {
    /// The words of `causeway gateway --join -`.
    pub fn words(&self, all: &[String]) -> Vec<String> {
        let mut words: Vec<String> = ["gateway", "--background", "--join", "-"]
            .map(str::to_owned)
            .into();
        for (option, values) in [("--subnet", &self.subnets), ("--node", &self.nodes)] {
            words.extend(values.iter().flat_map(|value| [option.to_owned(), value.clone()]));
        }
        if let Some(system) = &self.batch {
            words.extend(["--batch".to_owned(), system.clone()]);
        }
        for (option, address) in [("--lan", self.lan), ("--wan", self.wan)] {
            words.extend(
                address
                    .into_iter()
                    .flat_map(|at| [option.to_owned(), at.to_string()]),
            );
        }
        words.extend(self.proxy.iter().cloned());
        if self.overlaps {
            words.push("--overlap-ok".to_owned());
        }
        words.extend(["--accept-jobs".to_owned(), all.join(",")]);
        words
    }
}

/// Which sites can reach which, at which address: first the site that is dialled, then the one that dials.
pub type Reached = BTreeMap<String, BTreeMap<String, IpAddr>>;

/// The site whose host all others reach, and its address: the one that the user names, or the first.
///
/// # Errors
/// No broker can be chosen; the error is a sentence that says what to do.
pub fn broker(sites: &[Looked], reached: &Reached, wanted: Option<&str>) -> Result<(String, IpAddr), String> {
    let reaches_all = |site: &str| {
        let by = reached.get(site);
        let mut others = sites.iter().filter(|other| other.site != site);
        others.all(|other| by.is_some_and(|by| by.contains_key(&other.site)))
    };
    let candidates = || { sites.iter() }.filter(|one| wanted.is_none_or(|wanted| one.site == wanted));
    let Some(found) = candidates().find(|one| reaches_all(&one.site)) else {
        let at = |port: fn(&Ports) -> u16| {
            let ports = candidates().map(|one| port(&one.facts.ports).to_string());
            let all: BTreeSet<String> = ports.collect();
            all.into_iter().collect::<Vec<_>>().join(" or ")
        };
        let (broker, wan) = (at(|ports| ports.broker), at(|ports| ports.wan));
        let open = format!(
            "one head node must let the others connect to port {broker}, and should do so to {wan}; for a site that \
             gets out only through a web proxy, name it with --proxy"
        );
        return Err(match wanted {
            Some(wanted) => format!("not all other sites reach {wanted}: {open}"),
            None => format!("no head node is reached by all others: {open}"),
        });
    };
    // If there are no other sites, any address will do.
    let own = found.facts.addresses.first().map(|address| address.ip);
    let dialled = reached
        .get(&found.site)
        .and_then(|by| by.values().next().copied());
    let ip = dialled
        .or(own)
        .ok_or_else(|| format!("{} has no address", found.site))?;
    Ok((found.site.clone(), ip))
}

/// The site whose head node reports that it already has the broker of the grid, among those that name this
/// grid.
///
/// # Errors
/// Several head nodes report so, or one that the user does not name; the error is a sentence that says what
/// to do.
pub fn claimed(claims: &[(&str, &str)], wanted: Option<&str>) -> Result<Option<String>, String> {
    let [(site, grid), others @ ..] = claims else {
        return Ok(None);
    };
    if let Some((other, _)) = others.first() {
        return Err(format!(
            "the head nodes of {site} and {other} both say that they have the grid's broker: 'causeway down' at that which is \
             not to have it"
        ));
    }
    match wanted.filter(|wanted| wanted != site) {
        None => Ok(Some((*site).to_owned())),
        Some(wanted) => Err(format!(
            "--broker names {wanted}, but the head node of {site} says that it has the broker of grid {grid} already: leave \
             --broker out if that is right, or end it by 'causeway down' first"
        )),
    }
}

/// The options with which each site joins.
///
/// # Errors
/// A site's nodes are not known; the error is a sentence that says what to do.
pub fn joins(sites: &[Looked], reached: &Reached) -> Result<Vec<Joins>, String> {
    let mut all = { sites.iter() }
        .map(|site| join(site, reached.get(&site.site)))
        .collect::<Result<Vec<Joins>, String>>()?;
    let networks: Vec<Vec<Cidr>> = { all.iter() }
        .map(|one| {
            one.subnets
                .iter()
                .filter_map(|subnet| subnet.parse().ok())
                .collect()
        })
        .collect();
    for (number, one) in all.iter_mut().enumerate() {
        let others = networks.iter().enumerate().filter(|(other, _)| *other != number);
        let mut others = others.flat_map(|(_, networks)| networks);
        one.overlaps = others.any(|other| networks[number].iter().any(|own| overlap(own, other)));
    }
    Ok(all)
}

fn join(site: &Looked, dialled_by: Option<&BTreeMap<String, IpAddr>>) -> Result<Joins, String> {
    let dialled = dialled_by.and_then(|by| by.values().next().copied());
    let addresses = &site.facts.addresses;
    // A gateway listens only at addresses of its host; if a router forwards to it, the user says so.
    let wan = dialled.filter(|ip| addresses.iter().any(|address| address.ip == *ip));
    let batch = { site.facts.batch.as_ref() }.filter(|_| site.nodes.is_empty());
    let nodes_at = batch.map(|batch| batch.addresses.as_slice()).unwrap_or_default();
    let lan = lan_of(addresses, nodes_at, dialled);
    let subnets = match (&site.subnets[..], lan) {
        ([], None) => {
            return Err(format!(
                "{0}: its head node has no address of a network of nodes; say which it is: --subnet {0}=10.1.0.0/24",
                site.site
            ));
        }
        ([], Some(lan)) => vec![network(lan)],
        (given, _) => given.to_vec(),
    };
    let nodes = match (&site.nodes[..], batch) {
        ([], Some(_)) => Vec::new(),
        ([], None) => vec![head_as_node(site, &subnets)?],
        (given, _) => given.to_vec(),
    };
    let ports = site.facts.ports;
    // Without this option, a gateway finds its address by itself and uses the usual port.
    let lan = match ports.lan == Ports::USUAL.lan {
        true => None,
        false => Some(inside(site, &subnets).ok_or_else(|| {
            format!(
                "{0}: somebody has port {1} there, and its head node is not in {2}; name its addresses: --subnet {0}=10.1.0.0/24",
                site.site,
                Ports::USUAL.lan,
                subnets.join(", ")
            )
        })?),
    };
    Ok(Joins {
        subnets,
        nodes,
        batch: batch.map(|batch| batch.system.clone()),
        lan: lan.map(|address| SocketAddr::new(address.ip, ports.lan)),
        wan: wan.map(|ip| SocketAddr::new(ip, ports.wan)),
        overlaps: false,
        proxy: site.proxy.clone(),
    })
}

/// The address at which nodes see the head node: one in the network of the batch system's nodes, else a
/// private one, else any.
fn lan_of<'a>(all: &'a [Address], nodes: &[IpAddr], dialled: Option<IpAddr>) -> Option<&'a Address> {
    let has_nodes = |address: &&Address| {
        let network = network(address).parse::<Cidr>();
        network.is_ok_and(|network| nodes.iter().any(|node| network.contains(*node)))
    };
    let is_real = |address: &&Address| !VIRTUAL.iter().any(|name| address.interface.starts_with(name));
    let is_private = |address: &&Address| match address.ip {
        IpAddr::V4(ip) => ip.is_private() || ip.octets()[0] == 100 && ip.octets()[1] & 0xc0 == 64,
        IpAddr::V6(ip) => ip.is_unique_local(),
    };
    let is_inner = |address: &&Address| Some(address.ip) != dialled;
    let real = || all.iter().filter(is_real);
    real()
        .find(has_nodes)
        .or_else(|| real().find(|address| is_private(address) && is_inner(address)))
        .or_else(|| real().find(is_private))
        .or_else(|| real().find(|address| address.ip.is_ipv4()))
        .or_else(|| real().next())
}

/// The network of an address; of a public one, only the address itself: its neighbours may be anybody's.
fn network(address: &Address) -> String {
    let is_public = match address.ip {
        IpAddr::V4(ip) => !(ip.is_private() || ip.octets()[0] == 100),
        IpAddr::V6(ip) => !ip.is_unique_local(),
    };
    let prefix = match (is_public, address.ip) {
        (true, IpAddr::V4(_)) => 32,
        (true, IpAddr::V6(_)) => 128,
        (false, _) => address.prefix,
    };
    format!("{}/{prefix}", masked(address.ip, prefix))
}

/// The first address of a network.
fn masked(ip: IpAddr, prefix: u8) -> IpAddr {
    match ip {
        IpAddr::V4(ip) => {
            let mask = u32::MAX.checked_shl(32 - u32::from(prefix.min(32))).unwrap_or(0);
            IpAddr::from((u32::from(ip) & mask).to_be_bytes())
        }
        IpAddr::V6(ip) => {
            let mask = u128::MAX
                .checked_shl(128 - u32::from(prefix.min(128)))
                .unwrap_or(0);
            IpAddr::from((u128::from(ip) & mask).to_be_bytes())
        }
    }
}

fn overlap(one: &Cidr, other: &Cidr) -> bool {
    one.contains(other.address()) || other.contains(one.address())
}

/// The head node's address in the networks of its site's nodes.
fn inside<'a>(site: &'a Looked, subnets: &[String]) -> Option<&'a Address> {
    let is_inside = |address: &&Address| {
        let mut networks = subnets.iter().filter_map(|subnet| subnet.parse::<Cidr>().ok());
        networks.any(|network| network.contains(address.ip))
    };
    site.facts.addresses.iter().find(is_inside)
}

/// If there is no batch system and the user names no nodes, the head node is the site's only node.
fn head_as_node(site: &Looked, subnets: &[String]) -> Result<String, String> {
    let address = inside(site, subnets).ok_or_else(|| {
        format!(
            "{0}: no node is known there, and its head node is not in {1}; name the nodes: --node {0}=NAME:SLOTS",
            site.site,
            subnets.join(", ")
        )
    })?;
    Ok(format!(
        "{}={}:{}",
        site.facts.host, address.ip, site.facts.processors
    ))
}

/// The launcher of an MPI that all sites have in the same version.
pub fn launcher<'a>(mut sites: impl Iterator<Item = &'a Facts>) -> Option<&'a Found> {
    let first = sites.next()?;
    let others: Vec<&Facts> = sites.collect();
    let same = |launcher: &&Found| {
        others.iter().all(|other| {
            let mut all = other.launchers.iter();
            all.any(|one| one.mpi == launcher.mpi && one.version == launcher.version)
        })
    };
    first.launchers.iter().find(same)
}

#[cfg(test)]
#[path = "choose_tests.rs"]
mod tests;
