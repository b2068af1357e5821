//! Takes out of a node what none of its placements can have, before ranks are shared out.

use crate::bounds::{Bounds, TimeBound};
use crate::found::Limits;
use crate::node::Node;
use crate::tables::{Sites, Tables, members};

/// What follows from a node.
#[derive(Debug)]
pub(crate) struct View {
    /// Ranks of each group that fit on each site by themselves: `[group * sites + site]`.
    pub room: Vec<u64>,
    pub time: TimeBound,
    pub sites_used: u64,
}

impl Node {
    /// Takes out what cannot be; nothing where no placement is left within the limits.
    pub fn narrow(&mut self, tables: &Tables, limits: &Limits) -> Option<View> {
        let mut room = self.room(tables);
        loop {
            let before = (self.allowed.clone(), self.needed.clone());
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
            self.keep_within(tables, limits, &time);
            if (&self.allowed, &self.needed) == (&before.0, &before.1) {
                return Some(View {
                    room,
                    time,
                    sites_used,
                });
            }
            for (group, allowed) in self.allowed.iter().enumerate() {
                for site in members(before.0[group] & !allowed) {
                    room[group * tables.sites + site] = 0;
                }
            }
        }
    }

    fn room(&self, tables: &Tables) -> Vec<u64> {
        let mut room = vec![0; tables.groups() * tables.sites];
        for group in 0..tables.groups() {
            let choice = self.chosen(tables, group);
            for site in members(self.allowed[group]) {
                let classes = tables.of_site[site].clone();
                let fits = classes.filter(|class| self.does(tables, group, *class));
                room[group * tables.sites + site] = fits
                    .map(|class| tables.classes[class].nodes * choice.fit[class])
                    .sum();
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
            if total < ranks || self.needed[group] & !self.allowed[group] != 0 {
                return None;
            }
            for site in members(self.allowed[group]).filter(|site| total - room[*site] < ranks) {
                self.needed[group] |= 1 << site;
            }
        }
        Some(())
    }

    /// Takes out sites that leave another group, or the same, no room on sites with a good link.
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

    /// Takes out sites that cost too much time, or would be too many.
    fn keep_within(&mut self, tables: &Tables, limits: &Limits, time: &TimeBound) {
        let is_full = u64::from(self.charged.count_ones()) >= limits.sites;
        for group in 0..tables.groups() {
            if is_full {
                self.allowed[group] &= self.charged;
            }
            if limits.times {
                let raise = &time.raise[group * tables.sites..][..tables.sites];
                let dear = |site: &usize| time.total.saturating_add(raise[*site]) > limits.time;
                let dear = members(self.allowed[group]).filter(dear);
                self.allowed[group] &= !dear.fold(0, |set: Sites, site| set | 1 << site);
            }
        }
    }
}
