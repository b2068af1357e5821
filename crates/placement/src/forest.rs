//! A lower bound on the time of all traffic together, by dynamic programming. Every group has one of its
//! sites as its *anchor*. The traffic of a pair takes at least as long as between the anchors, and at least
//! as long as for each anchor by itself. Pairs that form a forest over the groups can be minimised exactly;
//! any other pair counts by its own bound, plus what one of its anchors adds to that.

use crate::node::Node;
use crate::tables::{Tables, members};
use crate::tree::Edge;

/// A lower bound on the time of all traffic, in microseconds.
pub(crate) struct Forest<'a> {
    pub tables: &'a Tables,
    pub node: &'a Node,
    /// For each pair and each of its groups, the time if that group uses a site.
    pub sides: &'a [[Vec<u64>; 2]],
    /// For each pair, the least time.
    pub least: &'a [u64],
}

impl Forest<'_> {
    /// The bound; and, for each group and each site that it may use, the bound if it uses that site.
    pub fn bound(&self) -> (u64, Vec<u64>) {
        let sites = self.tables.sites;
        let (apart, own) = self.outside();
        let anchors: Vec<Vec<usize>> = (0..self.tables.groups())
            .map(|group| self.anchors(group))
            .collect();
        // The cost of a group's anchor, together with everything below it.
        let mut below = own;
        let mut up = vec![Vec::new(); self.tables.forest.len()];
        for (index, edge) in self.tables.forest.iter().enumerate().rev() {
            up[index] = self.message(edge, edge.child, &anchors[edge.child], &below);
            for site in members(self.node.allowed[edge.parent]) {
                let cost = &mut below[edge.parent * sites + site];
                *cost = cost.saturating_add(up[index][site]);
            }
        }
        let mut total = apart;
        for group in (0..self.tables.groups()).filter(|group| self.is_root(*group)) {
            let least = anchors[group]
                .iter()
                .map(|site| below[group * sites + site])
                .min();
            total = total.saturating_add(least.unwrap_or(0));
        }
        // Going from the root, each tree's costs get those of everything above; the other trees are not
        // counted yet.
        let mut all = below;
        for (edge, up) in self.tables.forest.iter().zip(&up) {
            let mut above = all.clone();
            for site in members(self.node.allowed[edge.parent]) {
                let cost = &mut above[edge.parent * sites + site];
                *cost = cost.saturating_sub(up[site]);
            }
            let down = self.message(edge, edge.parent, &anchors[edge.parent], &above);
            for site in members(self.node.allowed[edge.child]) {
                let cost = &mut all[edge.child * sites + site];
                *cost = cost.saturating_add(down[site]);
            }
        }
        (total, self.completed(total, &anchors, all))
    }

    fn is_root(&self, group: usize) -> bool {
        self.tables.forest.iter().all(|edge| edge.child != group)
    }

    /// Adds the cost of all other trees to that of a group's tree.
    fn completed(&self, total: u64, anchors: &[Vec<usize>], mut all: Vec<u64>) -> Vec<u64> {
        let sites = self.tables.sites;
        for group in 0..self.tables.groups() {
            let least = anchors[group].iter().map(|site| all[group * sites + site]).min();
            let others = total.saturating_sub(least.unwrap_or(0));
            for site in members(self.node.allowed[group]) {
                all[group * sites + site] = all[group * sites + site].saturating_add(others);
            }
        }
        all
    }

    /// The least time of the pairs outside the forest, and how much each anchor adds to it.
    fn outside(&self) -> (u64, Vec<u64>) {
        let sites = self.tables.sites;
        let mut own = vec![0_u64; self.tables.groups() * sites];
        let mut apart = 0_u64;
        for (index, pair) in self.tables.pairs.iter().enumerate() {
            if self.tables.forest.iter().any(|edge| edge.pair == index) {
                continue;
            }
            apart = apart.saturating_add(self.least[index]);
            let group = pair.groups.0;
            for site in members(self.node.allowed[group]) {
                let cost = &mut own[group * sites + site];
                *cost = cost.saturating_add(self.sides[index][0][site].saturating_sub(self.least[index]));
            }
        }
        (apart, own)
    }

    /// The sites that can be a group's anchor: one that it is charged for, if there is one.
    fn anchors(&self, group: usize) -> Vec<usize> {
        let needed = members(self.node.needed[group]);
        let dearest = needed.max_by_key(|site| {
            let cost = |(index, edge): (usize, &crate::tables::Pair)| match edge.groups {
                (one, _) if one == group => self.sides[index][0][*site],
                (_, other) if other == group => self.sides[index][1][*site],
                _ => 0,
            };
            let all = self.tables.pairs.iter().enumerate().map(cost);
            (all.fold(0, u64::saturating_add), *site)
        });
        match dearest {
            Some(site) => vec![site],
            None => members(self.node.allowed[group]).collect(),
        }
    }

    /// For each site of one group of an edge, the least cost of the other group, given in `from`, and the
    /// edge.
    fn message(&self, edge: &Edge, from: usize, anchors: &[usize], costs: &[u64]) -> Vec<u64> {
        let sites = self.tables.sites;
        let pair = &self.tables.pairs[edge.pair];
        let to = if from == edge.child {
            edge.parent
        } else {
            edge.child
        };
        let [first, second] = &self.sides[edge.pair];
        let (near, far) = if pair.groups.0 == to {
            (first, second)
        } else {
            (second, first)
        };
        let mut message = vec![0; sites];
        for site in members(self.node.allowed[to]) {
            let floor = near[site].max(self.least[edge.pair]);
            let path_cost = |other: &usize| {
                let path = pair.cost[site * sites + other].max(floor).max(far[*other]);
                path.saturating_add(costs[from * sites + other])
            };
            message[site] = anchors.iter().map(path_cost).min().unwrap_or(0);
        }
        message
    }
}
