//! How many lanes a pair has, over which protocol, and what each may do.

use crate::config::Transport;
use crate::driver::Driver;
use crate::keys::{LaneNumber, PairKey, PeerIndex};
use crate::sys::socket;
use crate::tunnels::Tunnels;
use crate::tunnels::capacity::{
    bandwidth_delay_product, connection_holds, holds, most_rate, needed, unsent_share,
};
use crate::tunnels::event::TunnelsEvent;
use crate::tunnels::lanes::lane::Lane;
use crate::tunnels::message::GatewayToGateway;
use crate::tunnels::pacing::train::MIN_BYTES;
use std::time::Duration;

impl Tunnels {
    /// Whether a lane that is lost is dialled again.
    pub(in crate::tunnels) fn wants_lane(&self, driver: &Driver, index: PeerIndex, lane: LaneNumber) -> bool {
        lane.0 < self.ways().lanes_wanted(driver, index)
            || (lane == LaneNumber::QUIC && self.peers[index].is_lossy)
    }

    /// A lane over TCP loses segments, or the far gateway says that one of its own does: a lane over QUIC
    /// would serve better.
    pub(in crate::tunnels) fn on_lossy(&mut self, driver: &mut Driver, key: PairKey) {
        let Some(pair) = self.pairs.get(key) else {
            return;
        };
        let index = pair.peer;
        let may = driver.config.transport == Transport::Auto && self.quic.is_some();
        if may && !std::mem::replace(&mut self.peers[index].is_lossy, true) {
            self.ask_for_quic(driver, key);
        }
    }

    /// Dials a lane over QUIC if the path is lossy, or asks the dialler to.
    pub(in crate::tunnels) fn ask_for_quic(&mut self, driver: &mut Driver, key: PairKey) {
        let Some(pair) = self.pairs.get(key) else {
            return;
        };
        let index = pair.peer;
        if !self.peers[index].is_lossy {
            return;
        }
        match self.peers[index].address {
            Some(_) => self.dial_after(driver, index, LaneNumber::QUIC, Duration::ZERO),
            None => self.pairs.tell(driver, key, GatewayToGateway::Lossy {}),
        }
    }

    /// A new lane begins with what is known about its path. If nothing is, a lane over QUIC begins with what
    /// the lanes beside it know, and takes precedence over them.
    pub(in crate::tunnels) fn recall_path(&self, driver: &Driver, lane: &mut Lane) {
        let Some(pair) = self.pairs.get(lane.pair) else {
            return;
        };
        let now = driver.now;
        let known = self.peers[pair.peer].paths.of(lane.number, &lane.way());
        if known.is_some_and(|known| known.loses) {
            lane.tail_probe.expect_loss(now);
        }
        if lane.is_over_tcp() {
            if let Some(known) = known {
                lane.remembered.recall(known);
            }
            return;
        }
        let own = known.map(|known| known.rate);
        let reserved = most_rate(&driver.config, &self.peers, pair);
        let peer = &self.peers[pair.peer];
        let beside = pair
            .lanes
            .values()
            .flatten()
            .filter_map(|lane| self.lanes.get(*lane));
        // What a relay carries takes another path.
        let beside = beside.filter(|lane| lane.carrier.tcp().is_some() && lane.through.is_none());
        let beside: Vec<&Lane> = beside.collect();
        // A lane that has itself just come up, and knows nothing, has seen little.
        let seen = beside.iter().filter(|lane| lane.sent_bytes >= MIN_BYTES);
        let seen = seen.map(|lane| lane.rate()).sum::<u64>();
        // Beside TCP, it exists because of losses; alone, because nothing else gets through.
        let is_auto = driver.config.transport == Transport::Auto;
        let is_lossy = peer.is_lossy || (is_auto && !beside.is_empty());
        let others_rate = match is_auto {
            true => seen.max(peer.paths.direct_rate(true)),
            false => peer.paths.direct_rate(false) / driver.config.lanes.unwrap_or(1) as u64,
        };
        let share = own.unwrap_or(others_rate);
        if let Some(session) = lane.carrier.quic() {
            let mut model = session.model.get();
            if share > 0 {
                model.adopt_rate(share);
            }
            model.reserve(reserved);
            drop(model);
            if is_lossy {
                session.expect_loss(now);
            }
        }
    }

    /// A lane has come up, gone, or learned its rate: the tunnel's bounds, the number of lanes and their
    /// shares of what is reserved are adjusted.
    pub(in crate::tunnels) fn size_pair(&mut self, driver: &mut Driver, key: PairKey) {
        let Some(pair) = self.pairs.get_mut(key) else {
            return;
        };
        let lanes = pair.lanes.values().flatten();
        let lanes: Vec<_> = lanes.filter_map(|lane| self.lanes.get(*lane)).collect();
        let least_rtt = lanes
            .iter()
            .filter_map(|lane| lane.path().ok())
            .map(|path| path.least_rtt_microseconds.min(path.rtt_microseconds))
            .min();
        let rates = lanes.iter().map(|lane| lane.rate().saturating_mul(8));
        let is_quic = driver.config.transport == Transport::Auto && pair.lanes[LaneNumber::QUIC].is_some();
        // The lane over QUIC shares its path with the others.
        let seen: u64 = if is_quic {
            rates.max().unwrap_or(0)
        } else {
            rates.sum()
        };
        let reserved = self.peers[pair.peer].reserved;
        let Some(rtt) = least_rtt else { return };
        let held_bytes = reserved.map_or_else(|| bandwidth_delay_product(rtt, seen), |rate| holds(rtt, rate));
        pair.tunnel.set_bandwidth_delay_product(held_bytes);
        let share = most_rate(&driver.config, &self.peers, pair);
        let unsent = unsent_share(lanes.len());
        for lane in lanes.iter().filter(|lane| lane.training.is_none()) {
            if share.is_some() {
                lane.carrier.set_most_rate(share);
            }
            if let Some(socket) = lane.carrier.tcp() {
                let _ = socket::set_unsent_low_water(socket, unsent);
            }
        }
        let index = pair.peer;
        let wanted = needed(held_bytes, connection_holds()).min(LaneNumber::QUIC.0);
        if driver.config.lanes.is_none() && wanted > self.peers[index].lanes {
            self.peers[index].lanes = wanted;
            self.dial_all(driver, index, Duration::ZERO);
            self.events.push_back(TunnelsEvent::MoreWanted { peer: index });
        }
    }
}
