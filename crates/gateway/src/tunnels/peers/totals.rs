//! The counts of ended lanes and pairs. The kernel counts each connection from 0, and a pair is made anew
//! with each session; but what is exported as a counter must not go down when either is replaced.

use crate::tunnels::pair::Pair;
use causeway_control::LaneStatus;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::ops::AddAssign;

/// The counters of a lane; see [`LaneStatus`].
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct LaneCounts {
    pub(crate) sent_bytes: u64,
    pub(crate) received_bytes: u64,
    pub(crate) segments: u64,
    pub(crate) retransmits: u64,
    pub(crate) timeouts: u64,
    pub(crate) out_of_order: u64,
    pub(crate) repaired: u64,
    pub(crate) idle_restarts: u64,
}

/// Counts of the ended lanes and pairs of one peer.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub(crate) struct Totals {
    /// Counts of ended lanes, by their numbers.
    pub(crate) lanes: BTreeMap<usize, LaneCounts>,
    /// Counts of ended pairs, like the fields that follow.
    pub(crate) sent_bytes: u64,
    pub(crate) received_bytes: u64,
    pub(crate) lanes_lost: u64,
}

impl From<&LaneStatus> for LaneCounts {
    fn from(lane: &LaneStatus) -> LaneCounts {
        LaneCounts {
            sent_bytes: lane.sent_bytes,
            received_bytes: lane.received_bytes,
            segments: lane.segments.into(),
            retransmits: lane.retransmits.into(),
            timeouts: lane.timeouts.into(),
            out_of_order: lane.out_of_order.into(),
            repaired: lane.repaired,
            idle_restarts: lane.idle_restarts,
        }
    }
}

impl AddAssign for LaneCounts {
    fn add_assign(&mut self, other: LaneCounts) {
        self.sent_bytes += other.sent_bytes;
        self.received_bytes += other.received_bytes;
        self.segments += other.segments;
        self.retransmits += other.retransmits;
        self.timeouts += other.timeouts;
        self.out_of_order += other.out_of_order;
        self.repaired += other.repaired;
        self.idle_restarts += other.idle_restarts;
    }
}

impl Totals {
    /// Adds what a lane has counted.
    pub(crate) fn add_lane(&mut self, lane: &LaneStatus) {
        *self.lanes.entry(lane.number).or_default() += lane.into();
    }

    /// Adds what a pair has counted, without its lanes.
    pub(crate) fn add_pair(&mut self, pair: &Pair) {
        self.sent_bytes += pair.sent_bytes;
        self.received_bytes += pair.received_bytes;
        self.lanes_lost += pair.lanes_lost;
    }
}
