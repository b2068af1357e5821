//! Puts files that sites send back into the user's current directory. A site may send anything: only what was
//! requested is kept, nothing is written through a link, and no link leads elsewhere.

use super::beneath::Beneath;
use super::failures::Failures;
use super::long_names::LongNames;
use causeway_host::say;
use std::collections::{BTreeMap, HashMap, HashSet};
use std::ffi::{CString, OsStr, OsString};
use std::io::{self, ErrorKind, Read};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Component, Path, PathBuf};
use tar::{Archive, Entry, EntryType};

/// Most names that one run fetches: each takes memory until the run ends.
const MOST_NAMES: usize = 1 << 20;

/// Most lines per site about files that are left out.
const MOST_LINES: usize = 10;

/// What has arrived so far.
pub(super) struct Arrived<'a> {
    /// The user's current directory.
    here: &'a Beneath,
    /// The patterns that the user has given.
    patterns: &'a [String],
    /// Paths that are in place, relative to the current directory.
    names: HashSet<PathBuf>,
    /// Symbolic links, with their targets and sites; they are made once all files have arrived.
    links: Vec<(PathBuf, PathBuf, String)>,
    /// How many files of each site were renamed, because their names were taken.
    renamed: BTreeMap<String, usize>,
    /// How many files of each site were left out.
    left_out: BTreeMap<String, usize>,
    /// Why requested files are not in place.
    failures: Failures,
}

impl<'a> Arrived<'a> {
    /// Creates this with nothing arrived.
    pub(super) fn new(here: &'a Beneath, patterns: &'a [String]) -> Arrived<'a> {
        Arrived {
            here,
            patterns,
            names: HashSet::new(),
            links: Vec::new(),
            renamed: BTreeMap::new(),
            left_out: BTreeMap::new(),
            failures: Failures::default(),
        }
    }

    /// Unpacks the archive that a site has sent. If a file's name is taken, the site's name is added to it.
    /// Reads to the end of the input, so that its writer ends.
    ///
    /// # Errors
    /// The archive is damaged, or there is no room here. What has arrived until then stays.
    pub(super) fn take(&mut self, mut from: impl Read, site: &str) -> io::Result<()> {
        let mut first = [0; 1];
        // An empty archive has no bytes at all.
        if from.read(&mut first)? > 0 {
            let mut archive = Archive::new(first.as_slice().chain(&mut from));
            self.take_entries(&mut archive, site)?;
        }
        io::copy(&mut from, &mut io::sink())?;
        Ok(())
    }

    fn take_entries(&mut self, archive: &mut Archive<impl Read>, site: &str) -> io::Result<()> {
        let mut long = LongNames::default();
        // Where the files of this archive are now, for hard links to them.
        let mut places = HashMap::new();
        // In raw mode, names of any length are not read into memory.
        for entry in archive.entries()?.raw(true) {
            let mut entry = entry?;
            if long.read(&mut entry)? {
                continue;
            }
            let LongNames { path, target } = std::mem::take(&mut long);
            let typed = path.unwrap_or_else(|| entry.header().path_bytes().into_owned());
            let target = target.or_else(|| Some(entry.header().link_name_bytes()?.into_owned()));
            let target = PathBuf::from(OsString::from_vec(target.unwrap_or_default()));
            let typed = PathBuf::from(OsString::from_vec(typed));
            let path = match inner(&typed) {
                Some(path) if self.is_asked_for(&path) => path,
                // Directories above a requested file.
                Some(_) if entry.header().entry_type().is_dir() => continue,
                Some(_) => {
                    self.leave_out(&typed, site, "nobody has asked for it");
                    continue;
                }
                None => {
                    self.leave_out(&typed, site, "its name leads elsewhere");
                    continue;
                }
            };
            match self.take_entry(&mut entry, (&path, &target), site, &mut places) {
                Err(error) if ends_all(&error) => {
                    return Err(io::Error::new(
                        error.kind(),
                        format!("{}: {error}", path.display()),
                    ));
                }
                Err(error) => self
                    .failures
                    .add(format!("{} of {site}: {error}", path.display())),
                Ok(()) => {}
            }
        }
        Ok(())
    }

    fn take_entry(
        &mut self,
        entry: &mut Entry<'_, impl Read>,
        (path, target): (&Path, &Path),
        site: &str,
        places: &mut HashMap<PathBuf, PathBuf>,
    ) -> io::Result<()> {
        if self.names.len() >= MOST_NAMES {
            return Err(io::Error::other(format!("more than {MOST_NAMES} files match")));
        }
        match entry.header().entry_type() {
            EntryType::Directory => self.here.make(path)?,
            EntryType::Regular | EntryType::Continuous => {
                let (mode, changed) = (entry.header().mode()?, entry.header().mtime()?);
                let own = self.own_name(path, site);
                let mut file = self.here.create(&own, mode)?;
                let size = entry.header().entry_size()?;
                if file.take(entry)? != size {
                    return Err(io::Error::new(ErrorKind::UnexpectedEof, "the archive broke off"));
                }
                file.keep(i64::try_from(changed).unwrap_or(0))?;
                places.insert(path.to_owned(), own);
            }
            // A second name for a file.
            EntryType::Link => match inner(target).and_then(|first| places.get(&first)) {
                Some(first) => {
                    let first = first.clone();
                    let own = self.own_name(path, site);
                    self.here.link(&first, &own)?;
                }
                None => self.leave_out(path, site, "it is another name of a file that has not come"),
            },
            EntryType::Symlink if leads_up(target) => {
                self.leave_out(path, site, "it is a link that leads elsewhere");
            }
            EntryType::Symlink => self
                .links
                .push((path.to_owned(), target.to_owned(), site.to_owned())),
            _ => self.leave_out(path, site, "it is no file"),
        }
        Ok(())
    }

    /// Makes the links, syncs everything to the disk, and reports what was renamed. Returns whether anything
    /// has arrived, and why something has not.
    ///
    /// # Errors
    /// Those of writing to the disk.
    pub(super) fn finish(mut self) -> io::Result<(bool, Failures)> {
        for (path, target, site) in std::mem::take(&mut self.links) {
            let own = self.own_name(&path, &site);
            if let Err(error) = self.here.symlink(&own, &target) {
                self.failures
                    .add(format!("{} of {site}: {error}", path.display()));
            }
        }
        self.here.sync()?;
        for (site, count) in &self.renamed {
            say::error(format_args!(
                "causeway: {count} of the files of {site} have its name behind theirs, which others had before"
            ));
        }
        for (site, count) in &self.left_out {
            if let Some(more) = count.checked_sub(MOST_LINES).filter(|more| *more > 0) {
                say::error(format_args!("causeway: {more} more of {site} are left out"));
            }
        }
        Ok((!self.names.is_empty(), self.failures))
    }

    fn leave_out(&mut self, path: &Path, site: &str, why: &str) {
        let count = self.left_out.entry(site.to_owned()).or_default();
        *count += 1;
        if *count <= MOST_LINES {
            let path = path.display();
            say::error(format_args!("causeway: {path} of {site} is left out: {why}"));
        }
    }

    /// A name that is not taken: even nodes of one site may have separate homes.
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
        if number > 0 {
            *self.renamed.entry(site.to_owned()).or_default() += 1;
        }
        target
    }

    /// Whether a path, or a directory above it, matches a pattern.
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

