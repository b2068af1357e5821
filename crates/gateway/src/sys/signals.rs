//! Signals as events of the loop.

use causeway_service::signals::heeded;
use mio::unix::SourceFd;
use mio::{Interest, Registry, Token};
use nix::sys::signal::Signal;
use nix::sys::signalfd::{SfdFlags, SignalFd};
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, RawFd};

pub(crate) struct Signals(SignalFd);

impl Signals {
    /// Takes the signals of the calling thread. Processes started later inherit them blocked (the standard
    /// library leaves the mask alone since rust-lang/rust#101077): each has to unblock them first of all, as
    /// start-node does.
    pub(crate) fn take() -> io::Result<Signals> {
        let mut set = heeded(&[Signal::SIGINT, Signal::SIGTERM, Signal::SIGHUP]);
        set.add(Signal::SIGCHLD);
        let mut blocked = set;
        // A limit on the size of files then makes the write fail, as a full disk does.
        blocked.add(Signal::SIGXFSZ);
        blocked.thread_block()?;
        Ok(Signals(SignalFd::with_flags(
            &set,
            SfdFlags::SFD_NONBLOCK | SfdFlags::SFD_CLOEXEC,
        )?))
    }

    pub(crate) fn register(&self, registry: &Registry, token: Token) -> io::Result<()> {
        registry.register(&mut SourceFd(&self.0.as_raw_fd()), token, Interest::READABLE)
    }

    pub(crate) fn as_raw_fd(&self) -> RawFd {
        self.0.as_raw_fd()
    }

    pub(crate) fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }

    /// The next signal that has arrived.
    pub(crate) fn next(&self) -> Option<Signal> {
        let info = self.0.read_signal().ok()??;
        Signal::try_from(info.ssi_signo as i32).ok()
    }
}
