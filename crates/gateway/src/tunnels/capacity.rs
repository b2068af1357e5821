//! How many lanes a pair of sites needs and what each of them may do, from what its path holds: rate times round trip.
//!
//! One lane is best while it can fill the path: two BBR connections on one bottleneck push each other over its queue (on an
//! emulated 1 Gbit/s, 11.6 ms, 2 MB they sent a tenth to a third of their segments again, one lane none). But the
//! kernel bounds what one connection has on its way by its buffers, which an ordinary user cannot raise.

use crate::config::{Config, Transport};
use crate::gateway::Gateway;
use crate::sys::socket;
use crate::tunnels::lane::Lane;
use crate::tunnels::message::GatewayToGateway;
use crate::tunnels::pair::Pair;
use crate::tunnels::peer::Peer;
use crate::tunnels::pump;
use causeway_tunnel::tunnel::MAX_LANES;
use std::ops::RangeInclusive;
use std::time::Duration;

/// The rate of a path where no more has been seen: what Hablot et al. 2007 had, and few sites have less. A lane that has only
/// carried small messages has seen little, and bounds that are too large cost memory only.
const ASSUMED_BITS_PER_SECOND: u64 = 1_000_000_000;

/// Buffers of a connection, in bytes, where the kernel does not say: Linux's own.
const USUAL_BUFFER: u64 = 4 << 20;

/// Lanes chosen without being asked for. More bring little and each probes the path for itself.
const CHOSEN: RangeInclusive<u64> = 1..=8;

/// What one connection can have on its way: half of the smaller of both buffers, since the other half is the kernel's own
/// book-keeping (tcp(7), tcp_adv_win_scale). The far side's are taken to be as large as ours.
pub fn connection_holds() -> u64 {
    let largest = |name: &str| {
        let text = std::fs::read_to_string(format!("/proc/sys/net/ipv4/{name}")).ok()?;
        text.split_whitespace().nth(2)?.parse::<u64>().ok()
    };
    let buffers = ["tcp_wmem", "tcp_rmem"].map(|name| largest(name).unwrap_or(USUAL_BUFFER));
    (buffers[0].min(buffers[1]) / 2).max(1)
}

/// Lanes that fill a path which holds `product` bytes.
fn needed(product: u64, connection: u64) -> usize {
    // Fits: at most 8.
    product.div_ceil(connection).clamp(*CHOSEN.start(), *CHOSEN.end()) as usize
}

/// The bytes a path holds, from its round trip and the rate it was seen to have; see the assumed rate.
pub fn product(rtt_microseconds: u32, seen_bits_per_second: u64) -> u64 {
    holds(
        rtt_microseconds,
        seen_bits_per_second.max(ASSUMED_BITS_PER_SECOND),
    )
}

pub(crate) fn holds(rtt_microseconds: u32, bits_per_second: u64) -> u64 {
    let bits = u128::from(rtt_microseconds) * u128::from(bits_per_second) / 1_000_000;
    u64::try_from(bits / 8).unwrap_or(u64::MAX)
}

/// A lane's share of what is reserved on the way to a peer, in bytes per second.
pub(crate) fn most_rate(config: &Config, peers: &[Peer], pair: &Pair) -> Option<u64> {
    let bits = peers.get(pair.peer)?.reserved?;
    let lanes = pair.lanes.iter().flatten().count();
    // The lane over QUIC carries everything while it is there; the others nothing worth counting.
    let spare = config.transport == Transport::Auto && pair.lanes[QUIC_LANE].is_some();
    let lanes = if spare { 1 } else { lanes.max(1) };
    Some(bits / 8 / lanes as u64)
}

/// Number of the lane over QUIC beside those over TCP.
pub(crate) const QUIC_LANE: usize = MAX_LANES - 1;

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
        let unsent = pump::unsent_share(lanes.len());
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
            self.seek_all(index, Duration::ZERO);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_gets_as_many_lanes_as_its_connections_need_to_fill_it() {
        let usual = USUAL_BUFFER / 2;
        assert_eq!(needed(holds(11_600, 1_000_000_000), usual), 1);
        assert_eq!(needed(holds(90_000, 1_000_000_000), usual), 6);
        assert_eq!(needed(holds(90_000, 10_000_000_000), usual), 8);
        assert_eq!(needed(holds(90_000, 1_000_000_000), 16 << 20), 1);
        assert_eq!(needed(0, usual), 1);
    }

    #[test]
    fn a_path_holds_its_rate_times_its_round_trip() {
        assert_eq!(holds(11_600, 1_000_000_000), 1_450_000);
        assert_eq!(holds(u32::MAX, u64::MAX), u64::MAX);
    }
}
