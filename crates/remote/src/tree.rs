//! The processes that descend from this one, daemons among them, and how to end them.
//!
//! A child subreaper inherits every orphan below it, so no process can escape by becoming a daemon. This
//! module knows no command and no protocol; the caller must be the subreaper and must have blocked SIGCHLD.

use causeway_host::processes::{self, Process};
use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::signal::{Signal, kill};
use nix::sys::signalfd::SignalFd;
use nix::sys::wait::{WaitPidFlag, WaitStatus, waitpid};
use nix::unistd::{Pid, getpid};
use std::collections::{HashMap, HashSet};
use std::os::fd::AsFd;
use std::process::Child;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// How much time descendants get between SIGTERM and SIGKILL.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Haste {
    /// Enough time to tidy up: mpirun removes its session directory, and hydra its proxies, in a few hundred
    /// milliseconds, after Open MPI's ranks have had their second.
    Usual,
    /// Little time: the launcher has already been asked to end, and its time is up. A process that does not
    /// end at once hangs, and a user who has pressed Ctrl-C waits for it.
    Hurry,
}

impl Haste {
    fn grace(self) -> Duration {
        match self {
            Haste::Usual => Duration::from_secs(2),
            Haste::Hurry => Duration::from_millis(500),
        }
    }

    /// Sends SIGTERM; in a hurry it carries a value by which an agent among the descendants knows that it
    /// must pass the hurry on.
    fn terminate(self, pid: Pid) {
        match self {
            Haste::Usual => drop(kill(pid, Signal::SIGTERM)),
            Haste::Hurry => {
                let value = libc::sigval {
                    sival_ptr: std::ptr::without_provenance_mut(HURRY_VALUE),
                };
                // SAFETY: all arguments are numbers; nobody uses the value as a pointer.
                unsafe { libc::sigqueue(pid.as_raw(), libc::SIGTERM, value) };
            }
        }
    }

    /// Returns the haste for which a SIGTERM asks.
    pub fn told_by(signal: &libc::siginfo_t) -> Haste {
        // SAFETY: a signal with this code carries a value.
        let told =
            signal.si_code == libc::SI_QUEUE && unsafe { signal.si_value() }.sival_ptr.addr() == HURRY_VALUE;
        if told { Haste::Hurry } else { Haste::Usual }
    }
}

/// A number that other programs are unlikely to send: "hurr" in ASCII.
const HURRY_VALUE: usize = 0x6875_7272;

/// How often to look at processes that are ending: the end of a grandchild raises no SIGCHLD here.
const LOOK_AGAIN: u16 = 20;

/// Reaps ended children; returns the status of `main` if it was among them, and whether none is left.
pub fn reap(main: Pid) -> (Option<u8>, bool) {
    let mut status = None;
    loop {
        match waitpid(None, Some(WaitPidFlag::WNOHANG)) {
            Ok(WaitStatus::StillAlive) => return (status, false),
            Ok(ended) => {
                if ended.pid() == Some(main) {
                    status = exit_status(ended).or(status);
                }
            }
            Err(Errno::EINTR) => {}
            Err(_) => return (status, true),
        }
    }
}

/// A status as shells count it.
fn exit_status(ended: WaitStatus) -> Option<u8> {
    match ended {
        WaitStatus::Exited(_, code) => Some(code as u8),
        WaitStatus::Signaled(_, signal, _) => Some(128 + signal as u8),
        _ => None,
    }
}

/// Children that this process still needs after the end of its command.
static SPARED: Mutex<Vec<Pid>> = Mutex::new(Vec::new());

fn spared() -> MutexGuard<'static, Vec<Pid>> {
    SPARED.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Keeps a child of this process from being ended with the command's processes: the caller ends it.
pub fn spare(child: &Child) {
    spared().push(Pid::from_raw(child.id().cast_signed()));
}

fn is_sparing() -> bool {
    !spared().is_empty()
}

