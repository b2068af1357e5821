//! A site whose nodes belong to OAR, all of it Debian's: its server with PostgreSQL on the head node, its
//! sshd on all nodes. The compute nodes accept no other ssh.

use crate::batch_system::{Site, System};
use crate::daemons::Daemons;
use crate::scenario::Batch;

/// See the module.
pub(crate) const OAR: System = System {
    batch: Batch::Oar,
    daemons: Daemons {
        title: "OAR",
        place: "oar",
    },
    scripts: &[
        ("head.sh", include_str!("oar_head.sh")),
        ("node.sh", include_str!("oar_node.sh")),
        ("jobs.pl", include_str!("oar_jobs.pl")),
    ],
    start_head: |site| {
        let Site {
            place, head, slots, ..
        } = site;
        let nodes = site.nodes.join(" ");
        format!("exec bash {place}/head.sh {place} {head} {slots} {nodes}")
    },
    start_node: |Site { place, .. }| format!("exec bash {place}/node.sh {place}"),
    // Nodes are alive, and the server listens.
    is_ready: |Site {
                   head, nodes, slots, ..
               }| {
        let wanted = nodes.len() as u64 * u64::from(*slots);
        format!("[ \"$(oarnodes -s | grep -c ': Alive')\" = {wanted} ] && bash -c ': </dev/tcp/{head}/6666'")
    },
};
