//! Keeps track of the nodes' parts of a job. Agents report them; `causeway run` listens, and tells the user
//! if the job goes on without one of them.
//!
//! hydra ends a job when a rank was killed, but goes on when one has exited, with any status. If all ranks of
//! a node exit without MPI_Finalize, those of other nodes wait for them for ever; on a single host hydra
//! kills the others itself, and the job ends. As a rank may also be done early, this module only warns.
//!
//! It also reports a site at which the launcher has started nothing: if a launcher gets its hosts from
//! elsewhere, all ranks run at one site.
//!
//! The agents find a named pipe beside the link through which hydra calls them. Open MPI calls its agent by
//! another name, so a variable names the pipe; and Open MPI watches its daemons itself.

use nix::sys::stat::Mode;
use nix::unistd::mkfifo;
use std::collections::{BTreeMap, BTreeSet};
use std::fs::{File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, RawFd};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// Name of the pipe in the run's directory.
const PIPE: &str = "parts";

/// How long the other parts may go on before the user is told: the parts of a job that ends in order all end
/// within a round trip or two.
const PATIENCE: Duration = Duration::from_secs(10);

/// How long a launcher may take to start something at each site. It asks all agents at once, when it begins.
const STARTS_WITHIN: Duration = Duration::from_secs(20);

/// The variable that names the pipe, for agents that are not called through the link beside it.
pub const PIPE_ENV: &str = "CAUSEWAY_PARTS";

/// Longest line that is accepted; a line of this length is still written atomically (pipe(7), PIPE_BUF).
const MAX_LINE_BYTES: usize = 1024;

/// What an agent reports about the part of the job on its node.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Part {
    /// The part is running.
    Runs,
    /// The part has ended.
    Ended,
    /// The part was running, and nobody knows how it ended.
    Lost,
}

impl Part {
    /// The first character of a report's line.
    fn sign(self) -> char {
        match self {
            Part::Runs => '+',
            Part::Ended => '-',
            Part::Lost => '!',
        }
    }
}

/// Reports the state of a part. There may be nobody who listens.
pub fn tell(node: &str, part: Part) {
    let line = format!("{}{node}\n", part.sign());
    let pipe = own_pipe().filter(|_| line.len() <= MAX_LINE_BYTES);
    let Some(pipe) = pipe else { return };
    let mut options = OpenOptions::new();
    options.write(true).custom_flags(libc::O_NONBLOCK);
    if let Ok(mut pipe) = options.open(pipe) {
        let _ = pipe.write_all(line.as_bytes());
    }
}

/// Returns the path of the pipe, which is beside the link through which hydra calls this process.
fn own_pipe() -> Option<PathBuf> {
    let beside = hydras_link().map(|link| link.with_file_name(PIPE));
    beside.or_else(|| std::env::var_os(PIPE_ENV).map(PathBuf::from))
}

/// Whether this process is an agent that hydra has called.
pub fn is_of_hydra() -> bool {
    hydras_link().is_some()
}

fn hydras_link() -> Option<PathBuf> {
    let called = PathBuf::from(std::env::args_os().next()?);
    let is_link = called.file_name()? == super::AGENT_NAME;
    is_link.then_some(called)
}

/// The path of the pipe in a run's directory.
pub fn pipe(directory: &Path) -> PathBuf {
    directory.join(PIPE)
}

/// What a launcher must start.
#[derive(Debug, Default)]
pub struct Expected {
    /// Other sites that have ranks, each with all names of its nodes that have them.
    pub sites: Vec<(String, Vec<String>)>,
    /// Whether the launcher leaves it to Causeway to notice that a node's part has ended.
    pub leaves_ends: bool,
}

/// What the agents have reported.
pub struct Parts {
    pipe: File,
    partial: Vec<u8>,
    expected: Expected,
    /// When the user is told about sites at which nothing was started.
    starts_due: Option<Instant>,
    /// How many parts are running on each node that has had one.
    running: BTreeMap<String, u32>,
    /// Nodes whose parts were lost.
    lost: BTreeSet<String>,
    /// When the user is told that a part has ended, unless the job ends before.
    due: Option<Instant>,
    said: bool,
}

impl Parts {
    /// Makes the pipe in a run's directory.
    ///
    /// # Errors
    /// Those of the file system.
    pub fn listen(directory: &Path, expected: Expected, now: Instant) -> io::Result<Parts> {
        let path = pipe(directory);
        mkfifo(&path, Mode::S_IRUSR | Mode::S_IWUSR)?;
        // It is open for writing, too, so that reading does not end with the last agent.
        let mut options = OpenOptions::new();
        options.read(true).write(true).custom_flags(libc::O_NONBLOCK);
        Ok(Parts {
            pipe: options.open(path)?,
            partial: Vec::new(),
            starts_due: (!expected.sites.is_empty()).then_some(now + STARTS_WITHIN),
            expected,
            running: BTreeMap::new(),
            lost: BTreeSet::new(),
            due: None,
            said: false,
        })
    }

    /// The pipe's file descriptor.
    pub fn descriptor(&self) -> RawFd {
        self.pipe.as_raw_fd()
    }

