//! Computes the rates between two polls of a gateway, from its byte counters.

use causeway_control::{LaneStatus, Status, TunnelStatus};
use serde::Serialize;
use std::time::Duration;

/// Bits per second, as a mean over the time between the polls.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Rate {
    pub sent_bits_per_second: f64,
    pub received_bits_per_second: f64,
}

/// Rates of applications' bytes.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct TunnelRate {
    pub site: String,
    #[serde(flatten)]
    pub rate: Rate,
    pub lanes: Vec<LaneRate>,
}

/// Rates of all bytes on the lane's connection.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct LaneRate {
    pub number: usize,
    #[serde(flatten)]
    pub rate: Rate,
}

/// The rates of every tunnel of `now`. A tunnel or lane that did not exist at the last poll counts from 0, as
/// its counters do. `None` if another process answered the last poll.
pub fn rates(before: &Status, now: &Status, elapsed: Duration) -> Option<Vec<TunnelRate>> {
    let same = (before.pid, before.worker_ends) == (now.pid, now.worker_ends);
    if !same || elapsed.is_zero() {
        return None;
    }
    let tunnels = now.tunnels.iter().map(|tunnel| {
        let last = before.tunnels.iter().find(|last| last.site == tunnel.site);
        TunnelRate {
            site: tunnel.site.clone(),
            rate: rate(
                last.map(|last| (last.sent_bytes, last.received_bytes)),
                (tunnel.sent_bytes, tunnel.received_bytes),
                elapsed,
            ),
            lanes: lane_rates(last, tunnel, elapsed),
        }
    });
    Some(tunnels.collect())
}

fn lane_rates(last: Option<&TunnelStatus>, tunnel: &TunnelStatus, elapsed: Duration) -> Vec<LaneRate> {
    let bytes = |lane: &LaneStatus| (lane.sent_bytes, lane.received_bytes);
    let lanes = tunnel.lanes.iter().map(|lane| {
        let last = last.and_then(|last| last.lanes.iter().find(|last| last.number == lane.number));
        LaneRate {
            number: lane.number,
            rate: rate(last.map(bytes), bytes(lane), elapsed),
        }
    });
    lanes.collect()
}

/// Computes the rates from the bytes sent and received, before and now.
fn rate(before: Option<(u64, u64)>, now: (u64, u64), elapsed: Duration) -> Rate {
    let before = before.unwrap_or_default();
    let per_second = |before: u64, now: u64| {
        // A counter that has gone down belongs to a new connection, for which it began at 0.
        let bytes = now.checked_sub(before).unwrap_or(now);
        bytes as f64 * 8.0 / elapsed.as_secs_f64()
    };
    Rate {
        sent_bits_per_second: per_second(before.0, now.0),
        received_bits_per_second: per_second(before.1, now.1),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::status::text::tests::status;

    #[test]
    fn rates_are_differences_over_time_in_bits() {
        let (before, mut now) = (status(), status());
        now.tunnels[0].sent_bytes += 1_000_000;
        now.tunnels[0].lanes[0].received_bytes += 500_000;
        let rates = rates(&before, &now, Duration::from_secs(2)).unwrap();
        assert_eq!(rates[0].rate.sent_bits_per_second, 4e6);
        assert_eq!(rates[0].rate.received_bits_per_second, 0.0);
        assert_eq!(rates[0].lanes[0].rate.received_bits_per_second, 2e6);
    }

    #[test]
    fn a_new_lane_counts_from_its_beginning_and_a_new_gateway_not_at_all() {
        let (before, mut now) = (status(), status());
        now.tunnels[0].lanes[0].sent_bytes = 100;
        let second = Duration::from_secs(1);
        let new_lane = rates(&before, &now, second).unwrap();
        assert_eq!(new_lane[0].lanes[0].rate.sent_bits_per_second, 800.0);
        now.worker_ends += 1;
        assert_eq!(rates(&before, &now, second), None);
        (now.worker_ends, now.pid) = (before.worker_ends, before.pid + 1);
        assert_eq!(rates(&before, &now, second), None);
    }
}
