//! A process that starts another on a node of this site.

use causeway_wire::Token;
use nix::sys::signal::{Signal, kill};
use nix::sys::wait::{WaitPidFlag, WaitStatus, waitpid};
use nix::unistd::Pid;
use serde::{Deserialize, Serialize};
use std::time::{Duration, Instant};

pub(crate) struct Starter {
    /// A child until it has been collected, so that nobody else gets its number.
    pub(crate) process: Pid,
    pub(crate) token: Token,
    /// Its job is over; when to kill it.
    pub(crate) doomed: Option<Instant>,
}

impl Starter {
    /// What travels of it.
    pub(crate) fn keep(&self, now: Instant) -> KeptStarter {
        KeptStarter {
            process: self.process.as_raw(),
            token: self.token.0,
            doomed: self.doomed.map(|doomed| doomed.saturating_duration_since(now)),
        }
    }

    /// Collects it if it has ended.
    pub(super) fn is_running(&self) -> bool {
        waitpid(self.process, Some(WaitPidFlag::WNOHANG)) == Ok(WaitStatus::StillAlive)
    }
}

/// However the gateway ends, what it started ends before it.
impl Drop for Starter {
    fn drop(&mut self) {
        if self.is_running() {
            let _ = kill(self.process, Signal::SIGKILL);
            let _ = waitpid(self.process, None);
        }
    }
}

#[derive(Serialize, Deserialize)]
pub(crate) struct KeptStarter {
    pub(crate) process: i32,
    pub(crate) token: [u8; 16],
    /// How long until it is killed.
    pub(crate) doomed: Option<Duration>,
}
