//! The parcel that is sent: the files at and below the paths that the user names, which sites get them, and
//! which of them may stay on the nodes for later jobs.

use super::sent::Sent;
use causeway_host::say;
use sha2::{Digest, Sha256};
use std::collections::HashSet;
use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// The size from which a file counts as large: smaller ones are sent faster than looked up.
const LARGE_BYTES: u64 = 1 << 20;

/// Most files of a parcel that may stay.
const MOST_KEPT: usize = 1000;

/// A file of which a copy stays on a node, identified by its content.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Large {
    /// The SHA-256 of the file's bytes, in hexadecimal digits.
    pub(super) digest: String,
    /// The file's path in the job's directory.
    name: PathBuf,
    /// The number of the path that the user has named.
    of: usize,
    mode: u32,
    /// When the file was changed, in seconds since 1970.
    changed: i64,
}

impl Large {
    /// A line for `read -r digest mode changed name`.
    pub(super) fn line(&self) -> Vec<u8> {
        let head = format!("{} {:o} {} ", self.digest, self.mode & 0o777, self.changed);
        [head.as_bytes(), self.name.as_os_str().as_bytes(), b"\n"].concat()
    }
}

/// A file, directory or symbolic link of a parcel.
#[derive(Debug)]
pub(super) struct Entry {
    /// The path here.
    pub(super) path: PathBuf,
    /// The path in the job's directory.
    pub(super) name: PathBuf,
    pub(super) bytes: u64,
    of: usize,
}

/// Everything that is sent, with directories before what is in them.
#[derive(Debug)]
pub(super) struct Parcel {
    sent: Vec<Sent>,
    entries: Vec<Entry>,
    large: Vec<Large>,
}

impl Parcel {
    /// Lists what is at and below these paths. With `keep`, large files are read and hashed.
    ///
    /// # Errors
    /// Something cannot be read; the error contains its path.
    pub(super) fn of(sent: Vec<Sent>, keep: bool) -> io::Result<Parcel> {
        let mut parcel = Parcel {
            sent: Vec::new(),
            entries: Vec::new(),
            large: Vec::new(),
        };
        for (of, sent) in sent.iter().enumerate() {
            parcel.add(&sent.path, &sent.name, of, keep)?;
        }
        Ok(Parcel { sent, ..parcel })
    }

    fn add(&mut self, path: &Path, name: &Path, of: usize, keep: bool) -> io::Result<()> {
        let named = |error: io::Error| io::Error::new(error.kind(), format!("{}: {error}", path.display()));
        let found = path.symlink_metadata().map_err(named)?;
        let (kind, bytes) = (found.file_type(), found.len());
        if !(kind.is_file() || kind.is_dir() || kind.is_symlink()) {
            say::error(format_args!(
                "causeway: --send: {} is left out: it is no file, directory or symbolic link",
                path.display()
            ));
            return Ok(());
        }
        // The job's directory itself exists already.
        if !name.as_os_str().is_empty() {
            self.entries.push(Entry {
                path: path.to_owned(),
                name: name.to_owned(),
                bytes: if kind.is_file() { bytes } else { 0 },
                of,
            });
        }
        if kind.is_dir() {
            let mut names: Vec<_> = fs::read_dir(path)
                .and_then(|entries| entries.map(|entry| Ok(entry?.file_name())).collect())
                .map_err(named)?;
            names.sort();
            for inner in names {
                self.add(&path.join(&inner), &name.join(&inner), of, keep)?;
            }
        } else if keep
            && kind.is_file()
            && bytes >= LARGE_BYTES
            && self.large.len() < MOST_KEPT
            && is_one_word(name)
        {
            self.large.push(Large {
                digest: digest(path).map_err(named)?,
                name: name.to_owned(),
                of,
                mode: found.mode(),
                changed: found.mtime(),
            });
        }
        Ok(())
    }

    fn is_for(&self, site: &str, of: usize) -> bool {
        self.sent[of].is_for(site, &self.sent)
    }

    /// The digests of the large files that a site gets and may keep, each on a line.
    pub(super) fn digests(&self, site: &str) -> String {
        let large = self.large.iter().filter(|large| self.is_for(site, large.of));
        large.map(|large| large.digest.clone() + "\n").collect()
    }

