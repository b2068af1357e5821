//! A site whose nodes belong to OpenPBS: pbs_server, its database, its scheduler and pbs_comm on the head
//! node, pbs_mom on the compute nodes. tools/setup/openpbs.sh builds it. The compute nodes accept ssh, as at
//! sites that let users in who have a job there.

use crate::batch_system::{Site, System};
use crate::daemons::Daemons;
use crate::scenario::Batch;

/// Where OpenPBS is installed.
pub(crate) const PROGRAMS: &str = "/opt/pbs";

/// The configuration of a node of OpenPBS, in the node.
pub const PBS_CONF: &str = "/run/pbs/pbs.conf";

/// See the module.
pub(crate) const PBS: System = System {
    batch: Batch::Pbs,
    daemons: Daemons {
        title: "OpenPBS",
        place: "pbs",
    },
    scripts: &[
        ("head.sh", include_str!("pbs_head.sh")),
        ("node.sh", include_str!("pbs_node.sh")),
    ],
    start_head: |site| {
        let Site {
            place, head, slots, ..
        } = site;
        let nodes = site.nodes.join(" ");
        format!("exec bash {place}/head.sh {PROGRAMS} {PBS_CONF} {head} {slots} {nodes}")
    },
    start_node: |Site { place, head, .. }| format!("exec bash {place}/node.sh {PROGRAMS} {PBS_CONF} {head}"),
    is_ready: |Site { nodes, .. }| {
        let wanted = nodes.len();
        format!(
            "export PBS_CONF_FILE={PBS_CONF}
             [ \"$({PROGRAMS}/bin/pbsnodes -a -F dsv | grep -c '|state=free|')\" = {wanted} ]"
        )
    },
};
