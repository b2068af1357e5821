//! Decides which nodes of which sites get the ranks of a job: every requirement is met, and then the caller's
//! objectives are minimised, each among the placements that are best by those before it. Pure: no clock, no
//! files.
//!
//! [`place`] is the only function to call. It answers with a placement, how good it is and how much better
//! another might be; or with a smallest set of requirements that cannot hold together.
//!
//! What a placement is:
//!
//! - The nodes are the job's alone, and its groups share them. Ranks that need at most a slot's share of
//!   their node's memory share nodes with any others of that kind. Ranks that need more (*heavy* ones) get
//!   nodes of their own, as many on each as its memory holds, where no other group has ranks. Mixing them on
//!   one node may need fewer nodes than this; but whether a mixture fits would be another, harder problem.
//! - A group may be spread over classes and sites. A requirement of the network holds for every two sites
//!   over which the ranks in question are spread, also for those of one group.
//! - Every two sites of the job need a link.
//!
//! src/search.rs says how it is found, and docs/decisions/0021-placement.md has what was measured.

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

/// How much of a budget is spent, in thousandths. It is asked before every step; when it says 1000 or more,
/// the search ends with what it has. The same answers to these questions give the same placement, so a budget
/// of steps ([`steps`]) makes it repeatable, and one of time does not.
pub type Spent<'a> = dyn FnMut() -> u32 + 'a;

/// A budget of this many steps.
pub fn steps(limit: u64) -> impl FnMut() -> u32 {
    let mut taken: u64 = 0;
    move || {
        taken = taken.saturating_add(1);
        u32::try_from(taken.saturating_mul(1000) / limit.max(1)).unwrap_or(u32::MAX)
    }
}

/// Places a job on the resources, best by the first objective, then by the next. The budget is shared among
/// the objectives; a refusal is explained with what is left of it.
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
