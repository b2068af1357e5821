//! Writes down what others did on this site, and what they were refused: see `causeway_control::audit`.
//!
//! The file is opened anew for each line: it may have been moved away, the disk may have been full, and a
//! hand-over has nothing to take along. Starts are few; refusals have a bounded number of lines a minute.

use crate::log::Allowance;
use causeway_control::audit::{AuditEntry, AuditEvent, KEPT_FILES, MAX_FILE_BYTES, put_aside, shown};
use std::collections::HashMap;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Error, ErrorKind, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::PathBuf;
use std::time::Instant;

/// Sites and kinds of refusals whose lines are counted apart: more than a grid has that refuses anything.
const MAX_ORIGINS: usize = 4096;

pub(crate) struct Audit {
    file: PathBuf,
    grid: String,
    allowances: HashMap<(String, &'static str), Allowance>,
}

impl Audit {
    pub(crate) fn new(file: PathBuf) -> Audit {
        Audit {
            file,
            grid: String::new(),
            allowances: HashMap::new(),
        }
    }

    /// The grid that lines name from now on.
    pub(crate) fn name_grid(&mut self, grid: &str) {
        grid.clone_into(&mut self.grid);
    }

    /// An entry of this moment.
    pub(crate) fn entry(&self, event: AuditEvent) -> AuditEntry {
        let clock = causeway_broker::clock::Clock::system();
        AuditEntry {
            grid: self.grid.clone(),
            ..AuditEntry::new(causeway_broker::clock::timestamp(clock.now()), event)
        }
    }

    /// Writes a line.
    ///
    /// # Errors
    /// It is not in the file, with the file's name.
    pub(crate) fn write(&self, entry: AuditEntry) -> io::Result<()> {
        let named =
            |error: Error| Error::new(error.kind(), format!("write {}: {error}", self.file.display()));
        let mut line = serde_json::to_vec(&with_plain_texts(entry))?;
        line.push(b'\n');
        self.open()
            .and_then(|mut file| file.write_all(&line))
            .map_err(named)
    }

    /// Writes a refusal, unless its site has had its lines of this kind for this minute.
    pub(crate) fn refuse(
        &mut self,
        now: Instant,
        kind: &'static str,
        mut entry: AuditEntry,
    ) -> io::Result<()> {
        let origin = (entry.site.clone(), kind);
        if self.allowances.len() >= MAX_ORIGINS && !self.allowances.contains_key(&origin) {
            return Ok(());
        }
        let allowance = self.allowances.entry(origin).or_default();
        let Some(untold) = allowance.take(now) else {
            return Ok(());
        };
        kind.clone_into(&mut entry.kind);
        entry.untold = untold;
        self.write(entry)
    }

    /// The file at its end, a new one where it has grown.
    fn open(&self) -> io::Result<File> {
        let file = self.open_for_this_user()?;
        if file.metadata()?.len() < MAX_FILE_BYTES {
            return Ok(file);
        }
        for number in (1..=KEPT_FILES).rev() {
            let newer = match number {
                1 => self.file.clone(),
                _ => put_aside(&self.file, number - 1),
            };
            match fs::rename(newer, put_aside(&self.file, number)) {
                Err(error) if error.kind() != ErrorKind::NotFound => return Err(error),
                _ => {}
            }
        }
        self.open_for_this_user()
    }

    fn open_for_this_user(&self) -> io::Result<File> {
        let mut options = OpenOptions::new();
        let options = options.append(true).create(true).mode(0o600);
        let file = options.custom_flags(libc::O_NOFOLLOW).open(&self.file)?;
        let found = file.metadata()?;
        if found.uid() != nix::unistd::geteuid().as_raw() || found.mode() & 0o077 != 0 {
            let text = format!(
                "other users may read or change it (mode {:o})",
                found.mode() & 0o777
            );
            return Err(Error::new(ErrorKind::PermissionDenied, text));
        }
        Ok(file)
    }
}

/// What others chose, made fit for a terminal.
fn with_plain_texts(mut entry: AuditEntry) -> AuditEntry {
    for text in [
        &mut entry.site,
        &mut entry.user,
        &mut entry.name,
        &mut entry.node,
        &mut entry.command,
        &mut entry.why,
    ] {
        *text = shown(text);
    }
    entry
}

#[cfg(test)]
mod tests {
    use super::*;
    use causeway_control::audit;
    use std::time::Duration;

    fn read(file: &std::path::Path) -> Vec<AuditEntry> {
        let mut entries = Vec::new();
        assert_eq!(audit::read(file, |entry| entries.push(entry)).unwrap(), 0);
        entries
    }

    #[test]
    fn lines_are_this_users_alone_and_a_file_that_grew_is_put_aside() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("audit.jsonl");
        let audit = Audit::new(file.clone());
        for number in 0..KEPT_FILES + 2 {
            let mut entry = audit.entry(AuditEvent::Start);
            entry.pid = u32::try_from(number).ok();
            audit.write(entry).unwrap();
            assert_eq!(fs::metadata(&file).unwrap().mode() & 0o777, 0o600);
            let padding = vec![b'\n'; usize::try_from(MAX_FILE_BYTES).unwrap()];
            let mut file = OpenOptions::new().append(true).open(&file).unwrap();
            file.write_all(&padding[..padding.len() - 1]).unwrap();
        }
        let mut pids = Vec::new();
        audit::read(&file, |entry| pids.extend(entry.pid)).unwrap();
        // The first has gone with the oldest file.
        assert_eq!(pids, (1..KEPT_FILES as u32 + 2).collect::<Vec<_>>());
    }

    #[test]
    fn a_file_that_others_may_read_or_a_link_is_not_written_to() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("audit.jsonl");
        fs::write(&file, "").unwrap();
        fs::set_permissions(&file, std::os::unix::fs::PermissionsExt::from_mode(0o644)).unwrap();
        let audit = Audit::new(file.clone());
        let said = audit.write(audit.entry(AuditEvent::End)).unwrap_err().to_string();
        assert!(said.contains("other users may read"), "{said}");
        fs::remove_file(&file).unwrap();
        std::os::unix::fs::symlink("elsewhere", &file).unwrap();
        audit.write(audit.entry(AuditEvent::End)).unwrap_err();
        assert!(!dir.path().join("elsewhere").exists());
    }

    #[test]
    fn refusals_of_a_site_have_some_lines_a_minute_and_then_their_number() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("audit.jsonl");
        let (mut audit, began) = (Audit::new(file.clone()), Instant::now());
        let mut refuse = |site: &str, at: Instant| {
            let mut entry = audit.entry(AuditEvent::Refused);
            site.clone_into(&mut entry.site);
            audit.refuse(at, "connect", entry).unwrap();
        };
        (0..1000).for_each(|_| refuse("nancy", began));
        refuse("lyon", began);
        refuse("nancy", began + Duration::from_secs(60));
        let entries = read(&file);
        let lines = entries.iter().filter(|entry| entry.site == "nancy").count();
        assert!(lines < 100, "{lines}");
        let untold = entries.last().unwrap().untold as usize;
        assert_eq!(untold + lines - 1, 1000);
        assert!(entries.iter().any(|entry| entry.site == "lyon"));
    }
}
