//! How fast a QUIC lane sends: at the rate that its path was seen to have, whatever is lost by chance.
//!
//! A start-up doubles the bytes in flight in each round trip until they arrive no faster, as BBR's does
//! (Cardwell et al. 2017), then keeps that pace for a while and counts what really arrives. From then on, the
//! rate is remembered (as `pacing::remembered_rate` does for TCP, docs/decisions/0006): messages are paced at
//! it immediately, after any pause. A transfer of many round trips probes for more from time to time, and
//! loss slows the lane. QUIC's own window only bounds the bytes in flight, to twice what the path holds (four
//! times for a reserved rate).

use std::collections::VecDeque;
use std::time::{Duration, Instant};

/// Bytes in flight at first, and at least: ten segments (RFC 9002, section 7.2).
pub(super) const MIN_WINDOW: u64 = 14_520;

/// Bytes in flight at most: as many as a lane keeps (`causeway_tunnel::Settings`).
const MAX_WINDOW: u64 = 64 << 20;

/// How late an acknowledgement may be, beyond the path's own time: it waits for others, and for the turns of
/// two gateways.
const SLACK: Duration = Duration::from_millis(2);

/// The longest pause between acknowledgements for which more bytes in flight make up.
const MAX_PAUSE: Duration = Duration::from_millis(100);

/// While a path's rate is being found, this many times what it was seen to hold is in flight: enough to
/// double in each round trip, and no more than a queue as long as the path takes. BBR's gain is 2.89.
const STARTUP_WINDOW: f64 = 2.0;

/// A start-up ends after this many round trips without growth by a quarter. If the window had room, a round
/// trip counts only in part, because the host kept the lane from sending more.
const FLAT: u32 = 3;
const ROOM: u32 = 8;

/// For how many packets of a round trip the log says what had arrived by then, and its most entries.
const LOGGED: u32 = 64;
const LOG: usize = 4096;

/// After the start-up, its rate is exceeded a little for a while, to see how much arrives: the highest of
/// some counts over this long, because a busy machine's turns are some milliseconds.
const CONFIRMED: Duration = Duration::from_millis(80);
const CONFIRMED_ROUNDS: u32 = 2;
const CONFIRMATIONS: u32 = 3;
const MAX_TRIES: u32 = 4;

/// Later, arrivals are counted over two round trips and at least this long.
const COUNTED: Duration = Duration::from_millis(40);

/// A transfer that filled the lane in this many counts may probe for more; the rate is then their highest.
const BULK: usize = 8;

/// Such a transfer probes for more, and then drains the queue, in the first two of this many counts. If a
/// count in which it probed found a sixteenth more, it also probes in the next one: a path may have become
/// much faster.
const CYCLE: u32 = 8;
const MORE: u64 = 16;

/// If one in this many of a count's bytes is lost, that is more than chance.
const HEAVY_LOSS: u64 = 8;
const MIN_JUDGED: u64 = 64 * 1200;

/// If one in this many of a count's bytes is lost, the path may be full: chance loses less.
const FULL_LOSS: u64 = 64;

/// After this long without heavy loss, the earlier rate is tried again.
const FORGIVEN: Duration = Duration::from_secs(30);

/// A round trip is the path's own while none was shorter within twice this time: paths change.
const MIN_KEPT: Duration = Duration::from_secs(10);

/// Messages are paced this part above the remembered rate: a busy machine loses some turns.
const HEADROOM: u64 = 16;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Phase {
    /// Looks for the rate; the value counts the parts of round trips without growth so far.
    Startup(u32),
    /// Sends at the rate that was found, and counts what arrives; the value is how many times so far.
    Confirm(u32),
    Steady,
}

#[derive(Debug)]
pub(crate) struct Model {
    phase: Phase,
    /// Bytes per second; 0 while unknown.
    rate: u64,
    /// The highest rate so far: what a transfer finds beside another one is less than the path has.
    best: u64,
    /// The reserved rate, which is used from the start and never exceeded.
    reserved: Option<u64>,
    window: u64,
    rtt: Duration,
    /// Shortest round trips in this period of [`MIN_KEPT`] and in the one before, and this one's start.
    least: [Duration; 2],
    least_since: Option<Instant>,
    heavy_at: Option<Instant>,
    /// Since when the lane has had more to send than it may.
    busy_since: Option<Instant>,
    /// How much had arrived at each time when something was sent.
    log: VecDeque<(Instant, u64)>,
    delivered: u64,
    /// The highest rate of arrivals in this round trip of the start-up, in bytes per second, and the highest
    /// before it.
    fastest: u64,
    fastest_before: u64,
    round_since: Option<Instant>,
    tries: u32,
    /// The present count: since when it lasts.
    since: Option<Instant>,
    arrived: u64,
    lost: u64,
    /// How much was sent in the present count, and whether the window was ever full.
    sent: u64,
    was_full: bool,
    /// Bytes in flight.
    under_way: u64,
    /// When something was last acknowledged, and the longest pause between two acknowledgements while there
    /// was more to send, in this round trip or count and in the one before.
    acked_at: Option<Instant>,
    pauses: [Duration; 2],
    /// The rates of successive counts in which the lane was busy, in bytes per second.
    seen: VecDeque<u64>,
    counts: u32,
}

