//! A new lane is filled until its congestion control knows the path: with a window that has only carried
//! small messages, BBR paces the first large one by a guess (16 kB took 9.9 ms instead of 6.0 at 11.6 ms)
//! and, still in its start-up, overshoots and loses a tenth of the bursts that follow.
//!
//! BBR's start-up paces at 2.9 times what it has seen, and goes on for three round trips after the path is
//! full, which cost a sixth of all segments on a 1 Gbit/s path with a queue of 1.4 bandwidth-delay products.
//! So its pace is bounded: it may grow by half in each round trip, and once the delivered rate no longer
//! grows, it may not exceed that.
//!
//! A busy machine or a few lost segments look like the end of the growth (555 of 965 Mbit/s under 0.1 %
//! loss). So the start-up is repeated, with the present window, until another one finds no more.
//!
//! The two ends take turns, the dialler first: what fills the queue in one direction delays and bunches the
//! acknowledgements of the other (of 40 lanes trained in both directions at once, 6 found half to two thirds
//! of the path's rate).
//!
//! A lane over a known path (`known_path`) has nothing to find out. It is filled at the known rate until its
//! window holds what the path does: 3 MB in a tenth of a second on 1 Gbit/s at 11.6 ms. That makes no queue,
//! so both ends do it at the same time, and streams hardly notice.
//!
//! Streams take precedence. Training is limited in bytes and time; if it reaches these limits before BBR's
//! first start-up has ended, it has found nothing, and BBR goes on without a bound.

use crate::sys::socket::{self, PathInfo};
use crate::tunnels::capacity;
use crate::tunnels::carrier::Carrier;
use mio::net::TcpStream;
use std::time::{Duration, Instant};

/// The most that is sent to train one lane. 1 Gbit/s at 11.6 ms takes 30 to 65 MB, including the starts that
/// confirm the rate.
pub(in crate::tunnels) const MAX_BYTES: u64 = 64 << 20;

/// The longest that a training takes, in time or in round trips, whichever is longer: growing by half in
/// each, it needs 16 to fill 1 Gbit/s at 90 ms.
pub(in crate::tunnels) const LONGEST: Duration = Duration::from_secs(2);
pub(in crate::tunnels) const LONGEST_ROUNDS: u32 = 40;

pub(in crate::tunnels) const MAX_STARTS: u32 = 6;

/// A known path is filled for at most this many round trips, and this long: a window that doubles from ten
/// segments in each holds 1 Gbit/s at 90 ms after ten. If it does not come to hold what is known, the path
/// has become slower.
pub(in crate::tunnels) const FILLING_ROUNDS: u32 = 20;
pub(in crate::tunnels) const FILLING: Duration = Duration::from_millis(500);

/// How often in a round trip it is checked whether the window has come to hold what is known.
pub(in crate::tunnels) const FILLING_LOOKS: u32 = 4;

/// The least that a start-up must send to find something out.
pub(in crate::tunnels) const MIN_BYTES: u64 = 4 << 20;

/// Arrivals are counted over this many round trips, and at least this long: a busy machine's turns are some
/// milliseconds.
pub(in crate::tunnels) const COUNTED_ROUNDS: u32 = 2;
pub(in crate::tunnels) const COUNTED: Duration = Duration::from_millis(80);

/// BBR's gains: it paces at 2.885 times the bandwidth that it has seen while it starts, then at the inverse
/// of that, later at 0.75 to 1.25 times (Cardwell et al. 2017); the kernel counts in 1/256.
pub(crate) const STARTUP_GAIN: u32 = 500;
pub(in crate::tunnels) const DRAINED_GAIN: u32 = 150;

/// How much is sent if there is no BBR that reports what it has found: about ten bandwidth-delay products of
/// 1 Gbit/s at 11.6 ms.
pub(in crate::tunnels) const BLIND_BYTES: u64 = 16 << 20;

/// How much may wait unsent in the kernel while a lane is trained: a start-up that runs dry learns nothing
/// (BBR ignores such samples), and a busy machine may not let the gateway run for some milliseconds. If there
/// are streams, whose small frames would wait behind it, it is only as much as the path takes in [`UNSENT`].
pub(in crate::tunnels) const UNSENT_BYTES: u32 = 1 << 20;
pub(in crate::tunnels) const UNSENT: Duration = Duration::from_millis(8);

/// How often the end that was dialled checks whether the other one's training goes on, and how much arrives
/// between two checks if it does: more than acknowledgements and messages of gateways, less than the first
/// steps of a training.
pub(in crate::tunnels) const TURN_LOOK: Duration = Duration::from_millis(50);
pub(in crate::tunnels) const TURN_BYTES: u64 = 64 << 10;

