//! Which site has a node's name, an address or a range: an index, so that what a site announces is checked
//! against all others, and a connection's destination found, without a look at each of them.

use causeway_broker::ranges::Ranges;
use causeway_control::SiteInfo;
use causeway_wire::{Cidr, Site};
use std::collections::{BTreeSet, HashMap};
use std::net::IpAddr;

#[derive(Default)]
pub(super) struct Places {
    names: HashMap<String, BTreeSet<String>>,
    /// The ranges by which the grid knows sites.
    known_as: Ranges,
    /// Behind virtual ones.
    real: Ranges,
}

impl Places {
    pub(super) fn put(&mut self, info: &SiteInfo, site: &Site) {
        for node in &info.nodes {
            let sites = self.names.entry(node.name.clone()).or_default();
            sites.insert(site.name.clone());
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
            if let Some(sites) = self.names.get_mut(&node.name) {
                sites.remove(&site.name);
                if sites.is_empty() {
                    self.names.remove(&node.name);
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

    /// The sites that have a node of this name.
    pub(super) fn named(&self, node: &str) -> impl Iterator<Item = &str> {
        self.names.get(node).into_iter().flatten().map(String::as_str)
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
