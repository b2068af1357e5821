//! What a gateway does with its site's batch system, in separate processes.
//!
//! ```text
//!   causeway run == gateways == holder -- sbatch, squeue, scancel
//!                                 |  \--- release, when the run is over: until nothing is left
//!                                 '------ hold, on the allocation's first node: ends it when nobody holds on
//! ```
//! `ask` finds the nodes of an allocation that a user has obtained; `allocations` is how a command gets them
//! from the site's gateway. `holder` gets an allocation for a run, `intent` is what the holder writes to the
//! disk before that, `spending` records what other sites have used, `commands` runs the batch system's
//! commands, and `estimate` asks when it could begin.

pub mod allocations;
pub mod ask;
pub mod commands;
mod estimate;
pub mod far;
pub mod hold;
pub mod holder;
pub mod intent;
mod listener;
pub mod release;
mod spending;

use nix::sys::signal::{SigSet, SigmaskHow, sigprocmask};

/// Unblocks signals: a gateway blocks them, since it reads them from a descriptor, and what it starts
/// inherits the mask.
pub fn unblock_signals() {
    let _ = sigprocmask(SigmaskHow::SIG_SETMASK, Some(&SigSet::empty()), None);
}