/// How long, and for how many round trips, the end that was dialled waits for the other one's training to
/// begin.
pub(in crate::tunnels) const TURN_BEGINS: Duration = Duration::from_millis(300);
pub(in crate::tunnels) const TURN_ROUNDS: u32 = 6;

/// How long the end that was dialled waits for the other one's training to end.
pub(in crate::tunnels) const TURN_ENDS: Duration = Duration::from_secs(3);

/// State of the end that was dialled, until it may train its lane.
#[derive(Debug)]
pub(crate) struct TrainingTurn {
    pub(in crate::tunnels) since: Instant,
    pub(in crate::tunnels) look_at: Instant,
    pub(in crate::tunnels) begins: Duration,
    pub(in crate::tunnels) heard: bool,
    pub(in crate::tunnels) received_bytes: u64,
}

impl TrainingTurn {
    pub(in crate::tunnels) fn new(rtt_microseconds: u32, now: Instant) -> TrainingTurn {
        let rounds = Duration::from_micros(rtt_microseconds.into()) * TURN_ROUNDS;
        TrainingTurn {
            since: now,
            look_at: now + TURN_LOOK,
            begins: TURN_BEGINS.max(rounds),
            heard: false,
            received_bytes: 0,
        }
    }

    /// Whether it is this end's turn, judging by the bytes that have arrived. Call this every [`TURN_LOOK`].
    pub(in crate::tunnels) fn has_come(&mut self, received_bytes: u64, now: Instant) -> bool {
        self.look_at = now + TURN_LOOK;
        let arrived = received_bytes - std::mem::replace(&mut self.received_bytes, received_bytes);
        let trains = arrived > TURN_BYTES;
        self.heard |= trains;
        let waited = now - self.since;
        waited >= TURN_ENDS || (!trains && (self.heard || waited >= self.begins))
    }
}

pub(crate) struct Training {
    /// The path's rate in bytes per second, if the lane is only filled; 0 if the rate has to be found out.
    pub(in crate::tunnels) known: u64,
    pub(in crate::tunnels) until: Instant,
    pub(in crate::tunnels) sent_bytes: u64,
    /// The highest rate that BBR has seen delivered, in bytes per second.
    pub(in crate::tunnels) best: u64,
    pub(in crate::tunnels) look_at: Instant,
    /// Number of successive checks that found no more than before.
    pub(in crate::tunnels) flat: u32,
    pub(in crate::tunnels) starts: u32,
    /// The highest rate that arrived over some round trips, in bytes per second, and what the earlier starts
    /// had found.
    pub(in crate::tunnels) arrived: u64,
    pub(in crate::tunnels) confirmed: u64,
    /// How much may wait unsent in the kernel.
    pub(in crate::tunnels) unsent: u32,
    /// Whether lost segments are being recovered: a start-up that began now would use the reduced window.
    pub(in crate::tunnels) recovers: bool,
    /// Whether arrivals of this start have been counted.
    pub(in crate::tunnels) counted: bool,
    /// When the present count began, and the kernel's count of segments that had arrived by then.
    pub(in crate::tunnels) counted_at: Instant,
    pub(in crate::tunnels) delivered: u32,
    /// The kernel's counts at the last check.
    pub(in crate::tunnels) segments: u32,
    pub(in crate::tunnels) retransmits: u32,
}

/// A path counts as full after this many checks without growth: a single one may fall between two
/// acknowledgements on a busy machine.
pub(in crate::tunnels) const FLAT_LOOKS: u32 = 2;

/// If no more than this many segments are lost in a round trip, or one in `LITTLE_LOSS`, that is chance.
pub(in crate::tunnels) const A_FEW: u32 = 3;
pub(in crate::tunnels) const LITTLE_LOSS: u32 = 32;

impl Training {
    /// `idle`: there is no stream whose small frames would wait behind what is unsent in the kernel.
    pub(crate) fn begin(carrier: &Carrier, idle: bool, now: Instant) -> Training {
        let unsent = if idle {
            UNSENT_BYTES
        } else {
            capacity::UNSENT_BYTES
        };
        if let Some(socket) = carrier.tcp() {
            let _ = socket::set_unsent_low_water(socket, unsent);
        }
        let path = carrier.path().unwrap_or_default();
        let rtt = Duration::from_micros(path.rtt_microseconds.into());
        Training {
            known: 0,
            until: now + LONGEST.max(rtt * LONGEST_ROUNDS),
            sent_bytes: 0,
            best: 0,
            look_at: now,
            flat: 0,
            starts: 1,
            arrived: 0,
            confirmed: 0,
            unsent,
            recovers: false,
            counted: false,
            counted_at: now,
            delivered: path.delivered,
            segments: path.segments,
            retransmits: path.retransmits,
        }
    }

