//! A part of all placements: which sites each group may use, and for which it is charged.
//!
//! A group that is charged for a site need not use it: a placement in which it does not costs at most as
//! much, and is examined in the part in which the group may not use that site.

use crate::tables::{Choice, Sites, Tables, members};

/// Whole nodes of a class that only one group uses, because its ranks need more than a slot's share of the
/// memory.
#[derive(Debug, Clone)]
pub(crate) struct Reserved {
    pub group: usize,
    pub class: usize,
    /// The least number of nodes.
    pub least: u64,
    /// The most such nodes.
    pub most: u64,
}

#[derive(Debug, Clone)]
pub(crate) struct Node {
    /// Index of each group's choice. A group with several alternatives begins with the last choice, the
    /// easiest one, which means that none of them is chosen yet.
    pub choice: Vec<usize>,
    /// For each group, the sites that it may use.
    pub allowed: Vec<Sites>,
    /// For each group, the sites for which it is charged.
    pub needed: Vec<Sites>,
    /// Groups that are charged for being on several sites.
    pub spread: Vec<bool>,
    /// Sites for which the job is charged.
    pub charged: Sites,
    /// The least and the most time that the longest work may take.
    pub slowest: (u64, u64),
    /// The least and the most time that each pair's traffic may take.
    pub pairs: Vec<(u64, u64)>,
    pub reserved: Vec<Reserved>,
    /// A lower bound: no placement in it is better.
    pub bound: u64,
}

impl Node {
    /// The node with all placements.
    pub fn all(tables: &Tables) -> Node {
        let all = (0..tables.sites).fold(0, |set: Sites, site| set | 1 << site);
        let fits = |group: usize| {
            let alone = |site: &usize| tables.compatible(group, *site, group) & 1 << site != 0;
            members(all)
                .filter(alone)
                .fold(0, |set: Sites, site| set | 1 << site)
        };
        Node {
            choice: tables.choices.iter().map(|choices| choices.len() - 1).collect(),
            allowed: (0..tables.groups()).map(fits).collect(),
            needed: vec![0; tables.groups()],
            spread: vec![false; tables.groups()],
            charged: 0,
            slowest: (0, u64::MAX),
            pairs: vec![(0, u64::MAX); tables.pairs.len()],
            reserved: Vec::new(),
            bound: 0,
        }
    }

    pub fn chosen<'a>(&self, tables: &'a Tables, group: usize) -> &'a Choice {
        &tables.choices[group][self.choice[group]]
    }

    /// Says whether a group could have ranks on a class of an allowed site.
    pub fn does(&self, tables: &Tables, group: usize, class: usize) -> bool {
        let choice = self.chosen(tables, group);
        choice.fit[class] > 0 && choice.compute[class] <= self.slowest.1
    }

    /// Finds the nodes of a class that are reserved for a group.
    pub fn reserved_for(&self, group: usize, class: usize) -> Option<&Reserved> {
        self.reserved
            .iter()
            .find(|kept| (kept.group, kept.class) == (group, class))
    }
}
