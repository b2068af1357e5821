//! Ends this process when the gateway that started it ends.
//!
//! The kernel's own mechanism, PR_SET_PDEATHSIG, does not suffice: it sends the signal when the thread that
//! started the process ends. That thread belongs to the gateway's worker, which may be replaced while the
//! gateway lives on; so the worker's keeper is watched instead.

use causeway_control::PARENTS_ENV;
use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::signal::{Signal, kill};
use nix::unistd::{Pid, getpid, getppid};
use std::io;
use std::os::fd::{AsFd, FromRawFd, OwnedFd, RawFd};
use std::time::Duration;

/// How often to look on a kernel without pidfd_open (before Linux 5.3).
const LOOK_EVERY: Duration = Duration::from_secs(1);

/// Sends this process SIGTERM when its parent ends; an exec ends the watch.
///
/// # Errors
/// Those of starting a thread and of pidfd_open, unless the kernel lacks it.
pub fn end_with_parent() -> io::Result<()> {
    on_end(|| {
        let _ = kill(getpid(), Signal::SIGTERM);
    })
}

/// Calls a function when this process's parent ends; an exec ends the watch.
///
/// # Errors
/// Those of starting a thread and of pidfd_open, unless the kernel lacks it.
pub fn on_end(then: impl FnOnce() + Send + 'static) -> io::Result<()> {
    let parents = Parents::of(std::env::var(PARENTS_ENV).ok().as_deref(), getppid());
    let watched = open(parents.watched);
    if let Err(error) = &watched
        && error.raw_os_error() != Some(libc::ENOSYS)
    {
        return Err(io::Error::new(
            error.kind(),
            format!("watch process {}: {error}", parents.watched),
        ));
    }
    let thread = std::thread::Builder::new().name("parent".to_owned());
    thread.spawn(move || {
        match watched {
            Ok(parent) => wait(&parent),
            // The parent of an orphan is another process.
            Err(_) => {
                while parents.has(getppid()) {
                    std::thread::sleep(LOOK_EVERY);
                }
            }
        }
        then();
    })?;
    Ok(())
}

/// The processes that may be this one's parent while the gateway that started it lives.
struct Parents {
    watched: Pid,
    /// The worker whose keeper is watched.
    worker: Option<Pid>,
}

impl Parents {
    /// Reads the variable that a gateway sets. It counts only if the parent is one of the two processes that
    /// it names, because the processes that this one starts inherit the variable.
    fn of(variable: Option<&str>, parent: Pid) -> Parents {
        let named = variable.and_then(|named| {
            let (keeper, worker) = named.split_once(':')?;
            Some((keeper.parse().ok()?, worker.parse().ok()?))
        });
        match named {
            Some((keeper, worker)) if [keeper, worker].contains(&parent.as_raw()) => Parents {
                watched: Pid::from_raw(keeper),
                worker: Some(Pid::from_raw(worker)),
            },
            _ => Parents {
                watched: parent,
                worker: None,
            },
        }
    }

    fn has(&self, parent: Pid) -> bool {
        parent == self.watched || Some(parent) == self.worker
    }
}

fn open(process: Pid) -> io::Result<OwnedFd> {
    // SAFETY: the call takes two numbers, and returns a descriptor or an error.
    let descriptor = unsafe { libc::syscall(libc::SYS_pidfd_open, process.as_raw(), 0) };
    let descriptor = RawFd::try_from(Errno::result(descriptor)?).map_err(io::Error::other)?;
    // SAFETY: the kernel has just opened it for this process, and nothing else owns it.
    Ok(unsafe { OwnedFd::from_raw_fd(descriptor) })
}

/// Waits until the process has ended.
fn wait(process: &OwnedFd) {
    let mut wanted = [PollFd::new(process.as_fd(), PollFlags::POLLIN)];
    while let Ok(0) | Err(Errno::EINTR) = poll(&mut wanted, PollTimeout::NONE) {}
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_child_of_the_worker_watches_the_keeper_and_what_it_starts_in_turn_watches_it() {
        let watched = |variable, parent| {
            let parents = Parents::of(variable, Pid::from_raw(parent));
            assert!(parents.has(Pid::from_raw(parent)) && !parents.has(Pid::from_raw(1)));
            parents.watched.as_raw()
        };
        let watched_by_gateway = |parent| watched(Some("100:101"), parent);
        assert_eq!([101, 100, 102].map(watched_by_gateway), [100, 100, 102]);
        assert_eq!(
            [None, Some("100"), Some("x:101")].map(|variable| watched(variable, 101)),
            [101; 3]
        );
    }
}
