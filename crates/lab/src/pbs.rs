//! A site whose nodes belong to OpenPBS: pbs_server, its database, its scheduler and pbs_comm on the head
//! node, pbs_mom on the compute nodes. tools/setup/openpbs.sh builds it. The compute nodes take ssh, as on
//! sites that let users in who have a job there.

use std::fs;
use std::io;
use std::path::Path;
use std::time::Instant;

use crate::daemons::{DEADLINE, Daemons};
use crate::error::LabError;
use crate::mounts::STATE_IN_NODE;
use crate::plan::{Plan, Role, SitePlan};
use crate::scenario::Batch;
use crate::signals::Signals;
use crate::state::LabState;

/// Where it is installed.
pub(crate) const PROGRAMS: &str = "/opt/pbs";

/// The configuration of a node of OpenPBS, in the node.
pub const PBS_CONF: &str = "/run/pbs/pbs.conf";

/// How the daemons are called, and where what belongs to them is.
const DAEMONS: Daemons = Daemons {
    title: "OpenPBS",
    place: "pbs",
};

const HEAD: &str = include_str!("pbs_head.sh");
const NODE: &str = include_str!("pbs_node.sh");

/// Makes the directories of all sites of OpenPBS, and what their nodes run, before the nodes exist.
///
/// # Errors
/// Those of the file system.
pub(crate) fn write_files(plan: &Plan, dir: &Path) -> io::Result<()> {
    for site in of_pbs(plan) {
        let own = DAEMONS.place(dir, &site.site.name);
        fs::create_dir_all(&own)?;
        fs::write(own.join("head.sh"), HEAD)?;
        fs::write(own.join("node.sh"), NODE)?;
    }
    Ok(())
}

/// Starts the daemons of all sites of OpenPBS, and waits until their nodes are free.
///
/// # Errors
/// A daemon does not start, or a node does not become free in time.
pub(crate) fn start(state: &LabState, plan: &Plan, signals: &Signals) -> Result<(), LabError> {
    let limit = (Instant::now() + DEADLINE, signals);
    for site in of_pbs(plan) {
        let head = site.nodes.first().map_or("", |head| head.name.as_str());
        let place = format!("{STATE_IN_NODE}/{}/{}", DAEMONS.place, site.site.name);
        let compute = site.nodes.iter().filter(|node| node.role == Role::Compute);
        let compute: Vec<&str> = compute.map(|node| node.name.as_str()).collect();
        for node in &site.nodes {
            let script = match node.role {
                Role::Head => format!(
                    "exec bash {place}/head.sh {PROGRAMS} {PBS_CONF} {head} {} {}",
                    site.site.slots,
                    compute.join(" ")
                ),
                Role::Compute => format!("exec bash {place}/node.sh {PROGRAMS} {PBS_CONF} {head}"),
            };
            DAEMONS.run(state, node, &script, limit)?;
        }
    }
    for site in of_pbs(plan) {
        let wanted = site.nodes.len() - 1;
        let script = format!(
            "export PBS_CONF_FILE={PBS_CONF}
             [ \"$({PROGRAMS}/bin/pbsnodes -a -F dsv | grep -c '|state=free|')\" = {wanted} ]"
        );
        let start = site
            .nodes
            .first()
            .map_or_else(String::new, |head| format!("{}.start", head.name));
        DAEMONS.await_nodes(state, site, (&script, &start), limit)?;
    }
    Ok(())
}

fn of_pbs(plan: &Plan) -> impl Iterator<Item = &SitePlan> {
    plan.sites.iter().filter(|site| site.site.batch == Batch::Pbs)
}
