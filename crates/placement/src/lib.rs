//! Decides which nodes of which sites get the ranks of a job: every requirement is met, and then the caller's
//! objectives are minimised one after the other, each among the placements that are best for those before it.
//! Pure: no clock, no files.
//!
//! [`place`] is the only function to call. It answers with a placement, how good it is and how much better
//! another might be; or with a minimal set of requirements that cannot be met together.
//!
//! What a placement is:
//!
//! - The nodes belong to the job alone, and its groups share them. Ranks that need at most a slot's share of
//!   their node's memory share nodes with any others of that kind. Ranks that need more (*heavy* ones) get
//!   nodes on which no other group has ranks, with as many ranks on each as its memory holds. Mixing them on
//!   one node might need fewer nodes; but whether a mixture fits would be another, harder problem.
//! - A group may be spread over classes and sites. A requirement on the network applies to every two sites
//!   over which the ranks in question are spread, including those of one group.
//! - Every two sites of the job need a link.
//!
//! src/search.rs says how a placement is found, and docs/decisions/0021-placement.md contains the
//! measurements.

mod answer;
mod bounds;
mod flow;
mod forest;
mod found;
mod improve;
mod linear;
mod model;
mod narrow;
mod node;
mod pack;
mod part;
mod prove;
mod refusal;
mod relax;
mod search;
mod sets;
mod share;
mod split;
mod stages;
mod tables;
mod tree;

pub use answer::{Outcome, Placement, Reached, Refusal, Requirement, Share};
pub use model::{
    Alternative, Between, Class, Group, Job, Link, MAX_NODE_COST, MAX_SITES, ModelError, Network, Objective,
    Resources, Site, Traffic,
};

/// How much of a budget is spent, in thousandths. It is asked before every step; if it returns 1000 or more,
/// the search ends with what it has. The same answers give the same placement, so a budget of steps
/// ([`steps`]) makes the result repeatable, and a budget of time does not.
pub type Spent<'a> = dyn FnMut() -> u32 + 'a;

/// A budget of this many steps.
pub fn steps(limit: u64) -> impl FnMut() -> u32 {
    let mut taken: u64 = 0;
    move || {
        taken = taken.saturating_add(1);
        u32::try_from(taken.saturating_mul(1000) / limit.max(1)).unwrap_or(u32::MAX)
    }
}

/// Places a job on the resources: best for the first objective, then for the next. The objectives share the
/// budget; what is left of it is used to explain a refusal.
pub fn place(
    resources: &Resources,
    job: &Job,
    objectives: &[Objective],
    spent: &mut Spent,
) -> Result<Outcome, ModelError> {
    model::check(resources, job)?;
    Ok(match stages::place(resources, job, objectives, spent) {
        stages::Ended::Placed(placement) => Outcome::Placed(placement),
        stages::Ended::Impossible => Outcome::Refused(refusal::explain(resources, job, spent)),
        stages::Ended::Undecided => Outcome::Undecided,
    })
}
