//! Turns the counters of one direction into what is reported about it.

use std::time::Duration;

use super::link::Counters;
use super::spec::LinkStats;

/// The report of the direction from `from` to `to`.
pub(crate) fn link_stats(from: &str, to: &str, counters: &Counters) -> LinkStats {
    let ended = counters.delivered
        + counters.write_failed
        + counters.dropped_by_queue
        + counters.dropped_by_loss
        + counters.dropped_by_down;
    LinkStats {
        from: from.into(),
        to: to.into(),
        offered_packets: counters.offered,
        packets: counters.delivered,
        bytes: counters.delivered_bytes,
        dropped_by_queue: counters.dropped_by_queue,
        dropped_by_loss: counters.dropped_by_loss,
        dropped_by_down: counters.dropped_by_down,
        write_failed: counters.write_failed,
        reordered: counters.reordered,
        in_flight: counters.offered - ended,
        max_lateness: Duration::from_nanos(counters.max_lateness_ns),
    }
}
