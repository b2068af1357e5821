//! Copies files to the hosts of a job: what a host has from an earlier job is not sent again.
//!
//! A host keeps copies of large files in `~/.cache/causeway/sent`, each under the SHA-256 of its bytes. A
//! copy is read and compared with its name before it is used, so whatever has happened to it meanwhile does
//! no harm.

use super::archive;
use super::parcel::{Entry, Large, Parcel};
use super::progress::Progress;
use super::sent::Sent;
use super::{Files, Host, failed};
use crate::error::RunError;
use std::collections::HashSet;
use std::io::{self, ErrorKind, Read, Write};
use std::process::{Child, Stdio};
use std::sync::mpsc::channel;

/// Prints which of the files listed on standard input exist and match their digests.
const LOOK: &str = r#"cd "$HOME/.cache/causeway/sent" 2>/dev/null || exec cat >/dev/null
while read -r d x; do [ -f "$d" ] && echo "$d  $d"; done | LC_ALL=C sha256sum -c - 2>/dev/null
:"#;

/// Puts the kept copies that standard input lists into the job's directory.
const TAKE: &str = r#"c="$HOME/.cache/causeway/sent"; cd /tmp/NAME/job || exit 1
while read -r d mode changed path; do case $path in */*) mkdir -p -- "${path%/*}" || exit 1;; esac
cp -- "$c/$d" "$path" && chmod "$mode" -- "$path" && touch -d "@$changed" -- "$path" || exit 1
touch -- "$c/$d"; done"#;

/// Unpacks the archive on standard input.
const UNPACK: &str = "exec tar -xf - -C /tmp/NAME/job";

/// Keeps copies of what has been sent, and removes old ones and those beyond the limit. If the disk is full,
/// or the host has no sha256sum, it keeps none.
const KEEP: &str = r#"c="$HOME/.cache/causeway/sent"; umask 077; cd /tmp/NAME/job && mkdir -p "$c" || exit 0
command -v sha256sum >/dev/null || exit 0
while read -r d mode changed path; do
n="$c/.new.$$"; cp -- "$path" "$n" 2>/dev/null && mv -- "$n" "$c/$d" || { rm -f -- "$n"; break; }; done
cd "$c" && find . -maxdepth 1 -type f -mtime +30 -exec rm -f {} +
t=0; ls -t | while read -r f; do t=$((t + $(stat -c %s -- "$f"))); [ $t -le MOST ] || rm -f -- "$f"; done
exit 0"#;

/// Most bytes of copies that stay on a host.
const MOST_KEPT_BYTES: u64 = 10 << 30;

/// Longest answer of a host: a line for each file that may stay, and some spare room.
const MOST_ANSWER: u64 = 1 << 20;

/// The part of the work for one host.
struct Part<'p> {
    host: &'p Host,
    /// Large files that the host has.
    there: Vec<&'p Large>,
    /// Files of which a copy may stay for a later job.
    keeps: Vec<&'p Large>,
    entries: Vec<&'p Entry>,
}

impl Part<'_> {
    fn bytes(&self) -> u64 {
        self.entries.iter().map(|entry| entry.bytes).sum()
    }
}

impl Files {
    /// Copies files to every host that has a directory of its own, all at once. With `keep`, copies of large
    /// ones stay there for later jobs.
    pub(super) fn copy_out(&self, sent: Vec<Sent>, keep: bool) -> Result<(), RunError> {
        let parcel = Parcel::of(sent, keep).map_err(|error| failed("--send", error))?;
        let hosts: Vec<&Host> = self.hosts.iter().filter(|host| host.is_made).collect();
        for host in &hosts {
            host.accepts(&parcel)?;
        }
        let parts = self.look(&parcel, hosts)?;
        self.send_parts(&parts)?;
        let takes = parts.iter().map(|part| (part.host, lines(&part.there)));
        self.have_done(TAKE, takes.collect())?;
        let keeps = parts.iter().map(|part| (part.host, lines(&part.keeps)));
        self.have_done(KEEP, keeps.collect())
    }

    /// Asks each host which of the files it has.
    fn look<'p>(&self, parcel: &'p Parcel, hosts: Vec<&'p Host>) -> Result<Vec<Part<'p>>, RunError> {
        let mut looks = Vec::new();
        for host in hosts {
            let wanted = parcel.digests(&host.site);
            let look = match wanted.is_empty() {
                true => None,
                false => Some(self.start(LOOK, host, wanted.into_bytes(), Stdio::piped())?),
            };
            looks.push((host, look));
        }
        let parts = looks.into_iter().map(|(host, look)| {
            let (there, keeps) = parcel.large(&host.site, &look.map_or_else(HashSet::new, found));
            Part {
                host,
                entries: parcel.without(&host.site, &there),
                there,
                keeps,
            }
        });
        Ok(parts.collect())
    }

    /// Sends what each host lacks.
    fn send_parts(&self, parts: &[Part<'_>]) -> Result<(), RunError> {
        let progress = Progress::begin(parts.iter().map(Part::bytes).sum(), parts.len());
        std::thread::scope(|scope| {
            let (sender, ended) = channel();
            for part in parts {
                let (sender, progress) = (sender.clone(), &progress);
                scope.spawn(move || {
                    let sent = self.send_part(part, progress);
                    let _ = sender.send(sent.map_err(|error| (part.host.describe(), error)));
                });
            }
            drop(sender);
            let (mut left, mut failure) = (parts.len(), None);
            progress.tell_until(|wait| {
                while left > 0 {
                    match ended.recv_timeout(wait) {
                        Ok(sent) => failure = failure.take().or(sent.err()),
                        Err(_) => return false,
                    }
                    left -= 1;
                }
                true
            });
            match failure {
                None => Ok(()),
                Some((host, error)) => {
                    let text = format!("--send: the files were not copied to {host}: {error}");
                    Err(RunError::Files(text))
                }
            }
        })
    }

    fn send_part(&self, part: &Part<'_>, progress: &Progress) -> io::Result<()> {
        let (mut copy, script) = self.script(part.host.node.as_deref(), UNPACK);
        let mut copy = copy.stdin(Stdio::piped()).spawn()?;
        let passed = match copy.stdin.take() {
            Some(mut to) => to
                .write_all(&script)
                .and_then(|()| archive::write(&part.entries, Counted { to, progress })),
            None => Ok(()),
        };
        let taken = copy.wait()?;
        match passed {
            Ok(()) if taken.success() => Ok(()),
            Err(error) if error.kind() != ErrorKind::BrokenPipe => Err(error),
            _ => Err(io::Error::other(format!("tar: {taken} there"))),
        }
    }

    /// Runs a script on the hosts for which there are lines of input.
    fn have_done(&self, script: &str, inputs: Vec<(&Host, Vec<u8>)>) -> Result<(), RunError> {
        let mut begun = Vec::new();
        for (host, lines) in inputs.into_iter().filter(|(_, lines)| !lines.is_empty()) {
            begun.push((host, self.start(script, host, lines, Stdio::null())?));
        }
        for (host, mut done) in begun {
            if !done.wait().is_ok_and(|status| status.success()) {
                let host = host.describe();
                return Err(RunError::Files(format!(
                    "--send: the copies of an earlier job were not used at {host}: --send-anew does without them"
                )));
            }
        }
        Ok(())
    }

    /// Starts a script on a host.
    pub(super) fn start(
        &self,
        script: &str,
        host: &Host,
        input: Vec<u8>,
        output: Stdio,
    ) -> Result<Child, RunError> {
        let script = script.replace("MOST", &MOST_KEPT_BYTES.to_string());
        let (mut command, script) = self.script(host.node.as_deref(), &script);
        let child = command.stdin(Stdio::piped()).stdout(output).spawn();
        let mut child = child.map_err(|error| failed("start sh", error))?;
        if let Some(mut to) = child.stdin.take() {
            // Scripts read all their input before they print more than fits into a pipe.
            std::thread::spawn(move || to.write_all(&script).and_then(|()| to.write_all(&input)));
        }
        Ok(child)
    }
}

fn lines(files: &[&Large]) -> Vec<u8> {
    files.iter().flat_map(|large| large.line()).collect()
}

/// The digests of files that `sha256sum -c` has found correct.
fn found(mut look: Child) -> HashSet<String> {
    let mut output = Vec::new();
    if let Some(from) = look.stdout.take() {
        let _ = from.take(MOST_ANSWER).read_to_end(&mut output);
    }
    let _ = look.wait();
    let text = String::from_utf8_lossy(&output);
    let right = text.lines().filter_map(|line| line.strip_suffix(": OK"));
    right.map(str::to_owned).collect()
}

/// Writes a host's input, and counts how much was sent.
struct Counted<'p, W> {
    to: W,
    progress: &'p Progress,
}

impl<W: Write> Write for Counted<'_, W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let count = self.to.write(bytes)?;
        self.progress.add(count);
        Ok(count)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.to.flush()
    }
}

#[cfg(test)]
mod tests {
    use super::super::parcel::tests::parcel;
    use super::*;
    use std::fs::{self, File};
    use std::os::unix::fs::PermissionsExt;
    use std::path::Path;
    use std::process::Command;

    fn run(script: &str, home: &Path, input: &[u8]) -> String {
        let script = script.replace("/tmp/NAME", &home.display().to_string());
        let script = script.replace("MOST", "3000000");
        let mut sh = Command::new("sh");
        let sh = sh.args(["-c", &script]).env("HOME", home);
        let mut sh = sh.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        sh.stdin.take().unwrap().write_all(input).unwrap();
        let output = sh.wait_with_output().unwrap();
        assert!(output.status.success(), "{script}");
        String::from_utf8(output.stdout).unwrap()
    }

    #[test]
    fn a_copy_that_stayed_is_used_by_a_later_job_as_long_as_its_bytes_are_right() {
        let home = tempfile::tempdir().unwrap();
        let job = home.path().join("job");
        fs::create_dir_all(job.join("in")).unwrap();
        fs::write(job.join("in/a b"), vec![b'x'; 1 << 20]).unwrap();
        fs::set_permissions(job.join("in/a b"), PermissionsExt::from_mode(0o750)).unwrap();
        let parcel = parcel(&[format!("{}=in", job.join("in").display())], true);
        let (_, all) = parcel.large("nancy", &HashSet::new());
        let digest = &all[0].digest;
        let asked = format!("{digest}\n");
        assert_eq!(run(LOOK, home.path(), asked.as_bytes()), "");
        run(KEEP, home.path(), &lines(&all));
        assert_eq!(
            run(LOOK, home.path(), asked.as_bytes()),
            format!("{digest}: OK\n")
        );
        fs::remove_dir_all(&job).unwrap();
        fs::create_dir(&job).unwrap();
        run(TAKE, home.path(), &lines(&all));
        assert_eq!(fs::read(job.join("in/a b")).unwrap().len(), 1 << 20);
        let mode = fs::metadata(job.join("in/a b")).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o750);
        // Somebody has written into the copy.
        let copy = home.path().join(".cache/causeway/sent").join(digest);
        fs::write(&copy, "another").unwrap();
        assert!(!run(LOOK, home.path(), asked.as_bytes()).contains("OK"));
    }

    #[test]
    fn copies_are_removed_when_they_are_too_many_the_oldest_first() {
        let home = tempfile::tempdir().unwrap();
        let job = home.path().join("job");
        fs::create_dir(&job).unwrap();
        let kept = || {
            let names = fs::read_dir(home.path().join(".cache/causeway/sent")).unwrap();
            names
                .map(|name| name.unwrap().file_name().into_string().unwrap())
                .collect::<HashSet<_>>()
        };
        let mut digests = Vec::new();
        for number in 0..4_u8 {
            fs::write(job.join("file"), vec![number; 1 << 20]).unwrap();
            let parcel = parcel(&[format!("{}=file", job.join("file").display())], true);
            let (_, large) = parcel.large("nancy", &HashSet::new());
            run(KEEP, home.path(), &large[0].line());
            let digest = large[0].digest.clone();
            // Each copy looks a minute younger than the one before.
            let copy = home.path().join(".cache/causeway/sent").join(&digest);
            let time =
                std::time::SystemTime::now() - std::time::Duration::from_secs(60 * u64::from(9 - number));
            File::options()
                .write(true)
                .open(copy)
                .unwrap()
                .set_modified(time)
                .unwrap();
            digests.push(digest);
        }
        run(KEEP, home.path(), b"");
        assert_eq!(kept(), digests[2..].iter().cloned().collect());
    }
}
