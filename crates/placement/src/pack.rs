//! Decides whether ranks have room on given sites: how many nodes of each class go to groups whose ranks need
//! more than a slot's share of the memory, and how many slots of the other nodes go to all others. It uses
//! branch and bound over these numbers of nodes, with linear programs as bounds. That a program is infeasible
//! is proved by prices of slots: at these prices, the ranks pay more than all slots cost. This is checked in
//! integers.

use crate::flow::{Arc, Bin, Transport};
use crate::found::Found;
use crate::linear::{Answer, Row, decide};
use crate::sets::State;
use crate::tables::Tables;

/// Whether the ranks have room.
pub(crate) enum Packed {
    Into(Box<Found>),
    Never,
    /// Whether they have room could not be decided.
    Open,
}

/// A group on a class.
struct Use {
    group: usize,
    class: usize,
    /// Ranks that fit on a node.
    fit: u64,
    /// Whether the group has these nodes to itself.
    is_heavy: bool,
}

struct Packing<'a> {
    tables: &'a Tables,
    choices: Vec<usize>,
    ranks: Vec<u64>,
    uses: Vec<Use>,
}

/// The least and the most nodes of each use; only those of heavy uses count.
type Ranges = Vec<(u64, u64)>;

/// Packs the ranks of every group on the sites of its state, on classes that are fast enough.
pub(crate) fn pack(
    tables: &Tables,
    states: &[State],
    slowest: u64,
    may_go_on: &mut dyn FnMut() -> bool,
) -> Packed {
    let mut packing = Packing {
        tables,
        choices: states.iter().map(|state| state.choice).collect(),
        ranks: Vec::new(),
        uses: Vec::new(),
    };
    for (group, state) in states.iter().enumerate() {
        let row = &tables.choices[group][state.choice];
        packing.ranks.push(row.ranks);
        for (class, of) in tables.classes.iter().enumerate() {
            let fit = row.fit[class];
            if fit > 0 && row.compute[class] <= slowest && state.sites & 1 << of.site != 0 {
                packing.uses.push(Use {
                    group,
                    class,
                    fit,
                    is_heavy: fit < of.slots,
                });
            }
        }
    }
    let all = packing
        .uses
        .iter()
        .map(|of| (0, tables.classes[of.class].nodes))
        .collect();
    packing.search(all, may_go_on)
}

