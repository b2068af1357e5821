//! mpirun as a guarded child: signals and status pass through, and nothing of it is left in any case.
//!
//! ```text
//!   run (signals, the job's connection) --orders--> guard (inherits orphans) -- mpirun -- agents, local ranks
//!                                       <--report--
//! ```
//! Two processes, because one that is killed with SIGKILL can end nobody: the guard sees the end of the orders,
//! and `run` inherits everything if the guard is the one that is killed.

use super::directory;
use crate::remote::{guard, tree};
use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::signal::{SigSet, SigmaskHow, Signal, sigprocmask};
use nix::sys::signalfd::{SfdFlags, SignalFd};
use nix::unistd::{ForkResult, Pid, fork, getpgrp, pipe2, tcgetpgrp};
use std::fs::File;
use std::io::{self, Read, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

/// How long mpirun has after the second request to end before it is made to: Open MPI and hydra both take the
/// second Ctrl-C as the order to kill at once.
const PATIENCE: Duration = Duration::from_secs(5);

const PASSED_ON: &[Signal] = &[
    Signal::SIGINT,
    Signal::SIGTERM,
    Signal::SIGHUP,
    Signal::SIGQUIT,
    Signal::SIGUSR1,
    Signal::SIGUSR2,
    Signal::SIGTSTP,
    Signal::SIGCONT,
];

const ENDING: &[Signal] = &[Signal::SIGINT, Signal::SIGTERM, Signal::SIGHUP, Signal::SIGQUIT];

/// Why there is no status.
#[derive(Debug, thiserror::Error)]
pub enum ChildError {
    /// The launcher could not be started.
    #[error("run {0}: {1}")]
    Start(String, String),
    /// A system call on the way failed.
    #[error("guard {0}: {1}")]
    Guard(String, io::Error),
}

/// Runs the launcher to its end and returns its status as shells count it. The job lives as long as `job`;
/// `directory` is removed even if this process is killed.
///
/// # Errors
/// See [`ChildError`]. To be called while the process has one thread.
pub fn run(command: Command, job: UnixStream, directory: &Path) -> Result<u8, ChildError> {
    let name = command.get_program().to_string_lossy().into_owned();
    let fail = |error: io::Error| ChildError::Guard(name.clone(), error);
    let children = guard::become_guard().map_err(fail)?;
    let (orders, order) = pipe2(nix::fcntl::OFlag::O_CLOEXEC).map_err(|error| fail(error.into()))?;
    let (report, reporter) = pipe2(nix::fcntl::OFlag::O_CLOEXEC).map_err(|error| fail(error.into()))?;
    // Ctrl-C at a terminal reaches the whole foreground group, and mpirun must read from that terminal: it stays in
    // the group. Without a terminal it gets its own, so that a signal for our group reaches it through us only.
    let terminal = File::open("/dev/tty").ok();
    let mut signals = SigSet::empty();
    PASSED_ON.iter().for_each(|signal| signals.add(*signal));
    sigprocmask(SigmaskHow::SIG_BLOCK, Some(&signals), None).map_err(|error| fail(error.into()))?;
    // SAFETY: this process has one thread, so the child may allocate and lock like any other.
    match unsafe { fork() }.map_err(|error| fail(error.into()))? {
        ForkResult::Child => {
            drop((order, report, job, children));
            guard_main(command, &orders, reporter, terminal.is_none());
            directory::remove(directory);
            // SAFETY: _exit ends this process; destructors and exit handlers are the parent's to run.
            unsafe { libc::_exit(0) }
        }
        ForkResult::Parent { child } => {
            drop((orders, reporter));
            let mut parent = Parent {
                order: Some(order.into()),
                ending: 0,
                deadline: None,
                terminal,
            };
            let report = parent.wait(report, &signals, job).map_err(fail)?;
            drop(parent);
            // The guard has ended or been killed; what it did not end is ours now.
            tree::end_all(child, &children);
            outcome(&report, &name)
        }
    }
}

/// First byte 0: the status follows; 1: a reason follows; nothing: the guard was killed.
fn outcome(report: &[u8], name: &str) -> Result<u8, ChildError> {
    match report {
        [0, status, ..] => Ok(*status),
        [1, reason @ ..] => Err(ChildError::Start(
            name.to_owned(),
            String::from_utf8_lossy(reason).into_owned(),
        )),
        _ => Ok(128 + Signal::SIGKILL as u8),
    }
}

fn guard_main(mut command: Command, orders: &OwnedFd, reporter: OwnedFd, own_group: bool) {
    if own_group {
        command.process_group(0);
    }
    guard::prepare(&mut command);
    let run = || -> io::Result<u8> {
        let children = guard::become_guard()?;
        let child = command.spawn()?;
        guard::supervise(Pid::from_raw(child.id() as i32), &children, orders)
    };
    let report = { run }().map_or_else(
        |error| [&[1], error.to_string().as_bytes()].concat(),
        |status| vec![0, status],
    );
    // If nobody reads it, nobody is left to be told.
    let _ = File::from(reporter).write_all(&report);
}

/// The side that the user sees.
struct Parent {
    /// Signals for mpirun; closed, it is ended.
    order: Option<File>,
    /// Requests to end so far.
    ending: u32,
    deadline: Option<Instant>,
    terminal: Option<File>,
}

impl Parent {
    /// Passes signals on until the guard reports or is gone.
    fn wait(&mut self, report: OwnedFd, signals: &SigSet, job: UnixStream) -> io::Result<Vec<u8>> {
        let arriving = SignalFd::with_flags(signals, SfdFlags::SFD_NONBLOCK | SfdFlags::SFD_CLOEXEC)?;
        let mut gateway_lives = true;
        loop {
            let (reported, lost) = {
                let mut wait = vec![
                    PollFd::new(report.as_fd(), PollFlags::POLLIN),
                    PollFd::new(arriving.as_fd(), PollFlags::POLLIN),
                ];
                if gateway_lives {
                    wait.push(PollFd::new(job.as_fd(), PollFlags::POLLIN));
                }
                match poll(&mut wait, self.timeout()) {
                    Ok(_) | Err(Errno::EINTR) => {}
                    Err(error) => return Err(error.into()),
                }
                let any = |at: usize| wait.get(at).and_then(PollFd::any).unwrap_or(false);
                (any(0), any(2))
            };
            while let Ok(Some(signal)) = arriving.read_signal() {
                self.on_signal(signal.ssi_signo as i32, signal.ssi_code);
            }
            if reported {
                let mut text = Vec::new();
                File::from(report).read_to_end(&mut text)?;
                return Ok(text);
            }
            if lost {
                gateway_lives = false;
                eprintln!("causeway: the gateway of this site ended, and with it the job");
                self.order = None;
            }
            if self.deadline.is_some_and(|deadline| Instant::now() >= deadline) {
                self.order = None;
                self.deadline = None;
            }
        }
    }

    fn timeout(&self) -> PollTimeout {
        let Some(deadline) = self.deadline else {
            return PollTimeout::NONE;
        };
        let left = deadline.saturating_duration_since(Instant::now()) + Duration::from_millis(1);
        PollTimeout::try_from(left).unwrap_or(PollTimeout::MAX)
    }

    fn on_signal(&mut self, number: i32, code: i32) {
        let Ok(signal) = Signal::try_from(number) else {
            return;
        };
        // What the terminal sends, it has sent to mpirun as well.
        let came_to_all = code == libc::SI_KERNEL && self.in_foreground();
        if !came_to_all && let Some(order) = &mut self.order {
            let _ = order.write_all(&[number as u8]);
        }
        if ENDING.contains(&signal) {
            self.ending += 1;
            match self.ending {
                1 => {}
                2 => self.deadline = Some(Instant::now() + PATIENCE),
                _ => self.order = None,
            }
        }
        if signal == Signal::SIGTSTP {
            // Stopped like any job of the shell; the shell's SIGCONT goes on to mpirun when we run again.
            let _ = nix::sys::signal::raise(Signal::SIGSTOP);
        }
    }

    fn in_foreground(&self) -> bool {
        self.terminal
            .as_ref()
            .is_some_and(|terminal| tcgetpgrp(terminal) == Ok(getpgrp()))
    }
}
