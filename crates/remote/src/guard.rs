//! Runs one command in such a way that nothing of it outlives the order to end, however that order comes.
//!
//! ```text
//!   owner (agent's far end, or run) --orders--> guard (inherits orphans) -- command -- its processes
//!                                   <--report--
//! ```
//! Each byte of the orders is a signal for the command (with [`TO_GROUP`], for its process group), or
//! [`HURRY`]; the end of the orders is the order to end everything. It takes two processes, because one that
//! is killed with SIGKILL can end nobody: when the owner is killed, the guard sees the end of the orders, and
//! when the guard is killed, the owner inherits everything.

use super::shimless::Watch;
use super::tree::{self, Haste};
use causeway_host::processes;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::signal::{SigSet, SigmaskHow, Signal, kill, killpg, sigprocmask};
use nix::sys::signalfd::{SfdFlags, SignalFd};
use nix::unistd::{ForkResult, Pid, fork, pipe2, read};
use std::fs::File;
use std::io::{self, Read, Write};
use std::os::fd::{AsFd, OwnedFd, RawFd};
use std::process::Command;
use std::time::{Duration, Instant};

/// The order by which the command's end becomes [`Haste::Hurry`]. No signal has this number.
pub const HURRY: u8 = 0;

/// The bit that, added to a signal, sends it to the command's process group, which the command must lead. No
/// signal has this bit.
pub const TO_GROUP: u8 = 0x80;

/// A command under its guard.
pub struct Guarded {
    /// The pipe that becomes readable when the command has ended, or the guard was killed.
    pub report: File,
    pid: Pid,
    children: SignalFd,
}

/// How a guarded command ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Outcome {
    /// The command ended with this status, as shells count it.
    Status(u8),
    /// The command did not start, for this reason.
    NotStarted(String),
}

impl Guarded {
    /// Starts the command under a guard; returns it and the pipe for the orders. `not_for_guard` are
    /// descriptors that must not stay open in the guard; `last` is what the guard does last.
    ///
    /// # Errors
    /// Those of pipe, fork and of becoming a guard. It must be called while the process has one thread.
    pub fn start(
        command: Command,
        not_for_guard: &[RawFd],
        last: impl FnOnce(),
    ) -> io::Result<(Guarded, File)> {
        let children = become_guard()?;
        let (orders, order) = pipe2(nix::fcntl::OFlag::O_CLOEXEC)?;
        let (report, reporter) = pipe2(nix::fcntl::OFlag::O_CLOEXEC)?;
        // SAFETY: this process has one thread, so the child may allocate and lock like any other.
        match unsafe { fork() }? {
            ForkResult::Child => {
                for descriptor in not_for_guard {
                    // SAFETY: the descriptor's owner is never dropped in this process, which ends with _exit.
                    unsafe { libc::close(*descriptor) };
                }
                drop((order, report, children));
                guard_main(command, &orders, reporter);
                last();
                // SAFETY: _exit ends this process; running destructors and exit handlers is for the owner's
                // process.
                unsafe { libc::_exit(0) }
            }
            ForkResult::Parent { child: pid } => Ok((
                Guarded {
                    report: report.into(),
                    pid,
                    children,
                },
                order.into(),
            )),
        }
    }

    /// Waits for the command's end, and ends what a killed guard has left.
    pub fn outcome(mut self) -> Outcome {
        let mut report = Vec::new();
        let _ = self.report.read_to_end(&mut report);
        tree::end_all(self.pid, &self.children, Haste::Usual);
        match &report[..] {
            [0, status, ..] => Outcome::Status(*status),
            [1, reason @ ..] => Outcome::NotStarted(String::from_utf8_lossy(reason).into_owned()),
            _ => Outcome::Status(128 + Signal::SIGKILL as u8),
        }
    }
}

/// Runs the guard, and writes the report: 0 and the status, or 1 and a reason.
fn guard_main(mut command: Command, orders: &OwnedFd, reporter: OwnedFd) {
    processes::prepare(&mut command);
    let run = || -> io::Result<u8> {
        let children = become_guard()?;
        let child = command.spawn()?;
        let watch = Watch::over(&command, Instant::now());
        // The command object has the command's ends of pipes, which must close when the command closes them.
        drop(command);
        supervise(Pid::from_raw(child.id() as i32), &children, orders, watch)
    };
    let report = { run }();
    let report = report.map_or_else(
        |error| [&[1], error.to_string().as_bytes()].concat(),
        |status| vec![0, status],
    );
    // If nobody reads the report, nobody is left to be told.
    let _ = File::from(reporter).write_all(&report);
}

/// Makes this process inherit orphans, and read SIGCHLD from a descriptor. It must be called before any
/// thread is started: threads inherit the signal mask.
///
/// # Errors
/// Those of prctl, sigprocmask and signalfd.
fn become_guard() -> io::Result<SignalFd> {
    nix::sys::prctl::set_child_subreaper(true)?;
    let mut child = SigSet::empty();
    child.add(Signal::SIGCHLD);
    sigprocmask(SigmaskHow::SIG_BLOCK, Some(&child), None)?;
    Ok(SignalFd::with_flags(
        &child,
        SfdFlags::SFD_NONBLOCK | SfdFlags::SFD_CLOEXEC,
    )?)
}

/// Waits for the end of `main`, a child of this process, and carries out orders; then ends every descendant
/// that is left. Returns the command's status as shells count it, or 143 if it left none.
///
/// # Errors
/// Those of poll.
fn supervise(main: Pid, children: &SignalFd, orders: &OwnedFd, mut watch: Watch) -> io::Result<u8> {
    let mut status = None;
    let mut haste = Haste::Usual;
    while status.is_none() {
        let mut wait = [
            PollFd::new(children.as_fd(), PollFlags::POLLIN),
            PollFd::new(orders.as_fd(), PollFlags::POLLIN),
        ];
        let left = watch
            .due()
            .map(|due| due.saturating_duration_since(Instant::now()));
        // This is rounded up, or the last millisecond would be spent in a busy loop.
        let left = left.and_then(|left| PollTimeout::try_from(left + Duration::from_millis(1)).ok());
        match poll(&mut wait, left.unwrap_or(PollTimeout::NONE)) {
            Ok(_) | Err(nix::errno::Errno::EINTR) => {}
            Err(error) => return Err(error.into()),
        }
        let ordered = wait[1].any().unwrap_or(false);
        while let Ok(Some(_)) = children.read_signal() {}
        status = tree::reap(main).0;
        watch.look(Instant::now());
        // The id is certainly that of `main` only until `main` is reaped.
        if status.is_none() && ordered && !carry_out(main, orders, &mut haste) {
            break;
        }
    }
    let late = tree::end_all(main, children, haste);
    Ok(status.or(late).unwrap_or(128 + Signal::SIGTERM as u8))
}

/// Passes signals on; false if there will be no more orders.
fn carry_out(main: Pid, orders: &OwnedFd, haste: &mut Haste) -> bool {
    let mut signals = [0; 64];
    match read(orders, &mut signals) {
        Ok(0) => false,
        Ok(count) => {
            for signal in &signals[..count] {
                if *signal == HURRY {
                    *haste = Haste::Hurry;
                    continue;
                }
                match Signal::try_from(i32::from(*signal & !TO_GROUP)) {
                    Ok(number) if *signal & TO_GROUP != 0 => drop(killpg(main, number)),
                    Ok(number) => drop(kill(main, number)),
                    Err(_) => {}
                }
            }
            true
        }
        Err(nix::errno::Errno::EINTR) => true,
        Err(_) => false,
    }
}
