//! How many lanes a pair of sites needs, and what each of them may do, depending on what its path holds: rate
//! times round trip.
//!
//! One lane is best if it can fill the path: two BBR connections on one bottleneck make each other overrun
//! its queue (on an emulated 1 Gbit/s, 11.6 ms, with a queue of 2 MB, they sent a tenth to a third of their
//! segments again, one lane none). But the kernel limits what one connection has in flight by its buffers,
//! which an ordinary user cannot raise.

use crate::config::{Config, Transport};
use crate::keys::LaneNumber;
use crate::tunnels::pair::Pair;
use crate::tunnels::peers::Peers;
use std::ops::RangeInclusive;

/// The rate that is assumed for a path on which no more was seen: that of Hablot et al. 2007, and few sites
/// have less. A lane that has only carried small messages has seen little, and bounds that are too large cost
/// only memory.
const ASSUMED_BITS_PER_SECOND: u64 = 1_000_000_000;

/// Buffers of a connection, in bytes, if the kernel does not report them: Linux's defaults.
const USUAL_BUFFER: u64 = 4 << 20;

/// Most lanes that are opened without being configured. More gain little, and each probes the path for
/// itself.
const CHOSEN: RangeInclusive<u64> = 1..=8;

/// What one connection can have in flight: half of the smaller of both buffers, because the other half is the
/// kernel's own bookkeeping (tcp(7), tcp_adv_win_scale). The far side's buffers are assumed to be as large as
/// ours.
pub fn connection_holds() -> u64 {
    let largest = |name: &str| {
        let text = std::fs::read_to_string(format!("/proc/sys/net/ipv4/{name}")).ok()?;
        text.split_whitespace().nth(2)?.parse::<u64>().ok()
    };
    let buffers = ["tcp_wmem", "tcp_rmem"].map(|name| largest(name).unwrap_or(USUAL_BUFFER));
    (buffers[0].min(buffers[1]) / 2).max(1)
}

/// Lanes that fill a path which holds `held_bytes` bytes.
pub(crate) fn needed(held_bytes: u64, connection: u64) -> usize {
    // The number fits: it is at most 8.
    held_bytes
        .div_ceil(connection)
        .clamp(*CHOSEN.start(), *CHOSEN.end()) as usize
}

/// The most lanes that a gateway opens for a path unless it is configured otherwise.
pub fn most() -> u64 {
    *CHOSEN.end()
}

/// The bytes that a path holds, from its round trip and the rate that it was seen to have; see the assumed
/// rate.
pub fn bandwidth_delay_product(rtt_microseconds: u32, seen_bits_per_second: u64) -> u64 {
    holds(
        rtt_microseconds,
        seen_bits_per_second.max(ASSUMED_BITS_PER_SECOND),
    )
}

pub(crate) fn holds(rtt_microseconds: u32, bits_per_second: u64) -> u64 {
    let bits = u128::from(rtt_microseconds) * u128::from(bits_per_second) / 1_000_000;
    u64::try_from(bits / 8).unwrap_or(u64::MAX)
}

/// A lane's share of what is reserved on the path to a peer, in bytes per second.
pub(crate) fn most_rate(config: &Config, peers: &Peers, pair: &Pair) -> Option<u64> {
    let bits = peers.get(pair.peer)?.reserved?;
    let lanes = pair.lanes.values().flatten().count();
    // While there is a lane over QUIC, it carries everything, and the others nothing worth counting.
    let spare = config.transport == Transport::Auto && pair.lanes[LaneNumber::QUIC].is_some();
    let lanes = if spare { 1 } else { lanes.max(1) };
    Some(bits / 8 / lanes as u64)
}

/// A lane's share of [`UNSENT_BYTES`].
pub(crate) fn unsent_share(lanes: usize) -> u32 {
    (UNSENT_BYTES / lanes.max(1) as u32).max(MIN_UNSENT_BYTES)
}

/// Bytes that may wait unsent in the kernel, over all lanes of a pair (`socket::set_unsent_low_water`). Small
/// frames cannot overtake them, so they are few: a millisecond at 1 Gbit/s.
pub(crate) const UNSENT_BYTES: u32 = 128 * 1024;

/// A lane's share of [`UNSENT_BYTES`] is never less than one large frame.
pub(crate) const MIN_UNSENT_BYTES: u32 = 64 * 1024;

/// The most that is put into a lane before it is written.
pub(crate) const BATCH: u64 = UNSENT_BYTES as u64;

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
