//! A batch system whose daemons the lab starts by scripts, and what these have to know about a site.

use crate::daemons::Daemons;
use crate::mounts::STATE_IN_NODE;
use crate::plan::{Plan, Role, SitePlan};
use crate::scenario::Batch;

/// A batch system.
pub(crate) struct System {
    pub(crate) batch: Batch,
    /// The daemons' name in messages, and the directory of their files.
    pub(crate) daemons: Daemons,
    /// Files that its nodes run, with their text.
    pub(crate) scripts: &'static [(&'static str, &'static str)],
    /// The commands that start the daemons of a head node, and of a compute node.
    pub(crate) start_head: fn(&Site<'_>) -> String,
    pub(crate) start_node: fn(&Site<'_>) -> String,
    /// The command for the head node that succeeds once the nodes accept jobs.
    pub(crate) is_ready: fn(&Site<'_>) -> String,
}

/// What the commands have to know about a site.
pub(crate) struct Site<'a> {
    /// The directory of the scripts, as its nodes see it.
    pub(crate) place: String,
    pub(crate) head: &'a str,
    pub(crate) nodes: Vec<&'a str>,
    /// Slots of a node.
    pub(crate) slots: u32,
}

impl System {
    /// The sites that use it.
    pub(crate) fn sites<'a>(&self, plan: &'a Plan) -> impl Iterator<Item = &'a SitePlan> {
        let batch = self.batch;
        plan.sites.iter().filter(move |site| site.site.batch == batch)
    }

    /// See [`Site`].
    pub(crate) fn site<'a>(&self, site: &'a SitePlan) -> Site<'a> {
        let compute = site.nodes.iter().filter(|node| node.role == Role::Compute);
        Site {
            place: format!("{STATE_IN_NODE}/{}/{}", self.daemons.place, site.site.name),
            head: site.nodes.first().map_or("", |head| &head.name),
            nodes: compute.map(|node| node.name.as_str()).collect(),
            slots: site.site.slots,
        }
    }
}
