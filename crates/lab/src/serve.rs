//! What a supervisor waits for while its lab runs: requests, signals, the end of a command.

use std::os::fd::{AsFd, BorrowedFd};
use std::process::ExitStatus;
use std::time::{Duration, Instant};

use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::signal::{SigSet, SigmaskHow, Signal};
use nix::sys::signalfd::{SfdFlags, SignalFd};

use crate::control::{self, Answer, Request};
use crate::enter::{NodeChild, Session};
use crate::error::LabError;
use crate::lab::Lab;

/// Why [`Lab::serve`] returned.
#[derive(Debug, PartialEq, Eq)]
pub enum Ended {
    /// The command ended.
    Child(ExitStatus),
    /// Somebody asked for the end of the lab.
    Down,
    /// This process received a signal that would have ended it; `libc::SIGINT`, SIGTERM, SIGHUP or SIGQUIT.
    Signal(i32),
    /// The time is up.
    Timeout,
}

/// Signals that end a process, blocked and to be read. Dropping it restores what was before.
pub(crate) struct Signals {
    reader: SignalFd,
    before: SigSet,
}

impl Signals {
    /// Blocks them in the calling thread and in those it starts from now on.
    pub(crate) fn block() -> Result<Signals, LabError> {
        let ending: SigSet = ENDING.into_iter().collect();
        let before = ending
            .thread_swap_mask(SigmaskHow::SIG_BLOCK)
            .map_err(LabError::kernel("block signals"))?;
        let reader = SignalFd::with_flags(&ending, SfdFlags::SFD_CLOEXEC | SfdFlags::SFD_NONBLOCK);
        Ok(Signals {
            reader: reader.map_err(LabError::kernel("read signals"))?,
            before,
        })
    }

    fn next(&self) -> Option<i32> {
        self.reader
            .read_signal()
            .ok()
            .flatten()
            .map(|signal| signal.ssi_signo as i32)
    }
}

impl Drop for Signals {
    fn drop(&mut self) {
        let _ = self.before.thread_set_mask();
    }
}

impl Lab {
    /// Serves requests until `child` ends, somebody asks for the lab's end, an ending signal arrives or `timeout` is
    /// over. Call it again after a signal or a timeout to go on.
    ///
    /// # Errors
    /// The kernel refuses to wait.
    pub fn serve(
        &mut self,
        child: Option<&mut NodeChild>,
        timeout: Option<Duration>,
    ) -> Result<Ended, LabError> {
        let deadline = timeout.map(|timeout| Instant::now() + timeout);
        let mut child = child;
        loop {
            if let Some(child) = child.as_deref_mut()
                && let Some(status) = child
                    .try_wait()
                    .map_err(LabError::kernel("wait for the command"))?
            {
                return Ok(Ended::Child(status));
            }
            if let Some(signal) = self.signals().next() {
                return Ok(Ended::Signal(signal));
            }
            let mut down = false;
            let _ = control::serve_one(self.listener(), |request| {
                down = request == Request::Down;
                self.answer(request)
            });
            if down {
                return Ok(Ended::Down);
            }
            if deadline.is_some_and(|deadline| Instant::now() >= deadline) {
                return Ok(Ended::Timeout);
            }
            let mut fds = vec![self.listener().as_fd(), self.signals().reader.as_fd()];
            fds.extend(child.as_deref().map(NodeChild::handle));
            wait(&fds, deadline)?;
        }
    }

    fn answer(&self, request: Request) -> Answer {
        match request {
            Request::Link {
                between: [a, b],
                change,
            } => match self.change_link(&a, &b, &change) {
                Ok(spec) => Answer::Link(spec),
                Err(error) => Answer::Refused(chain(&error)),
            },
            Request::Stats => Answer::Stats(self.link_stats()),
            Request::Down => Answer::Down,
        }
    }
}

/// Waits for a command and passes signals on to it, except those the terminal has already sent to it as well.
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
            let from_terminal = matches!(signal, libc::SIGINT | libc::SIGQUIT);
            if session == Session::Own || !from_terminal {
                // It may have ended meanwhile; the next turn sees that.
                let _ = child.signal(signal);
            }
        }
        wait(&[signals.reader.as_fd(), child.handle()], None)?;
    }
}

fn wait(fds: &[BorrowedFd<'_>], deadline: Option<Instant>) -> Result<(), LabError> {
    let mut events: Vec<PollFd<'_>> = fds.iter().map(|fd| PollFd::new(*fd, PollFlags::POLLIN)).collect();
    let timeout = match deadline {
        // Rounded up, or the last millisecond would be spent spinning.
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

fn chain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut next = error.source();
    while let Some(source) = next {
        text += &format!(": {source}");
        next = source.source();
    }
    text
}

const ENDING: [Signal; 4] = [Signal::SIGINT, Signal::SIGTERM, Signal::SIGHUP, Signal::SIGQUIT];
