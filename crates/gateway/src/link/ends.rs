//! How workers have ended that had not been told to.

use crate::sys::process::Ended;
use nix::unistd::Pid;
use serde::{Deserialize, Serialize};

/// The end of one worker.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct End {
    /// When it happened, in seconds since 1970.
    pub(crate) at: u64,
    process: i32,
    code: i32,
    status: i32,
}

impl End {
    pub(crate) fn new(at: u64, ended: Ended) -> End {
        End {
            at,
            process: ended.process.as_raw(),
            code: ended.code,
            status: ended.status,
        }
    }

    /// The process, and how it ended.
    pub(crate) fn ended(self) -> Ended {
        Ended {
            process: Pid::from_raw(self.process),
            code: self.code,
            status: self.status,
        }
    }
}

/// All ends of a gateway's workers, across hand-overs.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Ends {
    pub(crate) count: u64,
    pub(crate) last: Option<End>,
}
