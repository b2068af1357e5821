//! Remembers what was there before a change, so that it can be undone exactly, even after a kill at any
//! moment: the old value is in the journal, on disk, before it is changed.

use super::host::{SYSCTL_ROOT, setting_path, words};
use causeway_control::private;
use causeway_host::journal_entry::{self, Entry, Target};
use causeway_host::lock::Lock;
use causeway_host::user_directories::NoHome;
use causeway_wire::TextError;
use std::fs::File;
use std::io::{self, ErrorKind, Write};
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};

/// What undoing an entry has done.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Undone {
    /// The value is as it was.
    Restored,
    /// Somebody has changed the value since, so it was left alone.
    ChangedSince(String),
    /// The value could not be written.
    Refused(String),
}

/// Why the journal itself cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum JournalError {
    /// A file.
    #[error("{what} {}: {source}", path.display())]
    Io {
        what: &'static str,
        path: PathBuf,
        source: io::Error,
    },
    /// The file is not a journal.
    #[error("{} is no journal of causeway tune: {why}", path.display())]
    Content { path: PathBuf, why: String },
    /// Somebody else may have written the journal.
    #[error("{}: {why}; its entries would be carried out as you", path.display())]
    Foreign { path: PathBuf, why: String },
    /// Another causeway tune is running.
    #[error("another causeway tune is at work with {}", .0.display())]
    Busy(PathBuf),
    /// There is no directory for a journal.
    #[error(transparent)]
    Home(#[from] NoHome),
}

/// Refuses a journal that is another user's, or not the file that it seems to be: root undoes what it says.
fn check_own(path: &Path) -> Result<(), JournalError> {
    let foreign = |why: String| JournalError::Foreign {
        path: path.to_owned(),
        why,
    };
    match std::fs::symlink_metadata(path) {
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(()),
        Err(error) => Err(io_error("look at", path)(error)),
        Ok(found) if !found.is_file() => Err(foreign("is a link, or not a file".to_owned())),
        Ok(found) if found.uid() != nix::unistd::geteuid().as_raw() => {
            Err(foreign(format!("belongs to user {}, not to you", found.uid())))
        }
        Ok(_) => private::check_path(path).map_err(|error| foreign(error.to_string())),
    }
}

/// An open journal.
#[derive(Debug)]
pub struct Journal {
    path: PathBuf,
    entries: Vec<Entry>,
    /// Where kernel settings are.
    settings: PathBuf,
    /// Held until the journal is closed.
    _lock: Lock,
}

fn io_error(what: &'static str, path: &Path) -> impl FnOnce(io::Error) -> JournalError {
    let path = path.to_owned();
    move |source| JournalError::Io { what, path, source }
}

impl Journal {
    /// Opens the journal at that path, which need not exist yet.
    ///
    /// # Errors
    /// See [`JournalError`].
    pub fn open(path: &Path) -> Result<Journal, JournalError> {
        Journal::with_settings(path, Path::new(SYSCTL_ROOT))
    }

    fn with_settings(path: &Path, settings: &Path) -> Result<Journal, JournalError> {
        if let Some(directory) = path.parent() {
            std::fs::create_dir_all(directory).map_err(io_error("create", directory))?;
        }
        let lock_path = path.with_extension("lock");
        let lock = File::options().create(true).append(true).open(&lock_path);
        let lock = lock.map_err(io_error("open", &lock_path))?;
        let Some(lock) = Lock::take_if_there_are_any(lock) else {
            return Err(JournalError::Busy(path.to_owned()));
        };
        check_own(path)?;
        let entries = match std::fs::read_to_string(path) {
            Ok(text) => journal_entry::parse(&text).map_err(|why| JournalError::Content {
                path: path.to_owned(),
                why: why.to_string(),
            })?,
            Err(error) if error.kind() == ErrorKind::NotFound => Vec::new(),
            Err(error) => return Err(io_error("read", path)(error)),
        };
        Ok(Journal {
            path: path.to_owned(),
            entries,
            settings: settings.to_owned(),
            _lock: lock,
        })
    }

    /// The value before the first change, or the present one if nothing was changed.
    ///
    /// # Errors
    /// The value cannot be read; the error is a sentence.
    pub fn original(&self, target: &Target) -> Result<Option<String>, TextError> {
        let mut entries = self.entries.iter();
        match entries.find(|entry| entry.target == *target) {
            Some(entry) => Ok(entry.before.clone()),
            None => self.read(target).map_err(TextError::of),
        }
    }

