//! Mistakes in a text that is read.

use std::fmt;

/// Most mistakes that are kept; the others are only counted.
const MAX: usize = 100;

/// The mistakes in a text: at least one, each a line without its end.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Mistakes {
    /// The mistakes, in the order of the text.
    pub lines: Vec<String>,
    /// How many more there are.
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
