//! Lower bounds for every placement of a node.

use crate::forest::Forest;
use crate::node::Node;
use crate::tables::{Pair, Sites, Tables, members};

/// The least predicted time, in microseconds.
#[derive(Debug, Clone, Default)]
pub(crate) struct TimeBound {
    pub total: u64,
    /// The bound if each pair is considered by itself.
    pub separate: u64,
    /// The longest work.
    pub compute: u64,
    /// The bound for each pair of groups with traffic.
    pub pairs: Vec<u64>,
    /// How much the total grows if a group is charged for a site: `[group * sites + site]`.
    pub raise: Vec<u64>,
    /// For each pair and each of its two groups, the traffic's time if that group uses a site.
    pub sides: Vec<[Vec<u64>; 2]>,
}

impl TimeBound {
    /// The most that a pair's traffic may take in a node if all traffic together may take `limit`.
    pub fn most(&self, node: &Node, limit: u64, pair: usize) -> u64 {
        let left = limit.saturating_sub(self.separate);
        node.pairs[pair].1.min(self.pairs[pair].saturating_add(left))
    }
}

pub(crate) struct Bounds<'a> {
    pub tables: &'a Tables,
    pub node: &'a Node,
    /// See [`crate::narrow::View`].
    pub room: &'a [u64],
}

