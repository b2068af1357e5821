//! What was found out about the paths to a peer, by the numbers of the lanes that took them: for each, a
//! direct path and one through a relay.

use crate::keys::LaneNumber;
use crate::tunnels::peers::known_path::{KnownPath, KnownWay};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// See the module.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub(crate) struct Paths(BTreeMap<(usize, bool), KnownPath>);

impl Paths {
    /// Returns what is known about the path of this lane.
    pub(in crate::tunnels) fn of(&self, number: LaneNumber, way: &KnownWay) -> Option<&KnownPath> {
        let known = self.0.get(&(number.0, way.through.is_some()))?;
        (known.way == *way).then_some(known)
    }

    /// Whether a lane has found out something that is not known here.
    pub(in crate::tunnels) fn lacks(&self, number: LaneNumber, path: &KnownPath) -> bool {
        let known = self.0.get(&(number.0, path.way.through.is_some()));
        known.is_none_or(|known| path.differs_from(known))
    }

    pub(in crate::tunnels) fn note(&mut self, number: LaneNumber, path: KnownPath) {
        self.0.insert((number.0, path.way.through.is_some()), path);
    }

    /// Bytes per second of the direct lanes over TCP, or over QUIC, together.
    pub(in crate::tunnels) fn direct_rate(&self, over_tcp: bool) -> u64 {
        let direct = self.0.values().filter(|path| path.way.through.is_none());
        direct
            .filter(|path| path.way.is_tcp == over_tcp)
            .fold(0, |sum, path| sum.saturating_add(path.rate))
    }
}

/// Sample paths, for tests of the layout.
#[cfg(test)]
impl Paths {
    pub(in crate::tunnels) fn sample() -> Paths {
        let mut paths = Paths::default();
        let way = KnownWay {
            address: [10, 1, 0, 1].into(),
            through: Some("lyon".to_owned()),
            is_tcp: true,
        };
        let path = KnownPath {
            way,
            rate: 1,
            best: 2,
            found: 3,
            doubtful: false,
            loses: true,
        };
        paths.note(LaneNumber(0), path);
        paths
    }
}
