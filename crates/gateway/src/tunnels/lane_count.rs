//! How many lanes a pair has, over what, and what each may do.

use crate::config::Transport;
use crate::gateway::Gateway;
use crate::sys::socket;
use crate::tunnels::capacity::{
    QUIC_LANE, connection_holds, holds, most_rate, needed, product, unsent_share,
};
use crate::tunnels::event::TunnelsEvent;
use crate::tunnels::lane::Lane;
use crate::tunnels::message::GatewayToGateway;
use std::time::Duration;

impl Gateway {
    /// Lanes this gateway wants to a peer.
    pub(crate) fn lanes_wanted(&self, index: usize) -> usize {
        // One connection of QUIC has whatever the path holds under way.
        let chosen = match self.driver.config.transport {
            Transport::Quic => 1,
            _ => self.tunnels.peers[index].lanes,
        };
        self.driver.config.lanes.unwrap_or(chosen)
    }

    /// Whether a lane that is lost is dialled again.
    pub(crate) fn wants_lane(&self, index: usize, lane: usize) -> bool {
        lane < self.lanes_wanted(index) || (lane == QUIC_LANE && self.tunnels.peers[index].is_lossy)
    }

    /// A lane over TCP loses segments, or the far gateway says that its does: one over QUIC shall serve.
    pub(crate) fn on_lossy(&mut self, key: usize) {
        let Some(pair) = self.tunnels.pairs.get(key) else {
            return;
        };
        let index = pair.peer;
        let may = self.driver.config.transport == Transport::Auto && self.tunnels.quic.is_some();
        if may && !std::mem::replace(&mut self.tunnels.peers[index].is_lossy, true) {
            self.ask_for_quic(key);
        }
    }

    /// Dials a lane over QUIC where the path is lossy, or asks who dials here.
    pub(crate) fn ask_for_quic(&mut self, key: usize) {
        let Some(pair) = self.tunnels.pairs.get(key) else {
            return;
        };
        let index = pair.peer;
        if !self.tunnels.peers[index].is_lossy {
            return;
        }
        match self.tunnels.peers[index].address {
            Some(_) => self.dial_after(index, QUIC_LANE, Duration::ZERO),
            None => self.tell(key, GatewayToGateway::Lossy {}),
        }
    }

    /// A lane over QUIC begins with what those beside it know of the path, and goes before them.
    pub(crate) fn begin_course(&mut self, key: usize, lane: &mut Lane) {
        let Some(pair) = self.tunnels.pairs.get(key) else {
            return;
        };
        let reserved = most_rate(&self.driver.config, &self.tunnels.peers, pair);
        let contact = &self.tunnels.peers[pair.peer];
        let beside = pair
            .lanes
            .iter()
            .flatten()
            .filter_map(|lane| self.tunnels.lanes.get(*lane));
        // What a relay carries takes another way.
        let beside = beside.filter(|lane| lane.carrier.tcp().is_some() && lane.through.is_none());
        let rates: Vec<u64> = beside.map(Lane::rate).collect();
        let known = rates.iter().sum::<u64>().max(contact.seen_rate);
        // Beside TCP it stands because of losses; alone, where nothing else gets through.
        let is_lossy =
            contact.is_lossy || (self.driver.config.transport == Transport::Auto && !rates.is_empty());
        let share = match self.driver.config.transport {
            Transport::Quic => known / self.driver.config.lanes.unwrap_or(1) as u64,
            _ => known,
        };
        let now = self.driver.now;
        if let Some(session) = lane.carrier.quic() {
            let mut model = session.model.get();
            if share > 0 {
                model.settle(share);
            }
            model.reserve(reserved);
            drop(model);
            if is_lossy {
                session.expect_loss(now);
            }
        }
    }

    /// A lane has come up, gone, or learned its rate: the tunnel's bounds, the number of lanes and their shares of what is
    /// reserved follow.
    pub(crate) fn size_pair(&mut self, key: usize) {
        let Some(pair) = self.tunnels.pairs.get_mut(key) else {
            return;
        };
        let lanes = pair.lanes.iter().flatten();
        let lanes: Vec<_> = lanes.filter_map(|lane| self.tunnels.lanes.get(*lane)).collect();
        let least_rtt = lanes
            .iter()
            .filter_map(|lane| lane.path().ok())
            .map(|path| path.least_rtt_microseconds.min(path.rtt_microseconds))
            .min();
        let rates = lanes.iter().map(|lane| lane.rate().saturating_mul(8));
        let is_quic = self.driver.config.transport == Transport::Auto && pair.lanes[QUIC_LANE].is_some();
        // The lane over QUIC shares its path with the others.
        let seen: u64 = if is_quic {
            rates.max().unwrap_or(0)
        } else {
            rates.sum()
        };
        let reserved = self.tunnels.peers[pair.peer].reserved;
        if seen > 0 {
            self.tunnels.peers[pair.peer].seen_rate = seen / 8;
        }
        let Some(rtt) = least_rtt else { return };
        let product = reserved.map_or_else(|| product(rtt, seen), |rate| holds(rtt, rate));
        pair.tunnel.set_product(product);
        let share = most_rate(&self.driver.config, &self.tunnels.peers, pair);
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
        let wanted = needed(product, connection_holds()).min(QUIC_LANE);
        if self.driver.config.lanes.is_none() && wanted > self.tunnels.peers[index].lanes {
            self.tunnels.peers[index].lanes = wanted;
            self.dial_all(index, Duration::ZERO);
            self.tunnels
                .events
                .push_back(TunnelsEvent::MoreWanted { peer: index });
        }
    }
}
