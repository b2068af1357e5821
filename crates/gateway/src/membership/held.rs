//! Allocations of this site's batch system that jobs have.

use crate::membership::jobs::{Job, Jobs, Origin};
use causeway_control::NodeInfo;

/// The nodes of an allocation of this site that a job of this site has. Other jobs of the site may run there,
/// too, as those of a script do.
pub(crate) fn held_nodes(jobs: &Jobs, own: &str, site: &str, id: &str) -> Option<Vec<NodeInfo>> {
    let is_its = |job: &&Job| match &job.origin {
        Origin::Here(_) => site == own,
        Origin::Site(origin) => site == origin,
    };
    let has_it = |job: &&Job| job.plan.allocations.get(own).is_some_and(|held| held == id);
    let mut its = jobs.iter().map(|(_, job)| job).filter(is_its);
    its.find(has_it)?.allocated.get(own).cloned()
}