impl Model {
    /// A model that knows nothing; see [`Model::adopt_rate`].
    pub(crate) fn new() -> Model {
        Model {
            phase: Phase::Startup(0),
            rate: 0,
            best: 0,
            reserved: None,
            window: MIN_WINDOW,
            rtt: Duration::ZERO,
            least: [Duration::MAX; 2],
            least_since: None,
            heavy_at: None,
            busy_since: None,
            log: VecDeque::new(),
            delivered: 0,
            fastest: 0,
            fastest_before: 0,
            round_since: None,
            tries: 0,
            since: None,
            arrived: 0,
            lost: 0,
            sent: 0,
            was_full: false,
            under_way: 0,
            acked_at: None,
            pauses: [Duration::ZERO; 2],
            seen: VecDeque::new(),
            counts: 0,
        }
    }

    /// Bytes per second; 0 while unknown.
    pub(crate) fn rate(&self) -> u64 {
        match self.phase {
            Phase::Steady => self.rate,
            _ => 0,
        }
    }

    /// Whether the rate is known.
    pub(crate) fn is_known(&self) -> bool {
        self.phase == Phase::Steady
    }

    /// Takes the path's rate from a source that knows it.
    pub(crate) fn adopt_rate(&mut self, rate: u64) {
        (self.phase, self.rate, self.best) = (Phase::Steady, rate, self.best.max(rate));
        self.restart();
        self.fit_window();
    }

    /// Reserves this rate. It is used from now on, whatever else the path carries: only heavy loss slows it
    /// down, and only as long as that lasts.
    pub(crate) fn reserve(&mut self, rate: Option<u64>) {
        let before = std::mem::replace(&mut self.reserved, rate);
        if let Some(rate) = rate.filter(|_| before != rate) {
            self.best = rate;
            self.adopt_rate(rate);
        }
    }

    pub(crate) fn is_reserved(&self) -> bool {
        self.reserved.is_some()
    }

    /// Bytes that may be in flight.
    pub(crate) fn window(&self) -> u64 {
        self.window
    }

    /// The pace in bytes per second; `None`: only the window limits it.
    pub(crate) fn pace(&self) -> Option<u64> {
        let pace = match self.phase {
            // A reserved rate has no start-up.
            Phase::Startup(_) => return None,
            Phase::Confirm(_) => self.rate + self.rate / 8,
            Phase::Steady if self.seen.len() < BULK => self.rate + self.rate / HEADROOM,
            Phase::Steady => match self.counts % CYCLE {
                0 => self.rate + self.rate / 4,
                1 => self.rate - self.rate / 4,
                _ => self.rate,
            },
        };
        Some(pace.min(self.reserved.unwrap_or(u64::MAX)))
    }

    /// The lane was written: `full` if it had more than it was allowed to send.
    pub(crate) fn on_written(&mut self, full: bool, now: Instant) {
        self.busy_since = full.then(|| self.busy_since.unwrap_or(now));
    }

    pub(super) fn on_sent(&mut self, bytes: u64, now: Instant) {
        self.sent += bytes;
        self.under_way += bytes;
        self.was_full |= self.under_way + bytes > self.window;
        let apart = self.rtt / LOGGED;
        let is_due = |(last, _): &(Instant, u64)| now.saturating_duration_since(*last) >= apart;
        if matches!(self.phase, Phase::Startup(_)) && self.log.back().is_none_or(is_due) {
            self.log.push_back((now, self.delivered));
            if self.log.len() > LOG {
                self.log.pop_front();
            }
        }
    }

