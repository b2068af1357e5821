//! Mistakes in a text that is read.

use std::fmt;

/// Most that are kept; of more, only the number is.
const MAX: usize = 100;

/// The mistakes of a text: at least one, each a line without its end.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Mistakes {
    /// In the order of the text.
    pub lines: Vec<String>,
    /// How many there are beyond these.
    pub more: usize,
}

impl Mistakes {
    pub(crate) fn add(&mut self, line: String) {
        if self.lines.len() < MAX {
            self.lines.push(line);
        } else {
            self.more += 1;
        }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.lines.is_empty()
    }
}

impl fmt::Display for Mistakes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.lines.join("\n"))?;
        match self.more {
            0 => Ok(()),
            more => write!(f, "\nand {more} more mistakes"),
        }
    }
}

impl std::error::Error for Mistakes {}
