//! The properties that a link is given, their changes at run time, and its reports. It is plain data, which
//! can only check itself.

use std::time::Duration;

use serde::{Deserialize, Serialize};
use thiserror::Error;

/// Bytes a packet takes on the wire beyond its IP length: preamble 8, Ethernet header 14, frame check 4 and
/// inter-frame gap 12. With them, packets of 1500 bytes at 1 Gbit/s give TCP 941 Mbit/s, as on a real
/// adapter.
pub const FRAMING_BYTES: u64 = 38;

/// The longest round trip that is accepted: everything in flight is held in memory, and a longer one is a
/// typing error.
pub const MAX_RTT: Duration = Duration::from_secs(60);

/// The slowest rate that is accepted: below it, one full packet takes longer than a minute, which is a typing
/// error, too.
pub const MIN_RATE_BITS_PER_SECOND: u64 = 1_000;

/// The values that a link between two sites is given; both directions have the same, and are independent.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct LinkSpec {
    /// Round-trip propagation time; each direction delays by half of it.
    pub rtt: Duration,
    /// Bits per second of each direction, Ethernet framing ([`FRAMING_BYTES`]) included.
    pub rate_bits_per_second: u64,
    /// Bytes on the wire that may wait for the transmitter of each direction; what does not fit is dropped
    /// (drop-tail). A full queue adds `queue_bytes * 8 / rate_bits_per_second` to the delay.
    pub queue_bytes: u64,
    /// Probability from 0 to 1 that a packet is lost, independently for each packet and direction
    /// (Bernoulli), before it enters the queue.
    pub loss: f64,
    /// The same seed gives the same verdict for a packet with the same number. The two directions use
    /// different sequences.
    pub seed: u64,
    /// Whether the link is up; if not, everything offered or in flight is lost.
    pub up: bool,
}

/// Changes to a link at run time; a value that is `None` stays.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct LinkChange {
    /// New round-trip propagation time.
    pub rtt: Option<Duration>,
    /// New rate of each direction in bits per second.
    pub rate_bits_per_second: Option<u64>,
    /// New bound of each direction's queue in bytes on the wire.
    pub queue_bytes: Option<u64>,
    /// New loss probability, 0 to 1.
    pub loss: Option<f64>,
    /// Whether to restore the link (`true`) or cut it (`false`).
    pub up: Option<bool>,
}

impl LinkSpec {
    /// Returns what is wrong with these values, if anything.
    ///
    /// # Errors
    /// The first value that no link can have.
    pub fn check(&self) -> Result<(), SpecError> {
        if self.rtt > MAX_RTT {
            return Err(SpecError::Rtt(self.rtt));
        }
        if self.rate_bits_per_second < MIN_RATE_BITS_PER_SECOND {
            return Err(SpecError::Rate(self.rate_bits_per_second));
        }
        if !(0.0..=1.0).contains(&self.loss) {
            return Err(SpecError::Loss(self.loss));
        }
        Ok(())
    }

    /// These values with `change` applied.
    pub fn with(&self, change: &LinkChange) -> LinkSpec {
        LinkSpec {
            rtt: change.rtt.unwrap_or(self.rtt),
            rate_bits_per_second: change.rate_bits_per_second.unwrap_or(self.rate_bits_per_second),
            queue_bytes: change.queue_bytes.unwrap_or(self.queue_bytes),
            loss: change.loss.unwrap_or(self.loss),
            seed: self.seed,
            up: change.up.unwrap_or(self.up),
        }
    }
}

/// A value that no link can have.
#[derive(Debug, Clone, Copy, PartialEq, Error)]
pub enum SpecError {
    /// The round trip is beyond [`MAX_RTT`].
    #[error("rtt {0:?} is above the {MAX_RTT:?} an emulated link can hold")]
    Rtt(Duration),
    /// The rate is below [`MIN_RATE_BITS_PER_SECOND`].
    #[error("rate {0} bit/s is below {MIN_RATE_BITS_PER_SECOND} bit/s, the slowest link emulated")]
    Rate(u64),
    /// The loss is not a probability.
    #[error("loss {0} is not a probability from 0 to 1")]
    Loss(f64),
}

/// What one direction of a link has done so far.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct LinkStats {
    /// Site (or, in a LAN, the switch) that the packets come from.
    pub from: String,
    /// Site (or port of the LAN) that the packets are sent to.
    pub to: String,
    /// Packets that arrived at the sending end.
    pub offered_packets: u64,
    /// Packets written to the receiving port.
    pub packets: u64,
    /// Bytes of those packets, IP headers included, framing not.
    pub bytes: u64,
    /// Packets dropped because the queue was full.
    pub dropped_by_queue: u64,
    /// Packets that were lost by the seeded random numbers.
    pub dropped_by_loss: u64,
    /// Packets lost because the link was down.
    pub dropped_by_down: u64,
    /// Packets that the receiving port refused (interface down, no memory); 0 in a healthy lab.
    pub write_failed: u64,
    /// Packets that overtook another; 0 by construction.
    pub reordered: u64,
    /// Packets still in flight.
    pub in_flight: u64,
    /// The largest delay between the time at which a packet was due and the time at which it was written.
    pub max_lateness: Duration,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn spec() -> LinkSpec {
        LinkSpec {
            rtt: Duration::from_millis(10),
            rate_bits_per_second: 1_000_000_000,
            queue_bytes: 2_000_000,
            loss: 0.0,
            seed: 1,
            up: true,
        }
    }

    #[test]
    fn impossible_values_are_named() {
        assert_eq!(spec().check(), Ok(()));
        assert!(matches!(
            LinkSpec {
                loss: f64::NAN,
                ..spec()
            }
            .check(),
            Err(SpecError::Loss(_))
        ));
        assert_eq!(
            LinkSpec { loss: 1.5, ..spec() }.check(),
            Err(SpecError::Loss(1.5))
        );
        assert_eq!(
            LinkSpec {
                rate_bits_per_second: 0,
                ..spec()
            }
            .check(),
            Err(SpecError::Rate(0))
        );
        let long = Duration::from_secs(61);
        assert_eq!(
            LinkSpec { rtt: long, ..spec() }.check(),
            Err(SpecError::Rtt(long))
        );
    }

    #[test]
    fn a_change_leaves_the_rest_as_it_was() {
        let change = LinkChange {
            loss: Some(0.25),
            ..LinkChange::default()
        };
        assert_eq!(spec().with(&change), LinkSpec { loss: 0.25, ..spec() });
    }
}
