//! Starts the program that is counted, with the library that counts preloaded, and waits for its end.

use crate::bench::options::Counting;
use crate::failure::Failure;
use crate::preload::{MESSAGES_MPICH, MESSAGES_OPEN_MPI, preload};
use crate::run::launcher::{Launcher, LauncherError, Mpi};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// Tells the library where to write.
const DIRECTORY: &str = "CAUSEWAY_MESSAGES";
const PRELOAD: &str = "LD_PRELOAD";

/// How often the program is looked at.
const POLL: Duration = Duration::from_millis(20);

/// Within this time a launcher ends that a terminal's signal has reached.
const BY_ITSELF: Duration = Duration::from_secs(5);

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
    // A tool of the user's that looks at MPI calls comes first, and hands them on.
    let present = std::env::var_os(PRELOAD);
    let preload = preload(&[], present.as_deref(), &starter.libraries()?);
    command
        .args(&task.command[1..])
        .env(PRELOAD, preload)
        .env(DIRECTORY, out);
    // A signal for the group that a terminal runs, such as Ctrl-C, reaches the launcher, too. Without a
    // terminal it is in a group of its own, and we hand the signal on. A launcher that gets two may leave its
    // ranks behind.
    let has_terminal = File::open("/dev/tty").is_ok();
    if !has_terminal {
        command.process_group(0);
    }
    let failed = |error| Failure::new(format_args!("run {}: {error}", starter.program.display()));
    let mut child = command.spawn().map_err(|error: std::io::Error| failed(error))?;
    let mut asked: Option<Instant> = None;
    let mut told = false;
    loop {
        if let Some(status) = child.try_wait().map_err(Failure::new)? {
            return Ok(status);
        }
        if stop.load(Ordering::Relaxed) && !told {
            let since = asked.get_or_insert_with(Instant::now).elapsed();
            if !has_terminal || since >= BY_ITSELF {
                told = true;
                let _ = kill(Pid::from_raw(child.id().cast_signed()), Signal::SIGTERM);
            }
        }
        std::thread::sleep(POLL);
    }
}