/// The processes that were told to end.
#[derive(Debug, Default)]
struct Told {
    told: HashSet<Pid>,
    /// Processes that the told ones have started since, in order to tidy up: a shell runs rm when it gets
    /// SIGTERM.
    tidying: HashSet<Pid>,
}

impl Told {
    /// Returns which of the remaining processes must now be told, parents before their children.
    fn tell(&mut self, left: &[Descendant]) -> Vec<Pid> {
        let mut now = Vec::new();
        for Descendant { pid, parent } in left {
            if self.told.contains(pid) || self.tidying.contains(pid) {
                continue;
            }
            if self.told.contains(parent) || self.tidying.contains(parent) {
                self.tidying.insert(*pid);
            } else {
                now.push(*pid);
            }
        }
        self.told.extend(&now);
        now
    }
}

/// Ends every descendant that is not spared: sends SIGTERM, except to processes that others have started
/// because of it, and some time later SIGKILL to all, until none is left. Returns the status of `main` if it
/// has ended here.
pub fn end_all(main: Pid, children: &SignalFd, haste: Haste) -> Option<u8> {
    let deadline = Instant::now() + haste.grace();
    let mut told = Told::default();
    let mut status = None;
    loop {
        let (ended, none_left) = reap(main);
        status = ended.or(status);
        let left = descendants();
        if none_left || left.is_empty() && is_sparing() {
            return status;
        }
        if Instant::now() >= deadline {
            for late in left {
                let _ = kill(late.pid, Signal::SIGKILL);
            }
        } else {
            for pid in told.tell(&left) {
                haste.terminate(pid);
                // A stopped process handles SIGTERM only once it continues.
                let _ = kill(pid, Signal::SIGCONT);
            }
        }
        let mut wait = [PollFd::new(children.as_fd(), PollFlags::POLLIN)];
        let _ = poll(&mut wait, PollTimeout::from(LOOK_AGAIN));
        while let Ok(Some(_)) = children.read_signal() {}
    }
}

/// A process below this one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Descendant {
    /// Its id.
    pub pid: Pid,
    parent: Pid,
}

/// Lists every process below this one at this moment, except those that are spared and what is below them.
/// Parents come before their children.
pub fn descendants() -> Vec<Descendant> {
    let mut children: HashMap<i32, Vec<i32>> = HashMap::new();
    for Process { pid, parent, .. } in processes::all() {
        children.entry(parent.as_raw()).or_default().push(pid.as_raw());
    }
    let spared = spared().clone();
    let mut found = Vec::new();
    let mut open = vec![getpid().as_raw()];
    while let Some(parent) = open.pop() {
        let mut below = children.remove(&parent).unwrap_or_default();
        below.retain(|pid| !spared.contains(&Pid::from_raw(*pid)));
        found.extend(below.iter().map(|pid| Descendant {
            pid: Pid::from_raw(*pid),
            parent: Pid::from_raw(parent),
        }));
        open.extend(below);
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_are_told_to_end_once_but_not_what_they_start_then_to_tidy_up() {
        let descend = |pairs: &[(i32, i32)]| -> Vec<Descendant> {
            let pairs = pairs.iter().map(|(pid, parent)| Descendant {
                pid: Pid::from_raw(*pid),
                parent: Pid::from_raw(*parent),
            });
            pairs.collect()
        };
        let mut told = Told::default();
        let mut tell = |left: &[(i32, i32)]| -> Vec<i32> {
            told.tell(&descend(left)).into_iter().map(Pid::as_raw).collect()
        };
        let guard = 1;
        assert_eq!(tell(&[(2, guard), (3, 2), (4, 3)]), [2, 3, 4]);
        // A shell runs rm, which runs something in turn, and a process appears that none of the told ones has
        // started.
        assert_eq!(tell(&[(2, guard), (9, guard), (3, 2), (5, 2), (6, 5)]), [9]);
        // The shell has ended, and the guard inherits what the shell started.
        assert!(tell(&[(5, guard), (9, guard), (6, 5), (7, 6)]).is_empty());
    }
}
