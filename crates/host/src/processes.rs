//! What /proc says about processes.

use causeway_wire::TextError;
use nix::sys::prctl::set_pdeathsig;
use nix::sys::signal::{SigSet, SigmaskHow, Signal, sigprocmask};
use nix::unistd::Pid;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::Command;

/// What never changes about a process, except its parent. Its id may be reused: with its start time, it
/// identifies one process until the host's next boot.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Process {
    /// Its id.
    pub pid: Pid,
    /// The process that gets its exit status.
    pub parent: Pid,
    /// When it started, in ticks since the host's boot.
    started: u64,
}

impl Process {
    /// The process that has this id now.
    pub fn of(pid: Pid) -> Option<Process> {
        let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
        let (parent, started) = parent_and_start(&stat)?;
        Some(Process { pid, parent, started })
    }

    /// Whether it still runs. A process that has ended, but that nobody has waited for, does not.
    pub fn runs(self) -> bool {
        let stat = fs::read_to_string(format!("/proc/{}/stat", self.pid)).unwrap_or_default();
        let is_same = parent_and_start(&stat).is_some_and(|(_, started)| started == self.started);
        is_same && !stat.contains(") Z ")
    }
}

/// All processes that this one can see.
pub fn all() -> impl Iterator<Item = Process> {
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    let ids = entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    ids.filter_map(|id| Process::of(Pid::from_raw(id)))
}

/// The program that a gateway's process runs, if it is not this one, such as an earlier version; also `None`
/// if that cannot be found out.
pub fn other_causeway(process: u32) -> Option<PathBuf> {
    let (theirs, own) = (format!("/proc/{process}/exe"), "/proc/self/exe");
    let program = fs::read_link(&theirs).ok()?;
    // If the gateway is on another host, some process here may have its number.
    let is_causeway = program.file_name()?.to_string_lossy().starts_with("causeway");
    let (found, this) = (fs::metadata(&theirs).ok()?, fs::metadata(own).ok()?);
    if !is_causeway || (found.dev(), found.ino()) == (this.dev(), this.ino()) {
        return None;
    }
    // A copy counts as the same program.
    let is_same = found.len() == this.len() && fs::read(&theirs).ok()? == fs::read(own).ok()?;
    (!is_same).then_some(program)
}

/// Fields of `/proc/PID/stat`; the name before them may itself contain blanks and parentheses.
fn parent_and_start(stat: &str) -> Option<(Pid, u64)> {
    let mut fields = stat.rsplit_once(')')?.1.split_whitespace();
    let parent = fields.nth(1)?.parse().ok()?;
    let started = fields.nth(17)?.parse().ok()?;
    Some((Pid::from_raw(parent), started))
}

/// Leaves the terminal's session, as requested by the command that started this one in the background.
///
/// # Errors
/// This process already leads a group of processes.
pub fn leave_session() -> Result<(), TextError> {
    let left = nix::unistd::setsid();
    left.map(drop)
        .map_err(|error| format!("leave the terminal's session: {error}").into())
}

/// Makes a child an ordinary process: no signal is blocked, as when a shell starts it, and the kernel sends
/// it SIGTERM when this process is killed.
pub fn prepare(command: &mut Command) {
    // SAFETY: both are system calls; nothing is allocated or locked between fork and exec.
    unsafe {
        command.pre_exec(|| {
            sigprocmask(SigmaskHow::SIG_SETMASK, Some(&SigSet::empty()), None)?;
            Ok(set_pdeathsig(Signal::SIGTERM)?)
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn another_program_of_causeways_name_is_told_from_this_one_and_from_others() {
        let directory = tempfile::tempdir().unwrap();
        let runs = |name: &str, from: &str| {
            let program = directory.path().join(name);
            // Through another process, because a child of another thread of this one could have the copy open
            // for writing.
            let mut copy = std::process::Command::new("cp");
            assert!(copy.arg(from).arg(&program).status().unwrap().success());
            let mut child = std::process::Command::new(&program).arg("60").spawn().unwrap();
            let other = other_causeway(child.id());
            child.kill().unwrap();
            child.wait().unwrap();
            (program, other)
        };
        let (program, other) = runs("causeway", "/bin/sleep");
        assert_eq!(other, Some(program));
        let (_, other) = runs("sleep", "/bin/sleep");
        assert_eq!(other, None);
        assert_eq!(other_causeway(std::process::id()), None);
    }

    #[test]
    fn a_process_is_known_by_its_id_and_its_start() {
        let line = "12 (a) b (c)) S 7 12 7 0 -1 4194304 1 0 0 0 0 0 0 0 20 0 1 0 4711 0 0";
        assert_eq!(parent_and_start(line), Some((Pid::from_raw(7), 4711)));
        assert_eq!(parent_and_start("12 (a"), None);
        let own = Process::of(Pid::this()).unwrap();
        assert!(own.runs() && own.parent == Pid::parent());
        assert!(all().any(|process| process == own));
        let earlier = Process {
            started: own.started - 1,
            ..own
        };
        assert!(!earlier.runs(), "another one has its id");
        let mut child = std::process::Command::new("true").spawn().unwrap();
        let id = Pid::from_raw(child.id().cast_signed());
        let process = Process::of(id).unwrap();
        child.wait().unwrap();
        assert!(!process.runs());
    }
}
