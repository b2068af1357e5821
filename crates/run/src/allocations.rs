//! Allocations of the sites' batch systems: those of `--alloc`, and the one in which a run starts. For this
//! run, their nodes replace those that the sites list.

use super::error::RunError;
use super::sites::usable_site;
use crate::batch::allocations::{self, own};
use causeway_control::Sites;
use std::process::Command;

pub use crate::batch::allocations::Allocations;

/// Replaces the nodes that the sites list with those of these allocations. Adds the allocation in which this
/// run starts, if the own site takes part and the user has named none for it.
///
/// # Errors
/// An allocation cannot be used, or its site does not take part.
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

/// Removes from a launcher's environment the variables of the batch system: with them, the launcher would
/// start its daemons in that allocation, and only there.
pub fn leave(command: &mut Command) {
    for (name, _) in std::env::vars_os().filter(|(name, _)| causeway_batch::is_of_a_process(name)) {
        command.env_remove(name);
    }
}
