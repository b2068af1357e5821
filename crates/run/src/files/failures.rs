//! The reasons why files have not come, as one message.

use std::fmt;

/// Most causes that a message names.
const MOST: usize = 10;

/// Causes, of which only the first ones are kept.
#[derive(Debug, Default)]
pub(super) struct Failures {
    first: Vec<String>,
    count: usize,
}

impl Failures {
    pub(super) fn add(&mut self, text: String) {
        self.count += 1;
        if self.first.len() < MOST {
            self.first.push(text);
        }
    }

    pub(super) fn append(&mut self, others: Failures) {
        self.count += others.count;
        let room = MOST.saturating_sub(self.first.len());
        self.first.extend(others.first.into_iter().take(room));
    }

    pub(super) fn is_empty(&self) -> bool {
        self.count == 0
    }
}

impl fmt::Display for Failures {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.first.join("; "))?;
        match self.count - self.first.len() {
            0 => Ok(()),
            more => write!(f, "; and {more} more"),
        }
    }
}
