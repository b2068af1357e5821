//! Writes files below a directory by names that others have chosen. Each part of a path is opened separately,
//! and no link is followed, so nothing is written anywhere else.

use nix::errno::Errno;
use nix::fcntl::{AtFlags, OFlag, openat, renameat};
use nix::sys::stat::{Mode, futimens, mkdirat};
use nix::sys::time::TimeSpec;
use nix::unistd::{UnlinkatFlags, linkat, symlinkat, syncfs, unlinkat};
use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::{self, ErrorKind, Read, Seek, SeekFrom, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::path::{Component, Path};

/// The bits of a mode that are kept. The sender of a program must not choose whose rights it runs with.
const KEPT_BITS: u32 = 0o777;

/// How many bytes are written at once; a block of zeros is left out.
const BLOCK: usize = 1 << 16;

/// A directory below which files are written.
pub(super) struct Beneath {
    root: OwnedFd,
}

impl Beneath {
    /// Opens a directory that the user has named, following links.
    ///
    /// # Errors
    /// Those of open(2).
    pub(super) fn open(path: &Path) -> io::Result<Beneath> {
        let root = File::open(path)?;
        match root.metadata()?.is_dir() {
            true => Ok(Beneath { root: root.into() }),
            false => Err(Errno::ENOTDIR.into()),
        }
    }

    /// Creates a file at a path below the directory, and makes the directories that are missing. The file has
    /// this mode, less the user's umask, and a temporary name until [`Arriving::keep`].
    ///
    /// # Errors
    /// A part of the path is a link or a file; those of open(2) and mkdir(2).
    pub(super) fn create(&self, path: &Path, mode: u32) -> io::Result<Arriving> {
        let (directory, name) = self.parent(path)?;
        let mut bytes = [0; 8];
        getrandom::fill(&mut bytes).map_err(io::Error::other)?;
        let part: OsString = format!(".causeway-fetch-{:016x}", u64::from_ne_bytes(bytes)).into();
        let flags = OFlag::O_CREAT | OFlag::O_EXCL | OFlag::O_WRONLY | OFlag::O_NOFOLLOW | OFlag::O_CLOEXEC;
        let file = openat(
            &directory,
            &*part,
            flags,
            Mode::from_bits_truncate(mode & KEPT_BITS),
        )?;
        Ok(Arriving {
            directory,
            part,
            name: name.to_owned(),
            file: file.into(),
            is_kept: false,
        })
    }

    /// Makes a directory at a path below, unless it exists.
    ///
    /// # Errors
    /// Those of [`Beneath::create`].
    pub(super) fn make(&self, path: &Path) -> io::Result<()> {
        self.directory(path).map(drop)
    }

    /// Makes a symbolic link, unless something exists at its path.
    ///
    /// # Errors
    /// Those of [`Beneath::create`]; something has that name.
    pub(super) fn symlink(&self, path: &Path, target: &Path) -> io::Result<()> {
        let (directory, name) = self.parent(path)?;
        Ok(symlinkat(target, &directory, name)?)
    }

    /// Gives a second name to a file below the directory.
    ///
    /// # Errors
    /// The same.
    pub(super) fn link(&self, from: &Path, to: &Path) -> io::Result<()> {
        let (from, old) = self.parent(from)?;
        let (to, new) = self.parent(to)?;
        Ok(linkat(&from, old, &to, new, AtFlags::empty())?)
    }

    /// Syncs everything that was written to the disk.
    ///
    /// # Errors
    /// Those of syncfs(2).
    pub(super) fn sync(&self) -> io::Result<()> {
        Ok(syncfs(&self.root)?)
    }

    fn parent<'p>(&self, path: &'p Path) -> io::Result<(OwnedFd, &'p OsStr)> {
        let (Some(parent), Some(Component::Normal(name))) = (path.parent(), path.components().next_back())
        else {
            return Err(leads_elsewhere(path));
        };
        Ok((self.directory(parent)?, name))
    }

    /// Opens a directory below this one; makes it and its parents if they are missing.
    fn directory(&self, path: &Path) -> io::Result<OwnedFd> {
        let mut at = self.root.try_clone()?;
        for part in path.components() {
            let Component::Normal(name) = part else {
                return Err(leads_elsewhere(path));
            };
            at = match open_directory(&at, name) {
                Err(Errno::ENOENT) => {
                    match mkdirat(&at, name, Mode::from_bits_truncate(KEPT_BITS)) {
                        Ok(()) | Err(Errno::EEXIST) => {}
                        Err(error) => return Err(error.into()),
                    }
                    open_directory(&at, name)?
                }
                Err(Errno::ENOTDIR | Errno::ELOOP) => {
                    let name = name.display();
                    let text = format!("{name} is a link or a file here, and nothing is written through it");
                    return Err(io::Error::new(ErrorKind::NotADirectory, text));
                }
                opened => opened?,
            };
        }
        Ok(at)
    }
}

