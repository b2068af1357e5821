//! Removes from a node what none of its placements can have, before ranks are distributed.

use crate::bounds::{Bounds, TimeBound};
use crate::found::Limits;
use crate::node::Node;
use crate::tables::{Sites, Tables, members};

/// The consequences of a node.
#[derive(Debug)]
pub(crate) struct View {
    /// Ranks of each group that fit on each site alone: `[group * sites + site]`.
    pub room: Vec<u64>,
    pub time: TimeBound,
    pub sites_used: u64,
}

impl Node {
    /// Removes what is impossible; `None` if no placement is left within the limits.
    pub fn narrow(&mut self, tables: &Tables, limits: &Limits) -> Option<View> {
        loop {
            let room = self.room(tables);
            let before = (self.allowed.clone(), self.needed.clone(), self.slowest);
            self.require(tables, &room)?;
            self.keep_compatible(tables, &room)?;
            for needed in &self.needed {
                self.charged |= needed;
            }
            let bounds = Bounds {
                tables,
                node: self,
                room: &room,
            };
            let sites_used = bounds.sites()?;
            let time = if limits.times {
                bounds.time()
            } else {
                TimeBound::default()
            };
            if sites_used > limits.sites || time.total > limits.time {
                return None;
            }
            self.keep_within(tables, limits, &time)?;
            if (&self.allowed, &self.needed, self.slowest) == (&before.0, &before.1, before.2) {
                return Some(View {
                    room,
                    time,
                    sites_used,
                });
            }
        }
    }

    fn room(&self, tables: &Tables) -> Vec<u64> {
        let mut room = vec![0; tables.groups() * tables.sites];
        // Ranks of groups that cannot be anywhere else.
        let mut taken = vec![0; tables.sites];
        let confined = |group: usize| self.allowed[group].count_ones() == 1;
        for group in (0..tables.groups()).filter(|group| confined(*group)) {
            taken[self.allowed[group].trailing_zeros() as usize] += self.chosen(tables, group).ranks;
        }
        for group in 0..tables.groups() {
            let choice = self.chosen(tables, group);
            for site in members(self.allowed[group]) {
                let classes = tables.classes_at[site].clone();
                let fits = classes.filter(|class| self.does(tables, group, *class));
                let alone: u64 = fits
                    .map(|class| tables.classes[class].nodes * choice.fit[class])
                    .sum();
                let others = taken[site] - if confined(group) { choice.ranks } else { 0 };
                room[group * tables.sites + site] = alone.min(tables.slots(site).saturating_sub(others));
            }
        }
        room
    }

    /// Finds the sites without which a group has no room.
    fn require(&mut self, tables: &Tables, room: &[u64]) -> Option<()> {
        for group in 0..tables.groups() {
            let room = &room[group * tables.sites..][..tables.sites];
            let ranks = self.chosen(tables, group).ranks;
            let empty = members(self.allowed[group]).filter(|site| room[*site] == 0);
            self.allowed[group] &= !empty.fold(0, |set: Sites, site| set | 1 << site);
            let total: u64 = members(self.allowed[group]).map(|site| room[site]).sum();
            let is_alone = self.spread[group] && self.allowed[group].count_ones() < 2;
            if total < ranks || is_alone || self.needed[group] & !self.allowed[group] != 0 {
                return None;
            }
            for site in members(self.allowed[group]).filter(|site| total - room[*site] < ranks) {
                self.needed[group] |= 1 << site;
            }
        }
        Some(())
    }

    /// Removes sites that leave another group, or the same one, no room on sites with a good link.
    fn keep_compatible(&mut self, tables: &Tables, room: &[u64]) -> Option<()> {
        let ranks: Vec<u64> = { 0..tables.groups() }
            .map(|group| self.chosen(tables, group).ranks)
            .collect();
        for group in 0..tables.groups() {
            for site in members(self.allowed[group]) {
                let is_needed = self.needed[group] & 1 << site != 0;
                for other in 0..tables.groups() {
                    let good = self.allowed[other] & tables.compatible(group, site, other);
                    if good == self.allowed[other] {
                        continue;
                    }
                    if is_needed {
                        self.allowed[other] = good;
                    }
                    let left: u64 = members(good).map(|site| room[other * tables.sites + site]).sum();
                    if left < ranks[other] {
                        if is_needed {
                            return None;
                        }
                        self.allowed[group] &= !(1 << site);
                        break;
                    }
                }
            }
        }
        Some(())
    }

