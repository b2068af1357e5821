//! Passes on that a job ends in a hurry: when an agent gets SIGTERM, it tells the node by a frame.

use super::frame::Frame;
use super::tree::Haste;
use nix::sys::signal::{self, SigHandler, SigSet, Signal};
use nix::sys::socket::{MsgFlags, send};
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::net::UnixStream;
use std::sync::{Arc, Mutex, TryLockError};
use std::time::{Duration, Instant};

/// Ends this process when the launcher ends. It must be called first.
pub fn follow_the_launcher() {
    // Launcher and agent share a terminal's process group with some launchers: Ctrl-C is the launcher's to
    // handle. SIGTERM ends this process, whatever the launcher does with its own.
    for (signal, handler) in [
        (Signal::SIGINT, SigHandler::SigIgn),
        (Signal::SIGTERM, SigHandler::SigDfl),
    ] {
        // SAFETY: neither installs a function.
        let _ = unsafe { signal::signal(signal, handler) };
    }
    let _ = only_sigterm().thread_unblock();
    // Not SIGKILL: the launcher may be gone before this process has passed on what it was told before.
    let _ = nix::sys::prctl::set_pdeathsig(Signal::SIGTERM);
}

fn only_sigterm() -> SigSet {
    let mut signals = SigSet::empty();
    signals.add(Signal::SIGTERM);
    signals
}

/// From now on SIGTERM ends this process by way of a thread, which first tells the node to hurry. It
/// must be called while the process has one thread, because other threads inherit the signal mask.
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
        // SAFETY: the set and the place live for as long as the call.
        let taken = unsafe { libc::sigwaitinfo(wanted.as_ref(), &raw mut signal) };
        if taken == libc::SIGTERM {
            return Haste::told_by(&signal);
        }
    }
}

/// Writes the frame if the stream takes it soon. A stream that standard input blocks ends by itself, and that
/// tells the node, too.
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
    // The end of the stream follows in any case.
    let _ = Frame::Hurry.write(&mut bytes);
    let _ = send(writer.as_raw_fd(), &bytes, flags);
}

/// Another thread that writes is done in microseconds, unless the stream is blocked.
const SOON: Duration = Duration::from_millis(50);
