//! Keeps track of the nodes' parts of a job. Agents report them; `causeway run` listens, and says when the
//! job goes on without one.
//!
//! hydra ends a job when a rank was killed, and goes on when one has exited, with whatever status. Where all
//! ranks of a node exit without MPI_Finalize, those of the others wait for them for ever; on one host hydra
//! kills the others itself, and that ends the job. A rank may also be done early: so this only tells.
//!
//! The agents find a named pipe beside the link by which hydra calls them. Open MPI calls its agent by
//! another name, and looks after its daemons itself.

use nix::sys::stat::Mode;
use nix::unistd::mkfifo;
use std::collections::BTreeMap;
use std::fs::{File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, RawFd};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// Name of the pipe in the run's directory.
const PIPE: &str = "parts";

/// How long the others may go on before the user is told: the parts of a job that ends in order do so within
/// a round trip or two of each other.
const PATIENCE: Duration = Duration::from_secs(10);

/// Names that the line has of either kind.
const NAMES: usize = 4;

/// Longest line that is taken; one of this length is written whole (pipe(7), PIPE_BUF).
const MAX_LINE_BYTES: usize = 1024;

/// Reports that the part of the job on this node runs, or no longer does. It may be that nobody listens.
pub fn tell(node: &str, runs: bool) {
    let sign = if runs { '+' } else { '-' };
    let line = format!("{sign}{node}\n");
    let pipe = own_pipe().filter(|_| line.len() <= MAX_LINE_BYTES);
    let Some(pipe) = pipe else { return };
    let mut options = OpenOptions::new();
    options.write(true).custom_flags(libc::O_NONBLOCK);
    if let Ok(mut pipe) = options.open(pipe) {
        let _ = pipe.write_all(line.as_bytes());
    }
}

/// Returns the path of the pipe, which lies beside the link by which this process was called.
fn own_pipe() -> Option<PathBuf> {
    let called = PathBuf::from(std::env::args_os().next()?);
    let is_link = called.file_name()? == super::AGENT_NAME;
    is_link.then(|| called.with_file_name(PIPE))
}

/// What the agents have told.
pub struct Parts {
    pipe: File,
    partial: Vec<u8>,
    /// Running parts of each node that had one.
    running: BTreeMap<String, u32>,
    /// When the user is told, unless the job ends before.
    due: Option<Instant>,
    said: bool,
}

impl Parts {
    /// Makes the pipe in a run's directory.
    ///
    /// # Errors
    /// Those of the file system.
    pub fn listen(directory: &Path) -> io::Result<Parts> {
        let path = directory.join(PIPE);
        mkfifo(&path, Mode::S_IRUSR | Mode::S_IWUSR)?;
        // Open for writing too: it has no end when the last agent goes.
        let mut options = OpenOptions::new();
        options.read(true).write(true).custom_flags(libc::O_NONBLOCK);
        Ok(Parts::reading(options.open(path)?))
    }

    fn reading(pipe: File) -> Parts {
        Parts {
            pipe,
            partial: Vec::new(),
            running: BTreeMap::new(),
            due: None,
            said: false,
        }
    }

    /// The pipe's number.
    pub fn descriptor(&self) -> RawFd {
        self.pipe.as_raw_fd()
    }

    /// Takes what was told.
    pub fn hear(&mut self, now: Instant) {
        let mut bytes = [0; 4096];
        while let Ok(count @ 1..) = self.pipe.read(&mut bytes) {
            for byte in &bytes[..count] {
                if *byte == b'\n' {
                    let line = std::mem::take(&mut self.partial);
                    self.on_line(&String::from_utf8_lossy(&line), now);
                } else if self.partial.len() < MAX_LINE_BYTES {
                    self.partial.push(*byte);
                }
            }
        }
    }

    fn on_line(&mut self, line: &str, now: Instant) {
        if let Some(node) = line.strip_prefix('+') {
            *self.running.entry(node.to_owned()).or_default() += 1;
        } else if let Some(parts) = line.strip_prefix('-').and_then(|node| self.running.get_mut(node)) {
            *parts = parts.saturating_sub(1);
            if *parts == 0 && !self.said && self.due.is_none() {
                self.due = Some(now + PATIENCE);
            }
        }
    }

    /// Returns the time at which [`Parts::due_line`] is to be asked.
    pub fn due(&self) -> Option<Instant> {
        self.due
    }

    /// The line for the user, once, when it is time.
    pub fn due_line(&mut self, now: Instant) -> Option<String> {
        self.due.take_if(|due| now >= *due)?;
        self.said = true;
        let nodes = |runs: bool| {
            let nodes = self.running.iter().filter(|(_, parts)| (**parts > 0) == runs);
            nodes.map(|(node, _)| node.as_str()).collect::<Vec<_>>()
        };
        let (ended, left) = (nodes(false), nodes(true));
        if left.is_empty() {
            return Some("the job's processes on all nodes have ended, and its launcher goes on".into());
        }
        Some(format!(
            "the job has ended on {} {} s ago, and waits for {}: ranks that exit without MPI_Finalize leave the others \
             waiting for them; Ctrl-C ends the job",
            list(&ended),
            PATIENCE.as_secs(),
            list(&left)
        ))
    }
}

impl AsFd for Parts {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.pipe.as_fd()
    }
}

fn list(nodes: &[&str]) -> String {
    let more = nodes.len().saturating_sub(NAMES);
    let names = nodes[..nodes.len() - more].join(", ");
    match more {
        0 => names,
        more => format!("{names} and {more} others"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parts() -> (tempfile::TempDir, Parts, Instant) {
        let directory = tempfile::tempdir().unwrap();
        let parts = Parts::listen(directory.path()).unwrap();
        (directory, parts, Instant::now())
    }

    #[test]
    fn a_job_that_goes_on_without_a_node_is_told_of_once_and_after_some_time() {
        let (_directory, mut parts, now) = parts();
        for node in ["a", "b", "c", "d", "e", "f", "g"] {
            parts.pipe.write_all(format!("+{node}\n").as_bytes()).unwrap();
        }
        parts.pipe.write_all(b"-b\n").unwrap();
        parts.hear(now);
        assert_eq!(parts.due_line(now), None);
        let due = parts.due().unwrap();
        let line = parts.due_line(due).unwrap();
        assert!(
            line.contains("ended on b 10 s ago, and waits for a, c, d, e and 2 others:"),
            "{line}"
        );
        parts.pipe.write_all(b"-c\n").unwrap();
        parts.hear(due);
        assert_eq!(parts.due(), None);
    }

    #[test]
    fn a_node_with_two_parts_has_ended_when_both_have() {
        let (_directory, mut parts, now) = parts();
        parts.pipe.write_all(b"+a\n+a\n-a\n").unwrap();
        parts.hear(now);
        assert_eq!(parts.due(), None);
        parts.pipe.write_all(b"-a\n-a\n-nobody\n").unwrap();
        parts.hear(now);
        let due = parts.due().unwrap();
        assert!(parts.due_line(due).unwrap().contains("its launcher goes on"));
    }
}
