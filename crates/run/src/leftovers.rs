//! Directories of runs that were killed with all of their processes: the next run removes them.
//!
//! A run holds the lock of its directory for as long as it lives, and the kernel releases it however the run
//! ends. So a directory whose lock is free belongs to no living run.

use causeway_host::lock::Lock;
use causeway_remote::AGENT_NAME;
use std::fs::{self, File};
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// The beginning of the names of these directories; six letters follow.
pub const PREFIX: &str = "causeway-run-";
const LETTERS: usize = 6;

/// Where directories of runs are made; the first choice comes first.
pub fn places() -> impl Iterator<Item = PathBuf> {
    let named = ["XDG_RUNTIME_DIR", "TMPDIR"].into_iter();
    let named = named.filter_map(std::env::var_os).map(PathBuf::from);
    named.chain(["/tmp".into()])
}

/// Locks a directory that this process has just made. `None`: another run's sweep has removed it meanwhile,
/// so another directory must be made. On a file system without locks, nothing is swept.
///
/// # Errors
/// Those of the system, such as too many open files.
pub fn hold(path: &Path) -> io::Result<Option<Lock>> {
    let directory = match File::open(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        opened => opened?,
    };
    Ok(Lock::take_if_there_are_any(directory).filter(|_| path.is_dir()))
}

/// Removes what killed runs of this user have left. What cannot be inspected or removed stays.
pub fn sweep() {
    places().for_each(|place| sweep_in(&place));
}

fn sweep_in(place: &Path) {
    for entry in fs::read_dir(place).into_iter().flatten().flatten() {
        let name = entry.file_name();
        let letters = name.as_bytes().strip_prefix(PREFIX.as_bytes());
        if letters.is_some_and(|letters| letters.len() == LETTERS) && is_of_a_run(&entry.path()) {
            let path = entry.path();
            // The lock is held until the directory is gone.
            if let Ok(directory) = File::open(&path)
                && let Ok(Some(_lock)) = Lock::take(directory)
            {
                let _ = fs::remove_dir_all(path);
            }
        }
    }
}

/// Whether a path is a directory of this user, in the form in which a run makes it.
fn is_of_a_run(path: &Path) -> bool {
    let own = nix::unistd::geteuid().as_raw();
    let is_own = fs::symlink_metadata(path).is_ok_and(|found| found.is_dir() && found.uid() == own);
    let is_empty = || fs::read_dir(path).is_ok_and(|mut entries| entries.next().is_none());
    is_own && (path.join(AGENT_NAME).is_symlink() || is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_no_run_holds_is_removed_and_nothing_else() {
        let place = tempfile::tempdir().unwrap();
        let make = |name: &str| {
            let path = place.path().join(name);
            fs::create_dir(&path).unwrap();
            path
        };
        let (killed, lives, empty) = (
            make("causeway-run-killed"),
            make("causeway-run-living"),
            make("causeway-run-aaaaaa"),
        );
        for run in [&killed, &lives] {
            std::os::unix::fs::symlink("/bin/true", run.join(AGENT_NAME)).unwrap();
        }
        let _held = hold(&lives).unwrap().unwrap();
        // The user's own directories with similar names.
        let (notes, thesis) = (make("causeway-run-notes-of-mine"), make("causeway-run-thesis"));
        for own in [&notes, &thesis] {
            fs::write(own.join("chapter-1"), "").unwrap();
        }
        sweep_in(place.path());
        assert!(!killed.exists() && !empty.exists());
        assert!(lives.exists() && notes.exists() && thesis.exists());
        assert!(
            hold(&killed).unwrap().is_none(),
            "it was swept between its making and its holding"
        );
    }
}
