//! Chooses the connection to close when too many callers have not yet said who they are.
//!
//! When no place is left, the origin with the most connections loses its oldest one. So a flood displaces
//! only itself, however slowly each of its connections sends, and not callers from elsewhere: for that, it
//! would have to come from as many origins as there are places. The caller decides what an origin is: an
//! address, or a network ([`network_of`]).

use std::cmp::Reverse;
use std::collections::{BTreeMap, HashMap};
use std::hash::Hash;
use std::net::{IpAddr, Ipv6Addr};

/// Connections by their origins `O`. Each is identified by its age, a number that increases with each new
/// one, and by a key `K`.
#[derive(Debug)]
pub struct Admission<O, K> {
    max: usize,
    max_of_one: usize,
    present: usize,
    origins: HashMap<O, BTreeMap<u64, K>>,
}

/// Which of the two limits has been reached.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Bound {
    /// The limit of one origin.
    OfOne,
    /// The limit of all origins together.
    OfAll,
}

impl<O: Eq + Hash, K: Copy> Admission<O, K> {
    /// Makes an admission with `max` places in all and `max_of_one` for one origin; both are at least one.
    pub fn new(max: usize, max_of_one: usize) -> Admission<O, K> {
        Admission {
            max: max.max(1),
            max_of_one: max_of_one.max(1),
            present: 0,
            origins: HashMap::new(),
        }
    }

    /// The connection that must be closed before another one of this origin is admitted, and why.
    pub fn one_too_many(&self, origin: &O) -> Option<(Bound, K)> {
        let own = self.origins.get(origin);
        let own = own.filter(|own| own.len() >= self.max_of_one);
        let (bound, crowded) = own.map(|own| (Bound::OfOne, own)).or_else(|| {
            let full = self.present >= self.max;
            let origins = self.origins.values().filter(|_| full);
            // Of two equally large origins, the one with the older connection loses it.
            let largest = origins.max_by_key(|one| (one.len(), Reverse(one.keys().next().copied())));
            largest.map(|largest| (Bound::OfAll, largest))
        })?;
        crowded.values().next().map(|key| (bound, *key))
    }

    /// Takes a place.
    pub fn enter(&mut self, origin: O, age: u64, key: K) {
        let ages = self.origins.entry(origin).or_default();
        self.present += usize::from(ages.insert(age, key).is_none());
    }

    /// Frees a place; does nothing if it is not taken.
    pub fn leave(&mut self, origin: &O, age: u64) {
        let Some(ages) = self.origins.get_mut(origin) else {
            return;
        };
        self.present -= usize::from(ages.remove(&age).is_some());
        if ages.is_empty() {
            self.origins.remove(origin);
        }
    }

    /// Counts the places that are taken.
    pub fn present(&self) -> usize {
        self.present
    }

    /// Frees all places.
    pub fn clear(&mut self) {
        self.origins.clear();
        self.present = 0;
    }
}

/// The part of an address that one origin has: whoever has one IPv6 address has 2^64 of them (RFC 4291,
/// section 2.5.1).
pub fn network_of(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V6(address) => Ipv6Addr::from_bits(address.to_bits() >> 64 << 64).into(),
        address => address,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn from(host: u8) -> IpAddr {
        [10, 0, 0, host].into()
    }

    /// Admits a connection as a server does; returns which one had to be closed.
    fn come(admission: &mut Admission<IpAddr, u64>, host: u8, age: u64) -> Option<u64> {
        let ends = admission.one_too_many(&from(host)).map(|(_, key)| key);
        if let Some(age) = ends {
            (1..=9).for_each(|host| admission.leave(&from(host), age));
        }
        admission.enter(from(host), age, age);
        ends
    }

    #[test]
    fn a_flood_from_one_address_ends_its_own_oldest_and_leaves_older_ones_from_elsewhere() {
        let mut admission = Admission::new(10, 10);
        assert_eq!(come(&mut admission, 1, 1), None);
        for age in 2..=10 {
            assert_eq!(come(&mut admission, 2, age), None);
        }
        for age in 11..1000 {
            assert_eq!(come(&mut admission, 2, age), Some(age - 9));
        }
        // A third origin finds a place, too.
        assert_eq!(come(&mut admission, 3, 1000), Some(991));
        assert_eq!(admission.present(), 10);
    }

    #[test]
    fn one_origin_has_no_more_than_its_share_though_there_is_room() {
        let mut admission = Admission::new(10, 3);
        assert_eq!([1, 2, 3].map(|age| come(&mut admission, 1, age)), [None; 3]);
        assert_eq!(come(&mut admission, 2, 4), None);
        assert_eq!(admission.one_too_many(&from(1)), Some((Bound::OfOne, 1)));
        assert_eq!(come(&mut admission, 1, 5), Some(1));
    }

    #[test]
    fn of_as_large_origins_the_one_that_has_waited_for_longest_loses() {
        let mut admission = Admission::new(4, 4);
        for (host, age) in [(1, 2), (2, 1), (1, 3), (2, 4)] {
            assert_eq!(come(&mut admission, host, age), None);
        }
        assert_eq!(admission.one_too_many(&from(3)), Some((Bound::OfAll, 1)));
        assert_eq!(come(&mut admission, 3, 5), Some(1));
        assert_eq!(come(&mut admission, 4, 6), Some(2));
    }

    #[test]
    fn addresses_of_one_network_of_ipv6_are_one_and_mapped_ones_are_those_of_ipv4() {
        let address = |text: &str| text.parse::<IpAddr>().unwrap();
        assert_eq!(
            network_of(address("2001:db8::1")),
            network_of(address("2001:db8::ffff:1"))
        );
        assert_ne!(
            network_of(address("2001:db8::1")),
            network_of(address("2001:db8:0:1::1"))
        );
        assert_eq!(network_of(address("::ffff:10.0.0.1")), from(1));
    }

    #[test]
    fn who_left_twice_or_was_never_there_frees_no_place() {
        let mut admission = Admission::new(2, 2);
        admission.enter(from(1), 1, 1);
        admission.leave(&from(1), 1);
        admission.leave(&from(1), 1);
        admission.leave(&from(2), 7);
        assert_eq!((admission.present(), admission.origins.len()), (0, 0));
    }
}
