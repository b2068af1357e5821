//! What this gateway knows about the grid: its own site, and the others as they have announced themselves.

use crate::config::Config;
use crate::membership::index::{Index, is_on_loopback, loopback_of};
use crate::membership::map;
use causeway_control::{NodeInfo, SiteInfo};
use causeway_wire::TextError;
use causeway_wire::grid::Span;
use causeway_wire::{Cidr, Grid, Site};
use std::collections::{BTreeMap, HashMap};
use std::net::IpAddr;

pub(crate) struct Directory {
    own: Known,
    /// The other sites, by name.
    others: BTreeMap<String, Known>,
    /// All sites, including this one, by names and addresses.
    index: Index,
    /// What sites said about themselves that the broker has not recorded, by site, each with the unrecorded
    /// part in words.
    pub(in crate::membership) unrecorded: HashMap<String, (SiteInfo, String)>,
    /// Whether something may have changed since it was last written down.
    pub(in crate::membership) has_changed: bool,
}

struct Known {
    info: SiteInfo,
    site: Site,
}

/// Where an address or a node is.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Whereabouts {
    Here,
    At(String),
    Nowhere,
}

/// This site, known by these virtual subnets if there are any.
fn own(config: &Config, virtual_subnets: &[Cidr]) -> Known {
    let (subnets, real_subnets) = match virtual_subnets {
        [] => (&config.subnets[..], &[][..]),
        _ => (virtual_subnets, &config.subnets[..]),
    };
    let site = Site {
        name: config.site.clone(),
        subnets: subnets.to_vec(),
        real_subnets: real_subnets.to_vec(),
        gateways: config.lan.clone(),
        delivery_ports: config.delivery_ports.clone(),
        nodes: Vec::new(),
        local: config.local.clone(),
    };
    let in_grid = |node: &NodeInfo| NodeInfo {
        address: site.in_grid(node.address),
        ..node.clone()
    };
    let nodes: Vec<NodeInfo> = config.nodes.iter().map(in_grid).collect();
    let site = Site {
        nodes: Span::of(nodes.iter().map(|node| node.address)),
        ..site
    };
    let info = SiteInfo {
        name: config.site.clone(),
        subnets: subnets.iter().map(Cidr::to_string).collect(),
        real_subnets: real_subnets.iter().map(Cidr::to_string).collect(),
        gateways: config.lan.clone(),
        delivery_ports: format!(
            "{}-{}",
            config.delivery_ports.start(),
            config.delivery_ports.end()
        ),
        nodes,
        relays: config.relay,
        transparent: config.transparent.is_some(),
        local: config.local.iter().map(Cidr::to_string).collect(),
    };
    Known { info, site }
}

impl Directory {
    /// Makes a directory in which this site is known by these ranges, if there are any.
    pub(crate) fn new(config: &Config, virtual_subnets: &[Cidr]) -> Directory {
        Directory::of(own(config, virtual_subnets))
    }

    fn of(own: Known) -> Directory {
        let mut index = Index::default();
        index.put(&own.info, &own.site);
        Directory {
            own,
            others: BTreeMap::new(),
            index,
            unrecorded: HashMap::new(),
            has_changed: true,
        }
    }

    /// From now on, the grid knows this site by these ranges.
    pub(in crate::membership) fn take_virtual_subnets(&mut self, config: &Config, subnets: &[Cidr]) {
        self.has_changed = true;
        self.index.take(&self.own.info, &self.own.site);
        self.own = own(config, subnets);
        self.index.put(&self.own.info, &self.own.site);
    }

    /// Lists the ranges by which the grid knows this site, if these are not its real ones.
    pub(crate) fn virtual_subnets(&self) -> Vec<String> {
        match self.own.info.real_subnets.as_slice() {
            [] => Vec::new(),
            _ => self.own.info.subnets.clone(),
        }
    }

    /// A site that is gone has no addresses.
    pub(in crate::membership) fn forget(&mut self, site: &str) {
        self.has_changed = true;
        if let Some(known) = self.others.remove(site) {
            self.index.take(&known.info, &known.site);
        }
    }

    pub(crate) fn own_site(&self) -> &Site {
        &self.own.site
    }

    pub(crate) fn own(&self) -> &SiteInfo {
        &self.own.info
    }

    /// Says which part of a site's announcement the broker has not recorded.
    pub(crate) fn unrecorded(&self, site: &str) -> Option<&str> {
        self.unrecorded.get(site).map(|(_, what)| what.as_str())
    }

    /// Lists what the other sites have announced about themselves.
    pub(crate) fn others(&self) -> impl Iterator<Item = &SiteInfo> {
        self.others.values().map(|known| &known.info)
    }

