//! A process that starts another one on a node of this site: while it is being started, and while it runs.

use crate::audit::Audit;
use crate::keys::LegKey;
use crate::sys::process::Ended;
use causeway_broker::clock::Clock;
use causeway_control::audit::{AuditEntry, AuditEvent};
use causeway_wire::Token;
use nix::errno::Errno;
use nix::sys::signal::{Signal, kill};
use nix::sys::wait::{WaitPidFlag, WaitStatus, waitpid};
use nix::unistd::Pid;
use serde::{Deserialize, Serialize};
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};

/// How long a starter may take to end by itself once its job is over, before it is killed.
pub(super) const GRACE: Duration = Duration::from_secs(5);

/// The name of a holder's node in the audit and the log.
pub(super) const HOLDER: &str = "(holds an allocation)";

/// The owner that waits for a process that is being started.
pub(super) enum Waiting {
    /// A stream of another site, given by its leg and the leg's generation, because it may end first.
    Stream(LegKey, u64),
    /// A command of this host, which has the other end.
    Command(UnixStream),
    /// Nobody: the process reports what it has done, as a command does.
    Nobody(Purpose),
}

/// The purpose of a process that nobody waits for.
pub(super) enum Purpose {
    /// To ask the batch system; see `allocations`.
    Look(u64),
    /// To have submitted jobs carried; see `carrying`.
    Carry,
}

/// Names the job and the site that a process is for, while it is being started and afterwards.
pub(super) struct Whose<'a> {
    pub(super) token: &'a Token,
    pub(super) site: &'a str,
    node: &'a str,
}

impl Whose<'_> {
    /// Whether it holds an allocation.
    pub(super) fn is_holder(&self) -> bool {
        self.node == HOLDER
    }
}

/// A process that is being started.
pub(super) struct Start {
    /// Token of its job.
    pub(super) token: Token,
    /// The site of its job.
    pub(super) site: String,
    /// The node, by the name that the remote shell knows.
    pub(super) node: String,
    /// The allocation of the site's batch system to which the node belongs, and the slots of its nodes.
    pub(super) allocation: Option<(String, Vec<u32>)>,
    pub(super) waiting: Waiting,
}

impl Start {
    /// Names the job and the site that it is for.
    pub(super) fn whose(&self) -> Whose<'_> {
        Whose {
            token: &self.token,
            site: &self.site,
            node: &self.node,
        }
    }
}

/// A process that runs.
pub(crate) struct Starter {
    /// The process number. It stays a child until it has been collected, so that no other process gets the
    /// number.
    pub(crate) process: Pid,
    /// Whether it is the keeper's child, because an earlier worker has started it.
    is_orphan: bool,
    pub(crate) token: Token,
    /// The site of its job.
    pub(crate) site: String,
    /// The node on which it starts the other process.
    pub(crate) node: String,
    /// When it began, in seconds since 1970.
    pub(crate) since: u64,
    /// When it will be killed, if its job is over.
    pub(crate) doomed: Option<Instant>,
}

impl Starter {
    /// Names the job and the site that it is for.
    pub(super) fn whose(&self) -> Whose<'_> {
        Whose {
            token: &self.token,
            site: &self.site,
            node: &self.node,
        }
    }

    /// A starter that has just been started.
    pub(super) fn new(process: Pid, start: &Start, doomed: Option<Instant>) -> Starter {
        Starter {
            process,
            is_orphan: false,
            token: start.token,
            site: start.site.clone(),
            node: start.node.clone(),
            since: Clock::system().now(),
            doomed,
        }
    }

    /// Takes over a starter of an earlier worker.
    pub(super) fn inherit(kept: KeptStarter, now: Instant) -> Starter {
        Starter {
            process: Pid::from_raw(kept.process),
            is_orphan: true,
            token: Token(kept.token),
            site: kept.site,
            node: kept.node,
            since: kept.since,
            doomed: kept.doomed.and_then(|left| now.checked_add(left)),
        }
    }

    /// Gathers what is handed over of it.
    pub(crate) fn keep(&self, now: Instant) -> KeptStarter {
        KeptStarter {
            process: self.process.as_raw(),
            token: self.token.0,
            site: self.site.clone(),
            node: self.node.clone(),
            since: self.since,
            doomed: self.doomed.map(|doomed| doomed.saturating_duration_since(now)),
        }
    }

    /// Its entry in the audit.
    pub(super) fn entry(&self, audit: &Audit, event: AuditEvent) -> AuditEntry {
        AuditEntry {
            site: self.site.clone(),
            job: self.token.hint(),
            node: self.node.clone(),
            pid: Some(self.process.as_raw().cast_unsigned()),
            ..audit.entry(event)
        }
    }

    /// Collects the process if it has ended, and returns how; `end_of_orphan` says it for those that the
    /// keeper collects.
    pub(super) fn poll_end(&self, mut end_of_orphan: impl FnMut(Pid) -> Option<Ended>) -> Option<String> {
        if self.is_orphan {
            let is_gone = kill(self.process, None) == Err(Errno::ESRCH);
            // The keeper reports an end before it collects the process.
            let Some(ended) = end_of_orphan(self.process) else {
                return is_gone.then(|| "unknown".to_owned());
            };
            let kind = if ended.code == libc::CLD_EXITED {
                "status"
            } else {
                "signal"
            };
            return Some(format!("{kind} {}", ended.status));
        }
        match waitpid(self.process, Some(WaitPidFlag::WNOHANG)) {
            Ok(WaitStatus::StillAlive) => None,
            Ok(WaitStatus::Exited(_, status)) => Some(format!("status {status}")),
            Ok(WaitStatus::Signaled(_, signal, _)) => Some(format!("signal {}", signal as i32)),
            other => Some(format!("{other:?}")),
        }
    }
}

/// However the gateway ends, the processes that it started end before it.
impl Drop for Starter {
    fn drop(&mut self) {
        // A process that was collected has no number any more.
        if self.process.as_raw() > 0 && self.poll_end(|_| None).is_none() {
            let _ = kill(self.process, Signal::SIGKILL);
            if !self.is_orphan {
                let _ = waitpid(self.process, None);
            }
        }
    }
}

#[derive(Serialize, Deserialize)]
pub(crate) struct KeptStarter {
    pub(crate) process: i32,
    pub(crate) token: [u8; 16],
    pub(crate) site: String,
    pub(crate) node: String,
    pub(crate) since: u64,
    /// The time left until it is killed.
    pub(crate) doomed: Option<Duration>,
}

/// A process that is killed when this value is dropped; `None` once it has been collected.
pub(super) struct Helper(Option<Pid>);

impl Helper {
    pub(super) fn of(process: Pid) -> Helper {
        Helper(Some(process))
    }

    pub(super) fn has_ended(&mut self) -> bool {
        let runs = self.0.is_some_and(|process| {
            matches!(
                waitpid(process, Some(WaitPidFlag::WNOHANG)),
                Ok(WaitStatus::StillAlive)
            )
        });
        if !runs {
            // The process's number may be another process's by now.
            self.0 = None;
        }
        !runs
    }
}

impl Drop for Helper {
    fn drop(&mut self) {
        if let (false, Some(process)) = (self.has_ended(), self.0) {
            let _ = kill(process, Signal::SIGKILL);
            let _ = waitpid(process, None);
        }
    }
}
