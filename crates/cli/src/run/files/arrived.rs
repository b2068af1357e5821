//! Files that sites have sent back, on their way to where the user is. A site may send anything: only what
//! was asked for gets to its place, and no link that leads elsewhere.

use crate::say;
use std::collections::HashSet;
use std::ffi::{CString, OsStr, OsString};
use std::fs;
use std::io::{self, ErrorKind, Read, Write};
use std::os::unix::ffi::OsStrExt;
use std::path::{Component, Path, PathBuf};

/// Copies an archive to tar, which reads no further than the archive's end; the rest is read all the same.
/// Returns how much there was.
///
/// # Errors
/// Those of reading, and of writing to a tar that still reads.
pub fn pass_on(mut from: impl Read, to: &mut impl Write) -> io::Result<u64> {
    let (mut buffer, mut came, mut is_read) = (vec![0; 1 << 16], 0, true);
    loop {
        let count = match from.read(&mut buffer) {
            Ok(0) => return Ok(came),
            Err(error) if error.kind() == ErrorKind::Interrupted => continue,
            count => count?,
        };
        came += count as u64;
        if is_read && let Err(error) = to.write_all(&buffer[..count]) {
            is_read = false;
            // Its status says what is wrong, if anything is.
            if error.kind() != ErrorKind::BrokenPipe {
                return Err(error);
            }
        }
    }
}

/// What has arrived so far.
pub struct Arrived<'a> {
    /// Where the user is.
    here: &'a Path,
    /// The patterns that were asked for.
    patterns: &'a [String],
    /// What has its place, by its path from there.
    names: HashSet<PathBuf>,
}

impl<'a> Arrived<'a> {
    /// Nothing yet.
    pub fn new(here: &'a Path, patterns: &'a [String]) -> Arrived<'a> {
        Arrived {
            here,
            patterns,
            names: HashSet::new(),
        }
    }

    /// Whether nothing has.
    pub fn is_empty(&self) -> bool {
        self.names.is_empty()
    }

    /// Moves what a site has sent, below `from`, to its place. A file whose name another one had before gets
    /// its site's name.
    ///
    /// # Errors
    /// Those of the file system.
    pub fn settle(&mut self, from: &Path, site: &str) -> io::Result<()> {
        self.settle_below(from, Path::new(""), site)
    }

    fn settle_below(&mut self, from: &Path, below: &Path, site: &str) -> io::Result<()> {
        for entry in fs::read_dir(from.join(below))? {
            let entry = entry?;
            let path = below.join(entry.file_name());
            let kind = entry.file_type()?;
            if kind.is_dir() {
                self.settle_below(from, &path, site)?;
                continue;
            }
            let why = match () {
                () if !self.is_asked_for(&path) => Some("nobody has asked for it"),
                () if kind.is_symlink() => {
                    leads_up(&fs::read_link(entry.path())?).then_some("it is a link that leads elsewhere")
                }
                () => (!kind.is_file()).then_some("it is no file"),
            };
            if let Some(why) = why {
                say::error(format_args!(
                    "causeway: {} of {site} is left out: {why}",
                    path.display()
                ));
                continue;
            }
            let target = self.here.join(self.own_name(&path, site));
            if let Some(directory) = target.parent() {
                fs::create_dir_all(directory)?;
            }
            fs::rename(entry.path(), target)?;
        }
        Ok(())
    }

    /// A name that nothing else has got: also nodes of one site may share no home.
    fn own_name(&mut self, path: &Path, site: &str) -> PathBuf {
        let mut target = path.to_owned();
        let mut number = 0;
        while !self.names.insert(target.clone()) {
            number += 1;
            let mut name = OsString::from(path.as_os_str());
            name.push(match number {
                1 => format!(".{site}"),
                _ => format!(".{site}-{number}"),
            });
            target = name.into();
        }
        target
    }

    /// Whether a path, or a directory that it is in, matches a pattern.
    fn is_asked_for(&self, path: &Path) -> bool {
        self.patterns.iter().any(|pattern| {
            let mut parts = path.components();
            let words = Path::new(pattern).components();
            let mut words = words.filter(|word| matches!(word, Component::Normal(_)));
            words.all(|word| {
                parts
                    .next()
                    .is_some_and(|part| matches(word.as_os_str(), part.as_os_str()))
            })
        })
    }
}

