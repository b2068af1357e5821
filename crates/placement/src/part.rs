//! A part of all placements: with one value of the longest work, and some of the sets of sites on which
//! each group could be.

use crate::model::Objective;
use crate::tables::Sites;

/// How many subgradient steps a part gets that was split off.
const ROUNDS: u32 = 6;

pub(crate) struct Part {
    /// Which of the relaxations it belongs to.
    pub relaxation: usize,
    /// For each group the states in which it may be.
    pub alive: Vec<Vec<usize>>,
    /// Sites that the job is charged for.
    pub charged: Sites,
    /// Prices of slots that gave its bound.
    pub prices: Vec<i64>,
    /// The least time.
    pub bound: i64,
    /// The least number of sites.
    pub sites: u64,
    /// How many subgradient steps it gets.
    pub rounds: u32,
}

impl Part {
    /// Returns a lower bound of its placements.
    pub fn least(&self, objective: Objective) -> u64 {
        match objective {
            Objective::Sites => self.sites,
            _ => u64::try_from(self.bound).unwrap_or(0),
        }
    }

    /// The part with these states only; `None` if a group has none.
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