impl Bounds<'_> {
    /// The least number of sites: the charged ones, and the largest others until there is room for each group
    /// and for all groups together. `None` if there is no room.
    pub fn sites(&self) -> Option<u64> {
        let groups = 0..self.tables.groups();
        let ranks = |group: usize| self.node.chosen(self.tables, group).ranks;
        let mut total = vec![0; self.tables.sites];
        let mut most = u64::from(self.node.charged.count_ones());
        for group in groups.clone() {
            let room = &self.room[group * self.tables.sites..][..self.tables.sites];
            let allowed = self.node.allowed[group];
            let room_at = |site: usize| if allowed & 1 << site == 0 { 0 } else { room[site] };
            for (site, total) in total.iter_mut().enumerate() {
                *total += room_at(site).min(ranks(group));
            }
            most = most.max(self.enough(ranks(group), room_at)?);
        }
        let all = groups.map(ranks).sum();
        Some(most.max(self.enough(all, |site| total[site].min(self.tables.slots(site)))?))
    }

    /// How many sites there must be, including the charged ones, for this many ranks.
    fn enough(&self, ranks: u64, of: impl Fn(usize) -> u64) -> Option<u64> {
        let charged: u64 = members(self.node.charged).map(&of).sum();
        let mut left = ranks.saturating_sub(charged);
        let others = { 0..self.tables.sites }.filter(|site| self.node.charged & 1 << site == 0);
        let mut others: Vec<u64> = others.map(of).collect();
        others.sort_unstable_by(|one, other| other.cmp(one));
        let mut count = u64::from(self.node.charged.count_ones());
        for room in others {
            if left == 0 {
                break;
            }
            left = left.saturating_sub(room);
            count += 1;
        }
        (left == 0).then_some(count)
    }

    /// The least predicted time.
    pub fn time(&self) -> TimeBound {
        let mut bound = TimeBound {
            compute: self.compute(),
            raise: vec![0; self.tables.groups() * self.tables.sites],
            ..TimeBound::default()
        };
        for (pair, (least, _)) in self.tables.pairs.iter().zip(&self.node.pairs) {
            let (one, other) = pair.groups;
            let sides = [self.sides(pair, one, other), self.sides(pair, other, one)];
            let least = self
                .least(one, &sides[0])
                .max(self.least(other, &sides[1]))
                .max(*least);
            bound.pairs.push(least);
            for (group, by) in [(one, &sides[0]), (other, &sides[1])]
                .iter()
                .take(1 + usize::from(one != other))
            {
                for site in members(self.node.allowed[*group]) {
                    let raise = &mut bound.raise[group * self.tables.sites + site];
                    *raise = raise.saturating_add(by[site].saturating_sub(least));
                }
            }
            bound.sides.push(sides);
        }
        let pairs = { bound.pairs.iter() }.fold(0, |sum: u64, least| sum.saturating_add(*least));
        bound.separate = bound.compute.saturating_add(pairs);
        let forest = Forest {
            tables: self.tables,
            node: self.node,
            sides: &bound.sides,
            least: &bound.pairs,
        };
        let (together, with) = forest.bound();
        bound.total = bound.separate.max(bound.compute.saturating_add(together));
        for (raise, with) in bound.raise.iter_mut().zip(with) {
            let raised = bound
                .separate
                .saturating_add(*raise)
                .max(bound.compute.saturating_add(with));
            *raise = raised.saturating_sub(bound.total);
        }
        bound
    }

    /// A lower bound on the longest work, if each group uses its fastest classes.
    fn compute(&self) -> u64 {
        let least_work = |group: usize| {
            let choice = self.node.chosen(self.tables, group);
            let allowed = members(self.node.allowed[group]);
            let classes = allowed.flat_map(|site| self.tables.classes_at[site].clone());
            let does = classes.filter(|class| self.node.does(self.tables, group, *class));
            let mut classes: Vec<usize> = does.collect();
            classes.sort_by_key(|class| choice.compute[*class]);
            let mut left = choice.ranks;
            let reaches = |class: &usize| {
                left = left.saturating_sub(self.tables.classes[*class].nodes * choice.fit[*class]);
                left == 0
            };
            let slowest = classes.into_iter().find(reaches);
            slowest.map_or(0, |class| {
                if choice.ranks == 0 {
                    0
                } else {
                    choice.compute[class]
                }
            })
        };
        let least = (0..self.tables.groups()).map(least_work).max().unwrap_or(0);
        least.max(self.node.slowest.0)
    }

    /// For each site that a group may use, a lower bound on the pair's traffic if the group uses it.
    fn sides(&self, pair: &Pair, group: usize, other: usize) -> Vec<u64> {
        let mut sides = vec![u64::MAX; self.tables.sites];
        for site in members(self.node.allowed[group]) {
            let costs = &pair.cost[site * self.tables.sites..][..self.tables.sites];
            let charged = members(self.node.needed[other]).map(|far| costs[far]).max();
            let itself = if group == other { costs[site] } else { 0 };
            let spread = self.spread(pair, site, other);
            sides[site] = spread
                .max(charged.unwrap_or(0))
                .max(itself)
                .max(self.apart(pair, site));
        }
        sides
    }

    /// A lower bound on a pair's traffic at a site if the two groups cannot be together on this site alone:
    /// then one of them has another site, and the other has this or a third one.
    fn apart(&self, pair: &Pair, site: usize) -> u64 {
        let (one, other) = pair.groups;
        let ranks = |group: usize| self.node.chosen(self.tables, group).ranks;
        let room = |group: usize| self.room[group * self.tables.sites + site];
        let is_spread = self.node.spread[one] || self.node.spread[other];
        let fits = ranks(one) <= room(one) && ranks(other) <= room(other);
        if !is_spread && fits && (one == other || ranks(one) + ranks(other) <= self.tables.slots(site)) {
            return 0;
        }
        let allowed = self.node.allowed[one] | self.node.allowed[other];
        let mut others = pair.order[site]
            .iter()
            .filter(|far| **far != site && allowed & 1 << **far != 0);
        others
            .next()
            .map_or(0, |far| pair.cost[site * self.tables.sites + far])
    }

    /// The worst path from a site to a group's ranks, if these are as near as there is room for them.
    fn spread(&self, pair: &Pair, site: usize, other: usize) -> u64 {
        let mut left = self.node.chosen(self.tables, other).ranks;
        for far in &pair.order[site] {
            if left == 0 {
                break;
            }
            if self.node.allowed[other] & 1 << far == 0 {
                continue;
            }
            left = left.saturating_sub(self.room[other * self.tables.sites + far]);
            if left == 0 {
                return pair.cost[site * self.tables.sites + far];
            }
        }
        if left == 0 { 0 } else { u64::MAX }
    }

    /// A pair's bound from one of its groups: the worst of its charged sites, or otherwise the best that it
    /// may use.
    fn least(&self, group: usize, sides: &[u64]) -> u64 {
        if self.node.chosen(self.tables, group).ranks == 0 {
            return 0;
        }
        let needed: Sites = self.node.needed[group];
        match members(needed).map(|site| sides[site]).max() {
            Some(worst) => worst,
            None => { members(self.node.allowed[group]).map(|site| sides[site]).min() }.unwrap_or(0),
        }
    }
}
