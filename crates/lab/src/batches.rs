//! Sites whose nodes belong to OpenPBS or OAR: scripts of the lab start their daemons. Those of Slurm are
//! started by its own commands (`slurm`).

use std::fs;
use std::io;
use std::path::Path;
use std::time::Instant;

use crate::batch_system::System;
use crate::daemons::DEADLINE;
use crate::error::LabError;
use crate::oar::OAR;
use crate::pbs::PBS;
use crate::plan::{Plan, Role};
use crate::signals::Signals;
use crate::state::LabState;

const SYSTEMS: [&System; 2] = [&PBS, &OAR];

/// Makes the directories of all these sites, and the files that their nodes run, before the nodes exist.
///
/// # Errors
/// Those of the file system.
pub(crate) fn write_files(plan: &Plan, dir: &Path) -> io::Result<()> {
    for system in SYSTEMS {
        for site in system.sites(plan) {
            let own = system.daemons.place(dir, &site.site.name);
            fs::create_dir_all(&own)?;
            for (name, text) in system.scripts {
                fs::write(own.join(name), text)?;
            }
        }
    }
    Ok(())
}

/// Starts the daemons of all these sites, and waits until their nodes accept jobs.
///
/// # Errors
/// A daemon does not start, or a node accepts no job in time.
pub(crate) fn start(state: &LabState, plan: &Plan, signals: &Signals) -> Result<(), LabError> {
    let limit = (Instant::now() + DEADLINE, signals);
    for system in SYSTEMS {
        for site in system.sites(plan) {
            let known = system.site(site);
            // The head node comes first: it makes the keys, and the nodes register with it.
            for node in &site.nodes {
                let script = match node.role {
                    Role::Head => (system.start_head)(&known),
                    Role::Compute => (system.start_node)(&known),
                };
                system.daemons.run(state, node, &script, limit)?;
            }
        }
        for site in system.sites(plan) {
            let known = system.site(site);
            let (script, log) = ((system.is_ready)(&known), format!("{}.start", known.head));
            system.daemons.await_nodes(state, site, (&script, &log), limit)?;
        }
    }
    Ok(())
}
