//! The limits of a tunnel: how much it may keep and how long it waits.
//!
//! Memory of one tunnel at the sending end: at most [`Settings::lane_bytes`] (64 MiB on the longest paths) in
//! flight per lane, the same again while frames of a silent or dead lane wait for another one, and what the
//! opens, ends and credits of the streams take (some 100 bytes per stream): at most [`CONTROL_BYTES`] per
//! lane in addition, and [`MAX_WAITING_BYTES`] that wait for a lane. At the receiving end: see [`Limits`].

use crate::window::Limits;
use std::time::Duration;

/// Limits and times of one tunnel.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Settings {
    /// Limits of the receive windows.
    pub limits: Limits,
    /// How many bytes of payload a lane keeps until the far side has acknowledged them. The throughput of a
    /// lane is at most this per round trip.
    pub lane_bytes: u64,
    /// How long streams wait while every lane is down.
    pub resume: Duration,
    /// How long a lane may be silent, although an answer is due, before it counts as dead.
    pub lane_timeout: Duration,
    /// How long nothing may be sent on a lane before it is pinged.
    pub keepalive: Duration,
    /// Whether frames of at most [`SMALL_FRAME`] bytes are sent on two lanes, so that the loss of one copy
    /// costs no time.
    pub duplicate_small: bool,
}

/// How many bytes control frames may take on a lane beyond [`Settings::lane_bytes`] until they are
/// acknowledged: they do not wait for room for data. This is enough for a hundred thousand opens.
pub const CONTROL_BYTES: u64 = 16 << 20;

/// Most bytes of control frames that wait for a lane. A far gateway that causes more answers than that, and
/// reads none of them, breaks the protocol. No stream is opened while a quarter of this waits, so that this
/// end alone never comes near it.
pub const MAX_WAITING_BYTES: u64 = 64 << 20;

/// Longest payload of a frame that is worth sending twice: less than two packets.
pub const SMALL_FRAME: usize = 2048;

impl Default for Settings {
    fn default() -> Settings {
        Settings {
            limits: Limits::default(),
            lane_bytes: 8 << 20, // 1 Gbit/s at 67 ms for one lane; two cross the Atlantic
            // Longer than a router's restart, shorter than a user's patience.
            resume: Duration::from_secs(600),
            lane_timeout: Duration::from_secs(15), // four retransmissions of TCP from a 0.2 s timeout on
            keepalive: Duration::from_secs(5),
            duplicate_small: false,
        }
    }
}

/// Most bytes that a lane may keep on any path: four times the product of 1 Gbit/s and 134 ms.
pub(crate) const MAX_LANE_BYTES: u64 = 64 << 20;

impl Settings {
    /// The limits for a path that holds `product` bytes (its rate times its round trip): a window must hold
    /// twice that, since credit is a round trip old, and unacknowledged bytes may be up to four times as many
    /// while BBR looks for more. They are never below the defaults.
    pub(crate) fn for_product(self, product: u64) -> Settings {
        let least = Settings::default();
        Settings {
            limits: Limits {
                initial: product
                    .saturating_mul(2)
                    .clamp(least.limits.initial, MAX_LANE_BYTES / 2),
                most: product.saturating_mul(4).clamp(least.limits.most, MAX_LANE_BYTES),
                ..self.limits
            },
            lane_bytes: product.saturating_mul(4).clamp(least.lane_bytes, MAX_LANE_BYTES),
            ..self
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_longer_path_may_hold_more_within_the_bounds() {
        let at = |product| Settings::default().for_product(product);
        assert_eq!(at(0), Settings::default());
        let atlantic = at(11_250_000);
        assert_eq!(
            (atlantic.limits.initial, atlantic.limits.most, atlantic.lane_bytes),
            (22_500_000, 45_000_000, 45_000_000)
        );
        assert_eq!(at(u64::MAX).lane_bytes, MAX_LANE_BYTES);
        assert_eq!(at(1 << 40).limits.budget, Limits::default().budget);
    }
}
