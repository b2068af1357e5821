//! Who is known, who is reached, and what is told to them.

use crate::driver::Driver;
use crate::keys::{PairKey, PeerIndex};
use crate::tunnels::Tunnels;
use crate::tunnels::capacity::QUIC_LANE;
use crate::tunnels::lane_status::lane_status;
use crate::tunnels::message::GatewayToGateway;
use crate::tunnels::pair::Pair;
use crate::tunnels::peer::Peer;
use causeway_control::{LaneStatus, TunnelStatus};

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

    pub(crate) fn pair_of(&self, site: &str) -> Option<&Pair> {
        self.pairs.get(*self.by_site.get(site)?)
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
        let contact = &self.peers[pair.peer];
        match pair.lanes[QUIC_LANE] {
            _ if !self.has_lane(pair.peer) => contact.trouble.clone(),
            Some(_) => String::new(),
            None => contact.spare_trouble.clone(),
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
