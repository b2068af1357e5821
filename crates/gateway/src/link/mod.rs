//! What a gateway's keeper and its worker have in common.
//!
//! The keeper (`keeper`) is the process that a supervisor sees. The worker is its child and does the work.
//! They share descriptors and some memory, so that the next worker finds what a killed one has left. The
//! keeper prepares everything that a worker needs before making it; the worker reports to the keeper through
//! numbers in the memory.

pub(crate) mod ends;
mod memory;
mod orphans;

pub(crate) use memory::{Ending, Memory};
pub(crate) use orphans::{Orphans, tell};

use crate::sys::process;
use ends::{End, Ends};
use serde::{Deserialize, Serialize};
use std::io;
use std::os::fd::{BorrowedFd, OwnedFd, RawFd};
use std::path::Path;
use std::sync::Arc;

/// Listeners in the order of the configuration, which names the same addresses.
#[derive(Debug, Default, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct KeptListeners {
    pub(crate) lan: Vec<RawFd>,
    pub(crate) wan: Option<RawFd>,
    pub(crate) control: RawFd,
    pub(crate) metrics: Option<RawFd>,
    pub(crate) transparent: Option<RawFd>,
}

impl KeptListeners {
    /// Lists the descriptors' numbers.
    pub(crate) fn numbers(&self) -> impl Iterator<Item = RawFd> {
        let single = [self.wan, Some(self.control), self.metrics, self.transparent];
        self.lan.iter().copied().chain(single.into_iter().flatten())
    }
}

/// What another program that gets this gateway needs to know before it makes its first worker.
#[derive(Debug, Default, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct KeptKeeper {
    /// The files in which workers write things down.
    pub(crate) files: [RawFd; 3],
    pub(crate) listeners: KeptListeners,
    /// Descriptors that the gateway was started with and that it knows nothing about, such as the lock of
    /// flock(1).
    pub(crate) foreign: Vec<RawFd>,
    pub(crate) ends: Ends,
}

/// What a worker that has ended left to the next.
#[derive(Debug, Clone)]
pub(crate) struct Left {
    pub(crate) end: End,
    pub(crate) streams: u64,
    pub(crate) jobs: u64,
    /// Whether workers have ended so soon after each other that this one takes nothing up.
    pub(crate) begins_clean: bool,
}

/// The previous worker.
#[derive(Debug, Clone)]
pub(crate) enum Before {
    /// The worker has ended without being told to.
    Killed(Left),
    /// The worker has ended so that another program could continue, or this one if the other could not be
    /// executed.
    HandedOver,
}

impl Before {
    pub(crate) fn is_killed(&self) -> bool {
        matches!(self, Before::Killed(_))
    }
}

/// A worker's link to its keeper.
pub(crate) struct KeeperLink {
    memory: Arc<Memory>,
    pub(crate) orphans: Orphans,
    /// The keeper's process.
    pub(crate) process: u32,
    /// What the keeper itself has.
    kept: KeptKeeper,
    /// The previous worker, which the gateway takes from here once it can act on it.
    pub(crate) before: Option<Before>,
    /// Descriptors that the previous worker may have had.
    pub(crate) inherited: Vec<RawFd>,
    /// Why the program that was to get this gateway could not be executed.
    pub(crate) stayed: Option<String>,
}

impl KeeperLink {
    pub(crate) fn new(memory: Arc<Memory>, orphans: Orphans, process: u32, kept: KeptKeeper) -> KeeperLink {
        KeeperLink {
            memory,
            orphans,
            process,
            kept,
            before: None,
            inherited: Vec::new(),
            stayed: None,
        }
    }

    /// Lends what another program's keeper needs to know.
    pub(crate) fn kept(&self) -> &KeptKeeper {
        &self.kept
    }

    /// Opens the files in which workers write things down.
    ///
    /// # Errors
    /// Those of dup(2).
    pub(crate) fn files(&self) -> io::Result<[OwnedFd; 3]> {
        let [first, second, third] = self.kept.files.map(process::duplicate);
        Ok([first?, second?, third?])
    }

    /// Notes that this worker serves: if it ends now, the gateway does not count as one that cannot be
    /// started.
    pub(crate) fn serves(&self) {
        self.memory.set_serving(true);
    }

    /// Records how much would end with this worker if it ended now.
    pub(crate) fn count(&self, streams: usize, jobs: usize) {
        self.memory.count(streams as u64, jobs as u64);
    }

    /// Announces that this worker is about to end as it was told.
    pub(crate) fn announce_end(&self) {
        self.memory.announce(Ending::Stops);
    }

    /// Whether the keeper is gone.
    pub(crate) fn is_orphan(&self) -> bool {
        process::is_orphan(self.process)
    }

    /// Closes the listeners of the keeper, which is gone.
    pub(crate) fn close_listeners(&self) {
        self.kept.listeners.numbers().for_each(process::close);
    }

    /// Announces that this worker ends so that the keeper can execute another program, which finds in a file
    /// what its own keeper needs. False if the paths are too long.
    pub(crate) fn announce_hand_over(&self, program: &Path, config: &Path, keeper: BorrowedFd<'_>) -> bool {
        self.memory.ask_for_hand_over(program, config, keeper)
    }
}
