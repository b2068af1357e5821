//! Mistakes and warnings found while a text is read, and where in the text each key is.

use std::collections::HashMap;

/// Most mistakes that are kept; any more are only counted.
pub(crate) const MAX_MISTAKES: usize = 100;

/// A mistake or a warning.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Note {
    /// Where in the text, in bytes.
    pub at: usize,
    /// The full path of the key; empty if the text is not valid TOML or XML.
    pub key: String,
    pub reason: String,
}

/// Everything that is known besides the profile.
#[derive(Debug, Default)]
pub(crate) struct Notes {
    pub mistakes: Vec<Note>,
    pub warnings: Vec<Note>,
    /// Number of notes beyond [`MAX_MISTAKES`], of both kinds.
    pub more: usize,
    places: HashMap<String, usize>,
}

impl Notes {
    /// Remembers where a key is.
    pub(crate) fn place(&mut self, key: &str, at: usize) {
        self.places.insert(key.to_owned(), at);
    }

    /// Where a key is, or the nearest key that contains it.
    pub(crate) fn at(&self, key: &str) -> usize {
        let mut path = key;
        loop {
            if let Some(at) = self.places.get(path) {
                return *at;
            }
            match path.rfind(['.', '[']) {
                Some(end) => path = &path[..end],
                None => return 0,
            }
        }
    }

    pub(crate) fn mistake_at(&mut self, at: usize, key: impl Into<String>, reason: impl Into<String>) {
        let list = &mut self.mistakes;
        add(list, &mut self.more, at, key.into(), reason.into());
    }

    /// Notes a mistake in a key whose place is known.
    pub(crate) fn mistake(&mut self, key: impl Into<String>, reason: impl Into<String>) {
        let key = key.into();
        self.mistake_at(self.at(&key), key, reason);
    }

    pub(crate) fn warn_at(&mut self, at: usize, key: impl Into<String>, reason: impl Into<String>) {
        let list = &mut self.warnings;
        add(list, &mut self.more, at, key.into(), reason.into());
    }

    pub(crate) fn warn(&mut self, key: impl Into<String>, reason: impl Into<String>) {
        let key = key.into();
        self.warn_at(self.at(&key), key, reason);
    }
}

fn add(list: &mut Vec<Note>, more: &mut usize, at: usize, key: String, reason: String) {
    if list.len() < MAX_MISTAKES {
        list.push(Note { at, key, reason });
    } else {
        *more += 1;
    }
}
