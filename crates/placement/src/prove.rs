//! Proves that no placement takes less time, or finds one: branch and bound over the sets of sites on which
//! groups are. Its bounds take into account that groups compete for slots, which those of [`crate::bounds`]
//! hardly do; but each of them costs far more.
//!
//! ```text
//!     longest work ── states ── slots have prices ──┬── bound above the limit: closed
//!      (each value)                 ^        │      ├── states whose bound is: taken out
//!                                   └────────┘      ├── one state for each group: packed, or closed
//!                              overloaded: dearer   └── otherwise split
//! ```

use crate::found::{Found, Limits};
use crate::model::Objective;
use crate::node::Node;
use crate::pack::{Packed, pack};
use crate::part::Part;
use crate::relax::{Priced, Relaxation};
use crate::search::Search;
use crate::sets::{State, states};
use crate::share::share;
use crate::split::Splitter;
use crate::tables::{Sites, Tables};
use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

/// How many subgradient steps a part gets about which nothing is known.
const FIRST_ROUNDS: u32 = 120;

/// How many successive steps may leave the bound unchanged before the step size is halved.
const PATIENCE: u32 = 2;

/// A full step, in the units of the step size.
const STEP: i128 = 16;

/// Most entries of all tables together: 128 MB.
const ENTRIES: usize = 16 << 20;

/// Steps for one attempt to pack the best states of a part.
const STEPS: u32 = 8;

struct Proof<'a> {
    tables: &'a Tables,
    /// The time or the number of sites; it is minimised.
    objective: Objective,
    limits: Limits,
    /// Each relaxation with its value of the longest work.
    relaxations: Vec<(u64, Relaxation<'a>)>,
    best: Option<Found>,
}

/// The result of examining a part.
enum Ended {
    Closed,
    Open,
    Split(Vec<Part>),
}

/// Searches for a placement that is better for an objective, the time or the number of sites, and returns a
/// lower bound. If the job has too many sets of sites, it proves nothing.
pub(crate) fn prove(
    tables: &Tables,
    limits: &Limits,
    objective: Objective,
    found: &mut Found,
    may_go_on: &mut dyn FnMut() -> bool,
) -> u64 {
    let Some(less) = found.value(objective).checked_sub(1) else {
        return 0;
    };
    let mut limits = limits.clone();
    limits.set(objective, less);
    let mut proof = Proof {
        tables,
        objective,
        limits,
        relaxations: Vec::new(),
        best: None,
    };
    let bound = match proof.parts(may_go_on) {
        Some(parts) => proof.run(parts, may_go_on),
        None => 0,
    };
    if let Some(best) = proof.best {
        *found = best;
    }
    bound
}

impl<'a> Proof<'a> {
    /// A part for each value that the longest work can have; `None` if there are too many.
    fn parts(&mut self, may_go_on: &mut dyn FnMut() -> bool) -> Option<Vec<Part>> {
        let rows = { self.tables.choices.iter().flatten() }
            .flat_map(|choice| choice.fit.iter().zip(&choice.compute));
        let values: BTreeSet<u64> = rows
            .filter(|(fit, _)| **fit > 0)
            .map(|(_, value)| *value)
            .collect();
        let (mut parts, mut entries) = (Vec::new(), 0);
        for value in values.into_iter().filter(|value| *value <= self.limits.time) {
            let mut node = Node::all(self.tables);
            node.slowest = (value, value);
            let Some(view) = node.narrow(self.tables, &self.limits) else {
                continue;
            };
            let states: Option<Vec<_>> = (0..self.tables.groups())
                .map(|group| states(self.tables, &node, &view, group, self.limits.time))
                .collect();
            let states = states?;
            if states.iter().any(Vec::is_empty) {
                continue;
            }
            let edges = self.tables.forest.iter();
            entries += edges
                .map(|edge| states[edge.parent].len() * states[edge.child].len())
                .sum::<usize>();
            if entries > ENTRIES || !may_go_on() {
                return None;
            }
            let alive = states.iter().map(|states| (0..states.len()).collect()).collect();
            let relaxation = Relaxation::new(self.tables, value, states, &view.time.pairs, &view.time.sides);
            parts.push(Part {
                relaxation: self.relaxations.len(),
                alive,
                charged: 0,
                prices: vec![0; self.tables.classes.len()],
                bound: i64::try_from(view.time.total).unwrap_or(i64::MAX),
                sites: view.sites_used,
                rounds: FIRST_ROUNDS,
            });
            self.relaxations.push((value, relaxation));
        }
        Some(parts)
    }

