//! Decides which sites take part, and with how many ranks: it compares `--sites` with what the gateway says.
//! Pure, except for `own_address`.

mod hosts;

use super::directory::stands_by_name;
use super::distribution::{Offer, Share, Wish, distribute};
use super::error::RunError;
use super::meant::Shares;
use causeway_control::name::means;
use causeway_control::{NodeInfo, Plan, SiteInfo, SiteStatus, Sites};
use causeway_mpis::Mpi;
use causeway_mpis::command_line::CommandLine;
use causeway_mpis::environment::Ip;
use causeway_wire::{Cidr, Site};
use std::collections::{BTreeMap, HashMap, HashSet};
use std::net::IpAddr;

/// The sites and nodes that the job uses.
#[derive(Debug)]
pub struct Chosen<'a> {
    /// What the user requests.
    pub wish: Wish,
    /// The number of ranks on each node.
    pub shares: Vec<Share<'a>>,
    /// The sites that take part; empty if Causeway does not choose them.
    pub sites: Vec<&'a SiteInfo>,
}

impl Chosen<'_> {
    /// The names of the sites that take part.
    pub fn names(&self) -> Vec<String> {
        self.sites.iter().map(|site| site.name.clone()).collect()
    }

    /// The nodes with ranks, each with its site, by the names that launchers use.
    pub fn nodes(&self) -> Vec<(String, String)> {
        let shares = self.shares.iter();
        shares
            .map(|share| (share.site.to_owned(), launchers_name(share.node)))
            .collect()
    }

    /// Whether a site takes part, as far as Causeway chooses.
    pub fn uses(&self, site: &str) -> bool {
        self.sites.is_empty() || self.sites.iter().any(|used| used.name == site)
    }
}

/// The name of a node that launchers use.
pub fn launchers_name(node: &NodeInfo) -> String {
    match stands_by_name(node) {
        true => node.name.clone(),
        false => node.address.to_string(),
    }
}

/// Checks the sites that the user has named, and distributes the ranks.
///
/// # Errors
/// Unknown or unreachable sites, contradictory counts, too few slots.
pub fn choose<'a>(
    known: &'a Sites,
    wanted: Option<&[(String, Option<u32>)]>,
    line: &CommandLine,
) -> Result<Chosen<'a>, RunError> {
    if wanted.is_some() && line.names_hosts {
        return Err(RunError::Hosts);
    }
    let wish = wish(wanted, line)?;
    check_hosts(known, line)?;
    if line.starts_nothing || line.names_hosts {
        return Ok(Chosen {
            wish,
            shares: Vec::new(),
            sites: Vec::new(),
        });
    }
    let infos = match wanted {
        Some(wanted) => named_sites(known, wanted)?,
        None => all_sites(known)?,
    };
    let offers: Vec<Offer> = infos
        .iter()
        .map(|info| Offer {
            site: &info.name,
            nodes: &info.nodes,
        })
        .collect();
    let none = || {
        let names: Vec<&str> = offers.iter().map(|offer| offer.site).collect();
        Err(RunError::NoNodes(names.join(", ")))
    };
    if offers.iter().all(|offer| offer.nodes.is_empty()) {
        return none();
    }
    let shares = distribute(&offers, &wish, line.allows_more_than_slots)?;
    if shares.is_empty() {
        return none();
    }
    // Sites that got no rank take no part.
    let used: HashSet<&str> = shares.iter().map(|share| share.site).collect();
    let used = |info: &&SiteInfo| used.contains(info.name.as_str());
    let sites = infos.iter().copied().filter(used).collect();
    Ok(Chosen { wish, shares, sites })
}

/// Refuses names of hosts that no gateway knows. Launchers would look them up for seconds before asking.
fn check_hosts(known: &Sites, line: &CommandLine) -> Result<(), RunError> {
    let own = nix::unistd::gethostname().unwrap_or_default();
    let own = own.to_string_lossy();
    let infos = || known.sites.iter().filter_map(|site| site.info.as_ref());
    let is_known = |host: &str| {
        host.parse::<IpAddr>().is_ok()
            || host == "localhost"
            || means(host, &own)
            || infos().any(|info| info.nodes.iter().any(|node| means(host, &node.name)))
    };
    // An IPv6 address was cut at its first colon.
    let is_number = |host: &str| host.bytes().all(|byte| byte.is_ascii_hexdigit()) || host.starts_with('[');
    let mut hosts = line.hosts.iter();
    match hosts.find(|host| !is_known(host) && !is_number(host)) {
        Some(host) if host.contains('@') => Err(RunError::UserAtHost(host.clone())),
        Some(host) => Err(RunError::UnknownHost(host.clone())),
        None => Ok(()),
    }
}

