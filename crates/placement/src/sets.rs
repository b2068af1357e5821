//! All sets of sites on which a group could be, as far as the time limit allows.

use crate::narrow::View;
use crate::node::Node;
use crate::tables::{Pair, Sites, Tables, members};

/// One of a group's alternatives on exactly these sites.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct State {
    pub choice: usize,
    pub sites: Sites,
}

/// Most states of a group: a table has one entry for each two states of two groups.
const MOST: usize = 2000;

/// Most sets that are examined to find a group's states.
const LOOKED_AT: usize = 20_000;

/// What a pair's traffic takes over the worst path between two sets of sites.
pub(crate) fn worst(tables: &Tables, pair: &Pair, one: Sites, other: Sites) -> u64 {
    let from = |site: usize| {
        let costs = &pair.cost[site * tables.sites..][..tables.sites];
        members(other).map(|far| costs[far]).max().unwrap_or(0)
    };
    members(one).map(from).max().unwrap_or(0)
}

/// Whether one group may be on the first sites while another is on the second ones.
fn agree(tables: &Tables, group: usize, sites: Sites, other: usize, far: Sites) -> bool {
    members(sites).all(|site| far & !tables.compatible(group, site, other) == 0)
}

/// A walk over all sets of a group's sites.
struct Walk<'a> {
    tables: &'a Tables,
    node: &'a Node,
    view: &'a View,
    group: usize,
    /// The most that the sites of this group may add to the least time.
    spare: u64,
    /// The group's alternatives that may still be chosen.
    choices: Vec<usize>,
    sites: Vec<usize>,
    looked_at: usize,
    states: Vec<State>,
}

/// The states of a group that keep the time within its limit, as far as that group's traffic shows; `None` if
/// there are too many.
pub(crate) fn states(
    tables: &Tables,
    node: &Node,
    view: &View,
    group: usize,
    limit: u64,
) -> Option<Vec<State>> {
    let several = tables.choices[group].len() > 1 && node.choice[group] + 1 == tables.choices[group].len();
    let mut walk = Walk {
        tables,
        node,
        view,
        group,
        spare: limit.checked_sub(view.time.separate)?,
        choices: if several {
            (0..node.choice[group]).collect()
        } else {
            vec![node.choice[group]]
        },
        sites: members(node.allowed[group]).collect(),
        looked_at: 0,
        states: Vec::new(),
    };
    walk.from(0, 0).then_some(walk.states)
}

impl Walk<'_> {
    /// Examines a set, and all sets that have more sites after this index. A set takes at least as long as
    /// each of its subsets.
    fn from(&mut self, index: usize, sites: Sites) -> bool {
        self.looked_at += 1;
        if self.looked_at > LOOKED_AT {
            return false;
        }
        for choice in self.choices.clone() {
            if self.room(choice, sites) >= self.tables.choices[self.group][choice].ranks {
                self.states.push(State { choice, sites });
            }
        }
        if self.states.len() > MOST {
            return false;
        }
        for next in index..self.sites.len() {
            let more = sites | 1 << self.sites[next];
            let agrees = agree(self.tables, self.group, more, self.group, more);
            if agrees && self.added(more) <= self.spare && !self.from(next + 1, more) {
                return false;
            }
        }
        true
    }

    fn room(&self, choice: usize, sites: Sites) -> u64 {
        let row = &self.tables.choices[self.group][choice];
        let classes = members(sites).flat_map(|site| self.tables.classes_at[site].clone());
        let does = classes.filter(|class| row.compute[*class] <= self.node.slowest.1);
        does.map(|class| self.tables.classes[class].nodes * row.fit[class])
            .sum()
    }

    /// How much a set adds to the least time of this group's pairs.
    fn added(&self, sites: Sites) -> u64 {
        let mut sum: u64 = 0;
        for (index, pair) in self.tables.pairs.iter().enumerate() {
            let (one, other) = pair.groups;
            let least = self.view.time.pairs[index];
            let takes = if one == other && one == self.group {
                worst(self.tables, pair, sites, sites)
            } else if one == self.group || other == self.group {
                let side = &self.view.time.sides[index][usize::from(one != self.group)];
                members(sites).map(|site| side[site]).max().unwrap_or(0)
            } else {
                0
            };
            sum = sum.saturating_add(takes.saturating_sub(least));
        }
        sum
    }
}