    /// Examines the part with the least bound, and among equals the newest, until none is left or the budget
    /// ends.
    fn run(&mut self, parts: Vec<Part>, may_go_on: &mut dyn FnMut() -> bool) -> u64 {
        let mut open = BTreeMap::new();
        let mut count: u64 = 0;
        let mut add = |open: &mut BTreeMap<_, Part>, by: Objective, part: Part| {
            count += 1;
            open.insert((part.least(by), part.bound, Reverse(count)), part);
        };
        for part in parts {
            add(&mut open, self.objective, part);
        }
        while let Some((_, mut part)) = open.pop_first() {
            match self.examine(&mut part, may_go_on) {
                Ended::Closed => {}
                Ended::Split(parts) => parts
                    .into_iter()
                    .for_each(|part| add(&mut open, self.objective, part)),
                Ended::Open => {
                    let least = open.first_key_value().map_or(u64::MAX, |((least, ..), _)| *least);
                    return least.min(part.least(self.objective));
                }
            }
        }
        u64::MAX
    }

    fn examine(&mut self, part: &mut Part, may_go_on: &mut dyn FnMut() -> bool) -> Ended {
        if !self.narrow(part) {
            return Ended::Closed;
        }
        let mut prices = part.prices.clone();
        let (mut step, mut since) = (STEP, 0);
        let (mut best, mut last): (Option<Priced>, Option<Priced>) = (None, None);
        for _ in 0..part.rounds {
            if !may_go_on() {
                return Ended::Open;
            }
            let priced = self.relaxations[part.relaxation].1.at(&prices, &part.alive);
            if !self.keep_within(part, &priced) {
                return Ended::Closed;
            }
            self.attempt(part.relaxation, &priced);
            since += 1;
            let from = if best.as_ref().is_none_or(|best| priced.bound > best.bound) {
                part.prices.clone_from(&prices);
                part.bound = part.bound.max(priced.bound);
                since = 0;
                best.insert(priced)
            } else if since == PATIENCE {
                (step, since) = (step / 2, 0);
                prices.clone_from(&part.prices);
                best.get_or_insert(priced)
            } else {
                last.insert(priced)
            };
            if step == 0 || !self.adjust_prices(&mut prices, from, step) {
                break;
            }
        }
        let Some(best) = best else {
            return Ended::Open;
        };
        if part.alive.iter().all(|alive| alive.len() == 1) {
            return self.decide(part, may_go_on);
        }
        self.attempt_best(part, &best.best, may_go_on);
        let splitter = Splitter {
            tables: self.tables,
            relaxation: &self.relaxations[part.relaxation].1,
            part,
            best: &best,
            most_sites: self.limits.sites,
        };
        Ended::Split(splitter.split())
    }

    /// Removes states that narrowing a node rules out. Returns whether anything is left.
    fn narrow(&self, part: &mut Part) -> bool {
        let (value, relaxation) = &self.relaxations[part.relaxation];
        let mut node = Node::all(self.tables);
        node.slowest = (*value, *value);
        node.charged = part.charged;
        for (group, alive) in part.alive.iter().enumerate() {
            let states = alive.iter().map(|state| relaxation.states[group][*state]);
            node.allowed[group] &= states.clone().fold(0, |all: Sites, state| all | state.sites);
            let choices: BTreeSet<usize> = states.map(|state| state.choice).collect();
            if let (Some(choice), 1) = (choices.first(), choices.len()) {
                node.choice[group] = *choice;
            }
        }
        let Some(view) = node.narrow(self.tables, &self.limits) else {
            return false;
        };
        if share(self.tables, &node, |_, _| 0).is_none() {
            return false;
        }
        part.sites = part.sites.max(view.sites_used);
        for (group, alive) in part.alive.iter_mut().enumerate() {
            alive.retain(|state| {
                let sites = relaxation.states[group][*state].sites;
                sites & !node.allowed[group] == 0 && node.needed[group] & !sites == 0
            });
        }
        part.alive.iter().all(|alive| !alive.is_empty())
    }

    /// Removes states whose time is above its limit. Returns whether anything is left.
    fn keep_within(&self, part: &mut Part, priced: &Priced) -> bool {
        let limit = i64::try_from(self.limits.time).unwrap_or(i64::MAX);
        for (alive, with) in part.alive.iter_mut().zip(&priced.with) {
            let mut with = with.iter();
            alive.retain(|_| with.next().is_some_and(|bound| *bound <= limit));
        }
        priced.bound <= limit && part.alive.iter().all(|alive| !alive.is_empty())
    }

    /// The slots of each class.
    fn slots(&self) -> impl Iterator<Item = i64> {
        self.tables
            .classes
            .iter()
            .map(|class| (class.nodes * class.slots) as i64)
    }

