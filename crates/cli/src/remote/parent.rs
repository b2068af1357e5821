//! Ends this process when the gateway that started it ends.
//!
//! The kernel's own order for that, PR_SET_PDEATHSIG, does not do: it comes with the end of the thread that
//! started the process, and a gateway that is handed to another program loses all threads but one and lives
//! on.

use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::signal::{Signal, kill};
use nix::unistd::{Pid, getpid, getppid};
use std::io;
use std::os::fd::{AsFd, FromRawFd, OwnedFd, RawFd};
use std::time::Duration;

/// How often a kernel without pidfd_open (before Linux 5.3) is asked.
const LOOK_EVERY: Duration = Duration::from_secs(1);

/// Has the kernel send SIGTERM to this process when its parent ends, up to an exec.
///
/// # Errors
/// Those of pidfd_open, but for a kernel that has none, and of starting a thread.
pub fn end_with_parent() -> io::Result<()> {
    on_end(|| {
        let _ = kill(getpid(), Signal::SIGTERM);
    })
}

/// Does something when this process's parent ends, up to an exec.
///
/// # Errors
/// Those of pidfd_open, but for a kernel that has none, and of starting a thread.
pub fn on_end(then: impl FnOnce() + Send + 'static) -> io::Result<()> {
    let parent = getppid();
    let watched = open(parent);
    if let Err(error) = &watched
        && error.raw_os_error() != Some(libc::ENOSYS)
    {
        return Err(io::Error::new(
            error.kind(),
            format!("watch process {parent}: {error}"),
        ));
    }
    let thread = std::thread::Builder::new().name("parent".to_owned());
    thread.spawn(move || {
        match watched {
            Ok(parent) => wait(&parent),
            // An orphan has another parent.
            Err(_) => {
                while getppid() == parent {
                    std::thread::sleep(LOOK_EVERY);
                }
            }
        }
        then();
    })?;
    Ok(())
}

fn open(process: Pid) -> io::Result<OwnedFd> {
    // SAFETY: the call takes two numbers and gives a descriptor or an error.
    let descriptor = unsafe { libc::syscall(libc::SYS_pidfd_open, process.as_raw(), 0) };
    let descriptor = RawFd::try_from(Errno::result(descriptor)?).map_err(io::Error::other)?;
    // SAFETY: the kernel has just given it to this process, and nobody else knows it.
    Ok(unsafe { OwnedFd::from_raw_fd(descriptor) })
}

/// Returns when the process has ended.
fn wait(process: &OwnedFd) {
    let mut wanted = [PollFd::new(process.as_fd(), PollFlags::POLLIN)];
    while let Ok(0) | Err(Errno::EINTR) = poll(&mut wanted, PollTimeout::NONE) {}
}