    /// Changes `target`. The value before the first change stays remembered.
    ///
    /// # Errors
    /// The journal cannot be written, and nothing was changed. Or the value is refused: then the sentence
    /// says why, and nothing was changed either.
    pub fn change(&mut self, target: Target, after: &str) -> Result<Result<(), TextError>, JournalError> {
        let now = match self.read(&target) {
            Ok(now) => now,
            Err(error) => return Ok(Err(TextError::of(error))),
        };
        let same = |entry: &Entry| entry.target == target;
        let at = self.entries.iter().position(same);
        let earlier = at.map(|at| self.entries[at].clone());
        let entry = Entry {
            before: earlier.as_ref().map_or(now, |entry| entry.before.clone()),
            target: target.clone(),
            after: after.to_owned(),
        };
        match at {
            Some(at) => self.entries[at] = entry,
            None => self.entries.push(entry),
        }
        self.save()?;
        let written = self.write(&target, Some(after));
        if let Err(error) = &written {
            match (at, earlier) {
                (Some(at), Some(earlier)) => self.entries[at] = earlier,
                _ => self.entries.retain(|entry| entry.target != target),
            }
            self.save()?;
            return Ok(Err(TextError::of(error)));
        }
        Ok(Ok(()))
    }

    /// Undoes everything, the last change first, and forgets what is as it was before.
    ///
    /// # Errors
    /// The journal cannot be written.
    pub fn undo(&mut self) -> Result<Vec<(Target, Undone)>, JournalError> {
        let mut all = Vec::new();
        for entry in self.entries.clone().into_iter().rev() {
            let undone = self.restore(&entry);
            if undone == Undone::Restored {
                self.entries.retain(|other| other.target != entry.target);
                self.save()?;
            }
            all.push((entry.target, undone));
        }
        Ok(all)
    }

    fn restore(&self, entry: &Entry) -> Undone {
        let now = match self.read(&entry.target) {
            Ok(now) => now,
            Err(error) => return Undone::Refused(error.to_string()),
        };
        // A kill came before the value was changed.
        if now == entry.before {
            return Undone::Restored;
        }
        if now.as_deref() != Some(entry.after.as_str()) {
            return Undone::ChangedSince(now.unwrap_or_else(|| "it does not exist".into()));
        }
        match self.write(&entry.target, entry.before.as_deref()) {
            Ok(()) => Undone::Restored,
            Err(error) => Undone::Refused(error.to_string()),
        }
    }

    /// Reads the present value; `None` if there is no file.
    fn read(&self, target: &Target) -> io::Result<Option<String>> {
        match target {
            Target::Setting(name) => {
                let text = std::fs::read_to_string(setting_path(&self.settings, name))?;
                Ok(Some(words(&text)))
            }
            Target::File(path) => match std::fs::read_to_string(path) {
                Ok(text) => Ok(Some(text)),
                Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
                Err(error) => Err(error),
            },
        }
    }

    fn write(&self, target: &Target, text: Option<&str>) -> io::Result<()> {
        match (target, text) {
            (Target::Setting(name), Some(text)) => {
                // In one write: the kernel takes each write as a whole value.
                let mut file = File::options()
                    .write(true)
                    .open(setting_path(&self.settings, name))?;
                file.write_all(text.as_bytes())?;
                match self.read(target)?.as_deref() == Some(text) {
                    true => Ok(()),
                    false => Err(io::Error::other("the kernel set another value")),
                }
            }
            (Target::Setting(_), None) => Ok(()),
            (Target::File(path), Some(text)) => replace(path, text),
            (Target::File(path), None) => std::fs::remove_file(path),
        }
    }

    /// Writes the journal to the disk before this returns; removes it if it is empty.
    fn save(&self) -> Result<(), JournalError> {
        if self.entries.is_empty() {
            return match std::fs::remove_file(&self.path) {
                Err(error) if error.kind() != ErrorKind::NotFound => {
                    Err(io_error("remove", &self.path)(error))
                }
                _ => Ok(()),
            };
        }
        let text = serde_json::to_string_pretty(&self.entries).map_err(|error| JournalError::Content {
            path: self.path.clone(),
            why: error.to_string(),
        })?;
        replace(&self.path, &text).map_err(io_error("write", &self.path))
    }
}