/// Whether a name matches a pattern as the shell's names do: a dot at its beginning is to be written.
fn matches(pattern: &OsStr, name: &OsStr) -> bool {
    let texts = [pattern, name].map(|text| CString::new(text.as_bytes()));
    let [Ok(pattern), Ok(name)] = texts else {
        return false;
    };
    // SAFETY: both are strings that end with a zero byte and live as long as the call.
    unsafe { libc::fnmatch(pattern.as_ptr(), name.as_ptr(), libc::FNM_PERIOD) == 0 }
}

/// Whether a link leads elsewhere than to something beside it or below. What is above may be a link, too.
fn leads_up(target: &Path) -> bool {
    let is_below = |part: Component| matches!(part, Component::Normal(_) | Component::CurDir);
    !target.components().all(is_below)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;

    #[test]
    fn a_name_that_two_sites_have_gets_the_second_ones_and_links_lead_nowhere_else() {
        let here = tempfile::tempdir().unwrap();
        let patterns = ["out".to_owned()];
        let mut arrived = Arrived::new(here.path(), &patterns);
        for (site, text) in [("rennes", "one"), ("nancy", "two"), ("nancy", "three")] {
            let came = tempfile::tempdir().unwrap();
            fs::create_dir(came.path().join("out")).unwrap();
            fs::write(came.path().join("out/log"), text).unwrap();
            symlink("log", came.path().join("out/last")).unwrap();
            symlink("../../.ssh", came.path().join("out/keys")).unwrap();
            arrived.settle(came.path(), site).unwrap();
        }
        let read = |name: &str| fs::read_to_string(here.path().join(name)).ok();
        assert_eq!(read("out/log").as_deref(), Some("one"));
        assert_eq!(read("out/log.nancy").as_deref(), Some("two"));
        assert_eq!(read("out/log.nancy-2").as_deref(), Some("three"));
        assert_eq!(read("out/last").as_deref(), Some("one"));
        assert!(!here.path().join("out/keys").is_symlink());
        // Through a link to the directory itself, ".." leads out.
        for target in ["/etc", "../b", "last/../../b"] {
            assert!(leads_up(Path::new(target)), "{target}");
        }
    }

    #[test]
    fn a_site_that_sends_what_nobody_has_asked_for_changes_nothing_here() {
        let here = tempfile::tempdir().unwrap();
        fs::write(here.path().join("app"), "ours").unwrap();
        let came = tempfile::tempdir().unwrap();
        for name in ["app", ".bashrc", "out-1", ".out-2", "logs"] {
            fs::write(came.path().join(name), "theirs").unwrap();
        }
        let patterns = ["out-*".to_owned(), "./*/deep/?.txt".to_owned()];
        let mut arrived = Arrived::new(here.path(), &patterns);
        arrived.settle(came.path(), "nancy").unwrap();
        let names = fs::read_dir(here.path()).unwrap();
        let mut names: Vec<OsString> = names.map(|entry| entry.unwrap().file_name()).collect();
        names.sort();
        assert_eq!(names, ["app", "out-1"]);
        assert_eq!(fs::read_to_string(here.path().join("app")).unwrap(), "ours");
        for (path, is_asked_for) in [
            ("a/deep/1.txt", true),
            ("a/deep/1.txt/more", true),
            ("a/deep/12.txt", false),
            ("a/deep", false),
            (".a/deep/1.txt", false),
        ] {
            assert_eq!(arrived.is_asked_for(Path::new(path)), is_asked_for, "{path}");
        }
    }
}
