//! Connections of those who have not said yet what they want, and which of them goes where there are too
//! many.
//!
//! Where no place is left, the origin that has most of them loses its oldest. So a flood ends itself, however
//! slowly each of its connections speaks, and who comes from elsewhere is not pushed out by it: to do that,
//! it would have to come from as many origins as there are places.

use std::cmp::Reverse;
use std::collections::{BTreeMap, HashMap};
use std::net::{IpAddr, Ipv6Addr};

/// Connections are known by their keys, and by their births, which tell their ages.
pub(crate) struct Admission {
    /// Places, in all and for one origin.
    most: usize,
    most_of_one: usize,
    present: usize,
    origins: HashMap<IpAddr, BTreeMap<u64, usize>>,
}

impl Admission {
    pub(crate) fn new(most: usize, most_of_one: usize) -> Admission {
        Admission {
            most: most.max(1),
            most_of_one: most_of_one.max(1),
            present: 0,
            origins: HashMap::new(),
        }
    }

    /// The connection that has to go before one more from this address is taken.
    pub(crate) fn one_too_many(&self, address: IpAddr) -> Option<usize> {
        let own = self.origins.get(&origin(address));
        let crowded = own.filter(|own| own.len() >= self.most_of_one).or_else(|| {
            let full = self.present >= self.most;
            let origins = self.origins.values().filter(|_| full);
            // Of two as large ones the one that has waited for longer.
            origins.max_by_key(|one| (one.len(), Reverse(one.keys().next().copied())))
        })?;
        crowded.values().next().copied()
    }

    pub(crate) fn enter(&mut self, address: IpAddr, born: u64, key: usize) {
        let ages = self.origins.entry(origin(address)).or_default();
        self.present += usize::from(ages.insert(born, key).is_none());
    }

    /// Does nothing where it is not there.
    pub(crate) fn leave(&mut self, address: IpAddr, born: u64) {
        let origin = origin(address);
        let Some(ages) = self.origins.get_mut(&origin) else {
            return;
        };
        self.present -= usize::from(ages.remove(&born).is_some());
        if ages.is_empty() {
            self.origins.remove(&origin);
        }
    }

    pub(crate) fn clear(&mut self) {
        self.origins.clear();
        self.present = 0;
    }
}

/// Whoever has one address of IPv6 has 2^64 of them (RFC 4291, section 2.5.1).
fn origin(address: IpAddr) -> IpAddr {
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

    /// Lets one in as a gateway does; who had to go.
    fn come(admission: &mut Admission, host: u8, born: u64) -> Option<u64> {
        let ends = admission.one_too_many(from(host)).map(|key| key as u64);
        if let Some(born) = ends {
            (1..=9).for_each(|host| admission.leave(from(host), born));
        }
        admission.enter(from(host), born, born as usize);
        ends
    }

    #[test]
    fn a_flood_from_one_address_ends_its_own_oldest_and_leaves_older_ones_from_elsewhere() {
        let mut admission = Admission::new(10, 10);
        assert_eq!(come(&mut admission, 1, 1), None);
        for born in 2..=10 {
            assert_eq!(come(&mut admission, 2, born), None);
        }
        for born in 11..1000 {
            assert_eq!(come(&mut admission, 2, born), Some(born - 9));
        }
        // A third finds room as well.
        assert_eq!(come(&mut admission, 3, 1000), Some(991));
        assert_eq!(admission.present, 10);
    }

    #[test]
    fn one_origin_has_no_more_than_its_share_though_there_is_room() {
        let mut admission = Admission::new(10, 3);
        assert_eq!([1, 2, 3].map(|born| come(&mut admission, 1, born)), [None; 3]);
        assert_eq!(come(&mut admission, 2, 4), None);
        assert_eq!(come(&mut admission, 1, 5), Some(1));
    }

    #[test]
    fn of_as_large_origins_the_one_that_has_waited_for_longest_loses() {
        let mut admission = Admission::new(4, 4);
        for (host, born) in [(1, 2), (2, 1), (1, 3), (2, 4)] {
            assert_eq!(come(&mut admission, host, born), None);
        }
        assert_eq!(come(&mut admission, 3, 5), Some(1));
        assert_eq!(come(&mut admission, 4, 6), Some(2));
    }

    #[test]
    fn addresses_of_one_network_of_ipv6_are_one_origin_and_mapped_ones_are_those_of_ipv4() {
        let address = |text: &str| text.parse::<IpAddr>().unwrap();
        assert_eq!(
            origin(address("2001:db8::1")),
            origin(address("2001:db8::ffff:1"))
        );
        assert_ne!(origin(address("2001:db8::1")), origin(address("2001:db8:0:1::1")));
        assert_eq!(origin(address("::ffff:10.0.0.1")), from(1));
    }

    #[test]
    fn who_left_twice_or_was_never_there_frees_no_place() {
        let mut admission = Admission::new(2, 2);
        admission.enter(from(1), 1, 1);
        admission.leave(from(1), 1);
        admission.leave(from(1), 1);
        admission.leave(from(2), 7);
        assert_eq!((admission.present, admission.origins.len()), (0, 0));
    }
}
