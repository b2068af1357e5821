//! What a tunnel may hold and how long it waits.
//!
//! Memory of one tunnel at the sending end: at most [`Settings::lane_bytes`] per lane on its way, once more while
//! frames of a silent or dead lane wait for another one, and what the streams' opens, ends and credits take (some
//! 100 bytes per stream). At the receiving end: see [`Limits`].

use crate::window::Limits;
use std::time::Duration;

/// Bounds and times of one tunnel.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Settings {
    /// Receive windows.
    pub limits: Limits,
    /// Payload a lane holds until the far side has acknowledged it. Throughput of a lane is at most this per round
    /// trip.
    pub lane_bytes: u64,
    /// How long streams wait when every lane is down.
    pub resume: Duration,
    /// A lane that has been silent for this long though an answer is due is dead.
    pub lane_timeout: Duration,
    /// A lane on which nothing was said for this long is asked whether it lives.
    pub keepalive: Duration,
    /// Frames of at most [`SMALL_FRAME`] bytes travel on two lanes, so that the loss of one costs them no time.
    pub duplicate_small: bool,
}

/// Payload of a frame that is worth sending twice: less than two packets.
pub const SMALL_FRAME: usize = 2048;

impl Default for Settings {
    fn default() -> Settings {
        Settings {
            limits: Limits::default(),
            lane_bytes: 8 << 20, // 1 Gbit/s at 67 ms for one lane; two cross the Atlantic
            resume: Duration::from_secs(600), // longer than a router's restart, shorter than a user's patience
            lane_timeout: Duration::from_secs(15), // four retransmissions of TCP from a 0.2 s timeout on
            keepalive: Duration::from_secs(5),
            duplicate_small: false,
        }
    }
}
