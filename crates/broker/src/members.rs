//! The index of the grid's members: by site, by node, by address, and by the last change. No clock, no disk.
//!
//! Broker and gateways keep the same index.
//!
//! Invariants: every site has one revision, and no two have the same; a site is a member or was removed,
//! never both.

use crate::api::{Member, Record};
use crate::identity::Certified;
use crate::ranges::{Ranges, outermost};
use causeway_wire::Cidr;
use std::collections::{BTreeMap, HashMap};
use std::net::{IpAddr, SocketAddr};

/// The members of a grid.
#[derive(Debug, Default)]
pub struct Members {
    sites: HashMap<String, Held>,
    changes: BTreeMap<u64, Changed>,
    removed: HashMap<String, u64>,
    revision: u64,
    names: HashMap<Box<str>, Vec<Box<str>>>,
    ranges: Ranges,
    virtual_ranges: Ranges,
}

#[derive(Debug)]
struct Held {
    member: Member,
    revision: u64,
    /// About as many bytes as it takes in an answer.
    bytes: usize,
}

#[derive(Debug)]
enum Changed {
    Member(String),
    Removed(String),
}

/// What somebody else already has.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "{what} belongs to site {other}; if both sites really have it, both need overlap_ok in [site], but {} it yet",
    match (declared, declared_by_other) {
        (false, false) => "neither declares".to_owned(),
        (true, _) => format!("{other} does not declare"),
        (_, true) => "this site does not declare".to_owned(),
    }
)]
pub struct Conflict {
    /// A subnet or a node.
    pub what: String,
    /// The site to which it belongs.
    pub other: String,
    /// Whether the asking site has declared that it may overlap with others.
    pub declared: bool,
    /// Whether the other site has declared it.
    pub declared_by_other: bool,
}

/// What has changed since some revision, or the first part of it.
#[derive(Debug, Default)]
pub struct Page {
    /// New and changed members.
    pub members: Vec<Member>,
    /// Sites that are no longer members.
    pub removed: Vec<String>,
    /// All changes up to this one are in this page.
    pub revision: u64,
    /// Whether there is more.
    pub more: bool,
}

impl Members {
    /// The number of the last change.
    pub fn revision(&self) -> u64 {
        self.revision
    }

    /// Counts the sites.
    pub fn len(&self) -> usize {
        self.sites.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.sites.is_empty()
    }

    /// The member with this site's name.
    pub fn site(&self, site: &str) -> Option<&Member> {
        self.sites.get(site).map(|held| &held.member)
    }

    /// All members, in no particular order.
    pub fn iter(&self) -> impl Iterator<Item = &Member> {
        self.sites.values().map(|held| &held.member)
    }

    /// The sites that have a node with this name: one, unless they declared that they may overlap.
    pub fn sites_of_node(&self, name: &str) -> &[Box<str>] {
        self.names.get(name).map_or(&[], Vec::as_slice)
    }

    /// The sites that an address belongs to: one, unless they declared that they may overlap.
    pub fn sites_of_address(&self, address: IpAddr) -> Vec<&str> {
        let mut found: Vec<&str> = self.ranges.at(address).collect();
        found.dedup();
        found
    }

    /// Finds another site and a range by which the grid knows it, if that overlaps with this range.
    pub(crate) fn virtual_clash(&self, range: &Cidr, site: &str) -> Option<(Cidr, &str)> {
        let mut found = self.virtual_ranges.overlapping(range);
        found.find(|(_, other)| *other != site)
    }

    /// Finds a range of another site, real or virtual, that overlaps with this one.
    pub(crate) fn clash(&self, range: &Cidr, site: &str) -> Option<Cidr> {
        let real = self.ranges.overlapping(range);
        let mut found = real.chain(self.virtual_ranges.overlapping(range));
        found.find(|(_, other)| *other != site).map(|(range, _)| range)
    }

    /// Whether a site may announce this.
    ///
    /// # Errors
    /// Something in the record belongs to another site.
    pub fn admit(&self, site: &str, record: &Record) -> Result<(), Conflict> {
        let conflict = |what: String, other: &Held| Conflict {
            what,
            other: other.member.site.clone(),
            declared: record.overlap_ok,
            declared_by_other: other.member.record.overlap_ok,
        };
        // Many sites may have agreed to share a range.
        let refuses = |other: &str| {
            let other = self.sites.get(other).filter(|other| other.member.site != site)?;
            (!record.overlap_ok || !other.member.record.overlap_ok).then_some(other)
        };
        for subnet in outermost(record.subnets.iter().map(|subnet| subnet.0)) {
            let mut found = self.ranges.overlapping(&subnet);
            if let Some((theirs, other)) = found.find_map(|(theirs, other)| Some((theirs, refuses(other)?))) {
                let what = if theirs == subnet {
                    format!("subnet {subnet}")
                } else {
                    format!("subnet {subnet}, which overlaps with {theirs},")
                };
                return Err(conflict(what, other));
            }
        }
        for node in &record.nodes {
            let mut others = self.sites_of_node(&node.name).iter();
            if let Some(other) = others.find_map(|other| refuses(other)) {
                return Err(conflict(format!("node {}", node.name), other));
            }
        }
        Ok(())
    }

