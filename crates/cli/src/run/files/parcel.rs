//! The parcel that is sent: the files below the paths that the user names, and which of them may stay at the
//! nodes for later jobs.

use sha2::{Digest, Sha256};
use std::collections::HashSet;
use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// Smaller files are sent faster than they are looked for.
const LARGE_BYTES: u64 = 1 << 20;

/// Files of one parcel that may stay.
const MOST_KEPT: usize = 1000;

/// A file of which a copy stays at a node, by what is in it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Large {
    /// SHA-256 of its bytes, in hexadecimal digits.
    pub(super) digest: String,
    path: PathBuf,
    mode: u32,
    /// When it was changed, in seconds since 1970.
    changed: i64,
}

impl Large {
    /// A line for `read -r digest mode changed path`.
    pub(super) fn line(&self) -> Vec<u8> {
        let head = format!("{} {:o} {} ", self.digest, self.mode & 0o777, self.changed);
        [head.as_bytes(), self.path.as_os_str().as_bytes(), b"\n"].concat()
    }
}

/// All that is sent, in the order in which tar writes it.
#[derive(Debug, Default)]
pub(super) struct Parcel {
    entries: Vec<(PathBuf, u64)>,
    pub(super) large: Vec<Large>,
}

impl Parcel {
    /// Lists what is at and below these paths of a directory. With `keep`, large files are read, to know them
    /// by their bytes.
    ///
    /// # Errors
    /// Something cannot be read, with its path.
    pub(super) fn of(here: &Path, paths: &[PathBuf], keep: bool) -> io::Result<Parcel> {
        let mut parcel = Parcel::default();
        for path in paths {
            parcel.add(here, path, keep)?;
        }
        Ok(parcel)
    }

    fn add(&mut self, here: &Path, path: &Path, keep: bool) -> io::Result<()> {
        let named = |error: io::Error| io::Error::new(error.kind(), format!("{}: {error}", path.display()));
        let place = here.join(path);
        let found = place.symlink_metadata().map_err(named)?;
        let bytes = if found.is_file() { found.len() } else { 0 };
        self.entries.push((path.to_owned(), bytes));
        if found.is_dir() {
            let mut names: Vec<_> = fs::read_dir(&place)
                .and_then(|entries| entries.map(|entry| Ok(entry?.file_name())).collect())
                .map_err(named)?;
            names.sort();
            for name in names {
                self.add(here, &path.join(name), keep)?;
            }
        } else if keep && bytes >= LARGE_BYTES && self.large.len() < MOST_KEPT && is_one_word(path) {
            self.large.push(Large {
                digest: digest(&place).map_err(named)?,
                path: path.to_owned(),
                mode: found.mode(),
                changed: found.mtime(),
            });
        }
        Ok(())
    }

    /// The large files that a node has by these digests.
    pub(super) fn among(&self, digests: &HashSet<String>) -> Vec<&Large> {
        self.large
            .iter()
            .filter(|large| digests.contains(&large.digest))
            .collect()
    }

    /// The names of all but these files, each with a zero behind it as tar reads them; and how many bytes the
    /// files have.
    pub(super) fn without(&self, left_out: &[&Large]) -> (Vec<u8>, u64) {
        let left_out: HashSet<&Path> = left_out.iter().map(|large| large.path.as_path()).collect();
        let sent = self
            .entries
            .iter()
            .filter(|(path, _)| !left_out.contains(path.as_path()));
        let (mut names, mut total) = (Vec::new(), 0);
        for (path, bytes) in sent {
            names.extend_from_slice(path.as_os_str().as_bytes());
            names.push(0);
            total += bytes;
        }
        (names, total)
    }

    /// The large files other than these.
    pub(super) fn others_than(&self, files: &[&Large]) -> Vec<&Large> {
        let others = self.large.iter().filter(|large| !files.contains(large));
        others.collect()
    }
}

/// Whether a line of words keeps a path as it is.
fn is_one_word(path: &Path) -> bool {
    let bytes = path.as_os_str().as_bytes();
    !bytes.contains(&b'\n')
        && bytes.last().is_some_and(|last| !last.is_ascii_whitespace())
        && bytes.first().is_some_and(|first| !first.is_ascii_whitespace())
}

fn digest(path: &Path) -> io::Result<String> {
    let mut file = File::open(path)?;
    let (mut hash, mut buffer) = (Sha256::new(), vec![0; 1 << 18]);
    loop {
        match file.read(&mut buffer)? {
            0 => break,
            count => hash.write_all(&buffer[..count])?,
        }
    }
    Ok(hash.finalize().iter().map(|byte| format!("{byte:02x}")).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn large_files_are_known_by_their_bytes_and_all_else_is_sent() {
        let here = tempfile::tempdir().unwrap();
        let large = vec![b'x'; LARGE_BYTES as usize];
        fs::create_dir_all(here.path().join("in/deep")).unwrap();
        fs::write(here.path().join("in/deep/a b"), &large).unwrap();
        fs::write(here.path().join("in/odd\nname"), &large).unwrap();
        fs::write(here.path().join("in/small"), "small").unwrap();
        std::os::unix::fs::symlink("small", here.path().join("in/link")).unwrap();
        let parcel = Parcel::of(here.path(), &["in".into()], true).unwrap();
        let [known] = &parcel.large[..] else {
            panic!("{:?}", parcel.large);
        };
        assert_eq!(known.path, Path::new("in/deep/a b"));
        let line = String::from_utf8(known.line()).unwrap();
        assert!(
            line.ends_with(" in/deep/a b\n") && line.split(' ').count() == 5,
            "{line}"
        );
        let (names, bytes) = parcel.without(&[]);
        assert_eq!(
            names
                .split(|byte| *byte == 0)
                .filter(|name| !name.is_empty())
                .count(),
            6
        );
        assert_eq!(bytes, 2 * LARGE_BYTES + 5);
        let there = HashSet::from([known.digest.clone()]);
        let found = parcel.among(&there);
        let (names, bytes) = parcel.without(&found);
        let names = String::from_utf8(names).unwrap();
        assert_eq!(names, "in\0in/deep\0in/link\0in/odd\nname\0in/small\0");
        assert_eq!(bytes, LARGE_BYTES + 5);
        assert!(parcel.others_than(&found).is_empty());
        assert_eq!(parcel.others_than(&[]), found);
        assert!(
            Parcel::of(here.path(), &["in".into()], false)
                .unwrap()
                .large
                .is_empty()
        );
        let missing = Parcel::of(here.path(), &["none".into()], true).unwrap_err();
        assert!(missing.to_string().starts_with("none: "), "{missing}");
    }
}
