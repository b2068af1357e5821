//! Runs one command such that nothing of it outlives the guard's order to end.
//!
//! `node-exec` guards a daemon at a node, `run` guards mpirun. Both give orders through a pipe: each byte is a
//! signal for the command, the end of the pipe means that the one who gave orders is gone.

use super::tree;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::signal::{SigSet, SigmaskHow, Signal, kill, sigprocmask};
use nix::sys::signalfd::{SfdFlags, SignalFd};
use nix::unistd::{Pid, read};
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::process::CommandExt;
use std::process::Command;

/// Makes this process the one that inherits orphans and takes SIGCHLD by reading. To be called before any thread
/// is started: threads take over the signal mask.
///
/// # Errors
/// Those of prctl, sigprocmask and signalfd.
pub fn become_guard() -> io::Result<SignalFd> {
    nix::sys::prctl::set_child_subreaper(true)?;
    let mut child = SigSet::empty();
    child.add(Signal::SIGCHLD);
    sigprocmask(SigmaskHow::SIG_BLOCK, Some(&child), None)?;
    Ok(SignalFd::with_flags(
        &child,
        SfdFlags::SFD_NONBLOCK | SfdFlags::SFD_CLOEXEC,
    )?)
}

/// Makes a guard's child an ordinary process: no signal is blocked, as shells start programs, and the kernel sends
/// it SIGTERM when the guard itself is killed.
pub fn prepare(command: &mut Command) {
    // SAFETY: both are system calls; nothing is allocated or locked between fork and exec.
    unsafe {
        command.pre_exec(|| {
            sigprocmask(SigmaskHow::SIG_SETMASK, Some(&SigSet::empty()), None)?;
            Ok(nix::sys::prctl::set_pdeathsig(Signal::SIGTERM)?)
        });
    }
}

/// Waits for the end of `main`, a child of this process, and carries out orders; then ends every descendant that
/// is left. Returns the command's status as shells count it; 143 if it left none.
///
/// # Errors
/// Those of poll.
pub fn supervise(main: Pid, children: &SignalFd, orders: &OwnedFd) -> io::Result<u8> {
    let mut status = None;
    while status.is_none() {
        let mut wait = [
            PollFd::new(children.as_fd(), PollFlags::POLLIN),
            PollFd::new(orders.as_fd(), PollFlags::POLLIN),
        ];
        match poll(&mut wait, PollTimeout::NONE) {
            Ok(_) | Err(nix::errno::Errno::EINTR) => {}
            Err(error) => return Err(error.into()),
        }
        let ordered = wait[1].any().unwrap_or(false);
        while let Ok(Some(_)) = children.read_signal() {}
        status = tree::reap(main).0;
        // Only while `main` is not reaped is its id certainly its own.
        if status.is_none() && ordered && !carry_out(main, orders) {
            break;
        }
    }
    let late = tree::end_all(main, children);
    Ok(status.or(late).unwrap_or(128 + Signal::SIGTERM as u8))
}

/// Passes signals on; false when there will be no more orders.
fn carry_out(main: Pid, orders: &OwnedFd) -> bool {
    let mut signals = [0; 64];
    match read(orders, &mut signals) {
        Ok(0) => false,
        Ok(count) => {
            for signal in &signals[..count] {
                if let Ok(signal) = Signal::try_from(i32::from(*signal)) {
                    let _ = kill(main, signal);
                }
            }
            true
        }
        Err(nix::errno::Errno::EINTR) => true,
        Err(_) => false,
    }
}