/// Refuses sites whose connections no gateway would carry. If the user names hosts, this is left to the
/// gateways.
///
/// # Errors
/// The first such site.
pub fn check_transparent(known: &Sites, chosen: &Chosen) -> Result<(), RunError> {
    let used = |name: &str| name == known.site || chosen.shares.iter().any(|share| share.site == name);
    let mut used = known.sites.iter().filter(|site| used(&site.name));
    let opaque = used.find(|site| !site.info.as_ref().is_some_and(|info| info.transparent));
    opaque.map_or(Ok(()), |site| Err(RunError::NotTransparent(site.name.clone())))
}

/// Replaces virtual addresses of this site's nodes with real ones, for a run in which nothing translates
/// them.
pub fn name_own_hosts_as_they_are(known: &mut Sites) {
    let mut sites = known.sites.iter_mut().filter(|site| site.name == known.site);
    let Some(info) = sites.find_map(|site| site.info.as_mut()) else {
        return;
    };
    if let Ok(site) = info.site()
        && site.is_virtual()
    {
        for node in &mut info.nodes {
            node.address = site.real(node.address);
        }
        info.subnets = std::mem::take(&mut info.real_subnets);
    }
}

/// Refuses sites whose addresses nothing translates; see [`name_own_hosts_as_they_are`]. If the user names
/// hosts, this is left to the kernels.
///
/// # Errors
/// The first such site.
pub fn check_real(chosen: &Chosen) -> Result<(), RunError> {
    let foreign = chosen.sites.iter().find(|site| !site.real_subnets.is_empty());
    foreign.map_or(Ok(()), |site| Err(RunError::Virtual(site.name.clone())))
}

/// Refuses nodes that the host list names by a name that several sites use.
///
/// # Errors
/// The first such node.
pub fn check_names(known: &Sites, chosen: &Chosen) -> Result<(), RunError> {
    let by_name = chosen.shares.iter().filter(|share| stands_by_name(share.node));
    let mut sites: HashMap<&str, Vec<&str>> = HashMap::new();
    for info in known.sites.iter().filter_map(|site| site.info.as_ref()) {
        for node in &info.nodes {
            let sites = sites.entry(&node.name).or_default();
            if sites.last() != Some(&info.name.as_str()) {
                sites.push(&info.name);
            }
        }
    }
    for Share { node, .. } in by_name {
        if let Some(sites) = sites.get(node.name.as_str()).filter(|sites| sites.len() > 1) {
            return Err(RunError::SameName(node.name.clone(), sites.join(", ")));
        }
    }
    Ok(())
}

/// The version of IP that all these sites have, and the site where the launcher runs as well: each process of
/// an MPI must be able to reach each other one.
///
/// # Errors
/// The sites have no version in common, or the launcher does not support it.
pub fn common_ip(known: &Sites, mpi: Mpi, used: &[&SiteInfo]) -> Result<Ip, RunError> {
    let has = |site: &SiteInfo, v6: bool| {
        let subnets = site
            .subnets
            .iter()
            .filter_map(|subnet| subnet.parse::<Cidr>().ok());
        { subnets }.any(|subnet| subnet.address().is_ipv6() == v6)
    };
    let mut infos = known.sites.iter().filter_map(|site| site.info.as_ref());
    if used.is_empty() {
        let v6 = infos.any(|site| has(site, true));
        return Ok(if v6 { Ip::Any } else { Ip::V4 });
    }
    let own = infos.filter(|site| site.name == known.site);
    let all: Vec<&SiteInfo> = own.chain(used.iter().copied()).collect();
    let lacking = |v6: bool| all.iter().find(|site| !has(site, v6));
    match (lacking(false), lacking(true)) {
        (None, _) => Ok(Ip::V4),
        (Some(site), None) if !mpi.row().speaks_ipv6 => {
            Err(RunError::Ipv4Launcher(mpi.name(), site.name.clone()))
        }
        (Some(_), None) => Ok(Ip::V6),
        (Some(without_v4), Some(without_v6)) => Err(RunError::NoCommonIp(
            without_v4.name.clone(),
            without_v6.name.clone(),
        )),
    }
}

/// The site at which this runs.
pub fn own_site(known: &Sites) -> Option<Site> {
    let own = known.sites.iter().find(|site| site.name == known.site)?;
    own.info.as_ref()?.site().ok()
}

/// The sites with these names, as far as they are known.
pub fn known_by_name(known: &Sites, names: &[String]) -> Vec<Site> {
    let infos = known.sites.iter().filter_map(|site| site.info.as_ref());
    let named = infos.filter(|info| names.contains(&info.name));
    named.filter_map(|info| info.site().ok()).collect()
}

/// The address of this host that other sites' daemons can call, and its interface. It is the address in the
/// grid if the shim translates, and otherwise the real one.
pub fn own_address(known: &Sites, translates: bool) -> Option<(String, IpAddr)> {
    let site = own_site(known)?;
    let interfaces = nix::ifaddrs::getifaddrs().ok()?;
    let addresses = interfaces.filter_map(|interface| {
        let address = interface.address?;
        let v4 = address.as_sockaddr_in().map(|address| IpAddr::V4(address.ip()));
        let ip = v4.or_else(|| address.as_sockaddr_in6().map(|address| IpAddr::V6(address.ip())))?;
        Some((interface.interface_name, ip))
    });
    let own = addresses.filter(|(_, address)| site.has_node(*address));
    let (name, real) = own.min_by_key(|(_, address)| address.is_ipv6())?;
    let address = if translates { site.in_grid(real) } else { real };
    Some((name, address))
}

