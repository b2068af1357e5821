//! A placement in numbers, and its values.

use crate::model::Objective;
use crate::tables::{Sites, Tables, members};

/// The most that a placement may take.
#[derive(Debug, Clone)]
pub(crate) struct Limits {
    /// Predicted time, in microseconds.
    pub time: u64,
    pub cost: u64,
    pub sites: u64,
    /// Whether the time matters at all: bounds on it are expensive.
    pub times: bool,
    /// Whether the cost matters.
    pub costs: bool,
    /// Whether the number of sites matters.
    pub counts: bool,
}

impl Limits {
    pub fn none(objectives: &[Objective]) -> Limits {
        Limits {
            time: u64::MAX,
            cost: u64::MAX,
            sites: u64::MAX,
            times: objectives.contains(&Objective::Time),
            costs: objectives.contains(&Objective::Cost),
            counts: objectives.contains(&Objective::Sites),
        }
    }

    /// Says whether a placement takes no more than this.
    pub fn allow(&self, found: &Found) -> bool {
        found.time.total <= self.time
            && found.cost <= self.cost
            && found.value(Objective::Sites) <= self.sites
    }

    pub fn of(&self, objective: Objective) -> u64 {
        match objective {
            Objective::Start => u64::MAX,
            Objective::Time => self.time,
            Objective::Cost => self.cost,
            Objective::Sites => self.sites,
        }
    }

    /// Allows at most this much. The start is limited by [`Tables::until`].
    pub fn set(&mut self, objective: Objective, most: u64) {
        match objective {
            Objective::Start => {}
            Objective::Time => self.time = most,
            Objective::Cost => self.cost = most,
            Objective::Sites => self.sites = most,
        }
    }
}

/// The terms of the predicted time, in microseconds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Times {
    pub total: u64,
    pub compute: u64,
    pub pairs: Vec<u64>,
}

/// Ranks of each group on each class.
#[derive(Debug, Clone)]
pub(crate) struct Found {
    /// For each group, the index of its choice.
    pub choice: Vec<usize>,
    /// The ranks, by group and class.
    pub ranks: Vec<Vec<u64>>,
    pub start: u64,
    pub time: Times,
    pub cost: u64,
    /// The sites of each group.
    pub used: Vec<Sites>,
    pub sites: Sites,
}

impl Found {
    pub fn new(tables: &Tables, choice: &[usize], ranks: Vec<Vec<u64>>) -> Found {
        let mut found = Found {
            choice: choice.to_vec(),
            start: 0,
            time: Times {
                total: 0,
                compute: 0,
                pairs: Vec::new(),
            },
            cost: 0,
            used: vec![0; ranks.len()],
            sites: 0,
            ranks,
        };
        for (group, row) in found.ranks.iter().enumerate() {
            let choice = &tables.choices[group][choice[group]];
            for (class, ranks) in row.iter().enumerate().filter(|(_, ranks)| **ranks > 0) {
                found.start = found.start.max(tables.classes[class].start);
                found.cost = found
                    .cost
                    .saturating_add(choice.price[class].saturating_mul(*ranks));
                found.time.compute = found.time.compute.max(choice.compute[class]);
                found.used[group] |= 1 << tables.classes[class].site;
            }
            found.sites |= found.used[group];
        }
        for pair in &tables.pairs {
            let (one, other) = (found.used[pair.groups.0], found.used[pair.groups.1]);
            let costs = members(one)
                .flat_map(|site| members(other).map(move |far| pair.cost[site * tables.sites + far]));
            found.time.pairs.push(costs.max().unwrap_or(0));
        }
        let pairs = { found.time.pairs.iter() }.fold(0, |sum: u64, pair| sum.saturating_add(*pair));
        found.time.total = found.time.compute.saturating_add(pairs);
        found
    }

    pub fn value(&self, objective: Objective) -> u64 {
        match objective {
            Objective::Start => self.start,
            Objective::Time => self.time.total,
            Objective::Cost => self.cost,
            Objective::Sites => u64::from(self.sites.count_ones()),
        }
    }

    /// Two uses of sites whose link is not good enough: a group and a site, and another group and site.
    pub fn conflicts<'a>(&'a self, tables: &'a Tables) -> impl Iterator<Item = [(usize, usize); 2]> + 'a {
        let groups = self.used.len();
        let ends = (0..groups).flat_map(move |one| members(self.used[one]).map(move |site| (one, site)));
        ends.flat_map(move |(one, site)| {
            (one..groups).flat_map(move |other| {
                let bad = self.used[other] & !tables.compatible(one, site, other);
                members(bad).map(move |far| [(one, site), (other, far)])
            })
        })
    }

    /// Says whether all requirements are met.
    pub fn is_placement(&self, tables: &Tables) -> bool {
        self.overfull(tables).is_none() && self.conflicts(tables).next().is_none()
    }

    /// The first class of which more nodes are used than exist. Ranks that take more than a slot's share of
    /// the memory do not share a node with another group's.
    pub fn overfull(&self, tables: &Tables) -> Option<usize> {
        (0..tables.classes.len()).find(|class| {
            let row = &tables.classes[*class];
            let (mut light, mut nodes) = (0, 0);
            for (group, ranks) in self.ranks.iter().enumerate() {
                let fit = tables.choices[group][self.choice[group]].fit[*class];
                match fit >= row.slots {
                    true => light += ranks[*class],
                    false => nodes += ranks[*class].div_ceil(fit.max(1)),
                }
            }
            nodes + light.div_ceil(row.slots.max(1)) > row.nodes
        })
    }
}
