//! Starts the program whose messages are counted, with the counting library preloaded, and waits for its end.

use crate::running::wanted::Counting;
use causeway_host::failure::Failure;
use causeway_launchers::launcher::{Launcher, LauncherError};
use causeway_launchers::rewrite::{Libraries, with_libraries};
use causeway_mpis::Mpi;
use causeway_mpis::family::Family;
use causeway_mpis::preload::{SHIM, UCX};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// The variable that tells the library where to write.
const DIRECTORY: &str = "CAUSEWAY_MESSAGES";
const PRELOAD: &str = "LD_PRELOAD";

/// How often the program is polled.
const POLL: Duration = Duration::from_millis(20);

/// How long a launcher that a terminal's signal has reached may take to end.
const BY_ITSELF: Duration = Duration::from_secs(5);

/// What the command begins with.
pub struct Starter {
    program: OsString,
    /// The MPI of a launcher that names it. Others, such as srun, start programs of any MPI.
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

    /// The launcher with the user's words and the libraries. A tool of the user's that intercepts MPI calls
    /// comes first, and passes them on. The shim, which has no job here, keeps the libraries in what wrappers
    /// execute. Without the workaround for MPICH over UCX, that may wait in MPI_Finalize for ever.
    fn command(&self, words: &[OsString]) -> Result<Command, Failure> {
        let own = std::env::current_exe().map_err(Failure::new)?;
        let may_need_cure = self.mpi.is_none_or(|mpi| mpi.row().needs_ucx_cure);
        let first: Vec<PathBuf> = { [(SHIM, true), (UCX, may_need_cure)].into_iter() }
            .filter(|(_, wanted)| *wanted)
            .map(|(name, _)| own.with_file_name(name))
            .filter(|library| library.is_file())
            .collect();
        let libraries = Libraries {
            first: &first,
            last: &self.libraries()?,
        };
        let with_libraries = self.mpi.map(|mpi| with_libraries(mpi, words, &libraries));
        let mut command = Command::new(&self.program);
        // hydra and Slurm pass their environment on to all hosts.
        if self.mpi.is_some_and(|mpi| mpi.row().hands_on_named_variables) {
            command.args(["-x", DIRECTORY]);
            let is_set = with_libraries.as_deref().is_some_and(|with| with != words);
            command.args(["-x", PRELOAD].iter().filter(|_| !is_set));
        }
        command.args(with_libraries.as_deref().unwrap_or(words));
        command.env(PRELOAD, libraries.around(std::env::var_os(PRELOAD).as_deref()));
        Ok(command)
    }

    /// The libraries that were built; each needs the headers of its interface. One passes on the calls of
    /// programs with another interface, and the one with the widest handles comes first.
    fn libraries(&self) -> Result<Vec<PathBuf>, Failure> {
        let families = match self.mpi {
            Some(mpi) => vec![mpi.row().family],
            None => Family::ALL.to_vec(),
        };
        let own = std::env::current_exe().map_err(Failure::new)?;
        let names = families.into_iter().flat_map(Family::messages);
        let all: Vec<PathBuf> = names.map(|name| own.with_file_name(name)).collect();
        let found: Vec<PathBuf> = all.iter().filter(|path| path.is_file()).cloned().collect();
        match (found.is_empty(), all.last()) {
            (true, Some(path)) => Err(Failure::new(format_args!(
                "{} is missing; make build makes it, and the tar of a release has it",
                path.display()
            ))),
            _ => Ok(found),
        }
    }
}

/// Runs the program until it ends or we are told to end.
pub fn run(task: &Counting, starter: &Starter, out: &Path, stop: &AtomicBool) -> Result<ExitStatus, Failure> {
    let mut command = starter.command(&task.command[1..])?;
    command.env(DIRECTORY, out);
    // A signal for the terminal's foreground group, such as Ctrl-C, reaches the launcher, too. Without a
    // terminal the launcher is in a group of its own, and we pass the signal on. A launcher that gets two may
    // leave its ranks behind.
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
