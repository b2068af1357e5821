//! Summarises round trips.

use causeway_control::Pong;
use serde::Serialize;
use std::fmt;

/// Most round trips that are kept for the median: one a second for three days. Later ones count for
/// everything else.
const KEPT: usize = 1 << 18;

/// Round trips so far.
#[derive(Debug, Default)]
pub struct Trips {
    milliseconds: Vec<f64>,
    sent: u64,
    received: u64,
    sum: f64,
    sum_of_squares: f64,
    /// The shortest round trip, which shows the other clock most exactly: its length, and what it says about
    /// the clock.
    best: Option<(u64, i64)>,
    longest: f64,
}

/// What ping(8) prints at the end, and the clock.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Summary {
    /// Number of questions.
    pub sent: u64,
    /// Number of answers.
    pub received: u64,
    /// Share of those without an answer.
    pub loss: f64,
    /// Times of the round trips that were answered; `None` if there were none.
    #[serde(flatten)]
    pub times: Option<Times>,
}

/// Times of round trips in milliseconds.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Times {
    /// The shortest.
    pub min_ms: f64,
    /// The mean.
    pub avg_ms: f64,
    /// The median: as many round trips were shorter as longer.
    pub median_ms: f64,
    /// The longest.
    pub max_ms: f64,
    /// Standard deviation, as ping(8) counts it.
    pub mdev_ms: f64,
    /// Mean difference between one round trip and the next (RFC 3550 calls its running mean jitter).
    pub jitter_ms: f64,
    /// How far the other clock is ahead.
    pub clock_ahead_ms: f64,
    /// How wrong that may be.
    pub clock_error_ms: f64,
}

impl Trips {
    /// Counts one more answer.
    pub fn answered(&mut self, pong: &Pong) {
        let milliseconds = pong.round_trip_microseconds as f64 / 1e3;
        self.sent += 1;
        self.received += 1;
        self.sum += milliseconds;
        self.sum_of_squares += milliseconds * milliseconds;
        self.longest = self.longest.max(milliseconds);
        if self.milliseconds.len() < KEPT {
            self.milliseconds.push(milliseconds);
        }
        if self
            .best
            .is_none_or(|(least, _)| pong.round_trip_microseconds < least)
        {
            self.best = Some((pong.round_trip_microseconds, pong.clock_ahead_microseconds));
        }
    }

    /// Counts one more question that nobody answered.
    pub fn unanswered(&mut self) {
        self.sent += 1;
    }

    /// Summarises the round trips.
    pub fn summary(&self) -> Summary {
        Summary {
            sent: self.sent,
            received: self.received,
            loss: (self.sent - self.received) as f64 / self.sent.max(1) as f64,
            times: self.times(),
        }
    }

    fn times(&self) -> Option<Times> {
        let (least, ahead) = self.best?;
        let count = self.received as f64;
        let mean = self.sum / count;
        let mut sorted = self.milliseconds.clone();
        sorted.sort_by(f64::total_cmp);
        let middle = sorted.len() / 2;
        let below = sorted.get((sorted.len() - 1) / 2)?;
        let steps = self.milliseconds.windows(2).map(|pair| (pair[1] - pair[0]).abs());
        Some(Times {
            min_ms: least as f64 / 1e3,
            avg_ms: mean,
            median_ms: (below + sorted.get(middle)?) / 2.0,
            max_ms: self.longest,
            // Rounding may make it negative.
            mdev_ms: (self.sum_of_squares / count - mean * mean).max(0.0).sqrt(),
            jitter_ms: steps.fold(0.0, |sum, step| sum + step) / (self.milliseconds.len() - 1).max(1) as f64,
            clock_ahead_ms: ahead as f64 / 1e3,
            clock_error_ms: least as f64 / 2e3,
        })
    }
}

impl fmt::Display for Summary {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (sent, received, loss) = (self.sent, self.received, self.loss * 100.0);
        write!(f, "{sent} asked, {received} answered, {loss:.1}% lost")?;
        let Some(times) = &self.times else { return Ok(()) };
        write!(
            f,
            "\nrtt min/avg/median/max/mdev = {:.3}/{:.3}/{:.3}/{:.3}/{:.3} ms\nclock there {:+.3} ms from here, within {:.3} ms",
            times.min_ms,
            times.avg_ms,
            times.median_ms,
            times.max_ms,
            times.mdev_ms,
            times.clock_ahead_ms,
            times.clock_error_ms
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pong(round_trip_microseconds: u64, clock_ahead_microseconds: i64) -> Pong {
        Pong {
            site: "nancy".into(),
            round_trip_microseconds,
            clock_ahead_microseconds,
            version: String::new(),
        }
    }

    #[test]
    fn the_summary_is_that_of_ping_and_the_shortest_trip_knows_the_clock() {
        let mut trips = Trips::default();
        for (microseconds, ahead) in [(12_000, 900), (10_000, 500), (14_000, -700), (16_000, 0)] {
            trips.answered(&pong(microseconds, ahead));
        }
        trips.unanswered();
        let summary = trips.summary();
        assert_eq!((summary.sent, summary.received, summary.loss), (5, 4, 0.2));
        let text = summary.to_string();
        assert!(
            text.contains("= 10.000/13.000/13.000/16.000/2.236 ms")
                && text.contains("+0.500 ms from here, within 5.000"),
            "{text}"
        );
        assert!((summary.times.unwrap().jitter_ms - 8.0 / 3.0).abs() < 1e-9);
    }

    #[test]
    fn nothing_answered_has_no_times() {
        let mut trips = Trips::default();
        assert_eq!(trips.summary().loss, 0.0);
        trips.unanswered();
        assert_eq!(trips.summary().to_string(), "1 asked, 0 answered, 100.0% lost");
    }
}
