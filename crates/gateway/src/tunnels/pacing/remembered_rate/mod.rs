//! Keeps a lane's congestion control from forgetting its path between messages.
//!
//! BBR takes the highest rate that it has seen delivered in ten round trips for the path's rate, and ignores
//! samples in which the application did not send enough. But a sample with a segment that was sent again is
//! never ignored: after one loss in a flight of 64 kB, the flight itself, divided by a round trip, becomes
//! the rate. On an emulated 1 Gbit/s, 11.6 ms, 0.1 % loss, the rate fell to 35 Mbit/s after two losses and
//! grew by a quarter in eight round trips; 64 kB then took 2.8 times the limit at the median (1.05 without
//! loss). And after every tenth of a second, BBR paces at three quarters of the rate for a round trip, which
//! costs a message of 1 MB 3 ms.
//!
//! So a lane remembers the rate that its training found, and its congestion control begins anew once per
//! round trip while it carries messages: in its start-up BBR takes back neither pace nor window, and its pace
//! is bounded by what the lane remembers. A transfer of many round trips is left to BBR, without a bound, and
//! what BBR then finds is remembered.
//!
//! Round trips are those of the empty path: a round trip that includes the queue grows with the queue, and
//! then a pace that is a little too high never ends (64 MB overran the queue by 2 MB, which looked like a
//! path that loses by chance).

use crate::sys::socket::{self, Bbr, PathInfo};
use crate::tunnels::capacity;
use crate::tunnels::pacing::train::STARTUP_GAIN;
use crate::tunnels::peers::known_path::{KnownPath, KnownWay};
use mio::net::TcpStream;
use std::ops::RangeInclusive;
use std::time::{Duration, Instant};

/// A lane counts as filled if it has sent what its rate allows, except at most one part in this many.
pub(in crate::tunnels) const FILLED: u128 = 8;

/// A transfer that has filled the lane for this many round trips is left to BBR.
pub(in crate::tunnels) const BULK_ROUNDS: u32 = 8;

/// After this many, BBR has left its start-up, and its ten round trips contain only this transfer.
pub(in crate::tunnels) const TRUSTED_ROUNDS: u32 = 16;

/// The pace above the remembered rate, as a fraction: a busy machine loses some turns, and a path may be a
/// little faster. There is none while there is a queue.
pub(in crate::tunnels) const HEADROOM: u64 = 16;

/// The round trip of a lane that was filled for this many round trips shows its queue, if it is more than
/// half as long again as the shortest. Acknowledgements that a busy machine sends late make it a quarter
/// longer.
pub(in crate::tunnels) const QUEUE_ROUNDS: u32 = 2;

/// If one in this many of [`LOSS_SEGMENTS`] is lost, that is more than chance: the path is slower than
/// remembered.
pub(in crate::tunnels) const HEAVY_LOSS: u32 = 8;
pub(in crate::tunnels) const LOSS_SEGMENTS: u32 = 256;

/// A path counts as lossy if messages lost something at this many checks, `CHANCE_APART` from each other.
pub(in crate::tunnels) const CHANCE_LOOKS: u32 = 3;
pub(in crate::tunnels) const CHANCE_APART: RangeInclusive<Duration> =
    Duration::from_millis(100)..=Duration::from_secs(20);

/// Segments that are lost this soon after a transfer that fills the path were lost because of it.
pub(in crate::tunnels) const PRESSED_PAST: Duration = Duration::from_secs(1);

/// Acknowledgements are never later than this, whatever the path: they wait for others, and for the turns of
/// two gateways.
pub(in crate::tunnels) const LATE_MICROSECONDS: u32 = 4000;

/// A lane that came up under streams, over an unknown path, is trained after this long: if their bytes were
/// many, they have trained it, and if they were not, padding delays few of them.
pub(in crate::tunnels) const FIRST_PAUSE: Duration = Duration::from_millis(300);

/// A doubtful rate is measured by training, after this long at first, then half as often each time: training
/// takes 30 to 65 MB on 1 Gbit/s at 11.6 ms.
pub(in crate::tunnels) const TRAINING_PAUSE: Duration = Duration::from_secs(30);
pub(in crate::tunnels) const MAX_PAUSE: Duration = Duration::from_secs(3600);

/// A window that no longer holds what the path does, as after a cut, is filled no more often than this.
pub(in crate::tunnels) const FILL_PAUSE: Duration = Duration::from_secs(5);

