//! Writes what the broker says on standard error. `causeway_service` escapes text that others chose, and does
//! not wait for a reader. Its `refusals` decide how often a refusal is logged.

use causeway_service::{Lines, Refusals};
use std::fmt::Display;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// How long the broker, as it ends, waits for a reader of its last lines.
const FAREWELL: Duration = Duration::from_secs(1);

/// Where log lines go. Clones are the same log.
#[derive(Clone)]
pub struct Log {
    write: Arc<dyn Fn(&str) + Send + Sync>,
    said: Arc<Mutex<Refusals>>,
}

impl Log {
    /// A log that is written to standard error.
    pub fn stderr() -> Log {
        Log::new(|line| Lines::stderr().say(format_args!("causeway broker: {line}")))
    }

    /// Waits until the lines are written. The broker calls this before it ends; lines that nobody reads
    /// within a second are lost.
    pub(crate) fn flush(&self) {
        Lines::stderr().flush(FAREWELL);
    }

    /// A log that gives each line to `write`, without its newline.
    pub fn new(write: impl Fn(&str) + Send + Sync + 'static) -> Log {
        Log {
            write: Arc::new(write),
            said: Arc::default(),
        }
    }

    pub(crate) fn say(&self, text: impl Display) {
        (self.write)(&text.to_string());
    }

    pub(crate) fn refuse(&self, kind: &str, origin: impl Display, text: impl Display) {
        let origin = origin.to_string();
        let mut said = self.said.lock().unwrap_or_else(PoisonError::into_inner);
        let to_say = said.count(kind, &origin, Instant::now());
        drop(said);
        if let Some(more) = to_say {
            self.say(format_args!("refused {origin}: {text}{more}"));
        }
    }
}

impl std::fmt::Debug for Log {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Log")
    }
}
