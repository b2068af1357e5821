//! Which site has a node's name, an address or a range: this index checks what a site announces against all
//! others, and finds a connection's destination, without scanning all sites.

use causeway_broker::ranges::Ranges;
use causeway_control::SiteInfo;
use causeway_control::name::{label, means};
use causeway_wire::{Cidr, Site};
use std::collections::{BTreeSet, HashMap};
use std::net::{IpAddr, Ipv4Addr};

#[derive(Default)]
pub(super) struct Index {
    /// The names of nodes, each with its site, by their first label in lower case.
    names: HashMap<String, BTreeSet<(String, String)>>,
    /// The ranges by which the grid knows sites.
    known_as: Ranges,
    /// The ranges behind virtual ones.
    real: Ranges,
}

impl Index {
    pub(super) fn put(&mut self, info: &SiteInfo, site: &Site) {
        for node in &info.nodes {
            let nodes = self.names.entry(label(&node.name)).or_default();
            nodes.insert((node.name.clone(), site.name.clone()));
        }
        let (known_as, real) = (&mut self.known_as, &mut self.real);
        site.subnets
            .iter()
            .for_each(|range| known_as.insert(range, &site.name));
        site.real_subnets
            .iter()
            .for_each(|range| real.insert(range, &site.name));
    }

    pub(super) fn take(&mut self, info: &SiteInfo, site: &Site) {
        for node in &info.nodes {
            let label = label(&node.name);
            if let Some(nodes) = self.names.get_mut(&label) {
                nodes.remove(&(node.name.clone(), site.name.clone()));
                if nodes.is_empty() {
                    self.names.remove(&label);
                }
            }
        }
        let (known_as, real) = (&mut self.known_as, &mut self.real);
        site.subnets
            .iter()
            .for_each(|range| known_as.remove(range, &site.name));
        site.real_subnets
            .iter()
            .for_each(|range| real.remove(range, &site.name));
    }

    /// The sites that have a node of exactly this name.
    pub(super) fn named(&self, node: &str) -> impl Iterator<Item = &str> {
        self.alike(node)
            .filter(move |(name, _)| *name == node)
            .map(|(_, site)| site)
    }

    /// The only site with a node that this name means, by the rules of resolvers ([`means`]).
    pub(super) fn meant_by(&self, node: &str) -> Option<&str> {
        let mut sites = self
            .alike(node)
            .filter(|(name, _)| means(node, name))
            .map(|(_, site)| site);
        let first = sites.next()?;
        sites.all(|site| site == first).then_some(first)
    }

    /// Names with the same first label, and their sites.
    fn alike(&self, node: &str) -> impl Iterator<Item = (&str, &str)> {
        let nodes = self.names.get(&label(node)).into_iter().flatten();
        nodes.map(|(name, site)| (name.as_str(), site.as_str()))
    }

    /// The sites whose ranges, as the grid knows them, contain an address.
    pub(super) fn at(&self, address: IpAddr) -> impl Iterator<Item = &str> {
        self.known_as.at(address)
    }

    /// Finds where an address could mean a node of this site or of another: this one's range, the other site,
    /// and whether the range is a virtual one or overlaps with one. Real ranges may be the same if both sites
    /// are known by virtual ones, because then only their own nodes use the real ones. `is_virtual` says
    /// whether another site is known by virtual ranges.
    pub(super) fn clash(&self, site: &Site, is_virtual: impl Fn(&str) -> bool) -> Option<(Cidr, &str, bool)> {
        let other_than = |(_, other): &(Cidr, &str)| *other != site.name;
        let known_as = site.subnets.iter().find_map(|range| {
            let (_, other) = self.known_as.overlapping(range).find(other_than)?;
            Some((*range, other, site.is_virtual() || is_virtual(other)))
        });
        let real_of_others = || {
            site.subnets.iter().find_map(|range| {
                let (_, other) = self.real.overlapping(range).find(other_than)?;
                Some((*range, other, site.is_virtual()))
            })
        };
        let own_real = || {
            site.real_subnets.iter().find_map(|range| {
                let (_, other) = self.known_as.overlapping(range).find(other_than)?;
                Some((*range, other, is_virtual(other)))
            })
        };
        known_as.or_else(real_of_others).or_else(own_real)
    }
}
/// Names a part of a site's announcement that is on loopback, which every host has for itself: a site with
/// such an address would speak for each host's own programs, and be addressed in their place. Only a grid
/// that is entirely on one host has sites there.
pub(super) fn loopback_of(site: &Site, info: &SiteInfo) -> Option<String> {
    let mut ranges = site.subnets.iter().chain(&site.real_subnets);
    let range = ranges.find(|range| has_loopback(range)).map(Cidr::to_string);
    range.or_else(|| {
        let mut nodes = info.nodes.iter();
        let node = nodes.find(|node| node.address.to_canonical().is_loopback())?;
        Some(format!("node {} at {}", node.name, node.address))
    })
}

/// Whether a site is confined to its host.
pub(super) fn is_on_loopback(site: &Site) -> bool {
    site.subnets.iter().chain(&site.real_subnets).any(has_loopback)
}

fn has_loopback(range: &Cidr) -> bool {
    let address = range.address().to_canonical();
    address.is_loopback() || range.contains(Ipv4Addr::LOCALHOST.into())
}

#[cfg(test)]
mod tests {
    use super::*;
    use causeway_control::NodeInfo;

    fn loopback(subnets: &[&str], real: &[&str], node: &str) -> (Option<String>, bool) {
        let node = NodeInfo {
            name: "nancy-1".into(),
            address: node.parse().unwrap(),
            slots: 4,
        };
        let info = SiteInfo {
            name: "nancy".into(),
            subnets: subnets.iter().map(ToString::to_string).collect(),
            real_subnets: real.iter().map(ToString::to_string).collect(),
            gateways: vec!["10.2.0.253:7000".parse().unwrap()],
            delivery_ports: "20000-32767".into(),
            nodes: vec![node],
            relays: false,
            transparent: false,
            local: vec![],
        };
        let ranges = |texts: &[&str]| texts.iter().map(|text| text.parse().unwrap()).collect();
        let site = Site {
            name: "nancy".into(),
            subnets: ranges(subnets),
            real_subnets: ranges(real),
            gateways: info.gateways.clone(),
            delivery_ports: 20000..=32767,
            nodes: vec![],
            local: vec![],
        };
        (loopback_of(&site, &info), is_on_loopback(&site))
    }

    #[test]
    fn loopback_is_found_in_whatever_a_site_announces() {
        assert_eq!(loopback(&["10.2.0.0/24"], &[], "10.2.0.1"), (None, false));
        for range in ["127.0.0.0/8", "127.9.0.0/16", "96.0.0.0/3", "::1/128"] {
            assert_eq!(
                loopback(&[range], &[], "10.2.0.1"),
                (Some(range.into()), true),
                "{range}"
            );
        }
        let behind = loopback(&["100.64.0.0/24"], &["127.1.0.0/24"], "100.64.0.1");
        assert_eq!(behind, (Some("127.1.0.0/24".into()), true));
        let node = loopback(&["10.2.0.0/24"], &[], "127.0.0.1");
        assert_eq!(node, (Some("node nancy-1 at 127.0.0.1".into()), false));
    }
}