    pub(crate) fn other(&self, name: &str) -> Option<&SiteInfo> {
        self.others.get(name).map(|known| &known.info)
    }

    /// Keeps what another site announced; refuses what cannot be true.
    pub(in crate::membership) fn learn(&mut self, from: &str, info: SiteInfo) -> Result<(), TextError> {
        self.has_changed = true;
        if info.name != from {
            return Err(format!("announces itself as {}", info.name).into());
        }
        let site = info.site()?;
        let is_virtual = |other: &str| self.known(other).is_some_and(|known| known.site.is_virtual());
        match self.index.clash(&site, is_virtual) {
            None => {}
            Some((subnet, other, true)) => {
                return Err(format!(
                    "subnet {subnet} is also at {other}, and virtual at one of them at least: name another range in \
                     virtual_subnets"
                ).into());
            }
            Some((subnet, other, false)) => {
                return Err(format!(
                    "subnet {subnet} is also at {other}; sites with the same addresses need virtual ones, both of them: \
                     overlap_ok or virtual_subnets in [site]"
                ).into());
            }
        }
        match loopback_of(&site, &info) {
            Some(what) if !is_on_loopback(&self.own.site) => {
                return Err(format!("announces {what}, which is every host's own").into());
            }
            _ => {}
        }
        self.check_nodes(from, &info)?;
        self.forget(from);
        self.index.put(&info, &site);
        self.others.insert(from.to_owned(), Known { info, site });
        Ok(())
    }

    fn known(&self, site: &str) -> Option<&Known> {
        let own = Some(&self.own).filter(|own| own.info.name == site);
        own.or_else(|| self.others.get(site))
    }

    /// Refuses the nodes of a site if they have another site's names or addresses: processes are started on a
    /// node by its name, through the gateway of its site.
    fn check_nodes(&self, from: &str, info: &SiteInfo) -> Result<(), TextError> {
        // Sites with virtual addresses, and the names of their nodes, were made without regard to each other:
        // addresses distinguish their nodes.
        let may_share = |other: &str| {
            let is_virtual = self.known(other).is_some_and(|known| known.site.is_virtual());
            is_virtual && !info.real_subnets.is_empty()
        };
        for node in &info.nodes {
            let mut named = self.index.named(&node.name);
            if let Some(other) = named.find(|other| *other != from && !may_share(other)) {
                return Err(format!("announces node {}, which is also at {other}", node.name).into());
            }
            if let Some(other) = self.index.at(node.address).find(|other| *other != from) {
                return Err(format!(
                    "announces node {} at {}, which is at {other}",
                    node.name, node.address
                )
                .into());
            }
        }
        Ok(())
    }

    /// Makes the map for the processes of a job at these sites and this one.
    pub(crate) fn map_of(&self, participants: &[String]) -> Grid {
        let others = participants.iter().filter_map(|site| self.others.get(site));
        map::of(others.chain([&self.own]).map(|known| &known.site))
    }

    /// Lists where another site's range contains addresses that are local to this one, or the other way
    /// round.
    pub(in crate::membership) fn overlaps(&self, with: &str) -> Vec<String> {
        let other = self.others.get(with);
        other.map_or_else(Vec::new, |other| map::overlaps(&self.own.site, &other.site))
    }

    pub(crate) fn is_own_address(&self, address: IpAddr) -> bool {
        self.own.site.contains(address) || self.own.site.has_node(address)
    }

    /// Finds the site that an address belongs to.
    pub(crate) fn site_of(&self, address: IpAddr) -> Whereabouts {
        if self.is_own_address(address) {
            return Whereabouts::Here;
        }
        let found = self.index.at(address).next();
        found.map_or(Whereabouts::Nowhere, |site| Whereabouts::At(site.to_owned()))
    }

    /// Finds the site of a node given by name or address. The head node is not a compute node, but its
    /// address is known.
    pub(crate) fn find_node(&self, node: &str) -> Whereabouts {
        if let Ok(address) = node.parse::<IpAddr>() {
            return self.site_of(address);
        }
        if self.index.named(node).any(|site| site == self.own.info.name) {
            return Whereabouts::Here;
        }
        let found = self
            .index
            .named(node)
            .next()
            .or_else(|| self.index.meant_by(node));
        match found {
            Some(site) if site == self.own.info.name => Whereabouts::Here,
            Some(site) => Whereabouts::At(site.to_owned()),
            None => Whereabouts::Nowhere,
        }
    }

