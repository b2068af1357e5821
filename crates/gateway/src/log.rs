//! What the gateway logs on standard error, and what it counts. All of it goes through `causeway_service`,
//! which escapes text that others chose, and does not wait for a reader. A refusal is always counted, and
//! logged as often as `causeway_service::refusals` allows.

use causeway_service::{Lines, Refusals};
use std::collections::BTreeMap;
use std::fmt::Display;
use std::time::{Duration, Instant};

/// How long this program, as it ends, waits until somebody reads its last lines.
const FAREWELL: Duration = Duration::from_secs(1);

/// Most lines a minute about one site: a restart of a far gateway takes two, a network that comes and goes
/// some more.
const LINES_A_MINUTE: u32 = 20;
const MINUTE: Duration = Duration::from_secs(60);

pub(crate) struct Log {
    site: String,
    said: Refusals,
    refused: BTreeMap<String, u64>,
}

impl Log {
    pub(crate) fn new(site: &str) -> Log {
        Log {
            site: site.to_owned(),
            said: Refusals::default(),
            refused: BTreeMap::new(),
        }
    }

    /// Goes on counting where a predecessor stopped.
    pub(crate) fn inherit(&mut self, refused: BTreeMap<String, u64>) {
        self.refused = refused;
    }

    pub(crate) fn say(&self, text: impl Display) {
        Lines::stderr().say(format_args!("causeway gateway {}: {text}", self.site));
    }

    /// Writes the lines that wait. Call this before this program ends or another one takes its place: lines
    /// that nobody reads within a second are lost.
    pub(crate) fn flush(&self) {
        Lines::stderr().flush(FAREWELL);
    }

    /// Counts a refusal under `kind`, and logs it unless there was a line for this `origin` a short while
    /// ago.
    pub(crate) fn refuse(&mut self, kind: &str, origin: impl Display, text: impl Display) {
        *self.refused.entry(kind.to_owned()).or_default() += 1;
        let origin = origin.to_string();
        if let Some(more) = self.said.count(kind, &origin, Instant::now()) {
            self.say(format_args!("refused {origin}: {text}{more}"));
        }
    }

    /// Logs, as seldom as a refusal, why a connection led to nothing although nothing was refused: it came
    /// too early and will be made again, or it asked for nothing.
    pub(crate) fn put_off(&mut self, kind: &str, origin: impl Display, text: impl Display) {
        let origin = origin.to_string();
        if let Some(more) = self.said.count(kind, &origin, Instant::now()) {
            self.say(format_args!("{origin}: {text}{more}"));
        }
    }

    pub(crate) fn refused(&self) -> &BTreeMap<String, u64> {
        &self.refused
    }
}

/// Limits what is logged about one site's coming and going: lines in a minute are bounded, and those left out
/// are counted.
#[derive(Debug, Default)]
pub(crate) struct Allowance {
    since: Option<Instant>,
    said: u32,
    unsaid: u32,
}

impl Allowance {
    /// Whether one more line may be logged; returns how many were left out before it.
    pub(crate) fn take(&mut self, now: Instant) -> Option<u32> {
        let is_new = self
            .since
            .is_none_or(|since| now.saturating_duration_since(since) >= MINUTE);
        if is_new {
            (self.since, self.said) = (Some(now), 0);
        }
        if self.said == LINES_A_MINUTE {
            self.unsaid += 1;
            return None;
        }
        self.said += 1;
        Some(std::mem::take(&mut self.unsaid))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_site_that_comes_and_goes_without_end_has_so_many_lines_a_minute_and_then_their_number() {
        let (mut allowance, began) = (Allowance::default(), Instant::now());
        for _ in 0..LINES_A_MINUTE {
            assert_eq!(allowance.take(began), Some(0));
        }
        for _ in 0..1000 {
            assert_eq!(allowance.take(began + MINUTE / 2), None);
        }
        assert_eq!(allowance.take(began + MINUTE), Some(1000));
        assert_eq!(allowance.take(began + MINUTE), Some(0));
    }

    #[test]
    fn refusals_are_always_counted() {
        let mut log = Log::new("rennes");
        (0..2000).for_each(|origin| log.refuse("preface", origin, "odd"));
        assert_eq!(log.refused()["preface"], 2000);
    }
}
