//! Passes on that a job must end in a hurry: when an agent gets SIGTERM, it sends the node a frame.

use super::frame::Frame;
use super::tree::Haste;
use nix::sys::signal::{self, SigHandler, SigSet, Signal};
use nix::sys::socket::{MsgFlags, send};
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::net::UnixStream;
use std::sync::{Arc, Mutex, TryLockError};
use std::time::{Duration, Instant};

/// Ends this process when the launcher ends. It must be called before anything else.
pub fn follow_the_launcher() {
    // Launcher and agent share a terminal's process group with some launchers: only the launcher handles
    // Ctrl-C. SIGTERM ends this process, whatever the launcher has set for it.
    for (signal, handler) in [
        (Signal::SIGINT, SigHandler::SigIgn),
        (Signal::SIGTERM, SigHandler::SigDfl),
    ] {
        // SAFETY: neither handler is a function of this program.
        let _ = unsafe { signal::signal(signal, handler) };
    }
    let _ = only_sigterm().thread_unblock();
    // Not SIGKILL: the launcher may end before this process has passed on what it was told.
    let _ = nix::sys::prctl::set_pdeathsig(Signal::SIGTERM);
}

fn only_sigterm() -> SigSet {
    let mut signals = SigSet::empty();
    signals.add(Signal::SIGTERM);
    signals
}

/// Has SIGTERM end this process from now on through a thread that first tells the node to hurry. It must be
/// called while the process has one thread, because other threads inherit the signal mask.
///
/// # Errors
/// Those of pthread_sigmask and of starting a thread.
pub fn pass_hurry_on(writer: &Arc<Mutex<UnixStream>>) -> io::Result<()> {
    let wanted = only_sigterm();
    wanted.thread_block()?;
    let writer = Arc::clone(writer);
    let thread = std::thread::Builder::new();
    thread.spawn(move || {
        let haste = wait_for(&wanted);
        if haste == Haste::Hurry {
            say_so(&writer);
        }
        std::process::exit(128 + Signal::SIGTERM as i32);
    })?;
    Ok(())
}

fn wait_for(wanted: &SigSet) -> Haste {
    // SAFETY: all zeroes is a siginfo_t.
    let mut signal: libc::siginfo_t = unsafe { std::mem::zeroed() };
    loop {
        // SAFETY: the set and the buffer outlive the call.
        let taken = unsafe { libc::sigwaitinfo(wanted.as_ref(), &raw mut signal) };
        if taken == libc::SIGTERM {
            return Haste::told_by(&signal);
        }
    }
}

/// Writes the frame if the stream accepts it soon. A stream that is blocked by standard input is simply
/// closed, which also tells the node to end.
fn say_so(writer: &Mutex<UnixStream>) {
    let deadline = Instant::now() + SOON;
    let writer = loop {
        match writer.try_lock() {
            Ok(writer) => break writer,
            Err(TryLockError::Poisoned(poisoned)) => break poisoned.into_inner(),
            Err(TryLockError::WouldBlock) if Instant::now() >= deadline => return,
            Err(TryLockError::WouldBlock) => std::thread::sleep(Duration::from_millis(1)),
        }
    };
    let mut bytes = Vec::new();
    let flags = MsgFlags::MSG_DONTWAIT | MsgFlags::MSG_NOSIGNAL;
    // In any case, the stream ends next.
    let _ = Frame::Hurry.write(&mut bytes);
    let _ = send(writer.as_raw_fd(), &bytes, flags);
}

/// How long to wait for the writer: another thread writes for microseconds, unless the stream is blocked.
const SOON: Duration = Duration::from_millis(50);