    /// Something has arrived that was sent at `sent`.
    pub(super) fn on_ack(&mut self, bytes: u64, sent: Instant, now: Instant) {
        self.keep_least(now.saturating_duration_since(sent), now);
        self.keep_pause(now);
        self.arrived += bytes;
        self.delivered += bytes;
        self.under_way = self.under_way.saturating_sub(bytes);
        let Phase::Startup(flat) = self.phase else {
            return;
        };
        self.window = (self.window + bytes).min(self.startup_window());
        let before = self.log.partition_point(|(at, _)| *at <= sent);
        if let Some((at, delivered)) = before.checked_sub(1).and_then(|last| self.log.get(last)) {
            let time = now.saturating_duration_since(*at).as_secs_f64();
            // The number fits: networks have such rates, and the divisor is at least a round trip.
            let rate = ((self.delivered - delivered) as f64 / time.max(1e-6)) as u64;
            self.fastest = self.fastest.max(rate);
        }
        // A round trip is over when something arrives that was sent after it began.
        if self.round_since.is_some_and(|since| sent < since) {
            return;
        }
        let since = self.round_since.replace(now);
        self.forget_pause();
        let is_first = since.is_none();
        let filled = self
            .busy_since
            .is_some_and(|busy| since.is_some_and(|since| busy <= since));
        if !is_first && !filled {
            // If little is sent, little arrives.
            self.fastest_before = self.fastest_before.max(self.fastest);
            return;
        }
        let grows = self.fastest > self.fastest_before + self.fastest_before / 4;
        self.fastest_before = self.fastest_before.max(self.fastest);
        let weight = if std::mem::take(&mut self.was_full) {
            ROOM
        } else {
            1
        };
        match grows || is_first {
            true => self.phase = Phase::Startup(0),
            false if flat + weight < FLAT * ROOM => self.phase = Phase::Startup(flat + weight),
            false => self.confirm(),
        }
    }

    fn confirm(&mut self) {
        self.rate = self.fastest_before.max(self.fastest).max(1);
        // Anything faster than the path would fill its queue.
        self.window = self.confirm_window();
        self.phase = Phase::Confirm(0);
        self.log = VecDeque::new();
        self.since = None;
    }

    fn confirm_window(&self) -> u64 {
        self.holds(self.rate, 1.5)
            .saturating_add(MIN_WINDOW)
            .min(MAX_WINDOW)
    }

    fn startup_window(&self) -> u64 {
        match self.fastest {
            0 => MAX_WINDOW,
            best => self
                .holds(best, STARTUP_WINDOW)
                .saturating_add(MIN_WINDOW)
                .min(MAX_WINDOW),
        }
    }

    /// Notes how many bytes are in flight; QUIC counts them.
    pub(super) fn on_under_way(&mut self, bytes: u64) {
        self.under_way = bytes;
    }

    pub(super) fn on_loss(&mut self, bytes: u64) {
        self.lost += bytes;
        self.under_way = self.under_way.saturating_sub(bytes);
    }

    pub(super) fn on_round(&mut self, rtt: Duration) {
        self.rtt = rtt;
    }

    fn keep_least(&mut self, rtt: Duration, now: Instant) {
        // If the clock stood still for a moment, the measurement is useless.
        let rtt = rtt.max(Duration::from_micros(10));
        let since = *self.least_since.get_or_insert(now);
        if now.saturating_duration_since(since) > MIN_KEPT {
            self.least = [Duration::MAX, self.least[0]];
            self.least_since = Some(now);
        }
        if rtt < self.least[0] {
            self.least[0] = rtt;
            if self.phase == Phase::Steady {
                self.fit_window();
            }
        }
    }

    fn keep_pause(&mut self, now: Instant) {
        if let (Some(busy), Some(acked)) = (self.busy_since, self.acked_at.replace(now)) {
            let pause = now.saturating_duration_since(busy.max(acked));
            self.pauses[0] = self.pauses[0].max(pause.min(MAX_PAUSE));
        }
    }

    fn forget_pause(&mut self) {
        self.pauses = [Duration::ZERO, self.pauses[0]];
    }

    /// How late an acknowledgement may be: a host that seldom runs this process takes many at once.
    fn slack(&self) -> Duration {
        SLACK.max(self.pauses[0]).max(self.pauses[1])
    }

    /// The path's own round trip; at first nothing is known about it.
    fn least_round(&self) -> Duration {
        self.least[0].min(self.least[1])
    }

    fn holds(&self, rate: u64, times: f64) -> u64 {
        let rtt = self.least_round().min(Duration::from_secs(2)) + self.slack();
        (rate as f64 * rtt.as_secs_f64() * times) as u64
    }

    fn fit_window(&mut self) {
        // A reservation is kept even beside flows that fill the path's queue.
        let times = if self.reserved.is_some() { 4.0 } else { 2.0 };
        if self.least_round() < Duration::MAX {
            self.window = self
                .holds(self.rate, times)
                .saturating_add(2 * MIN_WINDOW)
                .min(MAX_WINDOW);
        } else {
            self.window = self.window.max(8 * MIN_WINDOW);
        }
    }

    fn restart(&mut self) {
        self.begin_count(None);
        self.seen.clear();
    }

