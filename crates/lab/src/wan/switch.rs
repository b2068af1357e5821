//! A user-space LAN for sites whose LAN has a round trip of its own: a learning switch between TAP devices.
//!
//! A LAN without delay does not need this: a kernel bridge is faster. The switch itself is in `ethernet`.

use std::fmt;
use std::os::fd::OwnedFd;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use thiserror::Error;

use super::ethernet::{Ethernet, SwitchRequest};
use super::pump::{Pump, PumpReport};
use super::spec::{LinkSpec, LinkStats, SpecError};

/// Bytes that may wait for one port of the switch. These are a few full TCP windows, so that several ranks
/// that send to one node lose nothing at ordinary message sizes; 34 ms at 1 Gbit/s if it is full. Frames that
/// do not fit are dropped.
pub const LAN_QUEUE_BYTES: u64 = 4 << 20;

/// The values that a site's LAN is given.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct LanSpec {
    /// Round trip between two nodes; each direction delays by half of it.
    pub rtt: Duration,
    /// Bits per second towards each node, framing included.
    pub rate_bits_per_second: u64,
}

/// A running LAN. Dropping it stops and joins its thread, and closes the devices.
pub struct Switch {
    pump: Pump<SwitchRequest>,
}

impl Switch {
    /// Starts carrying frames between `ports` (name and TAP device, IFF_TAP | IFF_NO_PI, non-blocking) in a
    /// thread named "causeway-lan".
    ///
    /// # Errors
    /// The values are impossible, or the thread cannot be started. Then the devices are closed.
    pub fn start(ports: Vec<(String, OwnedFd)>, spec: LanSpec) -> Result<Switch, SwitchError> {
        let link = LinkSpec {
            rtt: spec.rtt,
            rate_bits_per_second: spec.rate_bits_per_second,
            queue_bytes: LAN_QUEUE_BYTES,
            loss: 0.0,
            seed: 0,
            up: true,
        };
        link.check().map_err(|source| SwitchError::Spec { source })?;
        let (names, taps): (Vec<_>, Vec<_>) = ports.into_iter().unzip();
        let ethernet = Ethernet::new(names, &link);
        let pump =
            Pump::start("causeway-lan", ethernet, taps).map_err(|source| SwitchError::Start { source })?;
        Ok(Switch { pump })
    }

    /// One entry for each port, for the direction from the switch to it; empty if the thread has ended.
    pub fn stats(&self) -> Vec<LinkStats> {
        self.ask().map(|(stats, _)| stats).unwrap_or_default()
    }

    /// CPU time of the switch's thread so far; `None` if it has ended.
    pub fn cpu(&self) -> Option<Duration> {
        self.ask().map(|(_, report)| report.cpu)
    }

    fn ask(&self) -> Option<(Vec<LinkStats>, PumpReport)> {
        self.pump.ask(|reply| SwitchRequest::Stats { reply })
    }
}

impl fmt::Debug for Switch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Switch").finish_non_exhaustive()
    }
}

/// Why a LAN could not be started.
#[derive(Debug, Error)]
pub enum SwitchError {
    /// Values that no LAN can have.
    #[error("start LAN")]
    Spec {
        /// The value that is out of range.
        source: SpecError,
    },
    /// The thread could not be started.
    #[error("start LAN: no switch thread")]
    Start {
        /// The kernel's answer.
        source: std::io::Error,
    },
}
