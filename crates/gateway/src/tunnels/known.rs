//! Answers what other owners ask of tunnels, and makes the small changes that they want.

use crate::driver::Driver;
use crate::keys::{LaneKey, LaneNumber, PairKey, PeerIndex};
use crate::tunnels::Tunnels;
use crate::tunnels::event::TunnelsEvent;
use crate::tunnels::lanes::lane::{Lane, LaneEnd};
use crate::tunnels::lanes::status::lane_status;
use crate::tunnels::message::GatewayToGateway;
use crate::tunnels::origin::Way;
use crate::tunnels::pair::Pair;
use crate::tunnels::peers::peer::Peer;
use causeway_control::{LaneStatus, TunnelStatus};
use std::net::SocketAddr;
use std::time::{Duration, Instant};

impl Tunnels {
    pub(crate) fn peer_of(&self, site: &str) -> Option<PeerIndex> {
        let mut peers = self.peers.iter();
        peers.find_map(|(index, peer)| (peer.site == site).then_some(index))
    }

    /// Peers are only ever added: others are known by their places.
    pub(crate) fn add_peer(&mut self, driver: &mut Driver, site: String) -> PeerIndex {
        let peer = Peer::new(site, None, driver.config.rate);
        self.peers.push(peer)
    }

    pub(crate) fn peer(&self, index: PeerIndex) -> &Peer {
        &self.peers[index]
    }

    pub(crate) fn peers(&self) -> impl Iterator<Item = (PeerIndex, &Peer)> {
        self.peers.iter()
    }

    pub(crate) fn peer_indexes(&self) -> impl Iterator<Item = PeerIndex> + use<> {
        self.peers.keys()
    }

    pub(crate) fn pair_of(&self, site: &str) -> Option<&Pair> {
        self.pairs.get(*self.by_site.get(site)?)
    }

    pub(crate) fn key_of(&self, site: &str) -> Option<PairKey> {
        self.by_site.get(site).copied()
    }

    pub(crate) fn pair(&self, key: PairKey) -> Option<&Pair> {
        self.pairs.get(key)
    }

    pub(crate) fn pair_mut(&mut self, key: PairKey) -> Option<&mut Pair> {
        self.pairs.get_mut(key)
    }

    pub(crate) fn pairs(&self) -> impl Iterator<Item = (PairKey, &Pair)> {
        self.pairs.iter()
    }

    /// Taken first, since what is done with a pair may end others.
    pub(crate) fn pair_keys(&self) -> Vec<PairKey> {
        self.pairs.keys()
    }

    pub(crate) fn lane(&self, key: LaneKey) -> Option<&Lane> {
        self.lanes.get(key)
    }

    /// The site at the other end of a pair; empty where the pair has ended.
    pub(crate) fn site_of(&self, pair: PairKey) -> &str {
        self.pairs.get(pair).map_or("", |pair| &pair.site)
    }

    /// Whether a lane of this number is up, well, and goes through no relay.
    pub(crate) fn is_direct(&self, pair: &Pair, number: LaneNumber) -> bool {
        let lane = pair.lanes[number].and_then(|key| self.lanes.get(key));
        lane.is_some_and(Lane::is_direct) && !pair.tunnel.is_silent(number.0)
    }

    /// Whether a lane of this number is up and well, whatever it goes through.
    pub(crate) fn is_well(&self, site: &str, number: LaneNumber) -> bool {
        let pair = self.pair_of(site);
        pair.is_some_and(|pair| pair.lanes[number].is_some() && !pair.tunnel.is_silent(number.0))
    }

    /// Pretends that there is a tunnel with a site.
    #[cfg(test)]
    pub(crate) fn pretend(&mut self, site: &str, key: PairKey) {
        self.by_site.insert(site.to_owned(), key);
    }

    /// Pretends that there is no tunnel.
    #[cfg(test)]
    pub(crate) fn pretend_none(&mut self) {
        self.by_site.clear();
    }

    /// What has happened that concerns others, in its order.
    pub(crate) fn poll_event(&mut self) -> Option<TunnelsEvent> {
        self.events.pop_front()
    }