    /// Checks, after acknowledgements have been taken in, whether a count is over.
    pub(super) fn look(&mut self, now: Instant) {
        let Some(since) = self.since else {
            return self.begin_count(Some(now));
        };
        let lasts = match self.phase {
            Phase::Startup(_) => return self.give_up_early(),
            Phase::Confirm(_) => (self.rtt * CONFIRMED_ROUNDS).max(CONFIRMED),
            Phase::Steady => (self.rtt * 2).max(COUNTED),
        };
        let time = now.saturating_duration_since(since);
        if time < lasts {
            return;
        }
        // The number fits: networks have such rates.
        let seen = (self.arrived as f64 / time.as_secs_f64()) as u64;
        let heavy = self.is_heavy();
        // What arrived in this count was sent a round trip earlier.
        let busy = self.busy_since.is_some_and(|at| at + self.rtt <= since);
        let now_heavy = heavy.then_some(now);
        let says_nothing = busy && !heavy && self.was_held_up(time);
        self.begin_count(Some(now));
        self.forget_pause();
        if says_nothing {
            return;
        }
        self.counts = self.counts.wrapping_add(1);
        match self.phase {
            Phase::Startup(_) => {}
            Phase::Confirm(times) if busy => self.found(times, seen),
            Phase::Confirm(_) => {}
            Phase::Steady => self.go_on(seen, busy, now_heavy, now),
        }
    }

    fn begin_count(&mut self, since: Option<Instant>) {
        self.since = since;
        (self.arrived, self.lost, self.sent, self.was_full) = (0, 0, 0, false);
    }

    /// Whether the host was busy with something else: in this count less was sent than was allowed, although
    /// there was more, the window had room, and nothing suggests that the path is full. Little then arrives,
    /// and a lane that sent less because of that would find less each time.
    fn was_held_up(&self, time: Duration) -> bool {
        let lossy = self.lost > self.arrived / FULL_LOSS;
        let pace = self.pace().unwrap_or(0);
        let might = (pace as f64 * time.as_secs_f64()) as u64;
        self.phase == Phase::Steady && !self.was_full && !lossy && self.sent < might - might / 8
    }

    /// Ends the start-up if it overruns the queue.
    fn give_up_early(&mut self) {
        if self.is_heavy() {
            self.confirm();
        }
    }

    fn is_heavy(&self) -> bool {
        self.lost > self.arrived / HEAVY_LOSS && self.arrived + self.lost > MIN_JUDGED
    }

    fn found(&mut self, times: u32, seen: u64) {
        self.best = self.best.max(seen);
        match times + 1 < CONFIRMATIONS {
            true => self.phase = Phase::Confirm(times + 1),
            // A busy machine looks like a slow path: as long as more arrives than was found before, the
            // search goes on.
            false if self.best > self.rate + self.rate / 32 && self.tries < MAX_TRIES => {
                self.tries += 1;
                self.rate = self.best;
                self.window = self.confirm_window();
                self.phase = Phase::Confirm(0);
            }
            false => {
                // Acknowledgements in bunches suggest more than was sent.
                self.best = self.best.clamp(1, self.rate + self.rate / 8);
                self.adopt_rate(self.best);
            }
        }
    }

    fn go_on(&mut self, seen: u64, busy: bool, heavy: Option<Instant>, now: Instant) {
        // What is lost while probing for more says nothing about the rate.
        let is_bulk = self.seen.len() >= BULK;
        let looked = is_bulk && self.counts % CYCLE <= 2;
        let before = self.rate;
        if heavy.is_some() && !looked {
            self.heavy_at = heavy;
            self.rate = (self.rate - self.rate / 4).max(MIN_WINDOW);
            self.seen.clear();
        } else if self.reserved.is_some() {
            self.rate = (self.rate + self.rate / 8).min(self.best);
        } else if busy {
            // Messages are sent only a little faster than remembered; so if more arrives, the path has more.
            self.rate = self.rate.max(seen.min(self.rate + self.rate / HEADROOM));
            self.seen.push_back(seen);
            if self.seen.len() > BULK {
                self.seen.pop_front();
                self.rate = self.seen.iter().copied().max().unwrap_or(self.rate).max(1);
                (self.best, self.heavy_at) = (self.rate, None);
            }
            if is_bulk && self.counts % CYCLE == 1 && self.rate > before + before / MORE {
                self.counts = self.counts.wrapping_sub(1);
            }
        } else {
            self.seen.clear();
            // Back towards the best rate, as long as neither loss nor a queue contradicts it.
            let lossy = self
                .heavy_at
                .is_some_and(|at| now.saturating_duration_since(at) < FORGIVEN);
            if !lossy && self.rtt <= self.least_round() / 4 * 5 {
                self.rate = (self.rate + self.rate / 8).min(self.best);
            }
        }
        self.fit_window();
    }
}

#[cfg(test)]
mod tests;