    /// Whether taking this would be news for the others.
    pub fn is_news(&self, member: &Member) -> bool {
        self.site(&member.site).is_none_or(|before| {
            before.record != member.record
                || before.virtual_subnets != member.virtual_subnets
                || before.serial != member.serial
                || before.observed.map(|from| from.ip()) != member.observed.map(|from| from.ip())
        })
    }

    /// Takes a site's record; true if it is news.
    pub fn put(&mut self, member: Member) -> bool {
        let news = self.is_news(&member);
        let site = member.site.clone();
        if !news {
            if let Some(held) = self.sites.get_mut(&site) {
                held.member = member;
            }
            return false;
        }
        self.forget(&site);
        self.index(&member, true);
        self.revision += 1;
        self.changes.insert(self.revision, Changed::Member(site.clone()));
        let bytes = serde_json::to_vec(&member).map_or(0, |json| json.len());
        let held = Held {
            member,
            revision: self.revision,
            bytes,
        };
        self.sites.insert(site, held);
        true
    }

    /// Returns a site's record with the address from which it speaks now, if that is news.
    pub fn moved(&self, certified: &Certified, observed: SocketAddr, now: u64) -> Option<Member> {
        let before = self.site(certified.site()?)?;
        let same_place = before.observed.map(|from| from.ip()) == Some(observed.ip());
        if same_place && before.serial == certified.serial {
            return None;
        }
        let mut member = before.clone();
        member.last_seen = now;
        member.observed = Some(observed);
        member.serial.clone_from(&certified.serial);
        member.not_before = certified.not_before;
        Some(member)
    }

    /// Notes that a site has spoken. This is not news: see [`Members::moved`].
    pub fn touch(&mut self, site: &str, observed: SocketAddr, now: u64) {
        if let Some(held) = self.sites.get_mut(site) {
            held.member.last_seen = now;
            held.member.observed = Some(observed);
        }
    }

    /// Notes when a site spoke, if that is later than what is known.
    pub fn seen(&mut self, site: &str, at: u64) {
        if let Some(held) = self.sites.get_mut(site) {
            held.member.last_seen = held.member.last_seen.max(at);
        }
    }

    /// Forgets a site; true when there was one.
    pub fn remove(&mut self, site: &str) -> bool {
        let there = self.sites.contains_key(site);
        if there {
            self.forget(site);
            self.revision += 1;
            self.changes
                .insert(self.revision, Changed::Removed(site.to_owned()));
            self.removed.insert(site.to_owned(), self.revision);
        }
        there
    }

    /// Returns the changes after `revision`, up to about `budget` bytes of JSON, but at least one change.
    pub fn since(&self, revision: u64, budget: usize) -> Page {
        let mut page = Page {
            revision: self.revision,
            ..Page::default()
        };
        let mut left = budget;
        let mut last = revision;
        for (number, changed) in self.changes.range(revision.saturating_add(1)..) {
            let bytes = match changed {
                Changed::Member(site) => self.sites.get(site).map_or(0, |held| held.bytes),
                Changed::Removed(site) => site.len(),
            };
            if bytes > left && last > revision {
                page.revision = last;
                page.more = true;
                return page;
            }
            left = left.saturating_sub(bytes);
            last = *number;
            match changed {
                Changed::Member(site) => page.members.extend(self.site(site).cloned()),
                Changed::Removed(site) => page.removed.push(site.clone()),
            }
        }
        page
    }

    fn forget(&mut self, site: &str) {
        if let Some(held) = self.sites.remove(site) {
            self.changes.remove(&held.revision);
            self.index(&held.member, false);
        }
        if let Some(revision) = self.removed.remove(site) {
            self.changes.remove(&revision);
        }
    }

    fn index(&mut self, member: &Member, add: bool) {
        for node in &member.record.nodes {
            let name = Box::from(node.name.as_str());
            enter(&mut self.names, name, &member.site, add);
        }
        let index = if add { Ranges::insert } else { Ranges::remove };
        for subnet in &member.record.subnets {
            index(&mut self.ranges, &subnet.0, &member.site);
        }
        for subnet in &member.virtual_subnets {
            index(&mut self.virtual_ranges, &subnet.0, &member.site);
        }
    }
}

