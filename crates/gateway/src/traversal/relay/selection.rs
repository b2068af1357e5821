//! Chooses the relay that is asked for a lane: the shortest path, unless that relay is notably loaded; among
//! relays that are about equally good, a different one for each lane.
//!
//! A relay tells every site to which it has a lane how much it carries and how far the others are from it:
//! when that changes, but at most once a second. A gateway that needs a relay compares these offers, and asks
//! one. No gateway knows what others ask for at the same time. So that the lanes of a relay that died do not
//! all end up at the next one, relays that are about equal share them by lot. The lot is computed from the
//! names of all three sites and the lane's number, so nothing has to be agreed on.

use crate::base::{Base, Bundle};
use crate::keys::{LaneNumber, PairKey, PeerIndex};
use crate::sys::timers::TraversalDeadline;
use crate::traversal::Traversal;
use crate::tunnels::message::GatewayToGateway;
use std::collections::BTreeMap;
use std::time::{Duration, Instant};

/// This many connections double a relay's cost: how much of its rate they take is not known, and most are
/// idle.
const CARRIED_TO_DOUBLE: u64 = 64;

/// Differences that nobody notices: a quarter of the path, or a millisecond.
const SHARE: u64 = 4;
const MIN_MICROSECONDS: u64 = 1000;

/// Time between two offers to the same sites.
const TELL_EVERY: Duration = Duration::from_secs(1);

/// Most sites of an offer that are kept: more than any grid has.
const MAX_SITES: usize = 4096;

/// What a relay has last offered.
#[derive(Debug, Default, Clone)]
pub(crate) struct Offer {
    carried: u32,
    /// Round trips from the relay to the sites that it has lanes with, in microseconds.
    beyond: BTreeMap<String, u32>,
}

impl Offer {
    pub(crate) fn new(carried: u32, mut beyond: BTreeMap<String, u32>) -> Offer {
        while beyond.len() > MAX_SITES {
            beyond.pop_last();
        }
        Offer { carried, beyond }
    }
}

/// A relay that is willing.
#[derive(Debug)]
pub(crate) struct Candidate<'a> {
    /// Its place among the peers, and the pair with it.
    pub(crate) relay: PeerIndex,
    pub(crate) pair: PairKey,
    pub(crate) site: &'a str,
    /// The round trip to it.
    pub(crate) near_microseconds: u32,
    /// Its offer; `None` if it has not sent one yet, or never does.
    pub(crate) offer: Option<&'a Offer>,
    /// When it failed, if that was recently.
    pub(crate) failed: Option<Instant>,
}

impl Candidate<'_> {
    /// The cost of the path, including what the relay carries.
    fn cost(&self, to: &str) -> u64 {
        let near = u64::from(self.near_microseconds);
        // If it does not say, the site is assumed to be as far from it as it is from here.
        let beyond = self.offer.and_then(|offer| offer.beyond.get(to));
        let beyond = beyond.map_or(near, |beyond| u64::from(*beyond));
        let carried = self.offer.map_or(0, |offer| u64::from(offer.carried));
        (near + beyond + MIN_MICROSECONDS) * (CARRIED_TO_DOUBLE + carried) / CARRIED_TO_DOUBLE
    }

    /// Whether it has said which sites it reaches, and this is not one of them.
    fn is_blind(&self, to: &str) -> bool {
        self.offer.is_some_and(|offer| !offer.beyond.contains_key(to))
    }
}

/// The relay to ask for this lane between two sites.
pub(crate) fn choose<'a, 'b>(
    candidates: &'b [Candidate<'a>],
    between: (&str, &str),
    lane: LaneNumber,
) -> Option<&'b Candidate<'a>> {
    let to = between.1;
    let rank = |one: &&Candidate<'_>| (one.failed, one.is_blind(to));
    let first = candidates.iter().map(|one| rank(&one)).min()?;
    let good = candidates.iter().filter(|one| rank(one) == first);
    let least = good.clone().map(|one| one.cost(to)).min()?;
    let about_as_good = good.filter(|one| one.cost(to) <= least + least / SHARE);
    about_as_good.min_by_key(|one| lot(&[between.0, to, one.site], lane))
}