    /// Takes a subgradient step (Polyak) towards a bound above the limit: overloaded classes become dearer,
    /// the others cheaper. Returns whether anything changes.
    fn adjust_prices(&self, prices: &mut [i64], priced: &Priced, step: i128) -> bool {
        let over: Vec<i128> = { self.slots().zip(&priced.taken).zip(&*prices) }
            .map(|((slots, taken), price)| {
                i128::from(taken - slots).max(if *price > 0 { i128::MIN } else { 0 })
            })
            .collect();
        let norm: i128 = over.iter().map(|over| over * over).sum();
        let gap = i128::from(self.limits.time) + 1 - i128::from(priced.bound);
        let mut is_changed = false;
        for (price, over) in prices.iter_mut().zip(over) {
            let by = (gap * over * step).checked_div(norm * STEP).unwrap_or(0);
            let next = (i128::from(*price) + by).clamp(0, 1 << 40) as i64;
            is_changed |= next != *price;
            *price = next;
        }
        is_changed
    }

    /// If what the prices led to is a placement within the limits, makes it the incumbent.
    fn attempt(&mut self, relaxation: usize, priced: &Priced) {
        if self
            .slots()
            .zip(&priced.taken)
            .any(|(slots, taken)| *taken > slots)
        {
            return;
        }
        let choices: Vec<usize> = self
            .chosen(relaxation, &priced.best)
            .map(|state| state.choice)
            .collect();
        let found = Found::new(self.tables, &choices, priced.ranks.clone());
        self.adopt(found);
    }

    /// Tests whether the best states of a part make a placement: prices may have put too much on one class
    /// while there is room elsewhere.
    fn attempt_best(&mut self, part: &Part, best: &[usize], may_go_on: &mut dyn FnMut() -> bool) {
        let mut steps = 0;
        if self.are_few(part.relaxation, best) && self.takes(part.relaxation, best) <= self.limits.time {
            let packed = self.packed(part.relaxation, best, &mut || {
                steps += 1;
                steps <= STEPS && may_go_on()
            });
            if let Packed::Into(found) = packed {
                self.adopt(*found);
            }
        }
    }

    /// Decides whether there is a placement with one state for each group: all such placements take equally
    /// long.
    fn decide(&mut self, part: &mut Part, may_go_on: &mut dyn FnMut() -> bool) -> Ended {
        let best: Vec<usize> = part.alive.iter().map(|alive| alive[0]).collect();
        if !self.are_few(part.relaxation, &best) || self.takes(part.relaxation, &best) > self.limits.time {
            return Ended::Closed;
        }
        match self.packed(part.relaxation, &best, may_go_on) {
            Packed::Never => return Ended::Closed,
            Packed::Open => return Ended::Open,
            Packed::Into(found) => {
                if self.adopt(*found) {
                    return Ended::Closed;
                }
            }
        }
        // There is room, but the result is too dear, or uses too many sites.
        let mut node = Node::all(self.tables);
        for (group, state) in self.chosen(part.relaxation, &best).enumerate() {
            node.allowed[group] &= state.sites;
            node.choice[group] = state.choice;
        }
        let ended = Search::new(self.tables, self.limits.clone(), None)
            .within(node, false)
            .run(may_go_on);
        if let Some(found) = ended.best {
            self.adopt(found);
        }
        if ended.open.is_some() {
            Ended::Open
        } else {
            Ended::Closed
        }
    }

    fn chosen(&self, relaxation: usize, best: &[usize]) -> impl Iterator<Item = State> {
        let states = &self.relaxations[relaxation].1.states;
        best.iter()
            .enumerate()
            .map(|(group, state)| states[group][*state])
    }

    /// All sites of these states.
    fn union(&self, relaxation: usize, best: &[usize]) -> Sites {
        self.chosen(relaxation, best)
            .fold(0, |all, state| all | state.sites)
    }

    fn are_few(&self, relaxation: usize, best: &[usize]) -> bool {
        u64::from(self.union(relaxation, best).count_ones()) <= self.limits.sites
    }

    /// The time of a placement in these states.
    fn takes(&self, relaxation: usize, best: &[usize]) -> u64 {
        let free = vec![0; self.tables.classes.len()];
        let alone: Vec<Vec<usize>> = best.iter().map(|state| vec![*state]).collect();
        u64::try_from(self.relaxations[relaxation].1.at(&free, &alone).bound).unwrap_or(0)
    }

    fn packed(&self, relaxation: usize, best: &[usize], may_go_on: &mut dyn FnMut() -> bool) -> Packed {
        let (slowest, _) = self.relaxations[relaxation];
        let states: Vec<State> = self.chosen(relaxation, best).collect();
        pack(self.tables, &states, slowest, may_go_on)
    }

    /// Makes a valid placement within the limits the incumbent; from then on, only better ones are within
    /// them.
    fn adopt(&mut self, found: Found) -> bool {
        let is_better = self.limits.allow(&found) && found.is_placement(self.tables);
        if is_better {
            let less = found.value(self.objective).saturating_sub(1);
            self.limits.set(self.objective, less);
            self.best = Some(found);
        }
        is_better
    }
}