/// Whether nothing more can come, or be written here.
fn ends_all(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        ErrorKind::StorageFull
            | ErrorKind::QuotaExceeded
            | ErrorKind::UnexpectedEof
            | ErrorKind::ConnectionAborted
    )
}

/// A path within a directory, without redundant parts; `None` if it may lead elsewhere.
fn inner(path: &Path) -> Option<PathBuf> {
    let parts = path.components().filter(|part| *part != Component::CurDir);
    let parts: PathBuf = parts
        .map(|part| matches!(part, Component::Normal(_)).then_some(part))
        .collect::<Option<_>>()?;
    (!parts.as_os_str().is_empty()).then_some(parts)
}

/// Whether a name matches a pattern, as in the shell: a leading dot must be matched by a dot.
fn matches(pattern: &OsStr, name: &OsStr) -> bool {
    let texts = [pattern, name].map(|text| CString::new(text.as_bytes()));
    let [Ok(pattern), Ok(name)] = texts else {
        return false;
    };
    // SAFETY: both are strings that end with a zero byte and outlive the call.
    unsafe { libc::fnmatch(pattern.as_ptr(), name.as_ptr(), libc::FNM_PERIOD) == 0 }
}

/// Whether a link leads to something that is neither beside it nor below. Something above could be a link,
/// too.
fn leads_up(target: &Path) -> bool {
    inner(target).is_none()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::os::unix::fs::{MetadataExt, symlink};
    use tar::{Builder, Header};

    /// An entry: its kind, its name, and its bytes or its target.
    type Sent<'s> = (EntryType, &'s str, &'s str);

    const FILE: EntryType = EntryType::Regular;
    const LINK: EntryType = EntryType::Symlink;

    fn archive(entries: &[Sent<'_>]) -> Vec<u8> {
        let mut archive = Builder::new(Vec::new());
        for (kind, name, text) in entries {
            let mut header = Header::new_gnu();
            header.set_entry_type(*kind);
            header.set_mode(0o6755);
            header.set_mtime(1_000_000);
            // The name is written into the header directly: `set_path` refuses some of these.
            header.as_old_mut().name[..name.len()].copy_from_slice(name.as_bytes());
            if matches!(*kind, EntryType::Symlink | EntryType::Link) {
                header.as_old_mut().linkname[..text.len()].copy_from_slice(text.as_bytes());
                header.set_size(0);
                header.set_cksum();
                archive.append(&header, io::empty()).unwrap();
            } else {
                header.set_size(text.len() as u64);
                header.set_cksum();
                archive.append(&header, text.as_bytes()).unwrap();
            }
        }
        archive.into_inner().unwrap()
    }

    /// Has a directory receive what sites send, for these patterns; returns the result.
    fn fetch(here: &Path, patterns: &[&str], sent: &[(&str, Vec<Sent<'_>>)]) -> (bool, Failures) {
        let patterns: Vec<String> = patterns.iter().map(|text| (*text).to_owned()).collect();
        let here = Beneath::open(here).unwrap();
        let mut arrived = Arrived::new(&here, &patterns);
        for (site, entries) in sent {
            arrived.take(&archive(entries)[..], site).unwrap();
        }
        arrived.finish().unwrap()
    }

    #[test]
    fn a_name_that_two_sites_have_gets_the_second_ones_and_links_lead_nowhere_else() {
        let here = tempfile::tempdir().unwrap();
        let files = |text: &'static str| {
            vec![
                (FILE, "./out/log", text),
                (LINK, "out/last", "log"),
                (LINK, "out/keys", "../../.ssh"),
            ]
        };
        let sent = [
            ("rennes", files("one")),
            ("nancy", files("two")),
            ("nancy", files("three")),
        ];
        let (has_come, failures) = fetch(here.path(), &["out"], &sent);
        assert!(has_come && failures.is_empty(), "{failures}");
        let read = |name: &str| fs::read_to_string(here.path().join(name)).ok();
        assert_eq!(read("out/log").as_deref(), Some("one"));
        assert_eq!(read("out/log.nancy").as_deref(), Some("two"));
        assert_eq!(read("out/log.nancy-2").as_deref(), Some("three"));
        assert_eq!(read("out/last").as_deref(), Some("one"));
        assert!(!here.path().join("out/keys").is_symlink());
        // Through a link to the directory itself, ".." leads out of it.
        for target in ["/etc", "../b", "last/../../b", ".", "", "./."] {
            assert!(leads_up(Path::new(target)), "{target}");
        }
    }

    #[test]
    fn no_site_writes_through_a_link_that_it_or_another_one_has_sent() {
        let place = tempfile::tempdir().unwrap();
        let here = place.path().join("here");
        fs::create_dir_all(here.join(".ssh")).unwrap();
        symlink(".ssh", here.join("out-old")).unwrap();
        let sent = [
            (
                "rennes",
                vec![
                    (LINK, "out-here", "."),
                    (LINK, "out-keys", ".ssh"),
                    (FILE, "out-old/x", "x"),
                ],
            ),
            (
                "nancy",
                vec![
                    (FILE, "out-keys/authorized_keys", "theirs"),
                    (FILE, "out-here/.bashrc", "theirs"),
                    (LINK, "out-late", ".ssh"),
                    (FILE, "out-late/authorized_keys", "theirs"),
                    (FILE, "out-1/../.ssh/authorized_keys", "theirs"),
                    (FILE, "/etc/out-1", "theirs"),
                    (EntryType::Link, "out-hard", "../x"),
                    (EntryType::Fifo, "out-pipe", ""),
                ],
            ),
        ];
        let (_, failures) = fetch(&here, &["out-*"], &sent);
        assert!(
            failures
                .to_string()
                .contains("out-old/x of rennes: out-old is a link"),
            "{failures}"
        );
        assert_eq!(fs::read_dir(here.join(".ssh")).unwrap().count(), 0);
        assert!(!here.join(".bashrc").exists());
        assert_eq!(
            fs::read_to_string(here.join("out-keys/authorized_keys")).unwrap(),
            "theirs"
        );
        assert!(!here.join("out-hard").exists() && !here.join("out-pipe").exists());
        let names = fs::read_dir(&here).unwrap();
        let mut names: Vec<OsString> = names.map(|entry| entry.unwrap().file_name()).collect();
        names.sort();
        assert_eq!(names, [".ssh", "out-here", "out-keys", "out-late", "out-old"]);
    }

    #[test]
    fn a_site_that_sends_what_nobody_has_asked_for_changes_nothing_here() {
        let here = tempfile::tempdir().unwrap();
        fs::write(here.path().join("app"), "ours").unwrap();
        let names = ["app", ".bashrc", "out-1", ".out-2", "logs"];
        let sent = names.map(|name| (FILE, name, "theirs")).to_vec();
        let patterns = ["out-*", "./*/deep/?.txt"];
        fetch(here.path(), &patterns, &[("nancy", sent)]);
        let names = fs::read_dir(here.path()).unwrap();
        let mut names: Vec<OsString> = names.map(|entry| entry.unwrap().file_name()).collect();
        names.sort();
        assert_eq!(names, ["app", "out-1"]);
        assert_eq!(fs::read_to_string(here.path().join("app")).unwrap(), "ours");
        let (beneath, patterns) = (Beneath::open(here.path()).unwrap(), patterns.map(str::to_owned));
        let arrived = Arrived::new(&beneath, &patterns);
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

    #[test]
    fn files_keep_long_names_second_names_and_modes_but_lend_nobodys_rights() {
        let here = tempfile::tempdir().unwrap();
        let (long, target) = (format!("out/{}", "d/".repeat(100) + "file"), "t".repeat(140));
        let mut sent = Builder::new(Vec::new());
        for name in [&long[..], "out/app"] {
            let mut header = Header::new_gnu();
            header.set_mode(0o4755);
            header.set_size(3);
            sent.append_data(&mut header, name, &b"abc"[..]).unwrap();
        }
        let mut header = Header::new_gnu();
        header.set_entry_type(LINK);
        header.set_size(0);
        sent.append_link(&mut header, "out/link", &target).unwrap();
        header.set_entry_type(EntryType::Link);
        sent.append_link(&mut header, "out/again", "out/app").unwrap();
        let patterns = ["out".to_owned()];
        let beneath = Beneath::open(here.path()).unwrap();
        let mut arrived = Arrived::new(&beneath, &patterns);
        arrived.take(&sent.into_inner().unwrap()[..], "nancy").unwrap();
        let (_, failures) = arrived.finish().unwrap();
        assert!(failures.is_empty(), "{failures}");
        assert_eq!(fs::read(here.path().join(&long)).unwrap(), b"abc");
        let app = here.path().join("out/app").metadata().unwrap();
        assert_eq!(app.mode() & 0o7700, 0o700);
        assert_eq!(here.path().join("out/again").metadata().unwrap().ino(), app.ino());
        assert_eq!(
            fs::read_link(here.path().join("out/link")).unwrap(),
            Path::new(&target)
        );
    }

    #[test]
    fn an_archive_that_lies_about_its_names_is_refused_before_it_takes_memory() {
        let here = tempfile::tempdir().unwrap();
        let beneath = Beneath::open(here.path()).unwrap();
        for kind in [EntryType::GNULongName, EntryType::GNULongLink, EntryType::XHeader] {
            let mut header = Header::new_gnu();
            header.set_entry_type(kind);
            header.set_size(1 << 40);
            header.set_cksum();
            let endless = header.as_bytes().chain(io::repeat(b'x'));
            let error = Arrived::new(&beneath, &[])
                .take(endless.take(1 << 24), "nancy")
                .unwrap_err();
            assert!(error.to_string().contains("more than 16384 bytes"), "{error}");
        }
        // A file that was cut off is incomplete.
        let mut half = archive(&[(FILE, "out", &"x".repeat(5000))]);
        half.truncate(3000);
        let patterns = ["out".to_owned()];
        let mut arrived = Arrived::new(&beneath, &patterns);
        assert!(arrived.take(&half[..], "nancy").is_err());
        drop(arrived);
        assert_eq!(fs::read_dir(here.path()).unwrap().count(), 0);
        // No output at all counts as an empty archive.
        Arrived::new(&beneath, &patterns)
            .take(io::empty(), "nancy")
            .unwrap();
    }
}