    /// What the site's remote shell calls a listed node of this site that was given by name or address. The
    /// name becomes an argument of that shell, so it is never made from a text that somebody else chose.
    pub(crate) fn listed_name(&self, node: &str) -> Option<String> {
        self.name_among(&self.own.info.nodes, node)
    }

    /// The name of what this site's own users reach by the remote shell beside its listed nodes: any of its
    /// addresses.
    pub(crate) fn own_address_name(&self, node: &str) -> Option<String> {
        let address = node.parse::<IpAddr>().ok()?;
        let is_own = self.is_own_address(address);
        is_own.then(|| self.own.site.real(address).to_string())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use causeway_control::NodeInfo;

    fn info(name: &str, number: u8) -> SiteInfo {
        let address = IpAddr::from([10, number, 0, 1]);
        SiteInfo {
            name: name.into(),
            subnets: vec![format!("10.{number}.0.0/24")],
            real_subnets: vec![],
            gateways: vec![format!("10.{number}.0.253:7000").parse().unwrap()],
            delivery_ports: "20000-32767".into(),
            nodes: vec![NodeInfo {
                name: format!("{name}-1"),
                address,
                slots: 4,
            }],
            relays: false,
            transparent: false,
            local: vec![],
        }
    }

    fn directory() -> Directory {
        let info = info("rennes", 1);
        let site = Site {
            name: "rennes".into(),
            subnets: vec!["10.1.0.0/24".parse().unwrap()],
            real_subnets: vec![],
            gateways: info.gateways.clone(),
            delivery_ports: 20000..=32767,
            nodes: vec![],
            local: vec![],
        };
        Directory::of(Known { info, site })
    }

    #[test]
    fn a_map_has_the_own_site_and_those_that_take_part() {
        let mut rennes = directory();
        rennes.learn("nancy", info("nancy", 2)).unwrap();
        rennes.learn("aix", info("aix", 3)).unwrap();
        let map = |sites: &[&str]| {
            let sites: Vec<String> = sites.iter().map(|site| (*site).to_owned()).collect();
            let sites = rennes.map_of(&sites).sites.into_iter().map(|site| site.name);
            sites.collect::<Vec<_>>().join(" ")
        };
        assert_eq!(map(&[]), "rennes");
        assert_eq!(map(&["rennes", "rennes", "nowhere"]), "rennes");
        assert_eq!(map(&["rennes", "aix"]), "aix rennes");
    }

    #[test]
    fn nodes_and_addresses_are_found_in_their_sites() {
        let mut rennes = directory();
        rennes.learn("nancy", info("nancy", 2)).unwrap();
        assert_eq!(rennes.find_node("nancy-1"), Whereabouts::At("nancy".into()));
        assert_eq!(rennes.find_node("10.2.0.77"), Whereabouts::At("nancy".into()));
        assert_eq!(rennes.find_node("rennes-1"), Whereabouts::Here);
        assert_eq!(rennes.find_node("elsewhere"), Whereabouts::Nowhere);
    }

    #[test]
    fn a_name_means_the_one_node_that_it_can_mean() {
        let mut rennes = directory();
        rennes.learn("nancy", info("nancy", 2)).unwrap();
        for name in ["NANCY-1", "nancy-1.cluster.example", "Nancy-1.example"] {
            assert_eq!(rennes.find_node(name), Whereabouts::At("nancy".into()), "{name}");
        }
        for name in ["Rennes-1", "rennes-1.cluster.example"] {
            assert_eq!(rennes.find_node(name), Whereabouts::Here, "{name}");
            assert_eq!(rennes.listed_name(name).as_deref(), Some("rennes-1"), "{name}");
        }
        let mut aix = info("aix", 3);
        aix.nodes[0].name = "node.aix.example".into();
        let mut toulouse = info("toulouse", 4);
        toulouse.nodes[0].name = "node.toulouse.example".into();
        rennes.learn("aix", aix).unwrap();
        assert_eq!(rennes.find_node("node"), Whereabouts::At("aix".into()));
        assert_eq!(rennes.find_node("node.other.example"), Whereabouts::Nowhere);
        rennes.learn("toulouse", toulouse).unwrap();
        assert_eq!(
            rennes.find_node("node"),
            Whereabouts::Nowhere,
            "it could be either"
        );
        assert_eq!(
            rennes.find_node("node.aix.example"),
            Whereabouts::At("aix".into())
        );
    }

    #[test]
    fn only_listed_nodes_have_a_name_for_what_other_sites_start() {
        let mut rennes = directory();
        rennes.learn("nancy", info("nancy", 2)).unwrap();
        for (node, name) in [("rennes-1", "rennes-1"), ("10.1.0.1", "rennes-1")] {
            assert_eq!(rennes.listed_name(node).as_deref(), Some(name), "{node}");
        }
        assert_eq!(
            rennes.own_address_name("10.1.0.253").as_deref(),
            Some("10.1.0.253")
        );
        for node in [
            "",
            "-oProxyCommand=id",
            "localhost",
            "127.0.0.1",
            "nancy-1",
            "10.2.0.1",
            "10.1.0.253",
            "elsewhere",
        ] {
            assert_eq!(rennes.listed_name(node), None, "{node}");
        }
    }

    #[test]
    fn sites_with_the_same_addresses_are_joined_where_both_have_virtual_ones() {
        let virtually = |name: &str, number: u8| SiteInfo {
            subnets: vec![format!("100.64.{number}.0/24")],
            real_subnets: vec!["10.1.0.0/24".into()],
            ..info(name, 1)
        };
        let mut rennes = directory();
        let why = rennes.learn("nancy", virtually("nancy", 2)).unwrap_err();
        assert!(
            why.contains("10.1.0.0/24 is also at rennes") && why.contains("both of them"),
            "{why}"
        );
        let config = crate::config::tests::rennes();
        rennes.take_virtual_subnets(&config, &["100.64.1.0/24".parse().unwrap()]);
        let why = rennes.learn("nancy", virtually("nancy", 1)).unwrap_err();
        assert!(why.contains("100.64.1.0/24 is also at rennes"), "{why}");
        rennes.learn("nancy", virtually("nancy", 2)).unwrap();
        assert_eq!(rennes.find_node("100.64.2.7"), Whereabouts::At("nancy".into()));
        assert_eq!(rennes.find_node("100.64.1.7"), Whereabouts::Here);
        assert_eq!(rennes.find_node("10.1.0.7"), Whereabouts::Here, "the own node");
        assert_eq!(
            rennes.own_address_name("100.64.1.77").as_deref(),
            Some("10.1.0.77")
        );
        assert_eq!(rennes.own_address_name("100.64.2.77"), None);
        assert_eq!(rennes.own().nodes[0].address, IpAddr::from([100, 64, 1, 1]));
        assert!(
            rennes.learn("lyon", info("lyon", 1)).is_err(),
            "a real one where ours are"
        );
        let odd = SiteInfo {
            real_subnets: vec!["10.1.0.0/25".into()],
            ..virtually("lyon", 3)
        };
        assert!(rennes.learn("lyon", odd).unwrap_err().contains("size"));
    }

    #[test]
    fn an_impossible_announcement_is_refused_with_the_reason() {
        let mut rennes = directory();
        assert!(
            rennes
                .learn("nancy", info("bordeaux", 3))
                .unwrap_err()
                .contains("announces itself as bordeaux")
        );
        assert!(
            rennes
                .learn("nancy", info("nancy", 1))
                .unwrap_err()
                .contains("is also at rennes")
        );
        rennes.learn("nancy", info("nancy", 2)).unwrap();
        rennes.learn("nancy", info("nancy", 2)).unwrap();
        assert_eq!(rennes.map_of(&["nancy".to_owned()]).sites.len(), 2);
    }

    #[test]
    fn a_member_that_later_claims_anothers_node_subnet_or_address_keeps_what_it_had() {
        let mut rennes = directory();
        rennes.learn("nancy", info("nancy", 2)).unwrap();
        rennes.learn("aix", info("aix", 3)).unwrap();
        let spoil = |change: fn(&mut SiteInfo)| {
            let mut claim = info("aix", 3);
            change(&mut claim);
            claim
        };
        for (claim, why) in [
            (
                spoil(|claim| claim.nodes[0].name = "nancy-1".into()),
                "node nancy-1, which is also at nancy",
            ),
            (
                spoil(|claim| claim.nodes[0].name = "rennes-1".into()),
                "node rennes-1, which is also at rennes",
            ),
            (
                spoil(|claim| claim.nodes[0].address = [10, 2, 0, 9].into()),
                "at 10.2.0.9, which is at nancy",
            ),
            (
                spoil(|claim| claim.subnets.push("10.2.0.0/16".into())),
                "10.2.0.0/16 is also at nancy",
            ),
        ] {
            let said = rennes.learn("aix", claim).unwrap_err();
            assert!(said.contains(why), "{said}");
        }
        assert_eq!(rennes.find_node("nancy-1"), Whereabouts::At("nancy".into()));
        assert_eq!(rennes.find_node("10.2.0.9"), Whereabouts::At("nancy".into()));
        assert_eq!(rennes.find_node("aix-1"), Whereabouts::At("aix".into()));
    }
}
