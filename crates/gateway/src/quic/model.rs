//! How fast a QUIC lane sends: at the rate its path was seen to have, whatever chance loses.
//!
//! A start-up doubles what is under way each round trip until no more arrives, then holds that pace for a while and counts what really
//! arrives. From then on the rate is remembered (as `course` does for TCP, docs/decisions/0006): messages are paced at it at
//! once, after any pause. A transfer of many round trips looks for more now and then, as BBR does (Cardwell et al. 2017), and
//! heavy loss slows the lane. QUIC's own window only bounds what is under way, at twice what the path holds.

use quinn_proto::congestion::{Controller, ControllerFactory};
use quinn_proto::RttEstimator;
use std::any::Any;
use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// What is under way at first, and never less: ten segments (RFC 9002, section 7.2).
const LEAST_WINDOW: u64 = 14_520;

/// What is under way at most: as a lane keeps (`causeway_tunnel::Settings`).
const MOST_WINDOW: u64 = 64 << 20;

/// While a path's rate is looked for, so much of what it was seen to hold is under way: BBR's gain is 2.89.
const STARTUP_WINDOW: f64 = 2.5;

/// Arrivals are counted over a round trip in start-up, and at least so long: a busy machine's turns are some milliseconds.
const LEAST_COUNTED: Duration = Duration::from_millis(10);

/// A start-up ends after so many counts without a quarter more.
const FLAT: u32 = 3;

/// What start-up found is held so long, to see what of it arrives.
const CONFIRMED: Duration = Duration::from_millis(100);
const CONFIRMED_ROUNDS: u32 = 8;

/// Later, arrivals are counted over two round trips and at least so long.
const COUNTED: Duration = Duration::from_millis(40);

/// A transfer that filled the lane in so many counts is one that may look for more. The rate is then the most of the last so many.
const BULK: usize = 8;

/// Lost of a count's bytes: more than chance.
const HEAVY_LOSS: u64 = 8;
const LEAST_JUDGED: u64 = 64 * 1200;

/// Messages go so much faster than remembered: a busy machine loses some turns.
const HEADROOM: u64 = 16;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Phase {
    /// Looks for the rate; counts without more so far.
    Startup(u32),
    /// Sends at what was found, and counts what arrives.
    Confirm,
    Steady,
}

#[derive(Debug)]
pub(crate) struct Model {
    phase: Phase,
    /// Bytes per second; 0 while unknown.
    rate: u64,
    /// The most it has been: what a transfer beside another finds is less than the path has.
    best: u64,
    /// Never faster, by reservation.
    most: Option<u64>,
    window: u64,
    round: Duration,
    least_round: Duration,
    /// Since when the lane has had more to send than it may.
    busy_since: Option<Instant>,
    /// The present count.
    since: Option<Instant>,
    arrived: u64,
    lost: u64,
    /// Of the counts in a row that the lane was busy in, bytes per second.
    seen: VecDeque<u64>,
    counts: u32,
}

impl Model {
    /// Starts at `rate` where that is known.
    pub(crate) fn new(rate: u64) -> Model {
        let mut model = Model {
            phase: Phase::Startup(0),
            rate: 0,
            best: 0,
            most: None,
            window: LEAST_WINDOW,
            round: Duration::ZERO,
            least_round: Duration::MAX,
            busy_since: None,
            since: None,
            arrived: 0,
            lost: 0,
            seen: VecDeque::new(),
            counts: 0,
        };
        if rate > 0 {
            model.settle(rate);
        }
        model
    }

    /// Bytes per second; 0 while unknown.
    pub(crate) fn rate(&self) -> u64 {
        match self.phase {
            Phase::Steady => self.rate,
            _ => 0,
        }
    }

    /// The rate is known.
    pub(crate) fn is_known(&self) -> bool {
        self.phase == Phase::Steady
    }

    /// The path's rate was told by who knows it.
    pub(crate) fn settle(&mut self, rate: u64) {
        (self.phase, self.rate, self.best) = (Phase::Steady, rate, self.best.max(rate));
        self.restart();
        self.fit_window();
    }

    pub(crate) fn set_most(&mut self, most: Option<u64>) {
        self.most = most;
    }

    /// Bytes that may be under way.
    pub(crate) fn window(&self) -> u64 {
        self.window
    }

    /// Bytes per second to send at; none: the window alone bounds it.
    pub(crate) fn pace(&self) -> Option<u64> {
        let pace = match self.phase {
            Phase::Startup(_) => return self.most,
            Phase::Confirm => self.rate,
            Phase::Steady if self.seen.len() < BULK => self.rate + self.rate / HEADROOM,
            Phase::Steady => match self.counts % 8 {
                6 => self.rate + self.rate / 4,
                7 => self.rate - self.rate / 4,
                _ => self.rate,
            },
        };
        Some(pace.min(self.most.unwrap_or(u64::MAX)))
    }

    /// The lane was written: `full` when it had more than it might send.
    pub(crate) fn on_written(&mut self, full: bool, now: Instant) {
        self.busy_since = full.then(|| self.busy_since.unwrap_or(now));
    }

    fn on_ack(&mut self, bytes: u64) {
        self.arrived += bytes;
        if matches!(self.phase, Phase::Startup(_)) {
            self.window = (self.window + bytes).min(self.startup_window());
        }
    }

