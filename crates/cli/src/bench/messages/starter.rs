//! Starts the program that is counted, with the library that counts preloaded, and waits for its end.

use crate::bench::options::Counting;
use crate::failure::Failure;
use crate::preload::{MESSAGES_MPICH, MESSAGES_OPEN_MPI};
use crate::run::environment;
use crate::run::launcher::{Launcher, LauncherError, Mpi};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use signal_hook::consts::signal::SIGINT;
use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// Tells the library where to write.
const DIRECTORY: &str = "CAUSEWAY_MESSAGES";
const PRELOAD: &str = "LD_PRELOAD";

/// How often the program is looked at.
const POLL: Duration = Duration::from_millis(20);

/// What the command begins with.
pub struct Starter {
    program: OsString,
    /// A launcher that says whose it is. Others, such as srun, start programs of any MPI.
    pub mpi: Option<Mpi>,
}

impl Starter {
    pub fn of(word: &OsStr) -> Result<Starter, Failure> {
        let (program, mpi) = match Launcher::find(word) {
            Ok(launcher) => (launcher.path.into_os_string(), Some(launcher.mpi)),
            Err(LauncherError::Program(word)) => (word, None),
            Err(error) => return Err(Failure::usage(error)),
        };
        Ok(Starter { program, mpi })
    }

    fn is_open_mpi(&self) -> bool {
        self.mpi.is_some_and(Mpi::is_open_mpi)
    }

    /// The libraries that were built; each needs the headers of its interface. One hands on the calls of
    /// programs with another interface, and the one with the widest handles comes first.
    fn libraries(&self) -> Result<Vec<PathBuf>, Failure> {
        let names: &[&[&str]] = match self.mpi {
            Some(mpi) if mpi.is_open_mpi() => &[MESSAGES_OPEN_MPI],
            Some(_) => &[MESSAGES_MPICH],
            None => &[MESSAGES_OPEN_MPI, MESSAGES_MPICH],
        };
        let own = std::env::current_exe().map_err(Failure::new)?;
        let all: Vec<PathBuf> = names
            .concat()
            .iter()
            .map(|name| own.with_file_name(name))
            .collect();
        let found: Vec<PathBuf> = all.iter().filter(|path| path.is_file()).cloned().collect();
        match (found.is_empty(), all.last()) {
            (true, Some(path)) => Err(Failure::new(format_args!(
                "{} is not there: mpi/build.sh makes it where the headers of its MPI are installed",
                path.display()
            ))),
            _ => Ok(found),
        }
    }
}

/// Runs the program to its end, or to ours.
pub fn run(task: &Counting, starter: &Starter, out: &Path, stop: &AtomicBool) -> Result<ExitStatus, Failure> {
    let mut command = Command::new(&starter.program);
    // hydra and Slurm hand their environment on to all hosts, Open MPI what it is told to.
    if starter.is_open_mpi() {
        command.args(["-x", PRELOAD, "-x", DIRECTORY]);
    }
    let present = std::env::var_os(PRELOAD);
    let preload = environment::preload(&starter.libraries()?, present.as_deref(), &[]);
    command
        .args(&task.command[1..])
        .env(PRELOAD, preload)
        .env(DIRECTORY, out);
    // Ctrl-C at a terminal reaches the launcher, too. Without a terminal it is in a group of its own, so that
    // a signal for ours reaches it through us alone: a launcher that gets two leaves its ranks behind.
    let has_terminal = File::open("/dev/tty").is_ok();
    if !has_terminal {
        command.process_group(0);
    }
    let by_key = Arc::new(AtomicBool::new(false));
    signal_hook::flag::register(SIGINT, Arc::clone(&by_key)).map_err(Failure::new)?;
    let spawned = command.spawn();
    let failed = |error| Failure::new(format_args!("run {}: {error}", starter.program.display()));
    let mut child = spawned.map_err(|error: std::io::Error| failed(error))?;
    let mut told = false;
    loop {
        if let Some(status) = child.try_wait().map_err(Failure::new)? {
            return Ok(status);
        }
        let knows = told || (has_terminal && by_key.load(Ordering::Relaxed));
        if stop.load(Ordering::Relaxed) && !knows {
            told = true;
            let _ = kill(Pid::from_raw(child.id().cast_signed()), Signal::SIGTERM);
        }
        std::thread::sleep(POLL);
    }
}
