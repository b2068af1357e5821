//! Reads a profile in either form, and reports its mistakes.

use crate::check;
use crate::model::Profile;
use crate::notes::{Note, Notes};
use crate::{MAX_BYTES, toml_reader, xml_reader};
use std::fmt;

/// A text that has been read. A run may add remarks of its own.
#[derive(Debug)]
pub struct Reading {
    file: String,
    /// Where each line except the first begins.
    lines: Vec<usize>,
    /// What could be read.
    pub(crate) profile: Profile,
    pub(crate) notes: Notes,
}

/// A profile without mistakes.
#[derive(Debug, PartialEq, Eq)]
pub struct Read<T = Profile> {
    /// The value that was read.
    pub value: T,
    /// What the user should know about it, each as `file:line: key: reason`: what was left out or assumed.
    pub warnings: Vec<String>,
}

/// All mistakes, each as `file:line: key: reason`, in the order of the text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mistakes(pub Vec<String>);

impl fmt::Display for Mistakes {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        to.write_str(&self.0.join("\n"))
    }
}

impl std::error::Error for Mistakes {}

/// Reads a text: XML if it begins with `<`, otherwise TOML. Messages name the file.
pub fn read(text: &str, file: &str) -> Reading {
    let mut notes = Notes::default();
    let profile = if text.len() > MAX_BYTES {
        let reason = format!("has {} bytes; a profile has {MAX_BYTES} at most", text.len());
        notes.mistake_at(0, "", reason);
        Profile::default()
    } else {
        let known = if is_xml(text) {
            xml_reader::read(text, &mut notes)
        } else {
            toml_reader::read(text, &mut notes)
        };
        // If the text has no structure, rules about its content would only repeat that.
        if let Some(profile) = &known {
            check::check(profile, &mut notes);
        }
        known.unwrap_or_default()
    };
    let newlines = text.match_indices('\n').map(|(at, _)| at + 1);
    Reading {
        file: file.to_owned(),
        lines: newlines.collect(),
        profile,
        notes,
    }
}

/// Says whether a text is XML: no TOML begins this way.
pub fn is_xml(text: &str) -> bool {
    text.trim_start_matches('\u{feff}').trim_start().starts_with('<')
}

impl Reading {
    /// The profile.
    ///
    /// # Errors
    /// All mistakes in the profile.
    pub fn finish(mut self) -> Result<Read, Mistakes> {
        let profile = std::mem::take(&mut self.profile);
        self.answer(profile)
    }

    /// A value that was made from the profile, unless there are mistakes.
    pub(crate) fn answer<T>(mut self, value: T) -> Result<Read<T>, Mistakes> {
        let mistakes = std::mem::take(&mut self.notes.mistakes);
        let warnings = std::mem::take(&mut self.notes.warnings);
        if mistakes.is_empty() {
            let warnings = self.told(warnings);
            Ok(Read { value, warnings })
        } else {
            Err(Mistakes(self.told(mistakes)))
        }
    }

    fn told(&self, mut notes: Vec<Note>) -> Vec<String> {
        notes.sort();
        notes.dedup();
        let lines = notes.iter().map(|note| {
            let line = 1 + self.lines.partition_point(|start| *start <= note.at);
            let colon = if note.key.is_empty() { "" } else { ": " };
            format!("{}:{line}: {}{colon}{}", self.file, note.key, note.reason)
        });
        let more = (self.notes.more > 0).then(|| format!("{}: and {} more", self.file, self.notes.more));
        lines.chain(more).collect()
    }
}