    /// Sets why there is no tunnel to a peer; whether it was another reason before.
    pub(crate) fn set_trouble(&mut self, index: PeerIndex, why: &str) -> bool {
        let trouble = &mut self.peers[index].trouble;
        let is_other = trouble != why;
        why.clone_into(trouble);
        is_other
    }

    /// Whether a peer may have this gateway dial something now; see `dial_rate`.
    pub(crate) fn may_ask(&mut self, index: PeerIndex, now: Instant) -> bool {
        self.peers[index].asked.take(now)
    }

    /// The far gateway has said who it is.
    pub(crate) fn on_introduced(&mut self, key: PairKey) {
        if let Some(pair) = self.pairs.get_mut(key) {
            pair.introduced = true;
            let peer = pair.peer;
            self.dial_succeeded(peer);
        }
    }

    /// The broker says where a peer may be dialled; whether it had left the grid until now.
    pub(crate) fn learn_addresses(
        &mut self,
        driver: &mut Driver,
        index: PeerIndex,
        addresses: Vec<SocketAddr>,
    ) -> bool {
        let peer = &mut self.peers[index];
        let was_gone = std::mem::take(&mut peer.is_gone);
        if peer.addresses != addresses {
            peer.address = addresses.first().copied();
            peer.addresses = addresses;
            if peer.addresses.is_empty() {
                "its gateway has not dialled in".clone_into(&mut peer.trouble);
            }
            self.dial_all(driver, index, Duration::ZERO);
        }
        was_gone
    }

    /// A peer has left the grid: it is dialled no more, and its tunnel ends.
    pub(crate) fn forget_peer(&mut self, driver: &mut Driver, index: PeerIndex, end: &LaneEnd, why: &str) {
        let peer = &mut self.peers[index];
        peer.address = None;
        peer.addresses.clear();
        peer.is_gone = true;
        if let Some(pair) = self.by_site.get(&peer.site).copied() {
            self.end_pair(driver, pair, end, true);
        }
        self.set_trouble(index, why);
    }

    /// How a lane's way was made; None where it was dialled.
    pub(crate) fn mark_punched(&mut self, lane: LaneKey, way: Option<Way>) {
        if let Some(lane) = self.lanes.get_mut(lane) {
            lane.punched = way;
        }
    }

    /// A lane of the two gateways' own is up, and not silent; a relay's serves until there is one.
    pub(crate) fn has_lane(&self, index: PeerIndex) -> bool {
        let pair = self.by_site.get(&self.peers[index].site);
        pair.is_some_and(|pair| self.has_direct_lane(*pair))
    }

    /// Sends a message to the gateway of another site.
    pub(crate) fn tell(&mut self, driver: &mut Driver, pair_key: PairKey, message: GatewayToGateway) {
        let Some(pair) = self.pairs.get_mut(pair_key) else {
            return;
        };
        match message.encode() {
            Ok(bytes) => pair.tunnel.message(&bytes),
            Err(error) => driver.say(format_args!("message to {} not sent: {error}", pair.site)),
        }
        self.touch(pair_key);
    }

    /// A pair may have something to send: it gets its turn before the loop sleeps.
    pub(crate) fn touch(&mut self, pair: PairKey) {
        if let Some(state) = self.pairs.get_mut(pair)
            && !std::mem::replace(&mut state.dirty, true)
        {
            self.dirty.push(pair);
        }
    }

    pub(crate) fn tunnel_status(&self, pair: &Pair) -> TunnelStatus {
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
            hindrance: self.hindrance(pair),
        }
    }

    fn hindrance(&self, pair: &Pair) -> String {
        let peer = &self.peers[pair.peer];
        match pair.lanes[LaneNumber::QUIC] {
            _ if !self.has_lane(pair.peer) => peer.trouble.clone(),
            Some(_) => String::new(),
            None => peer.spare_trouble.clone(),
        }
    }
}

/// The lanes that carry what there is: those over QUIC where there are any, since the others share their
/// path.
fn carrying(lanes: &[LaneStatus]) -> impl Iterator<Item = &LaneStatus> {
    let quic = |lane: &LaneStatus| lane.carrier == "QUIC";
    let any_quic = lanes.iter().any(quic);
    lanes.iter().filter(move |lane| !any_quic || quic(lane))
}
