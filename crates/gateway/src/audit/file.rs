//! A file of the audit, which grows to a limit and is then put aside.
//!
//! The file is opened anew for each line: it may have been moved away, the disk may have been full, and a
//! hand-over has nothing to pass on.

use causeway_control::audit::{KEPT_FILES, MAX_FILE_BYTES, put_aside};
use std::fs::{self, File, OpenOptions};
use std::io::{self, Error, ErrorKind, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::PathBuf;

pub(super) struct AuditFile(pub(super) PathBuf);

impl AuditFile {
    /// Writes a line. This may take for ever if the file system hangs.
    ///
    /// # Errors
    /// The line is not in the file; the error contains the file's name.
    pub(super) fn write(&self, line: &[u8]) -> io::Result<()> {
        let named = |error: Error| Error::new(error.kind(), format!("write {}: {error}", self.0.display()));
        self.open()
            .and_then(|mut file| file.write_all(line))
            .map_err(named)
    }

    /// Opens the file at its end, or a new one if that one is full.
    fn open(&self) -> io::Result<File> {
        let file = self.open_for_this_user()?;
        if file.metadata()?.len() < MAX_FILE_BYTES {
            return Ok(file);
        }
        for number in (1..=KEPT_FILES).rev() {
            let newer = match number {
                1 => self.0.clone(),
                _ => put_aside(&self.0, number - 1),
            };
            match fs::rename(newer, put_aside(&self.0, number)) {
                Err(error) if error.kind() != ErrorKind::NotFound => return Err(error),
                _ => {}
            }
        }
        self.open_for_this_user()
    }

    fn open_for_this_user(&self) -> io::Result<File> {
        let mut options = OpenOptions::new();
        let options = options.append(true).create(true).mode(0o600);
        let file = options.custom_flags(libc::O_NOFOLLOW).open(&self.0)?;
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_this_users_alone_and_a_file_that_grew_is_put_aside() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("audit.jsonl");
        let audit = AuditFile(file.clone());
        let read = |number: usize| {
            let file = if number == 0 {
                file.clone()
            } else {
                put_aside(&file, number)
            };
            fs::read_to_string(file).ok().map(|text| text.trim().to_owned())
        };
        for number in 0..KEPT_FILES + 2 {
            audit.write(format!("{number}\n").as_bytes()).unwrap();
            assert_eq!(fs::metadata(&file).unwrap().mode() & 0o777, 0o600);
            let padding = vec![b'\n'; usize::try_from(MAX_FILE_BYTES).unwrap()];
            let mut file = OpenOptions::new().append(true).open(&file).unwrap();
            file.write_all(&padding).unwrap();
        }
        // The first line is gone with the oldest file.
        for aside in 0..=KEPT_FILES {
            assert_eq!(read(aside), Some((KEPT_FILES + 1 - aside).to_string()));
        }
        assert_eq!(read(KEPT_FILES + 1), None);
    }

    #[test]
    fn a_file_that_others_may_read_or_a_link_is_not_written_to() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("audit.jsonl");
        fs::write(&file, "").unwrap();
        fs::set_permissions(&file, std::os::unix::fs::PermissionsExt::from_mode(0o644)).unwrap();
        let audit = AuditFile(file.clone());
        let said = audit.write(b"line\n").unwrap_err().to_string();
        assert!(said.contains("other users may read"), "{said}");
        fs::remove_file(&file).unwrap();
        std::os::unix::fs::symlink("elsewhere", &file).unwrap();
        audit.write(b"line\n").unwrap_err();
        assert!(!dir.path().join("elsewhere").exists());
    }
}
