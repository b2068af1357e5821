//! What a run over the sites of a grid does, from its description ([`meant::Run`]) to its end.
//!
//! ```text
//!   meant::Run -- placed: with a profile's placement (place, resources)
//!     script                          each launcher of a script is a run
//!     pipeline: reserve, start        which sites there are, their nodes (batch), the job
//!       one_mpi  or  own              a launcher over all sites, or a command of each site's
//!     pipeline: finish                files are fetched, nodes go back
//!   queue -- carry                    a submitted job, which a gateway has run
//! ```
//! The arguments of commands that only Causeway itself calls are defined here (`batch`, `queue::carry`,
//! `own::program`, `resources::node`), so that the same crate writes and reads them. What a user types is
//! read by the command.
#![deny(clippy::print_stdout, clippy::print_stderr)]

mod allocations;
mod arguments;
pub mod batch;
pub mod child;
mod coallocation;
pub mod collectives;
mod directory;
mod distribution;
pub mod error;
pub mod files;
pub mod gateways;
pub mod groups;
mod job;
pub mod leftovers;
pub mod meant;
pub mod mode;
mod one_mpi;
pub mod own;
mod patience;
pub mod phase;
mod pipeline;
pub mod place;
mod placed;
pub mod queue;
pub mod resources;
pub mod rules;
pub mod script;
pub mod sites;
mod telling;
pub mod tuning;
mod typed;
pub mod via;

use error::RunError;
use meant::{Run, Start};
use typed::Typed;

/// The status for whatever the user must correct before anything starts.
pub const WRONG_USE: u8 = 2;

/// The status if the sites' allocations did not begin at the same time, or a submitted job could not begin in
/// time.
pub const NO_COMMON_START: u8 = 3;

/// The status for `causeway carry` if a gateway could not be reached and nothing has begun: EX_TEMPFAIL of
/// sysexits.
pub const AWAY: u8 = 75;

/// The status if a site, its allocation or a node's part of the job was lost.
pub const LOST: u8 = 4;

/// Runs what the description says to its end, and returns the status.
///
/// # Errors
/// What keeps the run from beginning.
pub fn execute(run: Run) -> Result<u8, RunError> {
    let own = std::env::current_exe().map_err(RunError::Own)?;
    let via = via::open()?;
    if let Start::Script(command) = &run.start {
        return script::run(&run, command, &own);
    }
    via.iter().for_each(via::Via::warn_of_launcher);
    let run = placed::placed(run)?;
    match &run.start {
        Start::Launcher(command) => one_mpi::run(&run, command, &own),
        _ => own::run(&run, &own),
    }
}

/// Checks what can be checked without the gateway, so that mistakes show when a job is submitted.
///
/// # Errors
/// A profile, a rule, a launcher or its programs cannot be used.
pub fn check(run: &Run) -> Result<(), RunError> {
    if let Some(profile) = &run.profile {
        return placed::check(run, &profile.file);
    }
    let Start::Launcher(command) = &run.start else {
        return Ok(());
    };
    let own = std::env::current_exe().map_err(RunError::Own)?;
    rules::asked(&own, run.collectives.rules.as_deref())?;
    Typed::read(command, run.named_sites().is_some()).map(drop)
}

/// Whether the user has set a variable.
fn is_set(name: &str) -> bool {
    std::env::var_os(name).is_some()
}
