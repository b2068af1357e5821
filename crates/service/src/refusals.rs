//! Decides which refusals are logged: the first of each kind and origin, and from then on one an hour, with
//! the number of those omitted. If there are more origins than are remembered, each kind gets a line a minute
//! for all other origins together. So memory and log are bounded, and neither kind of line stops for good.
//!
//! There is no clock here: the time is an argument. The caller counts the totals.

use std::collections::HashMap;
use std::time::{Duration, Instant};

/// Most kinds and origins that are remembered at once. A site has some tens of hosts that are refused by
/// mistake; a scan has any number.
const REMEMBERED: usize = 1024;

/// The time between two lines about one origin: so today's log still shows that the refusals continue.
const ORIGIN_EVERY: Duration = Duration::from_secs(3600);

/// The time between two lines about a kind for the origins that are not remembered.
const OTHERS_EVERY: Duration = Duration::from_secs(60);

/// The time between two searches for origins that can be forgotten, while there is no room.
const CLEAN_EVERY: Duration = Duration::from_secs(60);

/// Longest kind and longest origin that are compared in full: others may choose both.
const NAME_BYTES: usize = 256;

/// See the module.
#[derive(Debug, Default)]
pub struct Refusals {
    origins: HashMap<(String, String), Said>,
    others: HashMap<String, Said>,
    cleaned: Option<Instant>,
}

#[derive(Debug)]
struct Said {
    last: Instant,
    left_out: u64,
}

/// A refusal that must be logged.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ToSay {
    /// How many refusals of the same kind and origin there were since the last line.
    pub left_out: u64,
    /// Whether the refusals are those of origins that are not remembered.
    pub of_others: bool,
}

impl std::fmt::Display for ToSay {
    /// Writes what is appended to the line.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match (self.left_out, self.of_others) {
            (0, _) => Ok(()),
            (more, false) => write!(f, " ({more} more of this kind and origin since the last line)"),
            (more, true) => write!(
                f,
                " ({more} more of this kind from other origins since the last line)"
            ),
        }
    }
}

impl Refusals {
    /// Counts a refusal; returns what must be logged about it, if anything. An origin must be something that
    /// the refused party cannot choose at will: the address that it has, or the name that its certificate
    /// proves. A party that could give any name would use up the places of all others.
    pub fn count(&mut self, kind: &str, origin: &str, now: Instant) -> Option<ToSay> {
        let key = (cut(kind), cut(origin));
        let is_known = self.origins.contains_key(&key);
        if is_known || self.has_room(now) {
            let left_out = take(&mut self.origins, key, now, ORIGIN_EVERY)?;
            return Some(ToSay {
                left_out,
                of_others: false,
            });
        }
        // There are some tens of kinds; if there were more, the last ones would share a line.
        let kind = match self.others.len() < REMEMBERED || self.others.contains_key(&key.0) {
            true => key.0,
            false => String::new(),
        };
        let left_out = take(&mut self.others, kind, now, OTHERS_EVERY)?;
        Some(ToSay {
            left_out,
            of_others: true,
        })
    }

    /// Whether another origin can be remembered. Forgets origins whose next refusal would be logged anyway.
    fn has_room(&mut self, now: Instant) -> bool {
        let was_cleaned = |at: Instant| now.saturating_duration_since(at) < CLEAN_EVERY;
        if self.origins.len() >= REMEMBERED && !self.cleaned.is_some_and(was_cleaned) {
            self.cleaned = Some(now);
            self.origins
                .retain(|_, said| now.saturating_duration_since(said.last) < ORIGIN_EVERY);
        }
        self.origins.len() < REMEMBERED
    }
}

/// Returns how many refusals were omitted before this one, if it must be logged.
fn take<K: Eq + std::hash::Hash>(
    all: &mut HashMap<K, Said>,
    key: K,
    now: Instant,
    every: Duration,
) -> Option<u64> {
    let Some(said) = all.get_mut(&key) else {
        let last = now;
        all.insert(key, Said { last, left_out: 0 });
        return Some(0);
    };
    if now.saturating_duration_since(said.last) < every {
        said.left_out += 1;
        return None;
    }
    said.last = now;
    Some(std::mem::take(&mut said.left_out))
}

fn cut(name: &str) -> String {
    name[..name.floor_char_boundary(NAME_BYTES)].to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    #[test]
    fn an_origin_has_a_line_an_hour_with_the_number_of_those_between() {
        let (mut refusals, began) = (Refusals::default(), Instant::now());
        let mut count = |after| refusals.count("preface", "10.0.0.1", began + after);
        assert_eq!(count(Duration::ZERO).unwrap().left_out, 0);
        for seconds in 1..1000 {
            assert_eq!(count(seconds * SECOND), None);
        }
        let again = count(ORIGIN_EVERY).unwrap();
        assert_eq!((again.left_out, again.of_others), (999, false));
        assert!(again.to_string().contains("999 more"));
        assert_eq!(count(ORIGIN_EVERY + SECOND), None);
    }

    #[test]
    fn more_origins_than_are_remembered_have_a_line_a_minute_together_and_the_log_is_never_silent() {
        let (mut refusals, began) = (Refusals::default(), Instant::now());
        for origin in 0..REMEMBERED {
            assert!(refusals.count("preface", &origin.to_string(), began).is_some());
        }
        let mut count =
            |kind: &str, origin: u32, after| refusals.count(kind, &format!("o{origin}"), began + after);
        assert!(count("preface", 0, SECOND).unwrap().of_others);
        for origin in 1..500 {
            assert_eq!(count("preface", origin, SECOND), None);
        }
        assert!(
            count("unknown-token", 0, SECOND).is_some(),
            "another kind is not hidden"
        );
        let later = count("preface", 501, SECOND + OTHERS_EVERY).unwrap();
        assert_eq!((later.left_out, later.of_others), (499, true));
        // There is room again once the scan is an hour ago.
        let after = ORIGIN_EVERY + CLEAN_EVERY + SECOND;
        assert!(!count("preface", 502, after).unwrap().of_others);
        assert!(refusals.origins.len() < REMEMBERED);
    }

    #[test]
    fn what_is_remembered_is_bounded_whatever_comes() {
        let (mut refusals, now) = (Refusals::default(), Instant::now());
        for number in 0..4 * REMEMBERED {
            let long = number.to_string() + &"é".repeat(1000);
            let _ = refusals.count(&long, &long, now);
        }
        assert_eq!(refusals.origins.len(), REMEMBERED);
        assert!(refusals.others.len() <= REMEMBERED + 1);
        assert!(
            refusals
                .origins
                .keys()
                .all(|(kind, origin)| kind.len() + origin.len() <= 2 * NAME_BYTES)
        );
    }
}