/// If losses go on below this fraction of the rate that was found, they are not caused by the pace: the lane
/// is left to BBR.
pub(in crate::tunnels) const MIN_OF_FOUND: u64 = 4;

/// What a lane knows about its path.
#[derive(Debug)]
pub(crate) struct RememberedRate {
    /// Bytes per second; 0 while unknown.
    pub(in crate::tunnels) rate: u64,
    /// The highest rate since training: a transfer on a busy machine, or beside another one, finds less than
    /// the path has.
    pub(in crate::tunnels) best: u64,
    /// What training or a transfer has last found.
    pub(in crate::tunnels) found: u64,
    /// Whether the rate is a guess, or the window does not hold what the path does.
    pub(in crate::tunnels) doubtful: bool,
    /// Since when the lane has had more to send than the kernel accepts.
    pub(in crate::tunnels) busy_since: Option<Instant>,
    /// Since when each check has found nearly as much sent as the lane's rate allows, and the values at the
    /// last check.
    pub(in crate::tunnels) filled_since: Option<Instant>,
    pub(in crate::tunnels) sent_bytes: u64,
    pub(in crate::tunnels) sent_at: Instant,
    /// When a transfer was last left to BBR, or was last seen to cause a queue.
    pub(in crate::tunnels) pressed_at: Option<Instant>,
    pub(in crate::tunnels) look_at: Instant,
    pub(in crate::tunnels) trained_at: Instant,
    pub(in crate::tunnels) pause: Duration,
    /// When the window was last filled.
    pub(in crate::tunnels) filled_at: Option<Instant>,
    /// The kernel's counts when loss was last judged, and at the last check.
    pub(in crate::tunnels) segments: u32,
    pub(in crate::tunnels) retransmits: u32,
    pub(in crate::tunnels) retransmits_seen: u32,
    /// The kernel's count of timeouts when loss was last judged, and whether a timeout excused what was lost
    /// then.
    pub(in crate::tunnels) timeouts: u16,
    pub(in crate::tunnels) was_away: bool,
    /// Number of successive checks at which messages had lost something, and the kernel's counts at the last
    /// one.
    pub(in crate::tunnels) chances: u32,
    pub(in crate::tunnels) chance_at: Instant,
    pub(in crate::tunnels) chance_retransmits: u32,
    pub(in crate::tunnels) chance_timeouts: u16,
}

/// What to do with the lane now.
#[derive(Debug, PartialEq, Eq)]
pub(in crate::tunnels) enum Step {
    Nothing,
    /// Limit its pace, in bytes per second, and let its congestion control begin anew.
    Begin(u64),
    /// Only limit its pace.
    Bound(u64),
    /// Leave it to its congestion control.
    Release,
    Train,
    /// Fill its window, which does not hold as much as the path is known to hold.
    Fill,
}

impl RememberedRate {
    pub(crate) fn new(now: Instant) -> RememberedRate {
        RememberedRate {
            rate: 0,
            best: 0,
            found: 0,
            doubtful: true,
            busy_since: None,
            filled_since: None,
            sent_bytes: 0,
            sent_at: now,
            pressed_at: None,
            look_at: now,
            trained_at: now,
            pause: FIRST_PAUSE,
            filled_at: None,
            segments: 0,
            retransmits: 0,
            retransmits_seen: 0,
            timeouts: 0,
            was_away: false,
            chances: 0,
            chance_at: now,
            chance_retransmits: 0,
            chance_timeouts: 0,
        }
    }

    /// Bytes per second that the lane was seen to deliver; 0 while unknown.
    pub(crate) fn rate(&self) -> u64 {
        self.rate
    }

    /// Begins with what is known about the path, which the lane's window does not hold yet.
    pub(crate) fn recall(&mut self, known: &KnownPath) {
        (self.rate, self.best, self.found) = (known.rate, known.best, known.found);
        self.doubtful = known.doubtful;
    }

    /// Returns what the next lane should know about this one's path, if anything is known.
    pub(in crate::tunnels) fn known(&self, way: KnownWay, loses: bool) -> Option<KnownPath> {
        (self.rate > 0).then_some(KnownPath {
            way,
            rate: self.rate,
            best: self.best,
            found: self.found,
            doubtful: self.doubtful,
            loses,
        })
    }

