//! Files that only their owner may read, and that are either complete or absent.

use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, Error, ErrorKind, Read, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

/// Permission bits that let anybody but the owner do anything.
const OTHERS_ANY: u32 = 0o077;

/// Longest file read: a cached answer of a grid of a thousand sites with a hundred nodes each takes a tenth.
const MAX_BYTES: u64 = 128 * 1024 * 1024;

/// An operation on a file that failed, with its path.
#[derive(Debug, thiserror::Error)]
#[error("{what} {}: {source}", path.display())]
pub struct FileError {
    /// The operation, such as `read`.
    pub what: &'static str,
    /// The file.
    pub path: PathBuf,
    /// What the system said.
    pub source: io::Error,
}

impl FileError {
    pub(crate) fn at<'a>(what: &'static str, path: &'a Path) -> impl Fn(io::Error) -> FileError + use<'a> {
        move |source| FileError {
            what,
            path: path.to_owned(),
            source,
        }
    }
}

/// Makes a directory for this user alone, with those above it.
pub(crate) fn make_directory(path: &Path) -> Result<(), FileError> {
    let mut builder = DirBuilder::new();
    let made = builder.mode(0o700).recursive(true).create(path);
    made.map_err(FileError::at("make directory", path))
}

/// Writes a file that must not exist yet. It gets its name once it is complete: if the disk is full, or this
/// process is killed, there is no such file.
pub(crate) fn create(path: &Path, bytes: &[u8], mode: u32) -> Result<(), FileError> {
    let write = || {
        let mut part = tempfile::Builder::new()
            .permissions(fs::Permissions::from_mode(mode))
            .tempfile_in(directory_of(path))?;
        part.as_file_mut().write_all(bytes)?;
        part.as_file().sync_all()?;
        part.persist_noclobber(path).map_err(|error| error.error)?;
        File::open(directory_of(path))?.sync_all()
    };
    write().map_err(FileError::at("write", path))
}

/// Replaces a file in one step: a reader, or a host that loses power, sees the old or the new one, complete.
pub(crate) fn replace(path: &Path, bytes: &[u8], mode: u32) -> Result<(), FileError> {
    // A longer file could not be read back.
    if bytes.len() as u64 > MAX_BYTES {
        let text = format!("would have {} bytes, and {MAX_BYTES} are read", bytes.len());
        return Err(FileError::at("write", path)(Error::new(
            ErrorKind::FileTooLarge,
            text,
        )));
    }
    let mut name = path.file_name().unwrap_or_default().to_owned();
    name.push(".new");
    let new = path.with_file_name(name);
    let write = || {
        match fs::remove_file(&new) {
            Err(error) if error.kind() != ErrorKind::NotFound => return Err(error),
            _ => {}
        }
        let mut options = OpenOptions::new();
        let mut file = options.write(true).create_new(true).mode(mode).open(&new)?;
        file.write_all(bytes)?;
        file.sync_all()?;
        fs::rename(&new, path)?;
        File::open(directory_of(path))?.sync_all()
    };
    write().map_err(|error| {
        let _ = fs::remove_file(&new);
        FileError::at("write", path)(error)
    })
}

/// Reads a file; `None` if there is no such file.
pub(crate) fn read_if_there(path: &Path) -> Result<Option<Vec<u8>>, FileError> {
    match read_bounded(path, false) {
        Ok(bytes) => Ok(Some(bytes)),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
        Err(error) => Err(FileError::at("read", path)(error)),
    }
}

/// Reads a text that everybody may read.
pub(crate) fn read_text(path: &Path) -> Result<String, FileError> {
    let text = read_bounded(path, false).and_then(|bytes| {
        String::from_utf8(bytes).map_err(|error| Error::new(ErrorKind::InvalidData, error))
    });
    text.map_err(FileError::at("read", path))
}

/// Reads a text that its owner alone may read.
pub(crate) fn read_secret(path: &Path) -> Result<String, FileError> {
    let text = read_bounded(path, true).and_then(|bytes| {
        String::from_utf8(bytes).map_err(|error| Error::new(ErrorKind::InvalidData, error))
    });
    text.map_err(FileError::at("read", path))
}

fn read_bounded(path: &Path, secret: bool) -> io::Result<Vec<u8>> {
    let file = File::open(path)?;
    let found = file.metadata()?;
    if secret && found.mode() & OTHERS_ANY != 0 {
        let text = format!(
            "other users may read or change it (mode {:o}); chmod 600 {}",
            found.mode() & 0o777,
            path.display()
        );
        return Err(Error::new(ErrorKind::PermissionDenied, text));
    }
    let mut bytes = Vec::new();
    file.take(MAX_BYTES + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > MAX_BYTES {
        return Err(Error::new(
            ErrorKind::InvalidData,
            format!("is longer than {MAX_BYTES} bytes"),
        ));
    }
    Ok(bytes)
}

/// The directory that contains a file.
pub(crate) fn directory_of(path: &Path) -> &Path {
    match path.parent() {
        Some(parent) if parent != Path::new("") => parent,
        _ => Path::new("."),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_there_is_not_overwritten_unless_it_is_to_be_replaced() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("ca.key");
        create(&path, b"one", 0o600).unwrap();
        assert_eq!(fs::metadata(&path).unwrap().mode() & 0o777, 0o600);
        assert!(
            create(&path, b"two", 0o600)
                .unwrap_err()
                .to_string()
                .contains("exists")
        );
        assert_eq!(read_secret(&path).unwrap(), "one");
        replace(&path, b"two", 0o600).unwrap();
        assert_eq!(read_secret(&path).unwrap(), "two");
        assert!(read_if_there(&dir.path().join("none")).unwrap().is_none());
    }

    #[test]
    fn a_secret_that_others_may_read_is_refused_with_what_to_do() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("ca.key");
        fs::write(&path, "secret").unwrap();
        fs::set_permissions(&path, PermissionsExt::from_mode(0o640)).unwrap();
        let refusal = read_secret(&path).unwrap_err().to_string();
        assert!(refusal.contains("chmod 600"), "{refusal}");
    }
}
