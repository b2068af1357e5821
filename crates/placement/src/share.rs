//! Distributes the ranks of a node over its classes, regardless of links between sites and of the number of
//! sites.

use crate::flow::{Arc, Bin, Transport};
use crate::narrow::View;
use crate::node::Node;
use crate::tables::{Tables, members};

/// Ranks of each group on each class; and those among them for which no node is reserved although their group
/// shares nodes with no other.
#[derive(Debug)]
pub(crate) struct Shares {
    pub ranks: Vec<Vec<u64>>,
    pub loose: Vec<Vec<u64>>,
}

/// Distributes them at the least weight; `weight` takes group and class. `None` if there would be no room
/// even if such loose ranks took one slot each.
pub(crate) fn share(tables: &Tables, node: &Node, weight: impl Fn(usize, usize) -> i64) -> Option<Shares> {
    let mut transport = Transport::default();
    for (class, row) in tables.classes.iter().enumerate() {
        let here = node.reserved.iter().filter(|reserved| reserved.class == class);
        let kept: u64 = here.map(|reserved| reserved.least).sum();
        let slots = row.nodes.checked_sub(kept)? * row.slots;
        transport.bins.push(Bin { class, slots });
    }
    for group in 0..tables.groups() {
        let choice = node.chosen(tables, group);
        let mut arcs = Vec::new();
        for site in members(node.allowed[group]) {
            for class in tables.classes_at[site]
                .clone()
                .filter(|class| node.does(tables, group, *class))
            {
                let kept = node.reserved_for(group, class);
                let most = kept.map_or(tables.classes[class].nodes, |kept| kept.most - kept.least);
                arcs.push(Arc {
                    bin: class,
                    limit: most * choice.fit[class],
                    weight: weight(group, class),
                });
                if let Some(kept) = kept {
                    let slots = kept.least * choice.fit[class];
                    arcs.push(Arc {
                        bin: transport.bins.len(),
                        limit: slots,
                        weight: weight(group, class),
                    });
                    transport.bins.push(Bin { class, slots });
                }
            }
        }
        transport.groups.push((choice.ranks, arcs));
    }
    let placed = transport.solve()?;
    let mut shares = Shares {
        ranks: vec![vec![0; tables.classes.len()]; tables.groups()],
        loose: vec![vec![0; tables.classes.len()]; tables.groups()],
    };
    for (group, (_, arcs)) in transport.groups.iter().enumerate() {
        let fit = &node.chosen(tables, group).fit;
        for (arc, ranks) in arcs.iter().zip(&placed[group]) {
            let class = transport.bins[arc.bin].class;
            shares.ranks[group][class] += ranks;
            if arc.bin < tables.classes.len() && fit[class] < tables.classes[class].slots {
                shares.loose[group][class] += ranks;
            }
        }
    }
    Some(shares)
}

/// Weights that lead to few bad links, short predicted times and few sites: if the node leaves a choice, the
/// first placement that it gives is then a better one.
pub(crate) struct Lead {
    by_site: Vec<i64>,
    sites: usize,
}

impl Lead {
    pub fn new(tables: &Tables, node: &Node, view: &View, counts: bool) -> Lead {
        let mut by_site = vec![0; tables.groups() * tables.sites];
        let worst = view
            .time
            .raise
            .iter()
            .copied()
            .filter(|raise| *raise < u64::MAX)
            .max()
            .unwrap_or(0);
        let largest = (0..tables.sites)
            .map(|site| tables.slots(site))
            .max()
            .unwrap_or(0);
        for group in 0..tables.groups() {
            for site in members(node.allowed[group] & !node.needed[group]) {
                let index = group * tables.sites + site;
                let mut weight = lost(tables, node, view, group, site);
                if worst > 0 {
                    let raise = u128::from(view.time.raise[index].min(worst)) * 4 * SCALE / u128::from(worst);
                    weight += raise as i64;
                }
                if counts && node.charged & 1 << site == 0 {
                    let small = u128::from(largest - tables.slots(site)) * SCALE / u128::from(largest.max(1));
                    weight += (SCALE + small) as i64;
                }
                by_site[index] = weight;
            }
        }
        Lead {
            by_site,
            sites: tables.sites,
        }
    }

    pub fn weight(&self, group: usize, site: usize) -> i64 {
        self.by_site[group * self.sites + site]
    }
}

/// How much of all groups' room a use of a site takes, in parts of [`SCALE`] for each.
fn lost(tables: &Tables, node: &Node, view: &View, group: usize, site: usize) -> i64 {
    let lost_to = |other: usize| {
        let good = node.allowed[other] & tables.compatible(group, site, other);
        if good == node.allowed[other] {
            return 0;
        }
        let room = |sites| -> u128 {
            members(sites)
                .map(|site| u128::from(view.room[other * tables.sites + site]))
                .sum()
        };
        let all = room(node.allowed[other]).max(1);
        ((all - room(good).min(all)) * SCALE / all) as i64
    };
    (0..tables.groups()).map(lost_to).sum()
}

/// Weights have three digits, which is more than enough to distinguish sites.
const SCALE: u128 = 1000;
