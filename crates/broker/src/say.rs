//! What the broker says on standard error. A refusal is said once for each kind and origin: strangers must
//! not fill a log.

use std::collections::HashSet;
use std::fmt::Display;
use std::io::{self, Write};
use std::sync::{Arc, Mutex, PoisonError};

/// Kinds and origins that are remembered as said; after as many no refusal is said any more.
const SAID_AT_MOST: usize = 1024;

/// Where lines go. Clones share what was said.
#[derive(Clone)]
pub struct Log {
    write: Arc<dyn Fn(&str) + Send + Sync>,
    said: Arc<Mutex<HashSet<String>>>,
}

impl Log {
    /// To standard error.
    pub fn stderr() -> Log {
        // Not eprintln!, which panics where stderr cannot be written: a full disk must not end the broker.
        Log::new(|line| {
            let _ = io::stderr().write_all(format!("causeway broker: {line}\n").as_bytes());
        })
    }

    /// To whoever wants them, a line each, without its newline.
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
        let mut said = self.said.lock().unwrap_or_else(PoisonError::into_inner);
        let new = said.len() < SAID_AT_MOST && said.insert(format!("{kind} {origin}"));
        drop(said);
        if new {
            self.say(format_args!(
                "refused {origin}: {text} (said once for this origin and reason)"
            ));
        }
    }
}

impl std::fmt::Debug for Log {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Log")
    }
}
