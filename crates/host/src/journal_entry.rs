//! What the journal of `causeway tune` contains: changes, and the values before them. Pure. Root undoes what
//! it lists, so only things that `causeway tune` itself changes are read.

use causeway_wire::TextError;
use serde::{Deserialize, Serialize};
use std::path::{Component, PathBuf};

/// What can be changed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Target {
    /// A kernel setting, below /proc/sys.
    Setting(String),
    /// A file of the user.
    File(PathBuf),
}

/// One change.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Entry {
    /// See [`Target`].
    pub target: Target,
    /// The value before; `None` if there was no file.
    pub before: Option<String>,
    /// The new value.
    pub after: String,
}

/// Reads a journal's entries, in the order in which they were made.
///
/// # Errors
/// It is not a journal, or it would change something other than a kernel setting or a file given by an
/// absolute path.
pub fn parse(text: &str) -> Result<Vec<Entry>, TextError> {
    let entries: Vec<Entry> = serde_json::from_str(text).map_err(TextError::of)?;
    match entries.iter().find(|entry| !is_sound(&entry.target)) {
        Some(entry) => Err(format!("it would change {:?}", entry.target).into()),
        None => Ok(entries),
    }
}

fn is_sound(target: &Target) -> bool {
    match target {
        Target::Setting(name) => is_setting(name),
        Target::File(file) => {
            file.is_absolute() && !file.components().any(|part| part == Component::ParentDir)
        }
    }
}

/// Whether a text names a kernel setting below /proc/sys, and cannot lead elsewhere.
fn is_setting(name: &str) -> bool {
    let letters = |label: &str| {
        let mut bytes = label.bytes();
        bytes.all(|byte| byte.is_ascii_alphanumeric() || b"_-.".contains(&byte))
    };
    { name.split('/') }.all(|label| !["", ".", ".."].contains(&label) && letters(label))
}