    /// The large files for a site: those that its node has, by these digests, and those that it lacks.
    pub(super) fn large(&self, site: &str, digests: &HashSet<String>) -> (Vec<&Large>, Vec<&Large>) {
        let large = self.large.iter().filter(|large| self.is_for(site, large.of));
        large.partition(|large| digests.contains(&large.digest))
    }

    /// What a site gets, except these files.
    pub(super) fn without(&self, site: &str, left_out: &[&Large]) -> Vec<&Entry> {
        let left_out: HashSet<_> = left_out.iter().map(|large| (large.of, &large.name)).collect();
        let entries = self.entries.iter().filter(|entry| self.is_for(site, entry.of));
        entries
            .filter(|entry| !left_out.contains(&(entry.of, &entry.name)))
            .collect()
    }
}

/// Whether the shell's `read` keeps a path unchanged.
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
pub(super) mod tests {
    use super::*;

    /// The parcel for these values of `--send`.
    pub(in crate::files) fn parcel(typed: &[String], keep: bool) -> Parcel {
        let sent = typed.iter().map(|typed| Sent::read(Path::new(typed)).unwrap());
        Parcel::of(sent.collect(), keep).unwrap()
    }

    #[test]
    fn large_files_are_known_by_their_bytes_and_all_else_is_sent() {
        let here = tempfile::tempdir().unwrap();
        let large = vec![b'x'; LARGE_BYTES as usize];
        fs::create_dir_all(here.path().join("in/deep")).unwrap();
        fs::write(here.path().join("in/deep/a b"), &large).unwrap();
        fs::write(here.path().join("in/odd\nname"), &large).unwrap();
        fs::write(here.path().join("in/small"), "small").unwrap();
        std::os::unix::fs::symlink("small", here.path().join("in/link")).unwrap();
        let _socket = std::os::unix::net::UnixListener::bind(here.path().join("in/socket")).unwrap();
        let typed = [format!("{}=in", here.path().join("in").display())];
        let all = parcel(&typed, true);
        let [known] = &all.large[..] else {
            panic!("{:?}", all.large);
        };
        assert_eq!(known.name, Path::new("in/deep/a b"));
        let line = String::from_utf8(known.line()).unwrap();
        assert!(
            line.ends_with(" in/deep/a b\n") && line.split(' ').count() == 5,
            "{line}"
        );
        let names = |entries: Vec<&Entry>| {
            let bytes: u64 = entries.iter().map(|entry| entry.bytes).sum();
            let names = entries.iter().map(|entry| entry.name.display().to_string());
            (names.collect::<Vec<_>>().join(" "), bytes)
        };
        assert_eq!(
            names(all.without("nancy", &[])),
            (
                "in in/deep in/deep/a b in/link in/odd\nname in/small".to_owned(),
                2 * LARGE_BYTES + 5
            )
        );
        let there = HashSet::from([known.digest.clone()]);
        let (found, others) = all.large("nancy", &there);
        assert_eq!((&found[..], &others[..]), (&[known][..], &[][..]));
        assert_eq!(
            names(all.without("nancy", &found)),
            (
                "in in/deep in/link in/odd\nname in/small".to_owned(),
                LARGE_BYTES + 5
            )
        );
        assert_eq!(all.digests("nancy"), format!("{}\n", known.digest));
        assert!(parcel(&typed, false).large.is_empty());
    }

    #[test]
    fn each_site_gets_its_own_file_of_a_name() {
        let here = tempfile::tempdir().unwrap();
        for (name, byte) in [("app", b'a'), ("app.arm64", b'b')] {
            fs::write(here.path().join(name), vec![byte; LARGE_BYTES as usize]).unwrap();
        }
        let typed = |site: &str, name: &str| format!("{site}{}=app", here.path().join(name).display());
        let all = parcel(&[typed("", "app"), typed("nancy:", "app.arm64")], true);
        for (site, path) in [("rennes", "app"), ("nancy", "app.arm64")] {
            let entries = all.without(site, &[]);
            assert_eq!(entries.len(), 1, "{site}");
            assert_eq!(entries[0].path, here.path().join(path));
            let (_, kept) = all.large(site, &HashSet::new());
            assert_eq!(kept.len(), 1, "{site}");
            assert!(all.without(site, &kept).is_empty());
        }
        assert_ne!(all.digests("rennes"), all.digests("nancy"));
    }
}