/// FNV-1a (draft-eastlake-fnv), which spreads names well enough, and is the same in every version of the
/// compiler's library. A text's last bytes hardly affect the high bits, so all bits are mixed once more (as
/// in MurmurHash3).
fn lot(names: &[&str], lane: LaneNumber) -> u64 {
    let bytes = names.iter().flat_map(|name| name.bytes().chain([0]));
    let sum = bytes
        .chain([lane.0 as u8])
        .fold(0xcbf2_9ce4_8422_2325u64, |sum, byte| {
            (sum ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
        });
    let mixed = (sum ^ (sum >> 33)).wrapping_mul(0xff51_afd7_ed55_8ccd);
    mixed ^ (mixed >> 33)
}

impl Traversal {
    /// The load of this relay, or the set of sites that it reaches, has changed.
    pub(in crate::traversal) fn tell_offer_soon(&mut self, base: &mut Base<'_>) {
        if base.config().relay && !std::mem::replace(&mut self.relay.tells, true) {
            let told_at = self.relay.told_at;
            let since = told_at.map_or(TELL_EVERY, |at| base.now().saturating_duration_since(at));
            base.set_deadline(TELL_EVERY.saturating_sub(since), TraversalDeadline::Offer);
        }
    }

    pub(in crate::traversal) fn tell_offer(&mut self, base: &mut Base<'_>) {
        self.relay.tells = false;
        self.relay.told_at = Some(base.now());
        let reached = base.tunnels.pairs().keys();
        let reached = reached
            .into_iter()
            .filter(|key| base.tunnels.ways().has_direct_lane(*key));
        let reached: Vec<PairKey> = reached.collect();
        let beyond = reached.iter().filter_map(|key| {
            let site = base.tunnels.pairs().get(*key)?.site().to_owned();
            Some((site, base.tunnels.ways().least_rtt(*key)?))
        });
        let offer = GatewayToGateway::RelayOffer {
            carried: u32::try_from(self.relay.places_taken()).unwrap_or(u32::MAX),
            beyond_microseconds: beyond.collect(),
        };
        for key in reached {
            base.tell(key, offer.clone());
        }
    }

    pub(super) fn on_relay_offer(&mut self, base: &mut Base<'_>, site: &str, offer: Offer) {
        if let Some(relay) = base.tunnels.peers().of(site) {
            self.search_mut(relay).offer = Some(offer);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn offer(carried: u32, beyond: &[(&str, u32)]) -> Offer {
        let beyond = beyond.iter().map(|(site, way)| ((*site).to_owned(), *way));
        Offer::new(carried, beyond.collect())
    }

    fn candidate<'a>(relay: usize, site: &'a str, near: u32, offer: Option<&'a Offer>) -> Candidate<'a> {
        Candidate {
            relay: PeerIndex(relay),
            pair: PairKey(relay),
            site,
            near_microseconds: near,
            offer,
            failed: None,
        }
    }

    fn chosen(candidates: &[Candidate<'_>], lane: usize) -> usize {
        choose(candidates, ("nancy", "rennes"), LaneNumber(lane))
            .unwrap()
            .relay
            .0
    }

    #[test]
    fn the_way_counts_on_both_sides_of_the_relay() {
        let (far, close) = (offer(0, &[("rennes", 40_000)]), offer(0, &[("rennes", 2000)]));
        let candidates = [
            candidate(0, "lyon", 3000, Some(&far)),
            candidate(1, "lille", 9000, Some(&close)),
        ];
        assert!((0..16).all(|lane| chosen(&candidates, lane) == 1));
        // If it has not said so, a site is assumed to be as far from it as it is from here.
        let candidates = [
            candidate(0, "lyon", 3000, None),
            candidate(1, "lille", 9000, Some(&close)),
        ];
        assert!((0..16).all(|lane| chosen(&candidates, lane) == 0));
    }

    #[test]
    fn the_shortest_way_is_left_when_it_is_loaded_notably_and_not_before() {
        let way = |carried| offer(carried, &[("rennes", 5000)]);
        let long = offer(0, &[("rennes", 10_000)]);
        for (carried, other) in [(0, 0), (16, 0), (200, 1)] {
            let short = way(carried);
            let candidates = [
                candidate(0, "lyon", 5000, Some(&short)),
                candidate(1, "lille", 10_000, Some(&long)),
            ];
            assert!(
                (0..16).all(|lane| chosen(&candidates, lane) == other),
                "{carried}"
            );
        }
    }

    #[test]
    fn pairs_and_lanes_that_need_a_relay_at_the_same_time_end_up_on_all_that_are_about_as_good() {
        let ways = [("lyon", 5000), ("lille", 5500), ("metz", 20_000)];
        let candidates = ways.map(|(site, near)| candidate(near as usize, site, near, None));
        let mut counts = BTreeMap::new();
        for pair in 0..100 {
            let near = format!("site{pair}");
            for lane in 0..4 {
                let one = choose(&candidates, (&near, "rennes"), LaneNumber(lane)).unwrap();
                *counts.entry(one.site).or_insert(0) += 1;
            }
        }
        assert_eq!(counts.len(), 2, "{counts:?}");
        assert!(
            counts.values().all(|count| (140..=260).contains(count)),
            "{counts:?}"
        );
    }

    #[test]
    fn load_that_is_told_evens_out_what_the_lot_did_not() {
        let mut carried = [150u32, 0];
        for pair in 0..200 {
            let offers = carried.map(|carried| offer(carried, &[("rennes", 5000)]));
            let candidates = [
                candidate(0, "lyon", 5000, Some(&offers[0])),
                candidate(1, "lille", 5000, Some(&offers[1])),
            ];
            let near = format!("site{pair}");
            carried[choose(&candidates, (&near, "rennes"), LaneNumber(0))
                .unwrap()
                .relay
                .0] += 1;
        }
        let [most, least] = [carried.iter().max().unwrap(), carried.iter().min().unwrap()];
        assert!(most - least <= most / 4 + 16, "{carried:?}");
    }

    #[test]
    fn who_failed_lately_or_does_not_reach_the_site_is_asked_last_and_alone_all_the_same() {
        let now = Instant::now();
        let (blind, sees) = (offer(0, &[("metz", 1)]), offer(500, &[("rennes", 90_000)]));
        let failed = |mut one: Candidate<'static>| {
            one.failed = Some(now);
            one
        };
        let candidates = [
            candidate(0, "lyon", 10, Some(&blind)),
            candidate(1, "lille", 90_000, Some(&sees)),
            failed(candidate(2, "metz", 10, None)),
        ];
        assert!((0..16).all(|lane| chosen(&candidates, lane) == 1));
        assert_eq!(chosen(&[failed(candidate(2, "metz", 10, None))], 0), 2);
        assert_eq!(chosen(&[candidate(0, "lyon", 10, Some(&blind))], 0), 0);
        assert!(choose(&[], ("nancy", "rennes"), LaneNumber(0)).is_none());
    }

    #[test]
    fn an_offer_keeps_no_more_sites_than_grids_have() {
        let sites = (0..2 * MAX_SITES).map(|number| (format!("site{number}"), 1));
        assert_eq!(Offer::new(0, sites.collect()).beyond.len(), MAX_SITES);
    }
}