fn open_directory(at: impl AsFd, name: &OsStr) -> nix::Result<OwnedFd> {
    let flags = OFlag::O_PATH | OFlag::O_DIRECTORY | OFlag::O_NOFOLLOW | OFlag::O_CLOEXEC;
    openat(at, name, flags, Mode::empty())
}

fn leads_elsewhere(path: &Path) -> io::Error {
    let text = format!("the name {} leads elsewhere", path.display());
    io::Error::new(ErrorKind::InvalidInput, text)
}

/// A file that is being written; dropping it removes it, unless it is kept.
pub(super) struct Arriving {
    directory: OwnedFd,
    part: OsString,
    name: OsString,
    file: File,
    is_kept: bool,
}

impl Arriving {
    /// Writes all bytes of a file, and leaves holes for long runs of zeros. Returns the file's length so far.
    ///
    /// # Errors
    /// Those of reading, and of write(2).
    pub(super) fn take(&mut self, from: &mut impl Read) -> io::Result<u64> {
        let (mut block, mut size) = (vec![0; BLOCK], 0);
        loop {
            let mut count = 0;
            while count < BLOCK {
                match from.read(&mut block[count..]) {
                    Ok(0) => break,
                    Ok(some) => count += some,
                    Err(error) if error.kind() == ErrorKind::Interrupted => {}
                    Err(error) => return Err(error),
                }
            }
            size += count as u64;
            let bytes = &block[..count];
            match count == BLOCK && bytes.iter().all(|byte| *byte == 0) {
                true => drop(self.file.seek(SeekFrom::Start(size))?),
                false => self.file.write_all(bytes)?,
            }
            if count < BLOCK {
                break;
            }
        }
        // A hole at the end has not been written.
        self.file.set_len(size)?;
        Ok(size)
    }

    /// Gives the file its name, replacing what had that name, and its modification time in seconds since
    /// 1970.
    ///
    /// # Errors
    /// A directory has that name; those of rename(2).
    pub(super) fn keep(mut self, changed: i64) -> io::Result<()> {
        let time = TimeSpec::new(changed, 0);
        // If the file system has no such times, the file is kept all the same.
        let _ = futimens(&self.file, &time, &time);
        renameat(&self.directory, &*self.part, &self.directory, &*self.name)?;
        self.is_kept = true;
        Ok(())
    }
}

