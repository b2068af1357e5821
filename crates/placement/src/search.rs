//! Branch and bound. Each node is narrowed, and its ranks are distributed regardless of links. If the result
//! is within the limits, it is a placement; otherwise, the node is split where a limit is exceeded.
//!
//! ```text
//!     node ── narrow ── share out ──┬── breaks nothing: found, and the limit goes down
//!       │        │          │       ├── too long: by the sites of a group, or what a pair's traffic takes
//!       │        v          v       ├── a bad link: with or without one of its two uses
//!       │     nothing left: closed  ├── too many nodes: more or fewer for one group
//!       └── several alternatives    └── too many sites: without the one with the fewest ranks, or charged
//! ```
//!
//! The search dives into the first part of a split, and then continues at the node with the least bound.

use crate::found::{Found, Limits};
use crate::model::Objective;
use crate::narrow::View;
use crate::node::{Node, Reserved};
use crate::share::{Lead, Shares, share};
use crate::tables::{Tables, members};

/// What a search has found.
#[derive(Debug)]
pub(crate) struct Ended {
    /// The best placement within the limits.
    pub best: Option<Found>,
    /// A lower bound for placements within the limits, if the search ended early.
    pub open: Option<u64>,
}

pub(crate) struct Search<'a> {
    tables: &'a Tables,
    limits: Limits,
    /// The objective; without one, the first placement ends the search.
    minimise: Option<Objective>,
    /// Whether no better placement can exist.
    is_over: bool,
    /// The part of all placements at which the search begins.
    from: Node,
    /// Whether it splits by the sites of a group if the time is too long, which makes proofs short.
    proves: bool,
}

/// What a node has become.
enum Split {
    Closed,
    /// The first is examined first.
    Into(Vec<Node>),
}

