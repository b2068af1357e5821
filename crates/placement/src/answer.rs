//! The result: a placement and what is known about its quality, or why there is none.

use crate::model::{Job, Objective};
use std::collections::BTreeSet;

/// The answer to a job.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Outcome {
    /// The job can be placed this way.
    Placed(Placement),
    /// The job cannot be placed.
    Refused(Refusal),
    /// The budget was used up before a placement was found, or shown to be impossible.
    Undecided,
}

/// A placement of the ranks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Placement {
    /// For each group, the index of the alternative that was chosen.
    pub alternatives: Vec<usize>,
    /// The shares of all groups, by group, site and class; none is empty.
    pub shares: Vec<Share>,
    /// The objectives in the caller's order, with the values that were reached.
    pub reached: Vec<Reached>,
}

/// Ranks of a group on a class.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Share {
    /// The group, by index.
    pub group: usize,
    /// The site, by index.
    pub site: usize,
    /// The class within the site, by index.
    pub class: usize,
    /// How many, at least 1.
    pub ranks: u32,
}

/// The value of a placement for one objective.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Reached {
    /// The objective.
    pub objective: Objective,
    /// Its value, in the objective's unit.
    pub value: u64,
    /// A lower bound for placements that are as good by the objectives before this one. The value is optimal
    /// if it equals this and those before are optimal, too.
    pub bound: u64,
}

impl Reached {
    /// Says whether the value is as small as the objectives before it allow.
    pub fn is_proved(&self) -> bool {
        self.value == self.bound
    }

    /// The optimality gap: how much of the value might be saved, in thousandths of it, rounded up.
    pub fn gap_permille(&self) -> u64 {
        let might = u128::from(self.value.saturating_sub(self.bound)) * 1000;
        u64::try_from(might.div_ceil(u128::from(self.value.max(1)))).unwrap_or(1000)
    }
}

/// A requirement that a refusal can name. Groups are given by index; a requirement means all alternatives of
/// its group.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Requirement {
    /// The group has its number of ranks.
    Ranks(usize),
    /// Each rank has its memory.
    Memory(usize),
    /// Its nodes have these features.
    Features(usize),
    /// Its slots have this speed.
    Speed(usize),
    /// It uses only these sites.
    Sites(usize),
    /// The network between its ranks.
    Within(usize),
    /// The network between two groups, the smaller index first.
    Between(usize, usize),
    /// Every two sites of a job have a link.
    Reach,
    /// The job begins by the latest start.
    Start,
}

impl Requirement {
    /// The network between two groups, in either order.
    pub fn between(one: usize, other: usize) -> Requirement {
        Requirement::Between(one.min(other), one.max(other))
    }

    /// Describes it for people, with the groups' names.
    pub fn describe(&self, job: &Job) -> String {
        let name = |group: &usize| job.groups.get(*group).map_or("?", |group| group.name.as_str());
        match self {
            Requirement::Ranks(group) => format!("the number of ranks of {}", name(group)),
            Requirement::Memory(group) => format!("the memory of {}", name(group)),
            Requirement::Features(group) => format!("the features of {}", name(group)),
            Requirement::Speed(group) => format!("the speed of {}", name(group)),
            Requirement::Sites(group) => format!("the sites of {}", name(group)),
            Requirement::Within(group) => format!("the network within {}", name(group)),
            Requirement::Between(one, other) => {
                format!("the network between {} and {}", name(one), name(other))
            }
            Requirement::Reach => "a link between every two sites of the job".to_owned(),
            Requirement::Start => "the latest start".to_owned(),
        }
    }
}

/// Why a job cannot be placed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refusal {
    /// Requirements that cannot be met together.
    pub conflict: BTreeSet<Requirement>,
    /// Whether every one of them is known to be needed for the conflict. The budget may end before that is
    /// shown.
    pub is_irreducible: bool,
    /// Whether it is known that no smaller set conflicts; that is checked only if it takes few questions.
    pub is_smallest: bool,
}
