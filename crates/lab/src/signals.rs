//! Signals that end a process, and what else is waited for.

use crate::enter::{NodeChild, Session};
use crate::error::LabError;
use crate::sys;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::signal::{SigSet, SigmaskHow, Signal};
use nix::sys::signalfd::{SfdFlags, SignalFd};
use std::os::fd::{AsFd, BorrowedFd};
use std::process::ExitStatus;
use std::time::Instant;

const ENDING: [Signal; 4] = [Signal::SIGINT, Signal::SIGTERM, Signal::SIGHUP, Signal::SIGQUIT];

/// The `si_code` of a signal that the kernel made, as for Ctrl-C at a terminal (signal.h).
const SI_KERNEL: i32 = 0x80;

/// A signal that would have ended this process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Arrived {
    /// `libc::SIGINT`, SIGTERM, SIGHUP or SIGQUIT.
    pub number: i32,
    /// Whether a terminal sent it to every process in the foreground: then a running command has it already.
    pub by_terminal: bool,
}

/// Signals that end a process, blocked and to be read. Dropping this restores the earlier state.
pub(crate) struct Signals {
    pub(crate) reader: SignalFd,
    before: SigSet,
}

impl Signals {
    /// Blocks them in the calling thread, and in threads that it starts from now on.
    pub(crate) fn block() -> Result<Signals, LabError> {
        // Under nohup, a lab outlives its terminal; if it were blocked, the signal would be read all the
        // same.
        let ignores_hang_ups = sys::is_ignored(Signal::SIGHUP);
        let heeded = |signal: &Signal| *signal != Signal::SIGHUP || !ignores_hang_ups;
        let ending: SigSet = ENDING.into_iter().filter(heeded).collect();
        let before = ending
            .thread_swap_mask(SigmaskHow::SIG_BLOCK)
            .map_err(LabError::kernel("block signals"))?;
        let reader = SignalFd::with_flags(&ending, SfdFlags::SFD_CLOEXEC | SfdFlags::SFD_NONBLOCK);
        Ok(Signals {
            reader: reader.map_err(LabError::kernel("read signals"))?,
            before,
        })
    }

    pub(crate) fn next(&self) -> Option<Arrived> {
        let signal = self.reader.read_signal().ok().flatten()?;
        Some(Arrived {
            number: signal.ssi_signo as i32,
            by_terminal: signal.ssi_code == SI_KERNEL,
        })
    }
}

impl Drop for Signals {
    fn drop(&mut self) {
        let _ = self.before.thread_set_mask();
    }
}

/// Waits for a command, and passes signals on to it, except those that the terminal has already sent to it.
pub(crate) fn wait_passing_signals(
    mut child: NodeChild,
    session: Session,
    signals: &Signals,
) -> Result<ExitStatus, LabError> {
    loop {
        if let Some(status) = child
            .try_wait()
            .map_err(LabError::kernel("wait for the command"))?
        {
            return Ok(status);
        }
        while let Some(signal) = signals.next() {
            if session == Session::Own || !signal.by_terminal {
                // The child may have ended meanwhile; the next turn sees that.
                let _ = child.signal(signal.number);
            }
        }
        wait(&[signals.reader.as_fd(), child.handle()], None)?;
    }
}

pub(crate) fn wait(fds: &[BorrowedFd<'_>], deadline: Option<Instant>) -> Result<(), LabError> {
    let mut events: Vec<PollFd<'_>> = fds.iter().map(|fd| PollFd::new(*fd, PollFlags::POLLIN)).collect();
    let timeout = match deadline {
        // Rounded up, because otherwise the last millisecond would be spent spinning.
        Some(deadline) => {
            let left = deadline.saturating_duration_since(Instant::now()).as_millis() + 1;
            PollTimeout::try_from(i32::try_from(left).unwrap_or(i32::MAX)).unwrap_or(PollTimeout::MAX)
        }
        None => PollTimeout::NONE,
    };
    match poll(&mut events, timeout) {
        Ok(_) | Err(nix::Error::EINTR) => Ok(()),
        Err(errno) => Err(LabError::kernel("wait for events")(errno)),
    }
}
