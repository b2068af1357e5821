//! A new lane is filled until its congestion control knows the path: a window that has only carried small messages paces
//! the first large one at a guess (16 kB took 9.9 ms instead of 6.0 at 11.6 ms under BBR) and, still in its
//! start-up, overshoots and loses a tenth of the bursts that follow.
//!
//! BBR's start-up paces at 2.9 times what it has seen and goes on for three round trips after the path is full, which
//! cost a sixth of all segments on a 1 Gbit/s path with a queue of 1.4 bandwidth-delay products. So its pace is bounded
//! meanwhile: half as much again per round trip, and no more than was delivered once that no longer grows.
//!
//! Streams go first. Bounded by bytes and time; over as soon as BBR has left its start-up.

use crate::gateway::Gateway;
use crate::lanes;
use crate::pump::BATCH;
use crate::socket;
use mio::net::TcpStream;
use std::time::{Duration, Instant};

/// At most this is sent to train one lane. BBR finds 1 Gbit/s at 11.6 ms with about 10 MB; 64 MB find 1 Gbit/s across the
/// Atlantic.
const MOST_BYTES: u64 = 64 << 20;

/// At most this long: 20 round trips of 100 ms.
const LONGEST: Duration = Duration::from_secs(2);

/// A start-up that ends before this much was sent has taken the pauses of a busy machine for the end of the growth (seen
/// in one of ten starts of a lab, at a fiftieth of the rate): it begins anew, a few times.
const LEAST_BYTES: u64 = 8 << 20;
const MOST_STARTS: u32 = 4;

/// BBR paces at 2.885 times the bandwidth it has seen while it starts, at 1.25 times at most later (Cardwell et al. 2017);
/// the kernel counts in 1/256.
pub(crate) const STARTUP_GAIN: u32 = 500;

/// Without BBR's word for it: about ten bandwidth-delay products of 1 Gbit/s at 11.6 ms.
const BLIND_BYTES: u64 = 16 << 20;

/// What may wait unsent in the kernel while a lane is trained: a start-up that runs dry learns nothing (BBR leaves
/// such samples out), and a busy machine may not let the gateway run for some milliseconds.
const UNSENT_BYTES: u32 = 1 << 20;

pub(crate) struct Training {
    until: Instant,
    sent_bytes: u64,
    /// Most that BBR has seen delivered, bytes per second.
    best: u64,
    look_at: Instant,
    /// Looks in a row that found no more than before.
    flat: u32,
    starts: u32,
}

/// A path is taken for full after so many: one may fall between two acknowledgements on a busy machine.
const FLAT_LOOKS: u32 = 2;

impl Training {
    pub(crate) fn begin(socket: &TcpStream, now: Instant) -> Training {
        let _ = socket::set_unsent_low_water(socket, UNSENT_BYTES);
        Training {
            until: now + LONGEST,
            sent_bytes: 0,
            best: 0,
            look_at: now,
            flat: 0,
            starts: 1,
        }
    }

    fn is_over(&mut self, socket: &TcpStream, rate: Option<u64>, now: Instant) -> bool {
        let knows = match socket::bbr(socket) {
            Some(bbr) => {
                self.bound(socket, &bbr, rate, now);
                // It has no gain before the first acknowledgement.
                let ended = bbr.pacing_gain != 0 && bbr.pacing_gain < STARTUP_GAIN;
                ended && !self.begins_anew(socket, rate)
            }
            None => self.sent_bytes >= BLIND_BYTES,
        };
        knows || self.sent_bytes >= MOST_BYTES || now >= self.until
    }

    /// Whether the start-up that has just ended is to be repeated: then it is.
    fn begins_anew(&mut self, socket: &TcpStream, rate: Option<u64>) -> bool {
        if self.sent_bytes >= LEAST_BYTES || self.starts >= MOST_STARTS {
            return false;
        }
        (self.starts, self.flat, self.best) = (self.starts + 1, 0, 0);
        let _ = socket::set_most_rate(socket, rate);
        socket::begin_anew(socket)
    }

    /// Once per round trip.
    fn bound(&mut self, socket: &TcpStream, bbr: &socket::Bbr, rate: Option<u64>, now: Instant) {
        if now < self.look_at || bbr.bandwidth == 0 {
            return;
        }
        self.look_at = now + Duration::from_micros(bbr.least_rtt_microseconds.into());
        let grows = bbr.bandwidth > self.best + self.best / 8;
        self.flat = if grows { 0 } else { self.flat + 1 };
        self.best = self.best.max(bbr.bandwidth);
        let is_full = self.flat >= FLAT_LOOKS;
        let most = if is_full {
            self.best
        } else {
            self.best + self.best / 2
        };
        let _ = socket::set_most_rate(socket, Some(most.min(rate.unwrap_or(u64::MAX))));
    }
}

impl Gateway {
    /// Fills the lanes of a pair that are in training and have nothing else to do; true when there was one.
    pub(crate) fn train(&mut self, key: usize) -> bool {
        let now = self.now;
        let Some(pair) = self.pairs.get_mut(key) else {
            return false;
        };
        let (mut trains, mut ended) = (false, false);
        for number in 0..pair.lanes.len() {
            let Some(lane) = pair.lanes[number].and_then(|lane| self.lanes.get_mut(lane)) else {
                continue;
            };
            let Some(training) = &mut lane.training else {
                continue;
            };
            let rate = lanes::most_rate(&self.config, pair);
            if training.is_over(&lane.socket, rate, now) {
                lane.course.trained(&lane.socket, training.best, now);
                lane.training = None;
                ended = true;
                continue;
            }
            if !lane.writable || pair.tunnel.unsent_bytes(number) >= BATCH {
                continue;
            }
            let before = pair.tunnel.unsent_bytes(number);
            if pair.tunnel.pad(number, now) {
                training.sent_bytes += pair.tunnel.unsent_bytes(number) - before;
                trains = true;
            }
        }
        if ended {
            self.size_pair(key);
        }
        trains
    }
}