    /// Training has ended and found this rate, or none. In all, `sent_bytes` were sent, for no stream.
    pub(crate) fn trained(&mut self, socket: &TcpStream, rate: u64, sent_bytes: u64, now: Instant) {
        (self.rate, self.best, self.found, self.doubtful) = (rate, rate, rate, rate == 0);
        self.filled(socket, sent_bytes, now);
    }

    /// The lane's window did not come to hold what is known: the path may have become slower.
    pub(crate) fn doubt(&mut self, socket: &TcpStream, sent_bytes: u64, now: Instant) {
        self.doubtful = true;
        self.filled(socket, sent_bytes, now);
    }

    /// Whether the rate is known, and not in doubt.
    pub(in crate::tunnels) fn is_sure(&self) -> bool {
        self.rate > 0 && !self.doubtful
    }

    /// Whether the lane's window holds what the path does, as far as this is known.
    pub(crate) fn filled(&mut self, socket: &TcpStream, sent_bytes: u64, now: Instant) {
        let path = socket::path_info(socket).unwrap_or_default();
        (self.trained_at, self.look_at, self.filled_at) = (now, now, Some(now));
        self.pause = self.pause.max(TRAINING_PAUSE);
        (self.filled_since, self.sent_bytes, self.sent_at) = (None, sent_bytes, now);
        self.count_loss(&path);
    }

    /// The lane was written: `full` if the kernel would not accept everything.
    pub(crate) fn on_written(&mut self, full: bool, now: Instant) {
        self.busy_since = full.then(|| self.busy_since.unwrap_or(now));
    }

    /// Notes the total that was sent. This is needed because a stream of messages can fill a lane although
    /// the kernel sometimes accepts everything at once.
    pub(in crate::tunnels) fn count_sent(&mut self, sent_bytes: u64, now: Instant) {
        let since = now.saturating_duration_since(self.sent_at).as_micros();
        let sent = u128::from(sent_bytes.saturating_sub(self.sent_bytes)) * 1_000_000;
        let most = u128::from(self.rate) * since;
        let fills = since > 0 && self.rate > 0 && sent >= most - most / FILLED;
        self.filled_since = fills.then(|| self.filled_since.unwrap_or(self.sent_at));
        (self.sent_bytes, self.sent_at) = (sent_bytes, now);
    }

    /// For how long the lane has carried as much as it can.
    pub(in crate::tunnels) fn busy_for(&self, now: Instant) -> Duration {
        let since = self.busy_since.into_iter().chain(self.filled_since).min();
        since.map_or(Duration::ZERO, |since| now.saturating_duration_since(since))
    }

    /// What to do with the lane. `reserved` is a pace that was promised, whatever the path does; `trains`:
    /// whether it may be trained at all.
    pub(in crate::tunnels) fn look(
        &mut self,
        path: &PathInfo,
        bbr: &Bbr,
        (reserved, trains): (Option<u64>, bool),
        now: Instant,
    ) -> Step {
        let rtt = Duration::from_micros(path.rtt_microseconds.into());
        self.look_at = now + rtt;
        let busy = self.busy_for(now);
        let empty_rtt = Duration::from_micros(path.least_rtt_microseconds.into());
        let is_bulk = busy >= empty_rtt * BULK_ROUNDS;
        if is_bulk {
            self.pressed_at = Some(now);
        }
        if let Some(rate) = reserved {
            return match path.is_recovering {
                true => Step::Nothing,
                false => Step::Begin(rate),
            };
        }
        if is_bulk {
            let is_trusted = busy >= empty_rtt * TRUSTED_ROUNDS && bbr.pacing_gain < STARTUP_GAIN;
            return self.examine_bulk(path, bbr, is_trusted);
        }
        self.judge_loss(path);
        if path.is_recovering {
            return Step::Nothing;
        }
        let held_bytes = capacity::holds(path.least_rtt_microseconds, self.rate.saturating_mul(8));
        let begins = self.rate > 0 && path.window_bytes >= held_bytes;
        if begins && !self.doubtful {
            let lost = std::mem::replace(&mut self.retransmits_seen, path.retransmits) != path.retransmits;
            if busy >= empty_rtt * QUEUE_ROUNDS && has_queue(path) {
                self.pressed_at = Some(now);
                return Step::Begin(self.rate);
            }
            if !lost && !has_queue(path) {
                // Not beyond the best rate: one that grew further while transfers filled the lane ended in
                // losses (16 MB took 1.23 times the limit instead of 1.09).
                self.rate = (self.rate + self.rate / 8).min(self.best);
            }
            return Step::Begin(self.rate + self.rate / HEADROOM);
        }
        self.doubtful |= self.rate == 0;
        if self.doubtful && trains && self.is_due(now) {
            return Step::Train;
        }
        match self.doubtful {
            // Otherwise a bound that nobody looks after any more would stay for ever.
            true if trains && begins => Step::Begin(self.rate),
            false if trains && self.may_fill(now) => Step::Fill,
            _ => Step::Release,
        }
    }