    /// Removes sites that cost too much time, or would be too many, and classes that are too slow.
    fn keep_within(&mut self, tables: &Tables, limits: &Limits, time: &TimeBound) -> Option<()> {
        if u64::from(self.charged.count_ones()) >= limits.sites {
            for allowed in &mut self.allowed {
                *allowed &= self.charged;
            }
        }
        if !limits.times {
            return Some(());
        }
        let spare = limits.time.saturating_sub(time.total);
        for group in 0..tables.groups() {
            let raise = &time.raise[group * tables.sites..][..tables.sites];
            let dear = members(self.allowed[group]).filter(|site| raise[*site] > spare);
            self.allowed[group] &= !dear.fold(0, |set: Sites, site| set | 1 << site);
        }
        for (index, pair) in tables.pairs.iter().enumerate() {
            let most = time.most(self, limits.time, index);
            if time.pairs[index] > most {
                return None;
            }
            for (group, side) in [pair.groups.0, pair.groups.1].into_iter().zip(&time.sides[index]) {
                let dear = members(self.allowed[group]).filter(|site| side[*site] > most);
                self.allowed[group] &= !dear.fold(0, |set: Sites, site| set | 1 << site);
            }
        }
        self.keep_together(tables, limits, time);
        self.slowest.1 = self.slowest.1.min(time.compute.saturating_add(spare));
        (time.compute <= self.slowest.1).then_some(())
    }

    /// Removes sites that are too small for groups that would all have to be only there, because on paths to
    /// other sites their traffic would take longer than allowed.
    fn keep_together(&mut self, tables: &Tables, limits: &Limits, time: &TimeBound) {
        let mosts: Vec<u64> = (0..tables.pairs.len())
            .map(|pair| time.most(self, limits.time, pair))
            .collect();
        for site in 0..tables.sites {
            let mut leader: Vec<usize> = (0..tables.groups()).collect();
            for (pair, most) in tables.pairs.iter().zip(&mosts) {
                let (one, other) = pair.groups;
                let allowed = (self.allowed[one] | self.allowed[other]) & !(1 << site);
                let nearest = pair.order[site].iter().find(|far| allowed & 1 << **far != 0);
                if nearest.is_none_or(|far| pair.cost[site * tables.sites + far] > *most) {
                    let (from, to) = (leader[one], leader[other]);
                    for leader in leader.iter_mut().filter(|leader| **leader == from) {
                        *leader = to;
                    }
                }
            }
            for first in 0..tables.groups() {
                let members = || (0..tables.groups()).filter(|group| leader[*group] == first);
                if members().count() > 1 && !self.fits_together(tables, site, &members().collect::<Vec<_>>())
                {
                    for group in members() {
                        self.allowed[group] &= !(1 << site);
                    }
                }
            }
        }
    }

    fn fits_together(&self, tables: &Tables, site: usize, groups: &[usize]) -> bool {
        let classes = tables.classes_at[site].clone();
        let room = |group: usize| -> u64 {
            let does = classes.clone().filter(|class| self.does(tables, group, *class));
            does.map(|class| tables.classes[class].nodes * self.chosen(tables, group).fit[class])
                .sum()
        };
        let ranks = |group: usize| self.chosen(tables, group).ranks;
        let used =
            { classes.clone() }.filter(|class| groups.iter().any(|group| self.does(tables, *group, *class)));
        let slots: u64 = used
            .map(|class| tables.classes[class].nodes * tables.classes[class].slots)
            .sum();
        let alone = |group: &usize| self.allowed[*group] & 1 << site != 0 && room(*group) >= ranks(*group);
        groups.iter().all(alone) && groups.iter().map(|group| ranks(*group)).sum::<u64>() <= slots
    }
}
