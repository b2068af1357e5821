//! Notices processes of a job that have an MPI and not the shim: they reach no other site, and wait for ever.
//!
//! The shim itself keeps wrappers from losing it, but not what loads no library (a statically linked wrapper)
//! or clears the environment after it has (a container). Only a look at the processes tells. It asks the
//! kernel which libraries they have loaded, a few times as a job begins and ever more rarely after that.

use super::tree::descendants;
use crate::preload::SHIM;
use nix::unistd::{Pid, gethostname};
use std::fs;
use std::io::Write;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

/// An MPI that cannot connect may end the process within a second of its start.
const FIRST: Duration = Duration::from_millis(250);

/// Between two looks, from a while after the job's begin on.
const LONGEST: Duration = Duration::from_secs(120);

/// How the names of MPI libraries begin.
const LIBRARIES: [&str; 3] = ["libmpi.so", "libmpich.so", "libmpi_abi.so"];

/// Variables by which launchers tell a process its rank.
const RANKS: [&str; 4] = ["OMPI_COMM_WORLD_RANK", "PMIX_RANK", "PMI_RANK", "SLURM_PROCID"];

/// See the module.
pub struct Watch {
    /// When to look next; never again once a process was told of.
    due: Option<Instant>,
    pause: Duration,
}

impl Watch {
    /// For what a command starts, if that is to have the shim.
    pub fn over(command: &Command, now: Instant) -> Watch {
        let mut variables = command.get_envs();
        let preloads = variables.any(|(name, value)| {
            name == "LD_PRELOAD" && value.is_some_and(|value| value.to_string_lossy().contains(SHIM))
        });
        Watch {
            due: preloads.then_some(now + FIRST),
            pause: FIRST,
        }
    }

    /// When [`Watch::look`] is to be called.
    pub fn due(&self) -> Option<Instant> {
        self.due
    }

    /// Looks, if it is time, and tells of the first such process on its own standard error, which goes where
    /// the user reads the program's.
    pub fn look(&mut self, now: Instant) {
        if self.due.is_none_or(|due| now < due) {
            return;
        }
        self.pause = (2 * self.pause).min(LONGEST);
        self.due = Some(now + self.pause);
        if let Some(pid) = descendants().into_iter().find(|pid| is_shimless(*pid)) {
            self.due = None;
            tell(Path::new(&format!("/proc/{pid}/fd/2")), &line(pid));
        }
    }
}

/// Writes a line to a program's standard error, unless that would wait: nobody may read the pipe any more,
/// and this process has others to end. A file is appended to, as the program may have written there.
fn tell(error: &Path, line: &str) {
    let mut options = fs::OpenOptions::new();
    let opened = options.append(true).custom_flags(libc::O_NONBLOCK).open(error);
    let _ = opened.and_then(|mut error| error.write_all(line.as_bytes()));
}

fn is_shimless(pid: Pid) -> bool {
    fs::read_to_string(format!("/proc/{pid}/maps")).is_ok_and(|maps| lacks_shim(&maps))
}

/// Whether a process with these mappings has an MPI and not the shim.
fn lacks_shim(maps: &str) -> bool {
    let has = |wanted: &dyn Fn(&str) -> bool| {
        maps.lines().any(|line| {
            let name = line.rsplit_once('/').map_or("", |(_, name)| name);
            wanted(name)
        })
    };
    has(&|name| LIBRARIES.iter().any(|library| name.starts_with(library)))
        && !has(&|name| name.starts_with(SHIM))
}

fn line(pid: Pid) -> String {
    let environment = fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
    let environment = String::from_utf8_lossy(&environment);
    let value = |name: &str| {
        let mut variables = environment
            .split('\0')
            .filter_map(|variable| variable.split_once('='));
        variables
            .find(|(other, _)| *other == name)
            .map(|(_, value)| value)
    };
    let rank = RANKS.iter().find_map(|name| value(name));
    let rank = rank.map_or("a process".to_owned(), |rank| format!("rank {rank}"));
    let program = fs::read_link(format!("/proc/{pid}/exe")).unwrap_or_default();
    let host = gethostname().unwrap_or_default();
    format!(
        "causeway: {rank} on {} ({}) uses an MPI without Causeway's shim and cannot reach other sites: what starts it drops LD_PRELOAD \
         (a statically linked wrapper, or a container that clears its environment); let it pass on LD_PRELOAD and CAUSEWAY_*\n",
        host.display(),
        Path::new(&program).display()
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_is_known_by_its_libraries() {
        let map = |path: &str| format!("7f00-7f01 r--p 00000000 08:01 42      {path}\n");
        let mpis = [
            "/usr/lib/x86_64-linux-gnu/libmpi.so.40.30.4",
            "/usr/lib/x86_64-linux-gnu/libmpich.so.12.1.8",
            "/home/u/mpi dir/lib/libmpi_abi.so.1",
        ];
        for mpi in mpis {
            assert!(lacks_shim(&map(mpi)), "{mpi}");
            assert!(!lacks_shim(&(map(mpi) + &map("/c/libcauseway_shim.so"))), "{mpi}");
        }
        assert!(!lacks_shim(&map("/usr/lib/libopen-rte.so.40")));
        assert!(!lacks_shim("7f00-7f01 rw-p 00000000 00:00 0 \n"));
    }

    #[test]
    fn a_pipe_that_nobody_reads_keeps_nobody_waiting_and_a_file_keeps_what_it_has() {
        let directory = tempfile::tempdir().unwrap();
        let (pipe, file) = (directory.path().join("pipe"), directory.path().join("file"));
        nix::unistd::mkfifo(&pipe, nix::sys::stat::Mode::S_IRWXU).unwrap();
        // Without a reader an open that waits never returns.
        tell(&pipe, "line\n");
        fs::write(&file, "before\n").unwrap();
        tell(&file, "line\n");
        assert_eq!(fs::read_to_string(&file).unwrap(), "before\nline\n");
    }

    #[test]
    fn only_what_is_to_have_the_shim_is_watched_and_ever_more_rarely() {
        let now = Instant::now();
        let mut command = Command::new("true");
        assert_eq!(Watch::over(&command, now).due(), None);
        command.env("LD_PRELOAD", "/c/libcauseway_shim.so:/t.so");
        let mut watch = Watch::over(&command, now);
        assert_eq!(watch.due(), Some(now + FIRST));
        watch.look(now + FIRST);
        assert_eq!(watch.due(), Some(now + FIRST + 2 * FIRST));
    }
}
