//! An index of the sites' address ranges. It finds the ranges that overlap with another one without scanning
//! them all. Pure.

use causeway_wire::Cidr;
use std::collections::BTreeMap;
use std::net::IpAddr;

/// IPv6 or not, first address, length of the prefix. In this order, a range is followed by those inside it.
type Key = (bool, u128, u8);

/// Ranges, each of one or more sites.
#[derive(Debug, Default)]
pub struct Ranges {
    held: BTreeMap<Key, (Cidr, Vec<Box<str>>)>,
    /// How many ranges there are with each length of prefix: to find those that contain an address, each
    /// length is looked up once.
    prefixes: BTreeMap<(bool, u8), usize>,
}

impl Ranges {
    /// Notes that a site has a range. Doing so again changes nothing.
    pub fn insert(&mut self, range: &Cidr, site: &str) {
        let key = key(range);
        let (_, sites) = self.held.entry(key).or_insert_with(|| (*range, Vec::new()));
        if sites.iter().any(|known| **known == *site) {
            return;
        }
        sites.push(site.into());
        if sites.len() == 1 {
            *self.prefixes.entry((key.0, key.2)).or_default() += 1;
        }
    }

    /// Removes a site's range.
    pub fn remove(&mut self, range: &Cidr, site: &str) {
        let key = key(range);
        let Some((_, sites)) = self.held.get_mut(&key) else {
            return;
        };
        sites.retain(|known| **known != *site);
        if !sites.is_empty() {
            return;
        }
        self.held.remove(&key);
        let kind = (key.0, key.2);
        let left = self
            .prefixes
            .get(&kind)
            .map_or(0, |count| count.saturating_sub(1));
        if left == 0 {
            self.prefixes.remove(&kind);
        } else {
            self.prefixes.insert(kind, left);
        }
    }

    /// Whether the set is empty.
    pub fn is_empty(&self) -> bool {
        self.held.is_empty() && self.prefixes.is_empty()
    }

    /// The sites whose ranges contain an address, the narrowest first.
    pub fn at(&self, address: IpAddr) -> impl Iterator<Item = &str> {
        let (v6, bits) = bits_of(address.to_canonical());
        self.holding(v6, bits, 128).map(|(_, site)| site)
    }

    /// Ranges that have an address in common with this one, each with a site that has it.
    pub fn overlapping(&self, range: &Cidr) -> impl Iterator<Item = (Cidr, &str)> {
        let (v6, first, prefix) = key(range);
        let last = first | (every_bit(v6) & !mask(v6, prefix));
        let within = self.held.range((v6, first, 0)..=(v6, last, u8::MAX));
        let within = within.filter(move |((_, _, other), _)| *other > prefix);
        self.holding(v6, first, prefix).chain(within.flat_map(each_site))
    }

    /// Ranges that contain an address, with a prefix of this length or shorter.
    fn holding(&self, v6: bool, bits: u128, longest: u8) -> impl Iterator<Item = (Cidr, &str)> {
        let kinds = self.prefixes.range((v6, 0)..=(v6, longest)).rev();
        kinds.flat_map(move |((_, prefix), _)| {
            let key = (v6, bits & mask(v6, *prefix), *prefix);
            self.held.get_key_value(&key).into_iter().flat_map(each_site)
        })
    }
}

fn each_site<'a>(
    (_, (range, sites)): (&Key, &'a (Cidr, Vec<Box<str>>)),
) -> impl Iterator<Item = (Cidr, &'a str)> {
    let range = *range;
    sites.iter().map(move |site| (range, &**site))
}

/// The ranges that are inside no other of them.
pub fn outermost(ranges: impl IntoIterator<Item = Cidr>) -> Vec<Cidr> {
    let mut ranges: Vec<Cidr> = ranges.into_iter().collect();
    ranges.sort_unstable_by_key(key);
    // A range is followed at once by those inside it.
    let mut outer: Vec<Cidr> = Vec::new();
    for range in ranges {
        if !outer.last().is_some_and(|last| last.overlaps(&range)) {
            outer.push(range);
        }
    }
    outer
}

