//! What a gateway does with its site's batch system, in processes of its own.
//!
//! ```text
//!   causeway run == gateways == holder -- sbatch, squeue, scancel
//!                                 |  \--- release, when the run is over: until nothing is left
//!                                 '------ hold, on the allocation's first node: ends it when nobody holds on
//! ```
//! `ask` finds the nodes of an allocation that a user has made; `allocations` is how a command gets them from
//! the site's gateway. `holder` gets one for a run, `intent` is what it writes down first, `spending` keeps
//! what other sites have taken, `commands` runs the batch system's commands,
//! `estimate` asks when it could begin.

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

/// Unblocks signals: a gateway blocks them, since it reads them, and what it starts inherits that.
pub fn unblock_signals() {
    let _ = sigprocmask(SigmaskHow::SIG_SETMASK, Some(&SigSet::empty()), None);
}
