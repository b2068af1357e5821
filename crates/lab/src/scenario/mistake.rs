//! Mistakes in a scenario: all of them at once, each as `file:line: key: reason`.

use std::fmt;

use thiserror::Error;

/// One mistake in a scenario.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mistake {
    /// File as the user named it, or `command line`.
    pub file: String,
    /// Line counted from 1; `None` if it concerns the file as a whole.
    pub line: Option<usize>,
    /// The key that it concerns, such as `site.subnet`; empty if it concerns the file as a whole.
    pub key: String,
    /// The mistake, and what to do about it.
    pub reason: String,
}

impl Mistake {
    pub(crate) fn whole_file(file: &str, reason: String) -> Mistake {
        Mistake {
            file: file.to_owned(),
            line: None,
            key: String::new(),
            reason,
        }
    }
}

impl fmt::Display for Mistake {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.file)?;
        if let Some(line) = self.line {
            write!(f, ":{line}")?;
        }
        if !self.key.is_empty() {
            write!(f, ": {}", self.key)?;
        }
        write!(f, ": {}", self.reason)
    }
}

/// Every mistake found in one scenario, shown one per line.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("{}", self.list())]
pub struct Mistakes {
    file: String,
    found: Vec<Mistake>,
}

impl Mistakes {
    /// The mistakes in the order of their lines.
    pub fn iter(&self) -> impl Iterator<Item = &Mistake> {
        self.found.iter()
    }

    pub(crate) fn in_file(file: &str) -> Mistakes {
        Mistakes {
            file: file.to_owned(),
            found: Vec::new(),
        }
    }

    pub(crate) fn add(&mut self, line: Option<usize>, key: &str, reason: impl Into<String>) {
        let mistake = Mistake {
            file: self.file.clone(),
            line,
            key: key.to_owned(),
            reason: reason.into(),
        };
        self.found.push(mistake);
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.found.is_empty()
    }

    pub(crate) fn sorted(mut self) -> Mistakes {
        self.found.sort_by_key(|mistake| mistake.line);
        self
    }

    fn list(&self) -> String {
        let lines: Vec<String> = self.found.iter().map(Mistake::to_string).collect();
        lines.join("\n")
    }
}

impl From<Mistake> for Mistakes {
    fn from(mistake: Mistake) -> Mistakes {
        Mistakes {
            file: mistake.file.clone(),
            found: vec![mistake],
        }
    }
}
