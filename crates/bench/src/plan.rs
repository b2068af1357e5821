//! Names what is asked for: the matrix, how long it goes on, and what results show beside it.

use crate::cell::Cell;
use crate::limit::Link;
use crate::schedule::Bounds;
use serde::{Deserialize, Serialize};

/// Changes when older directories cannot be continued.
const FORMAT: u32 = 1;

/// A link, and how it is known.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct KnownLink {
    /// Round trip of an empty link, in microseconds.
    pub round_trip_us: f64,
    /// Bits per second.
    pub rate_bits_per_second: f64,
    /// `scenario`, `probed` (by the gateways' lanes) or `given`.
    pub source: String,
}

impl KnownLink {
    /// The link in the form that the limit takes.
    pub fn link(&self) -> Link {
        Link {
            round_trip: std::time::Duration::from_secs_f64(self.round_trip_us / 1e6),
            rate_bits_per_second: self.rate_bits_per_second,
        }
    }
}

/// Names what is measured: a directory with another plan is not continued.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Plan {
    /// See [`FORMAT`].
    format: u32,
    /// `tcp`, `pingpong`, `operations`, `app`, `npb`.
    pub bench: String,
    /// The matrix.
    pub cells: Vec<Cell>,
    /// How long the measurement continues.
    pub bounds: Bounds,
    /// Sites and their ranks, as for `causeway run --sites`; empty if the user's command gives them.
    pub sites: String,
    /// The emulated grid, empty for a real one.
    pub lab: String,
    /// What the programs are given.
    pub arguments: String,
    /// Milliseconds of silence before each message.
    pub idle_milliseconds: u64,
}

impl Plan {
    /// A plan of this version's format.
    pub fn new(bench: &str, cells: Vec<Cell>, bounds: Bounds) -> Plan {
        Plan {
            format: FORMAT,
            bench: bench.to_owned(),
            cells,
            bounds,
            sites: String::new(),
            lab: String::new(),
            arguments: String::new(),
            idle_milliseconds: 0,
        }
    }
}

/// What `plan.json` contains.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Head {
    /// See [`Plan`].
    pub plan: Plan,
    /// The command as it was typed.
    pub command: String,
    /// The version of Causeway.
    pub version: String,
    /// `what: value` of the host.
    pub host: Vec<(String, String)>,
    /// The link between the first two sites; `None` if nothing is known of it.
    pub link: Option<KnownLink>,
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::cell::Way;
    use crate::row::tests::cell;

    pub(crate) fn head() -> Head {
        let bounds = Bounds {
            least: 3,
            most: 10,
            narrow: 0.02,
            seed: 1,
        };
        Head {
            plan: Plan::new("pingpong", vec![cell(Way::Direct), cell(Way::Causeway)], bounds),
            command: "causeway bench pingpong".into(),
            version: "0".into(),
            host: vec![],
            link: Some(KnownLink {
                round_trip_us: 11_600.0,
                rate_bits_per_second: 1e9,
                source: "scenario".into(),
            }),
        }
    }
}
