//! Allocations of the sites' batch systems: `--alloc`, and the one that a run starts in. Their nodes replace
//! those that the sites list, for this run.

use super::error::RunError;
use super::sites::usable_site;
use crate::batch::allocations::{self, own};
use causeway_control::Sites;
use std::process::Command;

pub use crate::batch::allocations::Allocations;

/// Replaces the nodes that the sites list by those of these allocations. Adds the allocation in which this
/// run starts if the own site takes part and the user has named none.
///
/// # Errors
/// An allocation cannot be used, or its site takes no part.
pub fn apply(
    mut allocations: Allocations,
    known: &mut Sites,
    takes_part: impl Fn(&str) -> bool,
) -> Result<Allocations, RunError> {
    if let Some(site) = allocations.keys().find(|site| !takes_part(site)) {
        return Err(RunError::AllocElsewhere(site.clone()));
    }
    if let Some(id) = own(known).filter(|_| takes_part(&known.site)) {
        allocations.entry(known.site.clone()).or_insert(id);
    }
    for site in allocations.keys() {
        usable_site(known, site)?;
    }
    allocations::apply(&allocations, known)?;
    Ok(allocations)
}

/// Removes from a launcher's environment what the batch system has set in this shell: the launcher would
/// start its daemons in that allocation, and only there.
pub fn leave(command: &mut Command) {
    for (name, _) in std::env::vars_os().filter(|(name, _)| causeway_batch::is_of_a_process(name)) {
        command.env_remove(name);
    }
}