    fn startup_window(&self) -> u64 {
        match self.best {
            0 => MOST_WINDOW,
            best => (self.holds(best, STARTUP_WINDOW) + LEAST_WINDOW).min(MOST_WINDOW),
        }
    }

    fn on_loss(&mut self, bytes: u64) {
        self.lost += bytes;
    }

    fn on_round(&mut self, round: Duration, least: Duration) {
        (self.round, self.least_round) = (round, least);
        if self.phase != Phase::Steady {
            return;
        }
        self.fit_window();
    }

    fn holds(&self, rate: u64, times: f64) -> u64 {
        let round = self.least_round.min(Duration::from_secs(2));
        (rate as f64 * round.as_secs_f64() * times) as u64
    }

    fn fit_window(&mut self) {
        if self.least_round < Duration::MAX {
            self.window = (self.holds(self.rate, 2.0) + 4 * LEAST_WINDOW).min(MOST_WINDOW);
        } else {
            self.window = self.window.max(8 * LEAST_WINDOW);
        }
    }

    fn restart(&mut self) {
        (self.since, self.arrived, self.lost) = (None, 0, 0);
        self.seen.clear();
    }

    /// Acknowledgements have been taken in: whether a count is over.
    fn look(&mut self, now: Instant) {
        let Some(since) = self.since else {
            self.since = Some(now);
            (self.arrived, self.lost) = (0, 0);
            return;
        };
        let lasts = match self.phase {
            Phase::Startup(_) => self.round.max(LEAST_COUNTED),
            Phase::Confirm => (self.round * CONFIRMED_ROUNDS).max(CONFIRMED),
            Phase::Steady => (self.round * 2).max(COUNTED),
        };
        let time = now.saturating_duration_since(since);
        if time < lasts {
            return;
        }
        // Fits: rates of networks.
        let seen = (self.arrived as f64 / time.as_secs_f64()) as u64;
        let heavy = self.lost > self.arrived / HEAVY_LOSS && self.arrived + self.lost > LEAST_JUDGED;
        // What arrived in this count was sent a round trip before.
        let busy = self.busy_since.is_some_and(|at| at + self.round <= since);
        (self.since, self.arrived, self.lost) = (Some(now), 0, 0);
        self.counts = self.counts.wrapping_add(1);
        match self.phase {
            Phase::Startup(flat) => self.start_up(flat, seen, heavy),
            Phase::Confirm => self.settle(seen.min(self.rate).max(1)),
            Phase::Steady => self.go_on(seen, busy, heavy),
        }
    }

    fn start_up(&mut self, flat: u32, seen: u64, heavy: bool) {
        let grows = seen > self.best + self.best / 4;
        self.best = self.best.max(seen);
        self.phase = match grows && !heavy {
            true => Phase::Startup(0),
            false if flat + 1 < FLAT && !heavy => Phase::Startup(flat + 1),
            false => {
                (self.rate, self.best) = (self.best, 0);
                self.window = self.holds(self.rate, 2.0) + LEAST_WINDOW;
                Phase::Confirm
            }
        };
    }

    fn go_on(&mut self, seen: u64, busy: bool, heavy: bool) {
        if heavy {
            self.rate -= self.rate / 4;
            self.best = self.rate;
            self.seen.clear();
        } else if busy {
            self.seen.push_back(seen);
            if self.seen.len() > BULK {
                self.seen.pop_front();
                self.rate = self.seen.iter().copied().max().unwrap_or(self.rate).max(1);
                self.best = self.best.max(self.rate);
            }
        } else {
            self.seen.clear();
            // Back towards the best, as long as no queue speaks against it.
            if self.round <= self.least_round / 4 * 5 {
                self.rate = (self.rate + self.rate / 8).min(self.best);
            }
        }
        self.fit_window();
    }
}

/// One model, for the lane that asks it and QUIC that tells it.
#[derive(Debug, Clone)]
pub(crate) struct Shared(Arc<Mutex<Model>>);

impl Shared {
    pub(crate) fn new(model: Model) -> Shared {
        Shared(Arc::new(Mutex::new(model)))
    }

    pub(crate) fn get(&self) -> MutexGuard<'_, Model> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Controller for Shared {
    fn on_ack(&mut self, _: Instant, _: Instant, bytes: u64, _: bool, rtt: &RttEstimator) {
        let mut model = self.get();
        model.on_ack(bytes);
        model.on_round(rtt.get(), rtt.min());
    }

    fn on_end_acks(&mut self, now: Instant, _: u64, _: bool, _: Option<u64>) {
        self.get().look(now);
    }

    fn on_congestion_event(&mut self, _: Instant, _: Instant, _: bool, lost: u64) {
        self.get().on_loss(lost);
    }

    fn on_mtu_update(&mut self, _: u16) {}

    fn window(&self) -> u64 {
        self.get().window()
    }

    fn clone_box(&self) -> Box<dyn Controller> {
        Box::new(self.clone())
    }

    fn initial_window(&self) -> u64 {
        LEAST_WINDOW
    }

    fn into_any(self: Box<Self>) -> Box<dyn Any> {
        self
    }
}

impl ControllerFactory for Shared {
    fn build(self: Arc<Self>, _: Instant, _: u16) -> Box<dyn Controller> {
        Box::new((*self).clone())
    }
}
