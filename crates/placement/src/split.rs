//! How a part is split, depending on why its best states cannot be together.

use crate::part::Part;
use crate::relax::{Priced, Relaxation};
use crate::sets::State;
use crate::tables::{Sites, Tables, members};

pub(crate) struct Splitter<'a> {
    pub tables: &'a Tables,
    pub relaxation: &'a Relaxation<'a>,
    pub part: &'a Part,
    /// The states in which its bound is least.
    pub best: &'a Priced,
    /// The most sites that a placement may have.
    pub most_sites: u64,
}

impl Splitter<'_> {
    /// Splits at two groups that may not be together, at too many sites, or at a site with too many ranks.
    pub fn split(&self) -> Vec<Part> {
        { self.at_conflict().or_else(|| self.at_many()) }.unwrap_or_else(|| self.at_site())
    }

    fn sites(&self, group: usize, state: usize) -> Sites {
        self.relaxation.states[group][state].sites
    }

    fn groups(&self) -> std::ops::Range<usize> {
        0..self.part.alive.len()
    }

    /// The part in which some groups are not on a site.
    fn without(&self, site: usize, is_meant: impl Fn(usize) -> bool) -> Option<Part> {
        let mut alive = self.part.alive.clone();
        for (group, alive) in alive.iter_mut().enumerate().filter(|(group, _)| is_meant(*group)) {
            alive.retain(|state| self.sites(group, *state) & 1 << site == 0);
        }
        self.part.with(alive)
    }

    /// Splits where two groups are on sites that they may not use together: one of the two uses is excluded.
    /// If no two groups may use them together, no group at all uses the one site, or none the other.
    fn at_conflict(&self) -> Option<Vec<Part>> {
        let sites = |group: usize| self.sites(group, self.best.best[group]);
        let uses = self
            .groups()
            .flat_map(|group| members(sites(group)).map(move |site| (group, site)));
        let mut pairs = uses.flat_map(|at| self.groups().map(move |other| (at, other)));
        let (one, other) = pairs.find_map(|(at, other)| {
            let bad = sites(other) & !self.tables.compatible(at.0, at.1, other);
            Some((at, (other, members(bad).next()?)))
        })?;
        let is_linked = self.groups().any(|from| {
            let may = |to: usize| self.tables.compatible(from, one.1, to) & 1 << other.1 != 0;
            self.groups().any(may)
        });
        let without = |(group, site): (usize, usize)| self.without(site, |at| !is_linked || at == group);
        Some([without(one), without(other)].into_iter().flatten().collect())
    }

    /// Splits if there are too many sites: without the smallest that is not charged, or charged for it.
    fn at_many(&self) -> Option<Vec<Part>> {
        let best = self.best.best.iter().enumerate();
        let all = best.fold(0, |all: Sites, (group, state)| all | self.sites(group, *state));
        if u64::from(all.count_ones()) <= self.most_sites {
            return None;
        }
        let uncharged = members(all & !self.part.charged);
        let site = uncharged.min_by_key(|site| (self.tables.slots(*site), *site))?;
        let mut with = self.part.with(self.part.alive.clone())?;
        with.charged |= 1 << site;
        Some(self.without(site, |_| true).into_iter().chain([with]).collect())
    }

    /// Splits by whether a group uses a site: preferably at the most overloaded site that can be split, by
    /// the group with the most ranks; otherwise at any, as evenly as possible.
    fn at_site(&self) -> Vec<Part> {
        let taken = |site: usize| -> i64 {
            let classes = self.tables.classes_at[site].clone();
            classes.map(|class| self.best.taken[class]).sum()
        };
        let mut widest = None;
        for group in self.groups() {
            let State { choice, sites } = self.relaxation.states[group][self.best.best[group]];
            let alive = &self.part.alive[group];
            let all = alive
                .iter()
                .fold(0, |all: Sites, state| all | self.sites(group, *state));
            for site in members(all) {
                let uses = |state: &&usize| self.sites(group, **state) & 1 << site != 0;
                let with = alive.iter().filter(uses).count();
                let least = with.min(alive.len() - with);
                if least > 0 {
                    let over = match sites & 1 << site {
                        0 => 0,
                        _ => (taken(site) - self.tables.slots(site) as i64).max(0),
                    };
                    let ranks = if over > 0 {
                        self.tables.choices[group][choice].ranks
                    } else {
                        0
                    };
                    let key = (over, ranks, least, usize::MAX - group);
                    widest = widest.max(Some((key, group, site)));
                }
            }
        }
        let Some((_, group, site)) = widest else {
            return self.by_choice();
        };
        let half = |wanted: bool| {
            let mut alive = self.part.alive.clone();
            alive[group].retain(|state| (self.sites(group, *state) & 1 << site != 0) == wanted);
            self.part.with(alive)
        };
        [half(true), half(false)].into_iter().flatten().collect()
    }

    /// Splits by the alternatives of the first group that has several on the same sites.
    fn by_choice(&self) -> Vec<Part> {
        let Some(group) = self.groups().find(|group| self.part.alive[*group].len() > 1) else {
            return Vec::new();
        };
        let with_state = |state: &usize| {
            let mut alive = self.part.alive.clone();
            alive[group] = vec![*state];
            self.part.with(alive)
        };
        self.part.alive[group].iter().filter_map(with_state).collect()
    }
}
