//! Counts how much of something strangers and members use in a period, so that a flood costs the host little,
//! and the members nothing.

use causeway_service::admission::network_of;
use std::collections::{HashMap, HashSet};
use std::net::IpAddr;
use std::time::{Duration, Instant};

/// How much may be used in a period.
#[derive(Debug, Clone, Copy)]
pub struct Rate {
    /// The rate for all strangers together, and for all members together.
    pub in_all: u32,
    /// The rate for one address (in IPv6: one network of 64 bits), behind which there may be several sites.
    pub to_one: u32,
    /// The period.
    pub every: Duration,
}

/// How much was used in this period.
pub(super) struct Pace {
    rate: Rate,
    began: Instant,
    strangers: u32,
    members_part: u32,
    /// What each network has used. What may be used in all bounds its length.
    each: HashMap<IpAddr, u32>,
    /// The addresses from which gateways of members poll.
    members: HashSet<IpAddr>,
}

impl Pace {
    pub(super) fn new(rate: Rate, now: Instant) -> Pace {
        Pace {
            rate,
            began: now,
            strangers: 0,
            members_part: 0,
            each: HashMap::new(),
            members: HashSet::new(),
        }
    }

    /// Begins another period, if it is time; true if it does.
    pub(super) fn turns(&mut self, now: Instant) -> bool {
        let is_over = now >= self.ends();
        if is_over {
            let members = std::mem::take(&mut self.members);
            *self = Pace {
                members,
                ..Pace::new(self.rate, now)
            };
        }
        is_over
    }

    /// The time at which the period ends.
    pub(super) fn ends(&self) -> Instant {
        self.began + self.rate.every
    }

    /// Takes the addresses from which members poll.
    pub(super) fn know(&mut self, members: HashSet<IpAddr>) {
        self.members = members;
    }

    /// Whether this address may have one more, which is then counted.
    pub(super) fn admits(&mut self, from: IpAddr) -> bool {
        let network = network_of(from);
        let all = match self.members.contains(&network) {
            true => &mut self.members_part,
            false => &mut self.strangers,
        };
        if *all >= self.rate.in_all {
            return false;
        }
        let count = self.each.entry(network).or_default();
        if *count >= self.rate.to_one {
            return false;
        }
        *count += 1;
        *all += 1;
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::Ipv6Addr;

    const RATE: Rate = Rate {
        in_all: 2000,
        to_one: 32,
        every: Duration::from_secs(1),
    };

    #[test]
    fn a_flood_is_answered_up_to_a_bound_from_one_address_and_from_all() {
        let now = Instant::now();
        let mut pace = Pace::new(RATE, now);
        let from = |number: u32| IpAddr::from(number.to_be_bytes());
        let answered = (0..100).filter(|_| pace.admits(from(1))).count();
        assert_eq!(answered, RATE.to_one as usize);
        assert!(pace.admits(from(2)));
        let others = (3..10_000).filter(|number| pace.admits(from(*number))).count();
        assert_eq!(others, (RATE.in_all - RATE.to_one - 1) as usize);
        assert!(pace.each.len() <= RATE.in_all as usize);
        assert!(pace.turns(now + RATE.every) && !pace.turns(now + RATE.every));
        assert!(pace.admits(from(1)));
    }

    #[test]
    fn members_are_answered_whatever_strangers_ask() {
        let now = Instant::now();
        let mut pace = Pace::new(RATE, now);
        let from = |number: u32| IpAddr::from(number.to_be_bytes());
        pace.members = HashSet::from([from(7)]);
        let strangers = (1000..10_000).filter(|number| pace.admits(from(*number)));
        assert_eq!(strangers.count(), RATE.in_all as usize);
        let member = (0..100).filter(|_| pace.admits(from(7)));
        assert_eq!(member.count(), RATE.to_one as usize);
        assert!(pace.turns(now + RATE.every) && pace.members.contains(&from(7)));
    }

    #[test]
    fn all_addresses_of_one_network_of_ipv6_are_answered_as_often_as_one_address() {
        let now = Instant::now();
        let mut pace = Pace::new(RATE, now);
        let from =
            |network: u128, host: u128| Ipv6Addr::from_bits(0x2001_0db8 << 96 | network << 64 | host).into();
        let answered = (0..100).filter(|host| pace.admits(from(1, *host))).count();
        assert_eq!(answered, RATE.to_one as usize);
        assert!(pace.admits(from(2, 1)));
    }
}
