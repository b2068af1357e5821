//! A site whose nodes belong to OAR, all Debian's own: its server with PostgreSQL on the head node, its sshd
//! on all. The compute nodes take no other ssh.

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

/// How the daemons are called, and where what belongs to them is.
const DAEMONS: Daemons = Daemons {
    title: "OAR",
    place: "oar",
};

/// What the nodes run.
const SCRIPTS: [(&str, &str); 3] = [
    ("head.sh", include_str!("oar_head.sh")),
    ("node.sh", include_str!("oar_node.sh")),
    ("jobs.pl", include_str!("oar_jobs.pl")),
];

/// Makes the directories of all sites of OAR, and what their nodes run, before the nodes exist.
///
/// # Errors
/// Those of the file system.
pub(crate) fn write_files(plan: &Plan, dir: &Path) -> io::Result<()> {
    for site in of_oar(plan) {
        let own = DAEMONS.place(dir, &site.site.name);
        fs::create_dir_all(&own)?;
        for (name, text) in SCRIPTS {
            fs::write(own.join(name), text)?;
        }
    }
    Ok(())
}

/// Starts the daemons of all sites of OAR, and waits until their nodes are alive and the server listens.
///
/// # Errors
/// A daemon does not start, or a node is not alive in time.
pub(crate) fn start(state: &LabState, plan: &Plan, signals: &Signals) -> Result<(), LabError> {
    let limit = (Instant::now() + DEADLINE, signals);
    for site in of_oar(plan) {
        let head = site.nodes.first().map_or("", |head| head.name.as_str());
        let place = format!("{STATE_IN_NODE}/{}/{}", DAEMONS.place, site.site.name);
        let compute = site.nodes.iter().filter(|node| node.role == Role::Compute);
        let compute: Vec<&str> = compute.map(|node| node.name.as_str()).collect();
        // The head node first: it makes the keys.
        for node in &site.nodes {
            let script = match node.role {
                Role::Head => format!(
                    "exec bash {place}/head.sh {place} {head} {} {}",
                    site.site.slots,
                    compute.join(" ")
                ),
                Role::Compute => format!("exec bash {place}/node.sh {place}"),
            };
            DAEMONS.run(state, node, &script, limit)?;
        }
        let wanted = compute.len() as u64 * u64::from(site.site.slots);
        let script = format!(
            "[ \"$(oarnodes -s | grep -c ': Alive')\" = {wanted} ] && bash -c ': </dev/tcp/{head}/6666'"
        );
        DAEMONS.await_nodes(state, site, (&script, &format!("{head}.start")), limit)?;
    }
    Ok(())
}

fn of_oar(plan: &Plan) -> impl Iterator<Item = &SitePlan> {
    plan.sites.iter().filter(|site| site.site.batch == Batch::Oar)
}
