//! Answers which paths there are to other sites, and in what state they are.

use crate::config::Transport;
use crate::driver::Driver;
use crate::keys::{ByNumber, LaneKey, LaneNumber, PairKey, PeerIndex, Table};
use crate::tunnels::Tunnels;
use crate::tunnels::lanes::lane::Lane;
use crate::tunnels::lanes::status::lane_status;
use crate::tunnels::origin::Way;
use crate::tunnels::pair::Pair;
use crate::tunnels::pairs::Pairs;
use crate::tunnels::peers::Peers;
use crate::tunnels::quic::Quic;
use causeway_control::{LINKED_SITES, LaneStatus, Link, TunnelStatus};
use std::collections::BTreeMap;
use std::net::SocketAddr;

/// Lends what questions about lanes, pairs and peers read, without anything to change.
#[derive(Clone, Copy)]
pub(crate) struct Ways<'a> {
    peers: &'a Peers,
    pairs: &'a Pairs,
    lanes: &'a Table<LaneKey, Lane>,
    quic: Option<&'a Quic>,
}

impl Tunnels {
    /// Lends what answers which paths there are.
    pub(crate) fn ways(&self) -> Ways<'_> {
        Ways {
            peers: &self.peers,
            pairs: &self.pairs,
            lanes: &self.lanes,
            quic: self.quic.as_ref(),
        }
    }
}