impl Packing<'_> {
    fn search(&self, all: Ranges, may_go_on: &mut dyn FnMut() -> bool) -> Packed {
        let mut open = vec![all];
        while let Some(ranges) = open.pop() {
            if !may_go_on() {
                return Packed::Open;
            }
            let values = match self.relaxed(&ranges) {
                None => continue,
                Some(values) => values,
            };
            if let Some(found) = self.rounded(&ranges, &values) {
                return Packed::Into(Box::new(found));
            }
            let Some((index, least)) = self.fraction(&ranges, &values) else {
                // It is neither feasible nor provably infeasible: the precision does not suffice.
                return Packed::Open;
            };
            let (mut fewer, mut more) = (ranges.clone(), ranges);
            fewer[index].1 = least;
            more[index].0 = least + 1;
            open.push(fewer);
            open.push(more);
        }
        Packed::Never
    }

    /// Ranks or, for heavy uses, nodes beyond the least, as fractions. `None` if there is no room.
    fn relaxed(&self, ranges: &Ranges) -> Option<Vec<f64>> {
        let classes = &self.tables.classes;
        let mut left: Vec<f64> = self.ranks.iter().map(|ranks| *ranks as f64).collect();
        let mut slots: Vec<f64> = classes
            .iter()
            .map(|class| (class.nodes * class.slots) as f64)
            .collect();
        for (of, range) in self.heavy(ranges) {
            left[of.group] -= (range.0 * of.fit) as f64;
            slots[of.class] -= (range.0 * classes[of.class].slots) as f64;
        }
        if slots.iter().any(|slots| *slots < 0.0) {
            return None;
        }
        let uses = || self.uses.iter().enumerate();
        let group = |group: usize| Row {
            sum: { uses().filter(|(_, of)| of.group == group) }
                .map(|(index, of)| (index, if of.is_heavy { of.fit as f64 } else { 1.0 }))
                .collect(),
            bound: left[group].max(0.0),
        };
        let class = |class: usize| Row {
            sum: { uses().filter(|(_, of)| of.class == class) }
                .map(|(index, of)| {
                    (
                        index,
                        if of.is_heavy {
                            classes[class].slots as f64
                        } else {
                            1.0
                        },
                    )
                })
                .collect(),
            bound: slots[class],
        };
        let at_least: Vec<Row> = (0..self.ranks.len()).map(group).collect();
        let mut at_most: Vec<Row> = (0..classes.len()).map(class).collect();
        for (index, of) in uses().filter(|(_, of)| of.is_heavy) {
            let (least, most) = ranges[index];
            if most < classes[of.class].nodes {
                at_most.push(Row {
                    sum: vec![(index, 1.0)],
                    bound: (most - least) as f64,
                });
            }
        }
        match decide(self.uses.len(), &at_least, &at_most) {
            Answer::Holds(values) => Some(values),
            Answer::Never(gains) if self.is_too_dear(ranges, &gains[..classes.len()]) => None,
            // Nothing is known, so it counts as feasible, with all values zero.
            Answer::Never(_) | Answer::Unknown => Some(vec![0.0; self.uses.len()]),
        }
    }

    fn heavy<'a>(&'a self, ranges: &'a Ranges) -> impl Iterator<Item = (&'a Use, &'a (u64, u64))> {
        self.uses.iter().zip(ranges).filter(|(of, _)| of.is_heavy)
    }

    /// Says whether ranks pay more, at prices in this proportion, than all slots cost.
    fn is_too_dear(&self, ranges: &Ranges, prices: &[f64]) -> bool {
        let largest = prices.iter().copied().fold(0.0, f64::max);
        let whole = |price: &f64| (price.max(0.0) / largest * f64::from(1 << 30)).round() as i128;
        let prices: Vec<i128> = prices.iter().map(whole).collect();
        let slots = |class: usize| i128::from(self.tables.classes[class].slots);
        let mut paid: i128 = 0;
        for (group, ranks) in self.ranks.iter().enumerate() {
            let mut left = i128::from(*ranks);
            let mut ways = Vec::new();
            for (of, (least, most)) in self.uses.iter().zip(ranges).filter(|(of, _)| of.group == group) {
                let (fit, price) = (i128::from(of.fit), prices[of.class]);
                if of.is_heavy {
                    left -= i128::from(*least) * fit;
                    paid += i128::from(*least) * slots(of.class) * price;
                    ways.push((price * slots(of.class) / fit, i128::from(most - least) * fit));
                } else {
                    ways.push((
                        price,
                        i128::from(self.tables.classes[of.class].nodes) * slots(of.class),
                    ));
                }
            }
            ways.sort_unstable();
            for (price, room) in ways {
                let ranks = left.clamp(0, room);
                paid += price * ranks;
                left -= ranks;
            }
            if left > 0 {
                return true;
            }
        }
        let all = { prices.iter().enumerate() }
            .map(|(class, price)| price * slots(class) * i128::from(self.tables.classes[class].nodes));
        paid > all.sum()
    }

    /// A placement with the next whole numbers of nodes, if there is room for these and for all others.
    fn rounded(&self, ranges: &Ranges, values: &[f64]) -> Option<Found> {
        let classes = &self.tables.classes;
        let mut transport = Transport::default();
        let mut nodes: Vec<u64> = classes.iter().map(|class| class.nodes).collect();
        let mut left = self.ranks.clone();
        let mut ranks = vec![vec![0; classes.len()]; left.len()];
        for (index, of) in self.uses.iter().enumerate().filter(|(_, of)| of.is_heavy) {
            let (least, most) = ranges[index];
            let wanted = (least + (values[index] - 1e-6).ceil().max(0.0) as u64).min(most);
            // No more than its ranks need.
            let taken = wanted.min(left[of.group].div_ceil(of.fit));
            nodes[of.class] = nodes[of.class].checked_sub(taken)?;
            ranks[of.group][of.class] = left[of.group].min(taken * of.fit);
            left[of.group] -= ranks[of.group][of.class];
        }
        for (class, nodes) in nodes.iter().enumerate() {
            let slots = nodes * classes[class].slots;
            transport.bins.push(Bin { class, slots });
        }
        for (group, left) in left.into_iter().enumerate() {
            let light = self.uses.iter().filter(|of| of.group == group && !of.is_heavy);
            let arcs = light.map(|of| Arc {
                bin: of.class,
                limit: u64::MAX,
                weight: 0,
            });
            transport.groups.push((left, arcs.collect()));
        }
        let placed = transport.solve()?;
        for (group, (_, arcs)) in transport.groups.iter().enumerate() {
            for (arc, placed) in arcs.iter().zip(&placed[group]) {
                ranks[group][arc.bin] += placed;
            }
        }
        Some(Found::new(self.tables, &self.choices, ranks))
    }

    /// The heavy use whose number of nodes is farthest from an integer, or else the one with the widest range
    /// left; and that number rounded down.
    fn fraction(&self, ranges: &Ranges, values: &[f64]) -> Option<(usize, u64)> {
        let open = { 0..values.len() }
            .filter(|index| self.uses[*index].is_heavy && ranges[*index].0 < ranges[*index].1);
        let key = |index: &usize| {
            let part = values[*index].fract();
            (part.min(1.0 - part) * 1e6) as u64
        };
        let index = open.max_by_key(|index| (key(index), ranges[*index].1 - ranges[*index].0))?;
        let (least, most) = ranges[index];
        Some((index, (least + values[index].max(0.0) as u64).min(most - 1)))
    }
}