/// Writes under another name and renames, so that nobody reads half of it. The mode of the former file is
/// kept.
fn replace(path: &Path, text: &str) -> io::Result<()> {
    if let Some(directory) = path.parent() {
        std::fs::create_dir_all(directory)?;
    }
    // A link stays a link; the file that it points to is replaced.
    let path = path.canonicalize().unwrap_or_else(|_| path.to_owned());
    let mode = std::fs::metadata(&path)
        .map(|data| data.permissions().mode())
        .ok();
    let mut name = path.as_os_str().to_owned();
    name.push(".part");
    let part = PathBuf::from(name);
    let written = File::create(&part).and_then(|mut file| {
        if let Some(mode) = mode {
            file.set_permissions(std::fs::Permissions::from_mode(mode))?;
        }
        file.write_all(text.as_bytes())?;
        file.sync_all()
    });
    let renamed = written.and_then(|()| std::fs::rename(&part, &path));
    if renamed.is_err() {
        let _ = std::fs::remove_file(&part);
    }
    renamed
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A directory that replaces /proc/sys, with one setting.
    struct Fake {
        directory: tempfile::TempDir,
    }

    impl Fake {
        fn new() -> Fake {
            let directory = tempfile::tempdir().unwrap();
            std::fs::create_dir(directory.path().join("net")).unwrap();
            std::fs::write(directory.path().join("net/wmem"), "1 2 3").unwrap();
            Fake { directory }
        }

        fn journal(&self) -> Journal {
            let path = self.directory.path().join("state/tune.json");
            Journal::with_settings(&path, self.directory.path()).unwrap()
        }

        fn value(&self) -> String {
            std::fs::read_to_string(self.directory.path().join("net/wmem")).unwrap()
        }

        fn set(&self, text: &str) {
            std::fs::write(self.directory.path().join("net/wmem"), text).unwrap();
        }
    }

    fn wmem() -> Target {
        Target::Setting("net/wmem".into())
    }

    #[test]
    fn what_was_there_first_is_there_again_after_two_changes() {
        let fake = Fake::new();
        let file = fake.directory.path().join("home/mca-params.conf");
        for value in ["4 5 6", "7 8 9"] {
            let mut journal = fake.journal();
            journal.change(wmem(), value).unwrap().unwrap();
            journal
                .change(Target::File(file.clone()), value)
                .unwrap()
                .unwrap();
        }
        assert_eq!((fake.value().as_str(), file.is_file()), ("7 8 9", true));
        let undone = fake.journal().undo().unwrap();
        assert!(
            undone.iter().all(|(_, undone)| *undone == Undone::Restored),
            "{undone:?}"
        );
        assert_eq!((fake.value().as_str(), file.exists()), ("1 2 3", false));
        assert!(fake.journal().entries.is_empty() && fake.journal().undo().unwrap().is_empty());
    }

    #[test]
    fn a_kill_between_journal_and_change_leaves_nothing_to_restore() {
        let fake = Fake::new();
        let mut journal = fake.journal();
        journal.change(wmem(), "4 5 6").unwrap().unwrap();
        // The state after a kill that came before the value was written.
        fake.set("1 2 3");
        drop(journal);
        assert_eq!(fake.journal().undo().unwrap(), [(wmem(), Undone::Restored)]);
        assert_eq!(fake.value(), "1 2 3");
    }

    #[test]
    fn what_somebody_else_changed_since_is_left_alone_and_stays_in_the_journal() {
        let fake = Fake::new();
        fake.journal().change(wmem(), "4 5 6").unwrap().unwrap();
        fake.set("10 11 12");
        let undone = fake.journal().undo().unwrap();
        assert_eq!(undone, [(wmem(), Undone::ChangedSince("10 11 12".into()))]);
        assert_eq!(fake.value(), "10 11 12");
        assert!(!fake.journal().entries.is_empty());
    }

    #[test]
    fn a_refused_value_is_told_and_not_remembered() {
        let fake = Fake::new();
        let mut journal = fake.journal();
        let refused = journal.change(Target::Setting("net/absent".into()), "1").unwrap();
        assert!(refused.is_err());
        assert!(journal.entries.is_empty());
    }

    #[test]
    fn two_at_a_time_are_refused_and_a_file_that_is_no_journal_is_named() {
        let fake = Fake::new();
        let _open = fake.journal();
        let path = fake.directory.path().join("state/tune.json");
        let second = Journal::with_settings(&path, fake.directory.path());
        assert!(matches!(second, Err(JournalError::Busy(_))));
        let path = fake.directory.path().join("state/other.json");
        for target in [
            r#"{"setting":"net/../../etc/passwd"}"#,
            r#"{"setting":"/etc/x"}"#,
            r#"{"file":"etc/../x"}"#,
        ] {
            std::fs::write(
                &path,
                format!(r#"[{{"target":{target},"before":"1","after":"2"}}]"#),
            )
            .unwrap();
            let error = Journal::with_settings(&path, fake.directory.path()).unwrap_err();
            assert!(error.to_string().contains("it would change"), "{error}");
        }
        let link = fake.directory.path().join("state/link.json");
        std::os::unix::fs::symlink(&path, &link).unwrap();
        let error = Journal::with_settings(&link, fake.directory.path()).unwrap_err();
        assert!(error.to_string().contains("is a link, or"), "{error}");
        std::fs::write(&path, "hello").unwrap();
        let error = Journal::with_settings(&path, fake.directory.path()).unwrap_err();
        assert!(error.to_string().contains("other.json"), "{error}");
    }

    #[test]
    fn a_files_mode_and_link_stay_what_they_were() {
        let fake = Fake::new();
        let (real, link) = (
            fake.directory.path().join("real"),
            fake.directory.path().join("link"),
        );
        std::fs::write(&real, "mine\n").unwrap();
        std::fs::set_permissions(&real, std::fs::Permissions::from_mode(0o600)).unwrap();
        std::os::unix::fs::symlink(&real, &link).unwrap();
        let mut journal = fake.journal();
        journal
            .change(Target::File(link.clone()), "mine\nours\n")
            .unwrap()
            .unwrap();
        assert!(link.is_symlink());
        assert_eq!(
            std::fs::metadata(&real).unwrap().permissions().mode() & 0o777,
            0o600
        );
        journal.undo().unwrap();
        assert_eq!(std::fs::read_to_string(&real).unwrap(), "mine\n");
    }
}