impl Ways<'_> {
    /// Whether a lane to this site uses no relay, is up and is not silent.
    pub(crate) fn has_direct_lane(&self, pair: PairKey) -> bool {
        let Some(pair) = self.pairs.get(pair) else {
            return false;
        };
        let is_direct = |key: LaneKey| self.lanes.get(key).is_some_and(|lane| lane.through.is_none());
        let mut lanes = pair.lanes.iter();
        lanes.any(|(number, lane)| lane.is_some_and(is_direct) && !pair.tunnel.is_silent(number.0))
    }

    /// Whether a lane of the two gateways' own is up and not silent; a relay's is used until there is one.
    pub(crate) fn has_lane(&self, index: PeerIndex) -> bool {
        let pair = self.pairs.key_of(&self.peers[index].site);
        pair.is_some_and(|pair| self.has_direct_lane(pair))
    }

    /// Whether lanes to this site use a relay.
    pub(in crate::tunnels) fn is_relayed(&self, site: &str) -> bool {
        let lanes = self.pairs.of(site).map(|pair| pair.lanes);
        let mut lanes = lanes.into_iter().flat_map(ByNumber::into_values).flatten();
        lanes.any(|key| self.lanes.get(key).is_some_and(|lane| lane.through.is_some()))
    }

    /// Whether the lane with this number is up, not silent, and uses no relay.
    fn is_direct(&self, pair: &Pair, number: LaneNumber) -> bool {
        let lane = pair.lanes[number].and_then(|key| self.lanes.get(key));
        lane.is_some_and(Lane::is_direct) && !pair.tunnel.is_silent(number.0)
    }

    /// Whether the lane with this number is up and not silent, with or without a relay.
    pub(crate) fn is_well(&self, index: PeerIndex, number: LaneNumber) -> bool {
        let pair = self.pairs.of(&self.peers[index].site);
        pair.is_some_and(|pair| pair.lanes[number].is_some() && !pair.tunnel.is_silent(number.0))
    }

    /// Returns the least round-trip time of a pair's lanes, in microseconds, if it is known.
    pub(crate) fn least_rtt(&self, pair: PairKey) -> Option<u32> {
        let lanes = self.pairs.get(pair).map(|pair| pair.lanes);
        let lanes = lanes.into_iter().flat_map(ByNumber::into_values).flatten();
        let lanes = lanes.filter_map(|key| self.lanes.get(key)?.path().ok());
        let rtt = lanes.map(|path| path.least_rtt_microseconds.min(path.rtt_microseconds));
        rtt.min()
    }

    /// Returns how many lanes this gateway wants to a peer.
    pub(crate) fn lanes_wanted(&self, driver: &Driver, index: PeerIndex) -> usize {
        // One QUIC connection has as much in flight as the path holds.
        let chosen = match driver.config.transport {
            Transport::Quic => 1,
            _ => self.peers[index].lanes,
        };
        driver.config.lanes.unwrap_or(chosen)
    }

    /// Lists the links from this site to those that it has lanes with.
    pub(crate) fn own_links(&self) -> Vec<Link> {
        let up = self.pairs.iter().filter(|(_, pair)| pair.is_up());
        up.filter_map(|(_, pair)| self.tunnel_status(pair).link())
            .collect()
    }

    /// Lists the links of every site that can be reached and has reported them, and of this one, by the site
    /// that measured.
    pub(crate) fn links(&self, driver: &Driver) -> BTreeMap<String, Vec<Link>> {
        let is_small = self.peers.len() < LINKED_SITES;
        let peers = self.peers.values().filter(|_| is_small);
        let reached = peers.filter(|peer| self.pairs.of(&peer.site).is_some_and(Pair::is_up));
        let others = reached.map(|peer| (peer.site.clone(), peer.links.clone()));
        let own = (driver.config.site.clone(), self.own_links());
        others
            .chain([own])
            .filter(|(_, links)| !links.is_empty())
            .collect()
    }

    fn tunnel_status(&self, pair: &Pair) -> TunnelStatus {
        let lanes = pair
            .lanes
            .values()
            .flatten()
            .filter_map(|key| self.lanes.get(*key));
        let lanes: Vec<LaneStatus> = lanes.map(lane_status).collect();
        let least = lanes.iter().map(|lane| lane.least_rtt_microseconds);
        let (retransmits, segments) = lanes.iter().fold((0, 0), |(again, all), lane| {
            (
                again + u64::from(lane.retransmits),
                all + u64::from(lane.segments),
            )
        });
        TunnelStatus {
            site: pair.site.clone(),
            peer: pair.address,
            rtt_microseconds: least.min().unwrap_or(0),
            rate_bits_per_second: carrying(&lanes).map(|lane| lane.rate_bits_per_second).sum(),
            loss: retransmits as f64 / segments.max(1) as f64,
            congestion_control: lanes
                .first()
                .map_or_else(String::new, |lane| lane.congestion_control.clone()),
            streams: pair.tunnel.streams(),
            sent_bytes: pair.sent_bytes,
            received_bytes: pair.received_bytes,
            lanes,
            lanes_lost: pair.lanes_lost,
            down_seconds: pair.down_since.map(|since| since.elapsed().as_secs_f64()),
            why_no_better_way: self.why_no_better_way(pair),
            refuses_jobs: None,
        }
    }

    fn why_no_better_way(&self, pair: &Pair) -> String {
        let peer = &self.peers[pair.peer];
        match pair.lanes[LaneNumber::QUIC] {
            _ if !self.has_lane(pair.peer) => peer.why_not_reached.clone(),
            Some(_) => String::new(),
            None => peer.why_no_quic.clone(),
        }
    }

    /// Finds the first lane wanted to a peer with a tunnel that is not up, is silent, or uses a relay.
    pub(crate) fn first_missing(&self, driver: &Driver, index: PeerIndex) -> Option<LaneNumber> {
        let pair = self.pairs.of(&self.peers[index].site)?;
        let mut wanted = LaneNumber::all().take(self.lanes_wanted(driver, index));
        wanted.find(|number| !self.is_direct(pair, *number))
    }

    /// Returns the protocol below a lane that uses no relay.
    pub(crate) fn protocol_of_direct(&self, lane: LaneKey) -> Option<Way> {
        let lane = self.lanes.get(lane).filter(|lane| lane.is_direct())?;
        Some(match lane.is_over_tcp() {
            true => Way::Tcp,
            false => Way::Udp,
        })
    }

    /// Reports the states of all tunnels of this site.
    pub(crate) fn statuses(&self, own: &str) -> Vec<TunnelStatus> {
        let pairs = self.pairs.iter().map(|(_, pair)| {
            let refused = pair.accepts().and_then(|accepts| accepts.jobs);
            TunnelStatus {
                refuses_jobs: refused.map(|why| why.for_user(own, &pair.site)),
                ..self.tunnel_status(pair)
            }
        });
        pairs.collect()
    }

    /// Whether lanes may use UDP.
    pub(crate) fn has_udp(&self) -> bool {
        self.quic.is_some()
    }

    /// Returns the address to which the UDP socket is bound.
    pub(crate) fn udp_address(&self) -> Option<SocketAddr> {
        self.quic?.local_address()
    }
}

/// The lanes that carry the traffic: those over QUIC if there are any, because the others share their path.
fn carrying(lanes: &[LaneStatus]) -> impl Iterator<Item = &LaneStatus> {
    let quic = |lane: &LaneStatus| lane.carrier == "QUIC";
    let any_quic = lanes.iter().any(quic);
    lanes.iter().filter(move |lane| !any_quic || quic(lane))
}
