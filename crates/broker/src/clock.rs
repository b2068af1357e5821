//! The time as a value that tests may set, and dates written for people.

use std::fmt;
use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};
use time::OffsetDateTime;

/// Where the time comes from. Clones are the same clock.
#[derive(Clone)]
pub struct Clock(Arc<dyn Fn() -> SystemTime + Send + Sync>);

impl Clock {
    /// The host's clock.
    pub fn system() -> Clock {
        Clock::new(SystemTime::now)
    }

    /// A clock that shows what `now` returns.
    pub fn new(now: impl Fn() -> SystemTime + Send + Sync + 'static) -> Clock {
        Clock(Arc::new(now))
    }

    /// Seconds since 1970.
    pub fn now(&self) -> u64 {
        let since = (self.0)().duration_since(UNIX_EPOCH);
        since.map_or(0, |since| since.as_secs())
    }
}

impl fmt::Debug for Clock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Clock({})", date(self.now()))
    }
}

/// A time in seconds since 1970 as RFC 3339 writes it: `2026-11-22T06:10:57Z`. Later ones sort after earlier
/// ones.
pub fn timestamp(unix_seconds: u64) -> String {
    let text = date(unix_seconds);
    text.strip_suffix(" UTC")
        .map_or_else(|| text.clone(), |time| time.replacen(' ', "T", 1) + "Z")
}

/// A time in seconds since 1970 as `2026-11-22 06:10:57 UTC`.
pub fn date(unix_seconds: u64) -> String {
    let seconds = i64::try_from(unix_seconds).unwrap_or(i64::MAX);
    match OffsetDateTime::from_unix_timestamp(seconds) {
        Ok(time) => format!(
            "{}-{:02}-{:02} {:02}:{:02}:{:02} UTC",
            time.year(),
            u8::from(time.month()),
            time.day(),
            time.hour(),
            time.minute(),
            time.second()
        ),
        Err(_) => format!("{unix_seconds} s after 1970"),
    }
}

/// A length of time as a person would say it: the two largest units, such as `3 h 20 min`.
pub fn span(seconds: u64) -> String {
    let units = [("d", 86_400), ("h", 3600), ("min", 60), ("s", 1)];
    let mut rest = seconds;
    let mut words = Vec::new();
    for (unit, length) in units {
        let count = rest / length;
        rest %= length;
        if count > 0 {
            words.push(format!("{count} {unit}"));
        } else if !words.is_empty() {
            break;
        }
        if words.len() == 2 {
            break;
        }
    }
    if words.is_empty() {
        "0 s".to_owned()
    } else {
        words.join(" ")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_written_for_people() {
        assert_eq!(date(1_795_327_857), "2026-11-22 06:10:57 UTC");
        assert!(date(u64::MAX).contains("after 1970"));
        for (seconds, text) in [
            (0, "0 s"),
            (59, "59 s"),
            (12_000, "3 h 20 min"),
            (86_400, "1 d"),
            (90_061, "1 d 1 h"),
            (86_401, "1 d"),
        ] {
            assert_eq!(span(seconds), text);
        }
    }
}
