//! What jobs have left on their nodes because it could not be fetched: this host keeps a note about each job,
//! for a later `causeway fetch`.

use super::Host;
use causeway_host::{own_file, user_directories};
use serde::{Deserialize, Serialize};
use std::fs;
use std::io;
use std::path::PathBuf;
use std::time::{Duration, SystemTime};

/// How long the directories stay on the nodes.
const STAYS: Duration = Duration::from_secs(24 * 3600);

/// Longest note that is read.
const MOST_BYTES: u64 = 1 << 20;

/// Where a job's files are.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Left {
    /// The patterns that the job was given.
    pub(super) patterns: Vec<String>,
    /// The hosts with a directory: each has a site, and the name by which a launcher calls its node, which is
    /// missing for this host.
    pub(super) hosts: Vec<(String, Option<String>)>,
}

impl Left {
    pub(super) fn of(patterns: &[String], hosts: &[&Host]) -> Left {
        let hosts = hosts.iter().map(|host| (host.site.clone(), host.node.clone()));
        Left {
            patterns: patterns.to_vec(),
            hosts: hosts.collect(),
        }
    }

    /// Writes the note, under the name of the job's directories, and removes notes that are too old.
    ///
    /// # Errors
    /// There is no home directory; those of the file system.
    pub(super) fn keep(&self, name: &str) -> io::Result<()> {
        let place = place()?;
        fs::create_dir_all(&place)?;
        for name in names() {
            // Another command may have removed the note meanwhile.
            let changed = place.join(&name).metadata().and_then(|note| note.modified());
            if changed.is_ok_and(|changed| changed.elapsed().is_ok_and(|since| since > STAYS)) {
                Left::forget(&name);
            }
        }
        own_file::keep(&place.join(name), &serde_json::to_vec(self)?)
    }

    /// Reads the note of this name.
    ///
    /// # Errors
    /// There is no such note, or it cannot be read.
    pub(super) fn read(name: &str) -> io::Result<Left> {
        // The name must be a note's: a path could lead elsewhere.
        let name = names().into_iter().find(|found| found == name);
        let path = place()?.join(name.ok_or(io::ErrorKind::NotFound)?);
        match path.metadata()?.len() {
            0..=MOST_BYTES => Ok(serde_json::from_slice(&fs::read(path)?)?),
            _ => Err(io::ErrorKind::FileTooLarge.into()),
        }
    }

    /// Removes the note of this name.
    pub(super) fn forget(name: &str) {
        // If the note stays, it is removed later as too old.
        let _ = place().and_then(|place| fs::remove_file(place.join(name)));
    }
}

/// The names of the notes, the oldest first.
pub(super) fn names() -> Vec<String> {
    let Ok(entries) = place().and_then(fs::read_dir) else {
        return Vec::new();
    };
    let named = entries.flatten().filter_map(|entry| {
        let (name, changed) = (entry.file_name().into_string().ok()?, entry.metadata().ok()?);
        // A note that is still being written has another name.
        let is_whole = name.starts_with("causeway-files-") && !name.contains('.');
        is_whole.then_some((changed.modified().unwrap_or(SystemTime::UNIX_EPOCH), name))
    });
    let mut named: Vec<_> = named.collect();
    named.sort();
    named.into_iter().map(|(_, name)| name).collect()
}

fn place() -> io::Result<PathBuf> {
    Ok(user_directories::state().map_err(io::Error::other)?.join("left"))
}