    /// Reads what was reported.
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
        let node_after = |part: Part| line.strip_prefix(part.sign());
        if let Some(node) = node_after(Part::Runs) {
            *self.running.entry(node.to_owned()).or_default() += 1;
        } else if let Some(node) = node_after(Part::Lost) {
            self.lost.insert(node.to_owned());
        } else if let Some(parts) = node_after(Part::Ended).and_then(|node| self.running.get_mut(node)) {
            *parts = parts.saturating_sub(1);
            if *parts == 0 && self.expected.leaves_ends && !self.said && self.due.is_none() {
                self.due = Some(now + PATIENCE);
            }
        }
    }

    /// Returns when to call [`Parts::due_line`].
    pub fn due(&self) -> Option<Instant> {
        self.due.into_iter().chain(self.starts_due).min()
    }

    /// The nodes whose parts of the job were lost.
    pub fn lost(&self) -> Vec<&str> {
        self.lost.iter().map(String::as_str).collect()
    }

    /// The sites at which nothing has been started.
    pub fn missing(&self) -> Vec<&str> {
        let sites = self.expected.sites.iter();
        let missing = sites.filter(|(_, nodes)| !nodes.iter().any(|node| self.running.contains_key(node)));
        missing.map(|(site, _)| site.as_str()).collect()
    }

    /// The line for the user, when it is due; each comes only once.
    pub fn due_line(&mut self, now: Instant) -> Option<String> {
        if self.starts_due.take_if(|due| now >= *due).is_some() && !self.missing().is_empty() {
            return Some(format!(
                "the launcher has started nothing at {} within {} s; {ELSEWHERE}",
                listed(&self.missing()),
                STARTS_WITHIN.as_secs()
            ));
        }
        self.due.take_if(|due| now >= *due)?;
        self.said = true;
        let nodes = |runs: bool| {
            let nodes = self.running.iter().filter(|(_, parts)| (**parts > 0) == runs);
            nodes.map(|(node, _)| node.as_str()).collect::<Vec<_>>()
        };
        let (ended, left) = (nodes(false), nodes(true));
        if left.is_empty() {
            return Some("the job's processes on all nodes have ended, but its launcher still runs".into());
        }
        Some(format!(
            "the job has ended on {} {} s ago, and waits for {}: ranks that exit without MPI_Finalize leave the others \
             waiting for them; Ctrl-C ends the job",
            listed(&ended),
            PATIENCE.as_secs(),
            listed(&left)
        ))
    }
}

/// The possible reasons, and what to do.
pub const ELSEWHERE: &str = "an option such as -ppn may keep it from using Causeway's list of hosts, or it takes its hosts from a configuration \
     file; 'causeway run --verbose' shows its options";

impl AsFd for Parts {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.pipe.as_fd()
    }
}

/// Most sites or nodes that a line names; a grid may have a thousand.
const MOST_NAMED: usize = 8;

/// Lists names for a line: the first ones, and how many more there are.
pub fn listed(names: &[&str]) -> String {
    match names.split_at_checked(MOST_NAMED) {
        Some((first, more)) if !more.is_empty() => format!("{} and {} more", first.join(", "), more.len()),
        _ => names.join(", "),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parts() -> (tempfile::TempDir, Parts, Instant) {
        let directory = tempfile::tempdir().unwrap();
        let now = Instant::now();
        let nancy = ["10.2.0.1", "nancy-1"].map(str::to_owned).to_vec();
        let expected = Expected {
            sites: vec![("nancy".to_owned(), nancy)],
            leaves_ends: true,
        };
        let parts = Parts::listen(directory.path(), expected, now).unwrap();
        (directory, parts, now)
    }

    #[test]
    fn a_job_that_goes_on_without_a_node_is_told_of_once_and_after_some_time() {
        let (_directory, mut parts, now) = parts();
        for node in ["a", "b", "c", "d", "e", "f", "g", "h", "i", "j"] {
            parts.pipe.write_all(format!("+{node}\n").as_bytes()).unwrap();
        }
        parts.pipe.write_all(b"-b\n").unwrap();
        parts.pipe.write_all(b"+10.2.0.1\n").unwrap();
        parts.hear(now);
        assert_eq!(parts.due_line(now), None);
        let due = parts.due().unwrap();
        let line = parts.due_line(due).unwrap();
        assert!(
            line.contains("ended on b 10 s ago, and waits for 10.2.0.1, a, c, d, e, f, g, h and 2 more:"),
            "{line}"
        );
        parts.pipe.write_all(b"-c\n").unwrap();
        parts.hear(due);
        assert_eq!(parts.due_line(due + STARTS_WITHIN), None);
        assert_eq!(parts.due(), None);
    }

    #[test]
    fn a_node_with_two_parts_has_ended_when_both_have() {
        let (_directory, mut parts, now) = parts();
        parts.starts_due = None;
        parts.pipe.write_all(b"+a\n+a\n-a\n").unwrap();
        parts.hear(now);
        assert_eq!(parts.due(), None);
        assert!(parts.lost().is_empty());
        parts.pipe.write_all(b"-a\n-a\n-nobody\n!b\n").unwrap();
        parts.hear(now);
        let due = parts.due().unwrap();
        assert!(parts.due_line(due).unwrap().contains("its launcher still runs"));
        assert_eq!(parts.lost(), ["b"]);
    }

    #[test]
    fn a_site_at_which_nothing_was_started_is_told_of_and_known() {
        let (_directory, mut parts, now) = parts();
        parts.pipe.write_all(b"+10.1.0.1\n").unwrap();
        parts.hear(now);
        assert_eq!(parts.missing(), ["nancy"]);
        let due = parts.due().unwrap();
        let line = parts.due_line(due).unwrap();
        assert!(
            line.contains("has started nothing at nancy within 20 s"),
            "{line}"
        );
        assert_eq!(parts.due(), None);
        parts.pipe.write_all(b"+nancy-1\n-nancy-1\n").unwrap();
        parts.hear(due);
        assert!(parts.missing().is_empty());
    }

    #[test]
    fn of_many_sites_a_line_names_the_first_and_how_many_more() {
        assert_eq!(listed(&["nancy", "lyon"]), "nancy, lyon");
        assert_eq!(listed(&["a"; 8]), "a, a, a, a, a, a, a, a");
        assert_eq!(listed(&["a"; 999]), "a, a, a, a, a, a, a, a and 991 more");
    }
}