impl Drop for Arriving {
    fn drop(&mut self) {
        if !self.is_kept {
            let _ = unlinkat(&self.directory, &*self.part, UnlinkatFlags::NoRemoveDir);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::os::unix::fs::{MetadataExt, symlink};

    fn write(beneath: &Beneath, path: &str, mode: u32) -> io::Result<()> {
        let mut file = beneath.create(Path::new(path), mode)?;
        file.take(&mut &b"theirs"[..])?;
        file.keep(1_000_000)
    }

    #[test]
    fn nothing_is_written_through_a_link_nor_beside_the_directory() {
        let place = tempfile::tempdir().unwrap();
        let (here, outside) = (place.path().join("here"), place.path().join("outside"));
        fs::create_dir_all(here.join("own")).unwrap();
        fs::create_dir(&outside).unwrap();
        symlink(&outside, here.join("out")).unwrap();
        symlink(".", here.join("same")).unwrap();
        symlink(outside.join("file"), here.join("file")).unwrap();
        let beneath = Beneath::open(&here).unwrap();
        for path in [
            "out/file",
            "out/deep/file",
            "own/../../outside/x",
            "same/x",
            "../x",
            "/tmp/x",
            "",
            "..",
        ] {
            assert!(write(&beneath, path, 0o644).is_err(), "{path}");
            assert!(
                beneath.symlink(Path::new(path), Path::new("x")).is_err(),
                "{path}"
            );
        }
        assert_eq!(fs::read_dir(&outside).unwrap().count(), 0);
        // The link itself is replaced.
        write(&beneath, "file", 0o644).unwrap();
        assert!(!here.join("file").is_symlink());
        assert_eq!(fs::read_dir(&outside).unwrap().count(), 0);
        assert_eq!(fs::read_dir(place.path()).unwrap().count(), 2);
    }

    #[test]
    fn a_file_has_its_mode_without_the_bits_that_lend_rights_and_its_time() {
        let here = tempfile::tempdir().unwrap();
        let beneath = Beneath::open(here.path()).unwrap();
        write(&beneath, "a/b/app", 0o6755).unwrap();
        let found = here.path().join("a/b/app").metadata().unwrap();
        assert_eq!((found.mode() & 0o7777 | 0o022, found.mtime()), (0o777, 1_000_000));
        beneath.link(Path::new("a/b/app"), Path::new("c/app")).unwrap();
        assert_eq!(here.path().join("c/app").metadata().unwrap().ino(), found.ino());
        beneath.make(Path::new("empty")).unwrap();
        assert!(here.path().join("empty").is_dir());
        beneath.sync().unwrap();
    }

    #[test]
    fn a_file_has_holes_where_it_has_long_rows_of_zeros_and_the_same_bytes() {
        let here = tempfile::tempdir().unwrap();
        let beneath = Beneath::open(here.path()).unwrap();
        let (zeros, ones) = (vec![0; 5 * BLOCK], vec![1; BLOCK + 1]);
        for bytes in [
            [&ones[..], &zeros, &ones].concat(),
            [&zeros[..], &ones, &zeros].concat(),
            zeros.clone(),
            zeros[1..].to_vec(),
            Vec::new(),
        ] {
            let mut file = beneath.create(Path::new("file"), 0o644).unwrap();
            assert_eq!(file.take(&mut &bytes[..]).unwrap(), bytes.len() as u64);
            file.keep(0).unwrap();
            let path = here.path().join("file");
            assert_eq!(fs::read(&path).unwrap(), bytes);
            let holes = bytes.len().saturating_sub(4 * BLOCK) as u64;
            let taken = path.metadata().unwrap().blocks() * 512;
            assert!(taken <= bytes.len() as u64 - holes + 4 * BLOCK as u64, "{taken}");
        }
    }

    #[test]
    fn what_is_not_kept_leaves_nothing_and_no_directory_is_replaced() {
        let here = tempfile::tempdir().unwrap();
        fs::create_dir(here.path().join("results")).unwrap();
        let beneath = Beneath::open(here.path()).unwrap();
        drop(beneath.create(Path::new("file"), 0o644).unwrap());
        assert!(write(&beneath, "results", 0o644).is_err());
        let names: Vec<_> = { fs::read_dir(here.path()).unwrap() }
            .map(|name| name.unwrap().file_name())
            .collect();
        assert_eq!(names, ["results"]);
    }
}