    /// Fills a lane over a path whose rate is known, at that rate or at the reserved one.
    pub(crate) fn fill(
        carrier: &Carrier,
        (known, reserved): (u64, Option<u64>),
        idle: bool,
        now: Instant,
    ) -> Training {
        let training = Training::begin(carrier, idle, now);
        carrier.set_most_rate(Some(known.min(reserved.unwrap_or(u64::MAX))));
        let rtt = carrier.path().unwrap_or_default().rtt_microseconds;
        let longest = Duration::from_micros(rtt.into()) * FILLING_ROUNDS;
        Training {
            known,
            until: now + FILLING.max(longest),
            ..training
        }
    }

    /// Whether there is nothing to find out.
    pub(in crate::tunnels) fn fills(&self) -> bool {
        self.known > 0
    }

    /// Whether there was nothing to find out, and the window holds what is known about the path.
    pub(in crate::tunnels) fn is_filled(&self, path: &PathInfo) -> bool {
        self.known > 0
            && path.window_bytes >= capacity::holds(path.least_rtt_microseconds, self.known.saturating_mul(8))
    }

    /// The rate that was found, in bytes per second; 0 if no start has been completed.
    pub(in crate::tunnels) fn rate(&self) -> u64 {
        if self.confirmed == 0 { 0 } else { self.seen() }
    }

    /// The rate at which bytes arrived. It is used because acknowledgements that come in bunches let BBR see
    /// more than the path has (1377 of 965 Mbit/s on a busy machine).
    pub(in crate::tunnels) fn seen(&self) -> u64 {
        match self.arrived {
            0 => self.best,
            arrived => arrived.min(self.best),
        }
    }

    pub(in crate::tunnels) fn is_over(
        &mut self,
        socket: &TcpStream,
        steers: bool,
        rate: Option<u64>,
        now: Instant,
    ) -> bool {
        if self.known > 0 {
            return now >= self.until || self.looks_filled(socket, now);
        }
        let knows = match socket::bbr(socket) {
            Some(bbr) => {
                self.bound(socket, &bbr, rate, now);
                // After its start-up, BBR paces slowly until the queue that it made is gone; before the first
                // acknowledgement it has no gain.
                let ended =
                    (DRAINED_GAIN..STARTUP_GAIN).contains(&bbr.pacing_gain) && self.counted && !self.recovers;
                ended && !(steers && self.begins_anew(socket, rate))
            }
            None => self.sent_bytes >= BLIND_BYTES,
        };
        knows || self.sent_bytes >= MAX_BYTES || now >= self.until
    }

    fn looks_filled(&mut self, socket: &TcpStream, now: Instant) -> bool {
        if now < self.look_at {
            return false;
        }
        let path = socket::path_info(socket).unwrap_or_default();
        self.look_at = now + Duration::from_micros(path.rtt_microseconds.into()) / FILLING_LOOKS;
        self.is_filled(&path)
    }

    /// Whether training is over for a lane over QUIC, whose own model knows when it knows the path.
    pub(in crate::tunnels) fn is_over_for(&self, knows_its_rate: bool, now: Instant) -> bool {
        knows_its_rate || self.sent_bytes >= MAX_BYTES || now >= self.until
    }

    /// Repeats the start-up that has just ended, if necessary; returns whether it does.
    pub(in crate::tunnels) fn begins_anew(&mut self, socket: &TcpStream, rate: Option<u64>) -> bool {
        if self.starts >= MAX_STARTS {
            return false;
        }
        self.counted = false;
        if self.sent_bytes < MIN_BYTES {
            // A loss among the first segments, or a pause of a busy machine: nothing was found.
            (self.starts, self.flat, self.best) = (self.starts + 1, 0, 0);
            let _ = socket::set_most_rate(socket, rate);
            return socket::begin_anew(socket);
        }
        let found = self.seen();
        if found <= self.confirmed + self.confirmed / 16 {
            return false;
        }
        (self.starts, self.flat) = (self.starts + 1, 0);
        (self.confirmed, self.best) = (found, found);
        let _ = socket::set_most_rate(socket, Some(self.pace().min(rate.unwrap_or(u64::MAX))));
        socket::begin_anew(socket)
    }