/// Where a job with these sites runs; allocations of other sites are left out.
pub fn plan(
    known: &Sites,
    chosen: &Chosen,
    line: &CommandLine,
    allocations: BTreeMap<String, String>,
) -> Plan {
    let sites = match () {
        () if line.starts_nothing => Vec::new(),
        () if line.names_hosts => hosts::sites_of(known, &line.host_values),
        () => chosen.names(),
    };
    let shares = chosen.shares.iter().map(|share| share.ranks).sum();
    Plan {
        ranks: line.total().unwrap_or(shares),
        sites,
        allocations: { allocations.into_iter() }
            .filter(|(site, _)| *site == known.site || chosen.uses(site))
            .collect(),
    }
}

/// The names of the sites that a run may use; empty if it may use all.
pub fn names(wanted: Option<&[(String, Option<u32>)]>) -> Vec<String> {
    let all = wanted.into_iter().flatten();
    all.map(|(name, _)| name.clone()).collect()
}

/// Reads `name=ranks` or `name`; all entries must be of the same kind.
///
/// # Errors
/// The text has another form, or names a site twice.
pub fn parse(text: &str) -> Result<Shares, RunError> {
    let wrong = |reason| RunError::Sites(text.to_owned(), reason);
    let mut sites = Shares::new();
    for entry in text.split(',').map(str::trim) {
        let (name, ranks) = match entry.split_once('=') {
            None => (entry, None),
            Some((name, ranks)) => (
                name,
                Some(
                    ranks
                        .parse()
                        .map_err(|_| wrong("the number of ranks is not a number"))?,
                ),
            ),
        };
        if name.is_empty() {
            return Err(wrong("a site has no name"));
        }
        if sites.iter().any(|(other, _)| other == name) {
            return Err(wrong("it names a site twice"));
        }
        sites.push((name.to_owned(), ranks));
    }
    let counted = sites.iter().filter(|(_, ranks)| ranks.is_some()).count();
    if counted != 0 && counted != sites.len() {
        Err(wrong("give ranks for all sites or for none"))
    } else {
        Ok(sites)
    }
}

fn wish(wanted: Option<&[(String, Option<u32>)]>, line: &CommandLine) -> Result<Wish, RunError> {
    let counted = wanted
        .into_iter()
        .flatten()
        .filter_map(|(site, ranks)| Some((site.clone(), (*ranks)?)));
    let counted: Vec<(String, u32)> = counted.collect();
    if line.numbers_hosts {
        // The launcher chooses among all nodes.
        return Ok(Wish::Everything);
    }
    if counted.is_empty() {
        return Ok(line.total().map_or(Wish::Everything, Wish::Total));
    }
    let asked = counted
        .iter()
        .fold(0_u32, |sum, (_, ranks)| sum.saturating_add(*ranks));
    match line.total() {
        Some(total) if total != asked => Err(RunError::Count(asked, total)),
        None if line.ranks.len() > 1 => Err(RunError::Uncounted),
        _ => Ok(Wish::PerSite(counted)),
    }
}

fn named_sites<'a>(
    known: &'a Sites,
    wanted: &[(String, Option<u32>)],
) -> Result<Vec<&'a SiteInfo>, RunError> {
    let names = wanted.iter().map(|(name, _)| name);
    // The user's order is kept: the site named first gets the first ranks.
    names.map(|name| usable_site(known, name)).collect()
}

/// A site that the user has named, which must exist and be reachable.
///
/// # Errors
/// The site does not exist, or cannot be reached.
pub fn usable_site<'a>(known: &'a Sites, name: &str) -> Result<&'a SiteInfo, RunError> {
    match known.sites.iter().find(|site| site.name == name) {
        Some(site) => usable(site, ""),
        None => {
            let names: Vec<&str> = known.sites.iter().map(|site| site.name.as_str()).collect();
            Err(RunError::UnknownSite(name.to_owned(), names.join(", ")))
        }
    }
}

fn all_sites(known: &Sites) -> Result<Vec<&SiteInfo>, RunError> {
    // The user would notice a missing site only late; to leave one out takes only a word.
    known
        .sites
        .iter()
        .map(|site| usable(site, "; --sites leaves it out"))
        .collect()
}

fn usable<'a>(site: &'a SiteStatus, hint: &'static str) -> Result<&'a SiteInfo, RunError> {
    match (&site.unreachable, &site.info) {
        (None, Some(info)) => Ok(info),
        (Some(reason), _) => Err(RunError::Unreachable(site.name.clone(), reason.clone(), hint)),
        (None, None) => Err(RunError::Unreachable(
            site.name.clone(),
            "its gateway has not announced itself yet".into(),
            hint,
        )),
    }
}

#[cfg(test)]
mod tests;