/// Adds a site to those of a name, or removes it from them.
fn enter(index: &mut HashMap<Box<str>, Vec<Box<str>>>, name: Box<str>, site: &str, add: bool) {
    if add {
        let sites = index.entry(name).or_default();
        if !sites.iter().any(|known| **known == *site) {
            sites.push(site.into());
        }
    } else if let Some(sites) = index.get_mut(&name) {
        sites.retain(|known| **known != *site);
        if sites.is_empty() {
            index.remove(&name);
        }
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::api::{Node, Reach, Subnet};

    pub(crate) fn member(site: &str, subnet: &str, node: &str) -> Member {
        let subnet = Subnet(subnet.parse().unwrap());
        Member {
            site: site.into(),
            record: Record {
                instance: "0".repeat(32),
                subnets: vec![subnet],
                lan: vec![],
                reach: Reach::default(),
                udp_port: None,
                nodes: vec![Node {
                    name: node.into(),
                    addresses: vec![subnet.0.address()],
                    slots: 1,
                }],
                overlap_ok: false,
                virtual_subnets: vec![],
                version: String::new(),
            },
            virtual_subnets: vec![],
            observed: None,
            last_seen: 0,
            serial: "01".into(),
            not_before: 0,
        }
    }

    fn certified(site: &str, serial: &str) -> Certified {
        Certified {
            identity: crate::identity::Identity::site("g5k", site),
            serial: serial.into(),
            not_before: 1,
            not_after: 2,
            admission: None,
            issuer: None,
        }
    }

    fn two() -> Members {
        let mut members = Members::default();
        assert!(members.put(member("rennes", "10.1.0.0/24", "r-1")));
        assert!(members.put(member("nancy", "10.2.0.0/16", "n-1")));
        members
    }

    #[test]
    fn addresses_and_nodes_are_found_in_their_sites_and_no_longer_once_these_are_gone() {
        let mut members = two();
        let at = |members: &Members, address: &str| {
            let found = members.sites_of_address(address.parse().unwrap());
            found.into_iter().map(str::to_owned).collect::<Vec<_>>()
        };
        assert_eq!(at(&members, "10.1.0.7"), ["rennes"]);
        assert_eq!(at(&members, "::ffff:10.2.255.7"), ["nancy"]);
        assert!(at(&members, "10.3.0.1").is_empty() && at(&members, "::1").is_empty());
        assert_eq!(members.sites_of_node("n-1"), ["nancy".into()]);
        assert!(members.put(member("nancy", "fd00::/64", "n-2")));
        assert!(at(&members, "10.2.0.1").is_empty());
        assert_eq!(at(&members, "fd00::9"), ["nancy"]);
        assert!(members.sites_of_node("n-1").is_empty());
        assert!(members.remove("nancy") && !members.remove("nancy"));
        assert!(at(&members, "fd00::9").is_empty() && members.sites_of_node("n-2").is_empty());
    }

    #[test]
    fn what_is_anothers_is_refused_unless_both_declare_to_overlap() {
        let mut members = two();
        let refused =
            |members: &Members, claim: &Member| members.admit(&claim.site, &claim.record).unwrap_err();
        let mut claim = member("lyon", "10.1.0.0/16", "l-1");
        let conflict = refused(&members, &claim);
        assert_eq!(conflict.other, "rennes");
        assert!(conflict.to_string().contains("neither declares"), "{conflict}");
        let node = member("lyon", "10.9.0.0/16", "n-1");
        assert_eq!(refused(&members, &node).what, "node n-1");
        claim.record.overlap_ok = true;
        assert!(
            refused(&members, &claim)
                .to_string()
                .contains("rennes does not declare")
        );
        let mut rennes = member("rennes", "10.1.0.0/24", "r-1");
        members.admit("rennes", &rennes.record).unwrap();
        rennes.record.overlap_ok = true;
        members.put(rennes);
        members.admit("lyon", &claim.record).unwrap();
        members.put(claim);
        let both = members.sites_of_address("10.1.0.1".parse().unwrap());
        assert_eq!(both, ["rennes", "lyon"], "the narrower range first");
    }

    #[test]
    fn whoever_was_away_learns_what_changed_in_parts_of_bounded_size() {
        let mut members = two();
        let known = members.revision();
        assert!(!members.put(member("nancy", "10.2.0.0/16", "n-1")), "no news");
        assert_eq!(members.since(known, 1000).revision, known);
        members.put(member("lyon", "10.3.0.0/16", "l-1"));
        members.remove("rennes");
        let page = members.since(known, 1_000_000);
        assert_eq!(
            (page.members.len(), page.removed, page.more),
            (1, vec!["rennes".to_owned()], false)
        );
        let (mut seen, mut at) = (0, 0);
        loop {
            let page = members.since(at, 1);
            seen += page.members.len() + page.removed.len();
            assert!(page.revision > at);
            at = page.revision;
            if !page.more {
                break;
            }
        }
        assert_eq!((seen, at), (3, members.revision()));
    }

    #[test]
    fn another_source_address_is_news_and_another_port_is_not() {
        let mut members = two();
        let from = |text: &str| text.parse().unwrap();
        let spoke = |members: &mut Members, serial: &str, address: &str, now| {
            let moved = members.moved(&certified("nancy", serial), from(address), now);
            moved.is_some_and(|member| members.put(member))
        };
        assert!(spoke(&mut members, "01", "192.0.2.1:1000", 5));
        assert!(!spoke(&mut members, "01", "192.0.2.1:2000", 6));
        members.touch("nancy", from("192.0.2.1:2000"), 6);
        assert_eq!(members.site("nancy").unwrap().last_seen, 6);
        assert!(spoke(&mut members, "01", "192.0.2.2:2000", 7));
        assert!(spoke(&mut members, "02", "192.0.2.2:2000", 8));
        let stranger = certified("lyon", "02");
        assert_eq!(members.moved(&stranger, from("192.0.2.2:2000"), 8), None);
    }
}