fn key(range: &Cidr) -> Key {
    let (v6, bits) = bits_of(range.address());
    (v6, bits & mask(v6, range.prefix()), range.prefix())
}

fn bits_of(address: IpAddr) -> (bool, u128) {
    match address {
        IpAddr::V4(address) => (false, u128::from(u32::from(address))),
        IpAddr::V6(address) => (true, u128::from(address)),
    }
}

/// The bits of an address that a prefix of this length covers.
fn mask(v6: bool, prefix: u8) -> u128 {
    let width = if v6 { 128 } else { 32 };
    let free = width - u32::from(prefix).min(width);
    every_bit(v6) & u128::MAX.checked_shl(free).unwrap_or(0)
}

fn every_bit(v6: bool) -> u128 {
    if v6 { u128::MAX } else { u128::from(u32::MAX) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cidr(text: &str) -> Cidr {
        text.parse().unwrap()
    }

    #[test]
    fn what_overlaps_is_what_a_look_at_all_would_find() {
        let mut random = 7_u64;
        let mut below = |bound: u64| {
            random = random
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1_442_695_040_888_963_407);
            (random >> 33) % bound
        };
        let mut any = |seldom: bool| {
            // A few bits only, so that many overlap; a few have the whole range.
            let prefix = if seldom && below(20) == 0 {
                0
            } else {
                4 + below(5) as u8
            };
            let address = IpAddr::from([(below(16) << 4 | below(16)) as u8, 0, 0, below(3) as u8]);
            Cidr::new(address, prefix).unwrap()
        };
        for round in 0..200 {
            let mut ranges = Ranges::default();
            let mut all: Vec<(Cidr, String)> = Vec::new();
            for site in 0..12 {
                let (range, site) = (any(true), format!("site-{}", site % 7));
                ranges.insert(&range, &site);
                all.push((range, site));
            }
            let (gone, site) = all.swap_remove(3);
            ranges.remove(&gone, &site);
            all.retain(|(range, other)| key(range) != key(&gone) || *other != site);
            let asked = any(false);
            let mut found: Vec<(Key, &str)> = ranges
                .overlapping(&asked)
                .map(|(range, site)| (key(&range), site))
                .collect();
            let mut wanted: Vec<(Key, &str)> = all
                .iter()
                .filter(|(range, _)| range.overlaps(&asked))
                .map(|(range, site)| (key(range), site.as_str()))
                .collect();
            found.sort_unstable();
            wanted.sort_unstable();
            wanted.dedup();
            assert_eq!(found, wanted, "round {round}: {asked}");
            for (range, site) in &all {
                ranges.remove(range, site);
            }
            assert!(ranges.is_empty(), "round {round}");
        }
    }

    #[test]
    fn the_narrowest_range_of_an_address_comes_first_and_families_never_mix() {
        let mut ranges = Ranges::default();
        for (range, site) in [
            ("10.0.0.0/8", "a"),
            ("10.1.0.0/16", "b"),
            ("::/0", "c"),
            ("10.1.0.0/16", "d"),
        ] {
            ranges.insert(&cidr(range), site);
        }
        let at = |address: &str| ranges.at(address.parse().unwrap()).collect::<Vec<_>>();
        assert_eq!(at("10.1.2.3"), ["b", "d", "a"]);
        assert_eq!(at("::ffff:10.2.0.1"), ["a"]);
        assert_eq!(at("fd00::1"), ["c"]);
        assert!(at("192.0.2.1").is_empty());
    }

    #[test]
    fn the_outermost_of_ranges_hold_all_of_them() {
        let ranges = [
            "10.1.0.0/16",
            "10.0.0.0/8",
            "10.0.0.0/8",
            "11.0.0.0/24",
            "fd00::/64",
            "10.9.0.0/24",
        ];
        let outer = outermost(ranges.map(cidr));
        assert_eq!(outer, ["10.0.0.0/8", "11.0.0.0/24", "fd00::/64"].map(cidr));
    }
}