impl Search<'_> {
    /// Makes a search that has not begun.
    pub fn new(tables: &Tables, limits: Limits, minimise: Option<Objective>) -> Search<'_> {
        Search {
            tables,
            limits,
            minimise,
            is_over: false,
            from: Node::all(tables),
            proves: true,
        }
    }

    /// Searches only this part of all placements, splitting as for a proof or not.
    pub fn within(self, from: Node, proves: bool) -> Self {
        Search { from, proves, ..self }
    }

    /// Searches as long as `may_go_on` is true, which is asked before every node except the first.
    pub fn run(mut self, may_go_on: &mut dyn FnMut() -> bool) -> Ended {
        let mut best: Option<Found> = None;
        let mut open: Vec<Node> = Vec::new();
        let mut next = Some(self.from.clone());
        let mut is_first = true;
        while let Some(node) = next.take().or_else(|| take_least(&mut open)) {
            if !is_first && !may_go_on() {
                let bound = open.iter().map(|node| node.bound).chain([node.bound]).min();
                return Ended { best, open: bound };
            }
            is_first = false;
            if let Split::Into(mut parts) = self.split(node, &mut best) {
                parts.reverse();
                next = parts.pop();
                open.append(&mut parts);
            }
            if self.is_over {
                break;
            }
        }
        Ended { best, open: None }
    }

    fn split(&mut self, mut node: Node, best: &mut Option<Found>) -> Split {
        let Some(view) = node.narrow(self.tables, &self.limits) else {
            return Split::Closed;
        };
        node.bound = node.bound.max(match self.minimise {
            Some(Objective::Time) => view.time.total,
            Some(Objective::Sites) => view.sites_used,
            _ => 0,
        });
        if let Some(parts) = self.choose(&node) {
            return Split::Into(parts);
        }
        let Some((shares, found)) = self.share_out(&mut node, &view, best) else {
            return Split::Closed;
        };
        let limit = self.minimise.map(|objective| self.limits.of(objective));
        if self.is_over || limit.is_some_and(|limit| node.bound > limit) {
            return Split::Closed;
        }
        if self.proves
            && self.minimise == Some(Objective::Time)
            && let Some(parts) = self.at_anchor(&node, &view, &found)
        {
            return Split::Into(parts);
        }
        Split::Into(match self.at_conflict(&node, &found) {
            Some(parts) => parts,
            None => match found.overfull(self.tables) {
                Some(class) => self.at_class(&node, &shares, class),
                None => self.at_limit(&node, &view, &found),
            },
        })
    }

    /// Says whether a group must be charged for more than it is: for one site alone, or for another one of
    /// several.
    fn is_open(&self, node: &Node, view: &View, group: usize) -> bool {
        let room = members(node.needed[group]).map(|site| view.room[group * self.tables.sites + site]);
        node.allowed[group].count_ones() > 1
            && (!node.spread[group]
                || node.needed[group].count_ones() < 2
                || room.sum::<u64>() < node.chosen(self.tables, group).ranks)
    }

    /// Splits by where a group is, choosing the largest of those in a pair above its bound: on one site
    /// alone, or on several. Then splits by the next site that it uses, in the order of the time that its
    /// traffic takes from there.
    fn at_anchor(&self, node: &Node, view: &View, found: &Found) -> Option<Vec<Node>> {
        let mut free = None;
        for (index, pair) in self.tables.pairs.iter().enumerate() {
            let over = found.time.pairs[index].saturating_sub(view.time.pairs[index]);
            for group in [pair.groups.0, pair.groups.1] {
                if over > 0 && self.is_open(node, view, group) {
                    free = free.max(Some((node.chosen(self.tables, group).ranks, usize::MAX - group)));
                }
            }
        }
        let group = usize::MAX - free?.1;
        let raise = |site: usize| view.time.raise[group * self.tables.sites + site];
        let mut sites: Vec<usize> = members(node.allowed[group]).collect();
        sites.sort_by_key(|site| (raise(*site), *site));
        let mut without = node.clone();
        let mut parts = Vec::new();
        if !node.spread[group] {
            let ranks = node.chosen(self.tables, group).ranks;
            let whole = |site: &usize| {
                node.needed[group] & !(1 << site) == 0 && view.room[group * self.tables.sites + site] >= ranks
            };
            for site in sites.into_iter().filter(whole) {
                let mut part = node.clone();
                part.allowed[group] = 1 << site;
                part.bound = part.bound.max(view.time.total.saturating_add(raise(site)));
                parts.push(part);
            }
            without.spread[group] = true;
            parts.push(without);
            return Some(parts);
        }
        for site in sites
            .into_iter()
            .filter(|site| node.needed[group] & 1 << site == 0)
        {
            let mut part = without.clone();
            part.needed[group] |= 1 << site;
            part.bound = part.bound.max(view.time.total.saturating_add(raise(site)));
            parts.push(part);
            without.allowed[group] &= !(1 << site);
        }
        Some(parts)
    }

    /// Splits a node by the alternatives of the first group that has several.
    fn choose(&self, node: &Node) -> Option<Vec<Node>> {
        let several = |group: &usize| {
            node.choice[*group] > 0 && node.choice[*group] + 1 == self.tables.choices[*group].len()
        };
        let group = (0..self.tables.groups()).find(several)?;
        let with = |choice: usize| {
            let mut part = node.clone();
            part.choice[group] = choice;
            part
        };
        Some((0..node.choice[group]).map(with).collect())
    }

    /// Distributes ranks, and makes a better placement the incumbent. `None` if there is no room, or if the
    /// result costs too much; otherwise, how the node has to be split.
    fn share_out(
        &mut self,
        node: &mut Node,
        view: &View,
        best: &mut Option<Found>,
    ) -> Option<(Shares, Found)> {
        let tables = self.tables;
        let lead = Lead::new(tables, node, view, self.limits.counts);
        let mut answer = None;
        if self.minimise != Some(Objective::Cost) {
            let shares = share(tables, node, |group, class| {
                lead.weight(group, tables.classes[class].site)
            })?;
            let found = Found::new(tables, &node.choice, shares.ranks.clone());
            self.keep(&found, best);
            answer = Some((shares, found));
        }
        if self.limits.costs {
            let price = |group: usize, class: usize| node.chosen(tables, group).price[class] as i64;
            let shares = share(tables, node, price)?;
            let found = Found::new(tables, &node.choice, shares.ranks.clone());
            if found.cost > self.limits.cost {
                return None;
            }
            if self.minimise == Some(Objective::Cost) {
                node.bound = node.bound.max(found.cost);
            }
            self.keep(&found, best);
            if answer
                .as_ref()
                .is_none_or(|(_, found)| found.cost > self.limits.cost)
            {
                answer = Some((shares, found));
            }
        }
        answer
    }

    /// Makes a valid placement within the limits the incumbent; then only better ones are within them.
    fn keep(&mut self, found: &Found, best: &mut Option<Found>) {
        if self.limits.allow(found) && found.is_placement(self.tables) && !self.is_over {
            *best = Some(found.clone());
            // No value is less than zero.
            let less = self
                .minimise
                .and_then(|objective| found.value(objective).checked_sub(1));
            match (self.minimise, less) {
                (Some(objective), Some(less)) => self.limits.set(objective, less),
                _ => self.is_over = true,
            }
        }
    }

    /// Splits at a link that is not good enough, by that of its uses that has the most ranks.
    fn at_conflict(&self, node: &Node, found: &Found) -> Option<Vec<Node>> {
        let ranks = |(group, site): (usize, usize)| -> u64 {
            self.tables.classes_at[site]
                .clone()
                .map(|class| found.ranks[group][class])
                .sum()
        };
        let uses = found.conflicts(self.tables).flatten();
        let (group, site) = uses.max_by_key(|at| (ranks(*at), std::cmp::Reverse(*at)))?;
        let [without, with] = halves(node, group, site);
        Some(vec![with, without])
    }

    /// Splits by how many nodes of a class one group has to itself.
    fn at_class(&self, node: &Node, shares: &Shares, class: usize) -> Vec<Node> {
        let loose = |group: &usize| shares.loose[*group][class];
        let Some(group) = { 0..self.tables.groups() }.max_by_key(|group| (loose(group), usize::MAX - group))
        else {
            return Vec::new();
        };
        let fit = node.chosen(self.tables, group).fit[class].max(1);
        let nodes = shares.loose[group][class].div_ceil(fit);
        let (least, most) = { node.reserved_for(group, class) }
            .map_or((0, self.tables.classes[class].nodes), |kept| {
                (kept.least, kept.most)
            });
        debug_assert!(
            nodes > 0 && least + nodes <= most,
            "what is reserved is not loose"
        );
        let with = |least: u64, most: u64| {
            let mut part = node.clone();
            part.reserved
                .retain(|kept| (kept.group, kept.class) != (group, class));
            part.reserved.push(Reserved {
                group,
                class,
                least,
                most,
            });
            part
        };
        vec![with(least + nodes, most), with(least, least + nodes - 1)]
    }

    /// Splits at a place where the time or the number of sites is above its limit.
    fn at_limit(&self, node: &Node, view: &View, found: &Found) -> Vec<Node> {
        if found.time.total > self.limits.time {
            return self.at_time(node, view, found);
        }
        let ranks = |site: usize| -> u64 {
            let classes = self.tables.classes_at[site].clone();
            classes
                .map(|class| found.ranks.iter().map(|row| row[class]).sum::<u64>())
                .sum()
        };
        let uncharged = members(found.sites & !node.charged);
        let Some(site) = uncharged.min_by_key(|site| (ranks(*site), *site)) else {
            return Vec::new();
        };
        let (mut without, mut with) = (node.clone(), node.clone());
        for allowed in &mut without.allowed {
            *allowed &= !(1 << site);
        }
        with.charged |= 1 << site;
        vec![without, with]
    }

    /// Splits at the term of the time that exceeds its bound most: the excess is then either less than half
    /// of that, or not. If a path takes longer than its pair may, splits by that.
    fn at_time(&self, node: &Node, view: &View, found: &Found) -> Vec<Node> {
        let above = |pair: &usize| {
            found.time.pairs[*pair].saturating_sub(view.time.most(node, self.limits.time, *pair))
        };
        let pairs = 0..self.tables.pairs.len();
        let worst = pairs.clone().max_by_key(|pair| (above(pair), usize::MAX - pair));
        if let Some(pair) = worst.filter(|pair| above(pair) > 0) {
            return self.at_pair(node, pair, found);
        }
        let over = |pair: &usize| found.time.pairs[*pair].saturating_sub(view.time.pairs[*pair]);
        let pair = pairs.max_by_key(|pair| (over(pair), usize::MAX - pair));
        let by_work = found.time.compute.saturating_sub(view.time.compute);
        let (mut less, mut more) = (node.clone(), node.clone());
        match pair {
            Some(pair) if over(&pair) >= by_work => {
                let least = view.time.pairs[pair] + over(&pair).div_ceil(2);
                less.pairs[pair].1 = least - 1;
                more.pairs[pair].0 = least;
            }
            _ => {
                less.slowest.1 = found.time.compute.saturating_sub(1);
                more.slowest.0 = found.time.compute;
            }
        }
        vec![less, more]
    }

    /// Splits at the worst path of two groups, by that of its uses not charged yet that has the fewest ranks.
    fn at_pair(&self, node: &Node, pair: usize, found: &Found) -> Vec<Node> {
        let pair = &self.tables.pairs[pair];
        let (one, other) = pair.groups;
        let ranks = |group: usize, site: usize| -> u64 {
            self.tables.classes_at[site]
                .clone()
                .map(|class| found.ranks[group][class])
                .sum()
        };
        let mut worst = None;
        for site in members(found.used[one]) {
            for far in members(found.used[other]) {
                let cost = pair.cost[site * self.tables.sites + far];
                for (group, at) in [(one, site), (other, far)] {
                    if node.needed[group] & 1 << at == 0 {
                        let key = (
                            cost,
                            u64::MAX - ranks(group, at),
                            usize::MAX - group,
                            usize::MAX - at,
                        );
                        worst = worst.max(Some((key, group, at)));
                    }
                }
            }
        }
        match worst {
            Some((_, group, site)) => halves(node, group, site).into(),
            None => Vec::new(),
        }
    }
}

/// Splits by a group's use of a site: without it, or charged for it.
fn halves(node: &Node, group: usize, site: usize) -> [Node; 2] {
    let (mut without, mut with) = (node.clone(), node.clone());
    without.allowed[group] &= !(1 << site);
    with.needed[group] |= 1 << site;
    [without, with]
}

/// Takes the node with the least bound and, among equals, the newest, which is the deepest.
fn take_least(open: &mut Vec<Node>) -> Option<Node> {
    let least = { open.iter().enumerate() }.min_by_key(|(index, node)| (node.bound, usize::MAX - index))?;
    let index = least.0;
    Some(open.remove(index))
}
