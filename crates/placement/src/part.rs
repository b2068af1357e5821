//! A part of all placements: those with one value of the longest work, in which each group is on one of
//! certain sets of sites.

use crate::model::Objective;
use crate::tables::Sites;

/// How many subgradient steps a part gets that was split off.
const ROUNDS: u32 = 6;

pub(crate) struct Part {
    /// Which of the relaxations it belongs to.
    pub relaxation: usize,
    /// For each group, the states in which it may be.
    pub alive: Vec<Vec<usize>>,
    /// Sites for which the job is charged.
    pub charged: Sites,
    /// The prices of slots that gave its bound.
    pub prices: Vec<i64>,
    /// The least time.
    pub bound: i64,
    /// The least number of sites.
    pub sites: u64,
    /// How many subgradient steps it gets.
    pub rounds: u32,
}

impl Part {
    /// Returns a lower bound on its placements.
    pub fn least(&self, objective: Objective) -> u64 {
        match objective {
            Objective::Sites => self.sites,
            _ => u64::try_from(self.bound).unwrap_or(0),
        }
    }

    /// The part with only these states; `None` if a group has none.
    pub fn with(&self, alive: Vec<Vec<usize>>) -> Option<Part> {
        alive.iter().all(|alive| !alive.is_empty()).then(|| Part {
            relaxation: self.relaxation,
            alive,
            charged: self.charged,
            prices: self.prices.clone(),
            bound: self.bound,
            sites: self.sites,
            rounds: ROUNDS,
        })
    }
}
