//! A new lane is filled until its congestion control knows the path: a window that has only carried small messages paces
//! the first large one at a guess (16 kB took 9.9 ms instead of 6.0 at 11.6 ms under BBR) and, still in its
//! start-up, overshoots and loses a tenth of the bursts that follow.
//!
//! Streams go first. Bounded by bytes and time; over as soon as BBR has left its start-up.

use crate::gateway::Gateway;
use crate::pump::BATCH;
use crate::socket;
use std::os::fd::AsFd;
use std::time::{Duration, Instant};

/// At most this is sent to train one lane. BBR finds 1 Gbit/s at 11.6 ms with about 20 MB, its start-up doubles the
/// rate each round trip; 64 MB find 1 Gbit/s across the Atlantic.
const MOST_BYTES: u64 = 64 << 20;

/// At least this is sent: BBR may take the first pause of a busy machine for the end of the growth, and finds the rest
/// within a few cycles of probing.
const LEAST_BYTES: u64 = 8 << 20;

/// At most this long: 20 round trips of 100 ms.
const LONGEST: Duration = Duration::from_secs(2);

/// BBR paces at 2.885 times the bandwidth it has seen while it starts, at 1.25 times at most later (Cardwell et al. 2017);
/// the kernel counts in 1/256.
const STARTUP_GAIN: u32 = 500;

/// Without BBR's word for it: about ten bandwidth-delay products of 1 Gbit/s at 11.6 ms.
const BLIND_BYTES: u64 = 16 << 20;

pub(crate) struct Training {
    until: Instant,
    sent_bytes: u64,
}

impl Training {
    pub(crate) fn begin(now: Instant) -> Training {
        Training {
            until: now + LONGEST,
            sent_bytes: 0,
        }
    }

    fn is_over(&self, socket: &impl AsFd, now: Instant) -> bool {
        let knows = match socket::bbr_pacing_gain(socket) {
            Some(gain) => gain < STARTUP_GAIN,
            None => self.sent_bytes >= BLIND_BYTES,
        };
        (knows && self.sent_bytes >= LEAST_BYTES) || self.sent_bytes >= MOST_BYTES || now >= self.until
    }
}

impl Gateway {
    /// Fills the lanes of a pair that are in training and have nothing else to do; true when there was one.
    pub(crate) fn train(&mut self, key: usize) -> bool {
        let now = self.now;
        let Some(pair) = self.pairs.get_mut(key) else {
            return false;
        };
        let mut trains = false;
        for number in 0..pair.lanes.len() {
            let Some(lane) = pair.lanes[number].and_then(|lane| self.lanes.get_mut(lane)) else {
                continue;
            };
            let Some(training) = &mut lane.training else {
                continue;
            };
            if !lane.writable || pair.tunnel.unsent_bytes(number) >= BATCH {
                continue;
            }
            if training.is_over(&lane.socket, now) {
                lane.training = None;
                continue;
            }
            let before = pair.tunnel.unsent_bytes(number);
            if pair.tunnel.pad(number, now) {
                training.sent_bytes += pair.tunnel.unsent_bytes(number) - before;
                trains = true;
            }
        }
        trains
    }
}
