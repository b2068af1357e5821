//! Writes a file at a place that the user chose, and replaces nothing that is not ours: a new file gets its
//! name once it is complete, an earlier one of the same kind is replaced, a device or a pipe is written to,
//! and anything else is refused.

use causeway_wire::TextError;
use std::fs::{self, File, OpenOptions, Permissions};
use std::io::{self, ErrorKind, Read, Write};
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::path::Path;
use tempfile::TempDir;

/// How much of the beginning of a file is read, which contains its mark.
const HEAD_BYTES: u64 = 1024;

/// Writes the file. `mark` is near the beginning of each file of this kind.
///
/// # Errors
/// What is in the way, or the system's error, with the file's name.
pub fn write(path: &Path, bytes: &[u8], mark: &str) -> Result<(), TextError> {
    let failed = |error: &io::Error| format!("write {}: {error}", path.display());
    let refused = |why: &str| Err(format!("{} {why}; name another file", path.display()).into());
    let found = match path.metadata() {
        Err(error) if error.kind() == ErrorKind::NotFound => None,
        found => Some(found.map_err(|error| failed(&error))?),
    };
    let done = match found {
        Some(found) if found.is_dir() => return refused("is a directory"),
        Some(found) if !found.is_file() => OpenOptions::new()
            .write(true)
            .open(path)
            .and_then(|mut to| to.write_all(bytes)),
        Some(_) if !is_ours(path, mark).map_err(|error| failed(&error))? => {
            return refused("exists already, and causeway did not write it");
        }
        // A link stays a link: the file that it points to is replaced.
        Some(_) => path.canonicalize().and_then(|path| replace(&path, bytes)),
        None => replace(path, bytes),
    };
    Ok(done.map_err(|error| failed(&error))?)
}

/// Writes a file of this program's own, which only this user may read. It is complete and on disk, or absent.
///
/// # Errors
/// Those of the file system.
pub fn keep(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let new = path.with_extension(format!("new-{}", std::process::id()));
    let write = || {
        let mut options = OpenOptions::new();
        let options = options.write(true).create(true).truncate(true).mode(0o600);
        let mut file = options.open(&new)?;
        file.write_all(bytes)?;
        file.sync_all()?;
        fs::rename(&new, path)
    };
    write().inspect_err(|_| drop(fs::remove_file(&new)))
}

/// Makes a directory that only this user can use, whatever the umask; dropping the result removes it. Even in
/// a place where others may create files, too, they can put nothing into it.
///
/// # Errors
/// Those of mkdir(2).
pub fn directory(prefix: &str, place: &Path) -> io::Result<TempDir> {
    let mut builder = tempfile::Builder::new();
    builder.prefix(prefix).permissions(Permissions::from_mode(0o700));
    builder.tempdir_in(place)
}

/// Whether a file has this mark, or is empty.
///
/// # Errors
/// The file cannot be read.
pub fn is_ours(path: &Path, mark: &str) -> io::Result<bool> {
    let mut head = Vec::new();
    File::open(path)?.take(HEAD_BYTES).read_to_end(&mut head)?;
    Ok(head.is_empty() || String::from_utf8_lossy(&head).contains(mark))
}

fn replace(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let directory = path.parent().filter(|parent| *parent != Path::new(""));
    // The usual mode of files: the umask reduces it.
    let mut part = tempfile::Builder::new()
        .permissions(Permissions::from_mode(0o666))
        .tempfile_in(directory.unwrap_or(Path::new(".")))?;
    part.as_file_mut().write_all(bytes)?;
    part.persist(path).map_err(|error| error.error)?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;

    #[test]
    fn a_file_of_the_same_kind_is_replaced_and_a_link_to_it_stays() {
        let dir = tempfile::tempdir().unwrap();
        let (real, link) = (dir.path().join("real"), dir.path().join("link"));
        write(&real, b"mark one", "mark").unwrap();
        symlink(&real, &link).unwrap();
        write(&link, b"mark two", "mark").unwrap();
        assert_eq!(fs::read(&real).unwrap(), b"mark two");
        assert!(link.is_symlink());
        assert_eq!(
            fs::read_dir(dir.path()).unwrap().count(),
            2,
            "nothing is left beside"
        );
    }

    #[test]
    fn what_is_not_ours_stays_as_it_is() {
        let dir = tempfile::tempdir().unwrap();
        let thesis = dir.path().join("thesis");
        fs::write(&thesis, "a thesis").unwrap();
        let said = write(&thesis, b"mark", "mark").unwrap_err().to_string();
        assert!(said.contains("thesis exists already"), "{said}");
        assert_eq!(fs::read(&thesis).unwrap(), b"a thesis");
        assert!(write(dir.path(), b"mark", "mark").is_err());
        fs::write(&thesis, "").unwrap();
        write(&thesis, b"mark", "mark").unwrap();
    }

    #[test]
    fn a_device_and_a_pipe_are_written_to() {
        let full = write(Path::new("/dev/full"), b"mark", "mark")
            .unwrap_err()
            .to_string();
        assert!(full.contains("/dev/full: No space left"), "{full}");
        let dir = tempfile::tempdir().unwrap();
        let pipe = dir.path().join("pipe");
        nix::unistd::mkfifo(&pipe, nix::sys::stat::Mode::S_IRWXU).unwrap();
        let reader = {
            let pipe = pipe.clone();
            std::thread::spawn(move || fs::read(pipe).unwrap())
        };
        write(&pipe, b"mark", "mark").unwrap();
        assert_eq!(reader.join().unwrap(), b"mark");
        assert!(!pipe.metadata().unwrap().is_file());
    }
}
