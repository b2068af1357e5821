//! What the gateway says on stderr, and what it counts. A refusal is said once per kind and origin, and
//! counted always.

use std::collections::{BTreeMap, HashSet};
use std::fmt::Display;
use std::io::{self, Write};
use std::time::{Duration, Instant};

/// Kinds and origins remembered as said. More distinct ones than this are only counted: a scan must not fill
/// a log.
const SAID_AT_MOST: usize = 1024;

/// A restart of a far gateway takes two; a network that comes back now and then some more.
const LINES_A_MINUTE: u32 = 20;
const MINUTE: Duration = Duration::from_secs(60);

pub(crate) struct Log {
    site: String,
    said: HashSet<String>,
    refused: BTreeMap<String, u64>,
}

impl Log {
    pub(crate) fn new(site: &str) -> Log {
        Log {
            site: site.to_owned(),
            said: HashSet::new(),
            refused: BTreeMap::new(),
        }
    }

    /// Goes on counting where a predecessor stopped.
    pub(crate) fn inherit(&mut self, refused: BTreeMap<String, u64>) {
        self.refused = refused;
    }

    pub(crate) fn say(&self, text: impl Display) {
        // Not eprintln!, which panics where stderr cannot be written: a full disk must not end every job of
        // the site.
        let line = format!("causeway gateway {}: {text}\n", self.site);
        let _ = io::stderr().write_all(line.as_bytes());
    }

    /// Counts a refusal under `kind`; says it the first time for this `origin`.
    pub(crate) fn refuse(&mut self, kind: &str, origin: impl Display, text: impl Display) {
        if self.count(kind, &origin) {
            self.say(format_args!(
                "refused {origin}: {text} (said once for this origin, counted always)"
            ));
        }
    }

    /// True when this one is to be said.
    fn count(&mut self, kind: &str, origin: impl Display) -> bool {
        *self.refused.entry(kind.to_owned()).or_default() += 1;
        self.said.len() < SAID_AT_MOST && self.said.insert(format!("{kind} {origin}"))
    }

    pub(crate) fn refused(&self) -> &BTreeMap<String, u64> {
        &self.refused
    }
}

/// What may be said of one site's coming and going: a minute's lines are bounded, and those left out are
/// counted.
#[derive(Debug, Default)]
pub(crate) struct Allowance {
    since: Option<Instant>,
    said: u32,
    unsaid: u32,
}

impl Allowance {
    /// Whether one more line may be said, and how many were left out before it.
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
    fn refusals_are_always_counted_and_said_a_bounded_number_of_times() {
        let mut report = Log::new("rennes");
        let said =
            (0..2 * SAID_AT_MOST).filter(|origin| report.count("preface", origin % (SAID_AT_MOST + 10)));
        assert_eq!(said.count(), SAID_AT_MOST);
        assert_eq!(report.refused()["preface"], 2 * SAID_AT_MOST as u64);
    }
}
