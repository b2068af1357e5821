//! Which site has a node's name, an address or a range: an index, so that what a site announces is checked
//! against all others, and a connection's destination found, without a look at each of them.

use causeway_broker::ranges::Ranges;
use causeway_control::SiteInfo;
use causeway_control::name::{label, means};
use causeway_wire::{Cidr, Site};
use std::collections::{BTreeSet, HashMap};
use std::net::IpAddr;

#[derive(Default)]
pub(super) struct Places {
    /// By the first label of their names in lower case: the names of nodes, each with its site.
    names: HashMap<String, BTreeSet<(String, String)>>,
    /// The ranges by which the grid knows sites.
    known_as: Ranges,
    /// Behind virtual ones.
    real: Ranges,
}

impl Places {
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

    /// The sites that have a node of just this name.
    pub(super) fn named(&self, node: &str) -> impl Iterator<Item = &str> {
        self.alike(node)
            .filter(move |(name, _)| *name == node)
            .map(|(_, site)| site)
    }

    /// The site that alone has a node which this name means, as resolvers take names ([`means`]).
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

    /// The sites whose ranges, as the grid knows them, hold an address.
    pub(super) fn at(&self, address: IpAddr) -> impl Iterator<Item = &str> {
        self.known_as.at(address)
    }

    /// Where an address could mean a node of this site or of another: this one's range, that other, and
    /// whether the range is a virtual one or overlaps with one. Real ones may be the same where both sites
    /// are known by virtual ones: then nobody but their own nodes uses them. `is_virtual` says of another
    /// whether it is known by these.
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
