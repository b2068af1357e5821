//! Fetches what a job has left in its directories.

use super::arrived::Arrived;
use super::beneath::Beneath;
use super::coming::{Asked, Coming};
use super::failures::Failures;
use super::keeper::{KEEP, REMOVE};
use super::left::Left;
use super::{Files, Host};
use causeway_host::say;
use nix::sys::signal::Signal;
use std::io::{self, BufReader, Read};
use std::path::{Component, Path};
use std::process::Stdio;

/// Packs what matches the patterns. A pattern such as `.*` also matches the directory itself and the one
/// above, which are skipped. sh has all names in memory, but never passes all of them to a program as
/// arguments.
const PACK: &str = r#"cd /tmp/NAME/job || exit 1
for f in PATTERNS; do case "/$f/" in */./*|*/../*) continue;; esac
if [ -e "$f" ] || [ -L "$f" ]; then printf './%s\0' "$f"; fi; done | tar -cf - --null -T -"#;

/// Most bytes that are fetched from a host: no site must be able to fill this disk.
const MOST_FETCHED: u64 = 64 << 30;

/// How many bytes are read from a host at once.
const BUFFER: usize = 1 << 16;

/// Why not everything that was requested has come.
pub(super) struct NotFetched {
    pub(super) why: String,
    /// The signal that has stopped the fetching.
    pub(super) signal: Option<Signal>,
}

impl Files {
    /// Copies what matches the patterns to the current directory. If several sites have a file of the same
    /// name, all but the first get their site's name added. If something fails, or a signal asks to stop, the
    /// job's directories are kept for a day.
    ///
    /// # Errors
    /// Something could not be fetched, though the rest was, or nothing matches.
    pub(super) fn fetch(&self, asked: Asked<'_>) -> Result<(), NotFetched> {
        if self.fetch.is_empty() {
            return Ok(());
        }
        let hosts: Vec<&Host> = self.hosts.iter().filter(|host| host.is_made).collect();
        let left = Left::of(&self.fetch, &hosts);
        if let Err(error) = left.keep(&self.name) {
            say::error(format_args!(
                "causeway: 'causeway fetch' will not find the files: {error}"
            ));
        }
        // The directories are kept even if this process is killed meanwhile.
        hosts.iter().for_each(|host| host.tell(KEEP));
        let mut signal = None;
        let (has_come, failures) = self.fetch_from_all(&hosts, asked, &mut signal);
        if !failures.is_empty() {
            let places: Vec<String> = hosts.iter().map(|host| host.describe()).collect();
            let why = format!(
                "--fetch: {failures}; all that the job has left stays for a day in ~/.cache/causeway/files/{name} at \
                 {}; to fetch it to the directory where you are then: causeway fetch {name}",
                places.join(", "),
                name = self.name,
            );
            return Err(NotFetched { why, signal });
        }
        hosts.iter().for_each(|host| host.tell(REMOVE));
        Left::forget(&self.name);
        match has_come {
            true => Ok(()),
            false => Err(NotFetched {
                why: format!("nothing matches --fetch {}", self.fetch.join(" ")),
                signal: None,
            }),
        }
    }

    fn fetch_from_all(
        &self,
        hosts: &[&Host],
        asked: Asked<'_>,
        signal: &mut Option<Signal>,
    ) -> (bool, Failures) {
        let mut failures = Failures::default();
        let here = match Beneath::open(&self.here) {
            Ok(here) => here,
            Err(error) => {
                failures.add(format!("{}: {error}", self.here.display()));
                return (false, failures);
            }
        };
        let mut arrived = Arrived::new(&here, &self.fetch);
        for host in hosts {
            if let Err(error) = self.fetch_from(host, &mut arrived, asked, signal) {
                failures.add(format!("{}: {error}", host.describe()));
            }
            if signal.is_some() {
                return (true, failures);
            }
        }
        match arrived.finish() {
            Ok((has_come, others)) => {
                failures.append(others);
                (has_come, failures)
            }
            Err(error) => {
                failures.add(format!("{}: {error}", self.here.display()));
                (true, failures)
            }
        }
    }

    fn fetch_from(
        &self,
        host: &Host,
        all: &mut Arrived<'_>,
        asked: Asked<'_>,
        signal: &mut Option<Signal>,
    ) -> io::Result<()> {
        let patterns: Vec<String> = self.fetch.iter().map(|pattern| plain(pattern)).collect();
        let script = PACK.replace("PATTERNS", &patterns.join(" "));
        let far = self.start(&script, host, Vec::new(), Stdio::piped());
        let mut far = far.map_err(io::Error::other)?;
        let (mut taken, mut is_too_much) = (Ok(()), false);
        // A host that is still writing must not block, so its output is closed at the end.
        if let Some(from) = far.stdout.take() {
            let coming = Coming::new(from, &host.site, asked);
            let mut from = BufReader::with_capacity(BUFFER, coming).take(MOST_FETCHED);
            taken = all.take(&mut from, &host.site);
            is_too_much = from.limit() == 0;
            *signal = from.get_ref().get_ref().broken_off();
        }
        if taken.is_err() || is_too_much {
            let _ = far.kill();
        }
        let sent = far.wait()?;
        if let Some(signal) = signal {
            return Err(io::Error::other(format!("broken off by {signal}")));
        }
        if is_too_much {
            return Err(io::Error::other(format!(
                "more than {} GiB match",
                MOST_FETCHED >> 30
            )));
        }
        taken?;
        match sent.success() {
            true => Ok(()),
            false => Err(io::Error::other(format!("tar: {sent} there"))),
        }
    }
}

/// Removes the redundant parts of a pattern.
fn plain(pattern: &str) -> String {
    let parts = Path::new(pattern).components();
    let parts = parts.filter(|part| matches!(part, Component::Normal(_)));
    let parts: Vec<_> = parts.map(|part| part.as_os_str().to_string_lossy()).collect();
    parts.join("/")
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;
    use std::fs;
    use std::process::Command;

    /// The names in the archive of a directory's files that match.
    fn packed(directory: &Path, patterns: &[&str]) -> (BTreeSet<String>, bool) {
        let patterns: Vec<String> = patterns.iter().map(|pattern| plain(pattern)).collect();
        let script = PACK.replace("PATTERNS", &patterns.join(" "));
        let script = script.replace("/tmp/NAME/job", &directory.display().to_string());
        let output = Command::new("sh").args(["-c", &script]).output().unwrap();
        let mut archive = tar::Archive::new(&output.stdout[..]);
        let names = archive.entries().unwrap().map(|entry| {
            let path = entry.unwrap().path().unwrap().into_owned();
            path.display().to_string()
        });
        (names.collect(), output.status.success())
    }

    #[test]
    fn what_matches_is_packed_and_neither_the_directory_itself_nor_the_one_above() {
        let place = tempfile::tempdir().unwrap();
        let job = place.path().join("job");
        fs::create_dir_all(job.join("logs")).unwrap();
        fs::write(place.path().join("secret"), "").unwrap();
        for name in [".hidden", "out-1", "-out", "logs/a b", "logs/odd\nname"] {
            fs::write(job.join(name), name).unwrap();
        }
        std::os::unix::fs::symlink("nowhere", job.join("out-link")).unwrap();
        let packed_names = |patterns: &[&str]| {
            let (names, is_well) = packed(&job, patterns);
            assert!(is_well);
            names.into_iter().collect::<Vec<_>>()
        };
        assert_eq!(packed_names(&[".*"]), ["./.hidden"]);
        assert_eq!(packed_names(&["./out-*"]), ["./out-1", "./out-link"]);
        assert_eq!(packed_names(&["*/*"]), ["./logs/a b", "./logs/odd\nname"]);
        assert_eq!(packed_names(&["?out"]), ["./-out"]);
        assert_eq!(packed_names(&["none*"]), [] as [&str; 0]);
    }

    #[test]
    fn more_names_are_packed_than_a_program_takes_as_arguments() {
        let job = tempfile::tempdir().unwrap();
        let long = "x".repeat(200);
        for number in 0..12_000 {
            fs::write(job.path().join(format!("out-{number}-{long}")), "").unwrap();
        }
        let (names, is_well) = packed(job.path(), &["out-*"]);
        assert_eq!((names.len(), is_well), (12_000, true));
    }
}