    /// Whether the window of a lane whose rate is not in doubt may be filled now.
    fn may_fill(&self, now: Instant) -> bool {
        let is_due = self.filled_at.is_none_or(|at| now - at >= FILL_PAUSE);
        is_due && self.busy_for(now).is_zero()
    }

    /// Whether a lane whose rate is in doubt must be trained now; asked once for each training.
    pub(in crate::tunnels) fn is_due(&mut self, now: Instant) -> bool {
        let is_due = now - self.trained_at >= self.pause && self.busy_for(now).is_zero();
        if is_due {
            self.pause = (self.pause * 2).min(MAX_PAUSE);
        }
        is_due
    }

    /// What to do with a lane that carries as much as it can; `is_trusted`: what BBR sees is what the path
    /// has.
    fn examine_bulk(&mut self, path: &PathInfo, bbr: &Bbr, is_trusted: bool) -> Step {
        // What BBR loses while it probes for more says nothing about the remembered pace.
        self.count_loss(path);
        if !is_trusted {
            return match self.rate {
                0 => Step::Nothing,
                rate => Step::Bound(rate),
            };
        }
        (self.rate, self.found, self.doubtful) = (bbr.bandwidth, bbr.bandwidth, false);
        self.best = self.best.max(self.rate);
        Step::Release
    }

    /// Whether messages, which do not fill the path, have lost segments again and again.
    pub(in crate::tunnels) fn loses_by_chance(&mut self, path: &PathInfo, now: Instant) -> bool {
        let since = now.saturating_duration_since(self.chance_at);
        if path.retransmits == self.chance_retransmits || since < *CHANCE_APART.start() {
            return false;
        }
        // A path that was away loses everything. A long transfer loses what its own probing for more
        // overruns, which is seen some round trips later. And whoever shares the path with a flow that fills
        // its queue loses some of what that flow overruns.
        let fills = self.busy_since.is_some() || self.pressed_at.is_some_and(|at| now <= at + PRESSED_PAST);
        let by_chance = path.timeouts == self.chance_timeouts && !fills && !has_long_queue(path);
        if by_chance {
            let follows = since <= *CHANCE_APART.end();
            self.chances = if follows { self.chances + 1 } else { 1 };
            self.chance_at = now;
        }
        (self.chance_retransmits, self.chance_timeouts) = (path.retransmits, path.timeouts);
        self.chances >= CHANCE_LOOKS
    }

    pub(in crate::tunnels) fn count_loss(&mut self, path: &PathInfo) {
        (self.segments, self.retransmits) = (path.segments, path.retransmits);
        self.timeouts = path.timeouts;
    }

    pub(in crate::tunnels) fn judge_loss(&mut self, path: &PathInfo) {
        let sent = path.segments.wrapping_sub(self.segments);
        let again = path.retransmits.wrapping_sub(self.retransmits);
        if sent < LOSS_SEGMENTS {
            return;
        }
        // A path that was away loses everything that was in flight, and is then as fast as before. One that
        // loses that much again is not.
        let was_away = path.timeouts != self.timeouts && !self.was_away;
        self.was_away = was_away;
        self.count_loss(path);
        if again > sent / HEAVY_LOSS && !was_away {
            self.rate -= self.rate / 4;
            if self.rate < self.found / MIN_OF_FOUND {
                self.rate = 0;
            }
            self.best = self.rate;
            self.doubtful = true;
        }
    }
}

/// Whether there is a queue that late acknowledgements alone cannot explain, even on a short path.
fn has_long_queue(path: &PathInfo) -> bool {
    has_queue(path) && path.rtt_microseconds - path.least_rtt_microseconds > LATE_MICROSECONDS
}

fn has_queue(path: &PathInfo) -> bool {
    path.rtt_microseconds > path.least_rtt_microseconds / 2 * 3
}

#[cfg(test)]
mod tests;