    /// Limits the pace, once in each round trip.
    pub(in crate::tunnels) fn bound(
        &mut self,
        socket: &TcpStream,
        bbr: &socket::Bbr,
        rate: Option<u64>,
        now: Instant,
    ) {
        if now < self.look_at || bbr.bandwidth == 0 {
            return;
        }
        self.look_at = now + Duration::from_micros(bbr.least_rtt_microseconds.into());
        let path = socket::path_info(socket).unwrap_or_default();
        self.recovers = path.is_recovering;
        self.count(&path, now);
        // The thresholds are below what the next pace allows.
        let grows = bbr.bandwidth > self.best + self.best / if self.confirmed == 0 { 8 } else { 32 };
        self.flat = match self.lost_a_little(&path) {
            _ if grows => 0,
            // While a lost segment is recovered, BBR sends no more than arrives.
            true => self.flat,
            false => self.flat + 1,
        };
        self.best = self.best.max(bbr.bandwidth);
        let _ = socket::set_most_rate(socket, Some(self.pace().min(rate.unwrap_or(u64::MAX))));
        // The number fits: it is at most UNSENT_BYTES.
        let unsent = (self.best as f64 * UNSENT.as_secs_f64()).min(UNSENT_BYTES.into()) as u32;
        if unsent > self.unsent {
            self.unsent = unsent;
            let _ = socket::set_unsent_low_water(socket, unsent);
        }
    }

    /// The pace in bytes per second until the next check.
    pub(in crate::tunnels) fn pace(&self) -> u64 {
        match self.confirmed {
            _ if self.flat >= FLAT_LOOKS => self.best,
            0 => self.best + self.best / 2,
            // The path is nearly full already: more would overrun its queue.
            _ => self.best + self.best / 8,
        }
    }

    pub(in crate::tunnels) fn count(&mut self, path: &PathInfo, now: Instant) {
        let time = now - self.counted_at;
        let rounds = Duration::from_micros(path.rtt_microseconds.into()) * COUNTED_ROUNDS;
        if time < rounds.max(COUNTED) {
            return;
        }
        let bytes = u64::from(path.delivered.wrapping_sub(self.delivered)) * u64::from(path.segment_bytes);
        // The number fits: the divisor is more than 10^-2 s.
        self.arrived = self.arrived.max((bytes as f64 / time.as_secs_f64()) as u64);
        (self.counted_at, self.delivered) = (now, path.delivered);
        self.counted = true;
    }

    /// Whether a little was lost since the last check; if a queue overruns, more is lost.
    pub(in crate::tunnels) fn lost_a_little(&mut self, path: &PathInfo) -> bool {
        let sent = path.segments.wrapping_sub(self.segments);
        let again = path.retransmits.wrapping_sub(self.retransmits);
        (self.segments, self.retransmits) = (path.segments, path.retransmits);
        again > 0 && (again <= A_FEW || again <= sent / LITTLE_LOSS)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lane_over_a_known_way_is_filled_once_its_window_holds_what_the_way_does() {
        let (socket, _far) = socket::loopback_pair().unwrap();
        let carrier = Carrier::Clear(socket);
        let now = Instant::now();
        let with_window = |window_bytes| PathInfo {
            window_bytes,
            least_rtt_microseconds: 10_000,
            ..PathInfo::default()
        };
        let training = Training::fill(&carrier, (100_000_000, None), false, now);
        assert!(training.fills() && !training.is_filled(&with_window(999_999)));
        assert!(training.is_filled(&with_window(1_000_000)));
        let finds_out = Training::begin(&carrier, false, now);
        assert!(!finds_out.fills() && !finds_out.is_filled(&with_window(u64::MAX)));
    }

    /// How much has arrived at each check, and whether it is this end's turn then.
    fn looks(rtt_microseconds: u32, received: &[u64]) -> Vec<bool> {
        let now = Instant::now();
        let mut turn = TrainingTurn::new(rtt_microseconds, now);
        let look = |(number, bytes): (u32, &u64)| turn.has_come(*bytes, now + TURN_LOOK * number);
        (1..).zip(received).map(look).collect()
    }

    #[test]
    fn the_end_that_was_dialled_trains_when_the_other_has_ended() {
        let padding = [70_000, 500_000, 20_000_000, 20_010_000];
        assert_eq!(looks(10_000, &padding), [false, false, false, true]);
    }

    #[test]
    fn it_waits_some_round_trips_for_one_that_trains_late_or_never() {
        let six = [false, false, false, false, false, true];
        assert_eq!(looks(10_000, &[500; 6]), six);
        assert_eq!(looks(100_000, &[500; 12])[10..], [false, true]);
    }

    #[test]
    fn it_does_not_wait_for_the_end_of_what_goes_on_and_on() {
        let received: Vec<u64> = (1..=60).map(|look| look * 1_000_000).collect();
        let came = looks(10_000, &received);
        assert_eq!(came.iter().position(|came| *came), Some(59));
    }
}
