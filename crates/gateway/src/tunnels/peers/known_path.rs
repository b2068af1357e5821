//! What was found out about a lane's path to the far gateway. It outlives the lane: the next one over the
//! same path begins with it, after a cut, a hand-over, or the end of the worker that had found it out.
//!
//! Without it, a lane that comes up under a job has nothing by which to pace the first large messages:
//! padding must not delay those of the job, and small messages tell a congestion control nothing. Three kills
//! of a worker in four seconds left messages of 4 to 256 kB at 7 to 12 ms instead of 6 to 9 for half a minute
//! (11.6 ms, 1 Gbit/s).

use serde::{Deserialize, Serialize};
use std::net::IpAddr;

/// A path between two gateways: another one may carry more, or less.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct KnownWay {
    /// Address of the far gateway, or of the relay.
    pub(in crate::tunnels) address: IpAddr,
    /// The site of the relay that carries it, if one does.
    pub(in crate::tunnels) through: Option<String>,
    /// Whether the carrier's congestion control is the kernel's.
    pub(in crate::tunnels) is_tcp: bool,
}

/// Everything known about a path, with rates in bytes per second; see `pacing::remembered_rate`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct KnownPath {
    pub(in crate::tunnels) way: KnownWay,
    pub(in crate::tunnels) rate: u64,
    pub(in crate::tunnels) best: u64,
    pub(in crate::tunnels) found: u64,
    pub(in crate::tunnels) doubtful: bool,
    /// Whether its last lane recently lost segments.
    pub(in crate::tunnels) loses: bool,
}

/// Rates that differ by less than one part in this many count as the same: records that outlive the worker
/// are written only for changes, and a rate that grows back does so by an eighth in each round trip.
const SAME: u64 = 16;

impl KnownPath {
    /// Whether this contains something new compared with `other`.
    pub(in crate::tunnels) fn differs_from(&self, other: &KnownPath) -> bool {
        let differ = |own: u64, other: u64| own.abs_diff(other) > other / SAME;
        self.way != other.way
            || (self.loses, self.doubtful) != (other.loses, other.doubtful)
            || differ(self.rate, other.rate)
            || differ(self.best, other.best)
            || differ(self.found, other.found)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_is_written_down_anew_where_its_rate_or_its_way_has_changed_and_not_for_every_little_step() {
        let known = KnownPath {
            way: KnownWay {
                address: [192, 0, 2, 1].into(),
                through: None,
                is_tcp: true,
            },
            rate: 100_000_000,
            best: 120_000_000,
            found: 120_000_000,
            doubtful: false,
            loses: false,
        };
        let with_rate = |rate| KnownPath {
            rate,
            ..known.clone()
        };
        assert!(!with_rate(100_000_000).differs_from(&known));
        assert!(!with_rate(103_000_000).differs_from(&known));
        assert!(with_rate(112_500_000).differs_from(&known));
        assert!(with_rate(75_000_000).differs_from(&known));
        let mut relayed = known.clone();
        relayed.way.through = Some("lyon".to_owned());
        assert!(relayed.differs_from(&known));
        let lossy = KnownPath {
            loses: true,
            ..known.clone()
        };
        assert!(lossy.differs_from(&known));
    }
}
