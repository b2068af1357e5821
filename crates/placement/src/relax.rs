//! A lower bound on the time that takes into account that groups compete for slots: a Lagrangian relaxation
//! (Fisher, The Lagrangian relaxation method for solving integer programming problems, Management Science 27,
//! 1981). Each slot of a class has a price; what a job pays for everything that it uses is added to its time,
//! and what all slots cost is subtracted. This makes no placement within the slots longer, so the minimum is
//! a lower bound, at any prices. At fixed prices, groups are independent except for their traffic: if pairs
//! form a forest, the minimum is found exactly, by dynamic programming over the sets of sites of each group.

use crate::sets::{State, worst};
use crate::tables::{Sites, Tables, members};

/// More than any time that is considered.
const NEVER: i64 = i64::MAX / 8;

/// The traffic between a group and the one above it in the forest.
struct Edge {
    parent: usize,
    child: usize,
    /// How many states the child has.
    children: usize,
    /// What the traffic takes, by the state of the parent and that of the child.
    cost: Vec<i64>,
}

/// What stays the same while prices change.
pub(crate) struct Relaxation<'a> {
    tables: &'a Tables,
    /// The slowest class that may be used, and the least time of its work.
    slowest: u64,
    /// For each group, its states; elsewhere, a state is an index into this list.
    pub states: Vec<Vec<State>>,
    /// For each group and state, what its traffic outside the edges takes.
    own: Vec<Vec<i64>>,
    /// The edges, those nearest to the root first.
    edges: Vec<Edge>,
    /// The least time of pairs that are not among the edges.
    apart: i64,
}

/// The result of the relaxation at some prices.
pub(crate) struct Priced {
    pub bound: i64,
    /// For each group, and each of its states in the order of `alive`, the bound if it is in that state.
    pub with: Vec<Vec<i64>>,
    /// A state of each group; together they attain the bound.
    pub best: Vec<usize>,
    /// Ranks of each group on each class, where they pay least.
    pub ranks: Vec<Vec<u64>>,
    /// Slots of each class that they take.
    pub taken: Vec<i64>,
}

impl<'a> Relaxation<'a> {
    /// Takes the least time of each pair, and its time by the sites of its groups.
    pub fn new(
        tables: &'a Tables,
        slowest: u64,
        states: Vec<Vec<State>>,
        least: &[u64],
        sides: &[[Vec<u64>; 2]],
    ) -> Relaxation<'a> {
        let edges: Vec<Edge> = { tables.forest.iter() }
            .map(|edge| edge_of(tables, edge.parent, edge.child, &states))
            .collect();
        let mut own: Vec<Vec<i64>> = states.iter().map(|states| vec![0; states.len()]).collect();
        let mut apart = 0;
        for (index, pair) in tables.pairs.iter().enumerate() {
            let (one, other) = pair.groups;
            let is_edge = |edge: &Edge| {
                (edge.parent, edge.child) == (one, other) || (edge.parent, edge.child) == (other, one)
            };
            if edges.iter().any(is_edge) {
                continue;
            }
            apart += bounded(least[index]);
            for (state, own) in states[one].iter().zip(&mut own[one]) {
                let takes = if one == other {
                    worst(tables, pair, state.sites, state.sites)
                } else {
                    members(state.sites)
                        .map(|site| sides[index][0][site])
                        .max()
                        .unwrap_or(0)
                };
                *own = own.saturating_add(bounded(takes.saturating_sub(least[index])));
            }
        }
        Relaxation {
            tables,
            slowest,
            states,
            own,
            edges,
            apart,
        }
    }

    /// The bound on all placements in which every group is in one of these states.
    pub fn at(&self, prices: &[i64], alive: &[Vec<usize>]) -> Priced {
        let groups = self.states.len();
        let mut below: Vec<Vec<i64>> = (0..groups)
            .map(|group| self.alone(group, prices, &alive[group]))
            .collect();
        // From the leaves on: what each state of a parent pays for everything below an edge.
        let mut up = Vec::new();
        for edge in self.edges.iter().rev() {
            let paid = edge.by_child(alive, &below[edge.child]);
            for (cost, (paid, _)) in below[edge.parent].iter_mut().zip(&paid) {
                *cost = (*cost).saturating_add(*paid).min(NEVER);
            }
            up.push(paid);
        }
        up.reverse();
        let is_root = |group: &usize| self.edges.iter().all(|edge| edge.child != *group);
        let mut best = vec![0; groups];
        let slots = { prices.iter().zip(&self.tables.classes) }
            .map(|(price, class)| price.saturating_mul((class.nodes * class.slots) as i64));
        let mut bound = bounded(self.slowest) + self.apart - slots.fold(0, i64::saturating_add);
        for group in (0..groups).filter(is_root) {
            best[group] = least(&below[group]);
            bound = bound.saturating_add(below[group][best[group]]).min(NEVER);
        }
        for (edge, up) in self.edges.iter().zip(&up) {
            best[edge.child] = up[best[edge.parent]].1;
        }
        // From the roots on: the same for everything that is not below it.
        let mut all = below;
        for (edge, up) in self.edges.iter().zip(&up) {
            let above: Vec<i64> = { all[edge.parent].iter().zip(up) }
                .map(|(all, (paid, _))| if *all >= NEVER { NEVER } else { all - paid })
                .collect();
            let paid = edge.by_parent(alive, &above);
            for (cost, paid) in all[edge.child].iter_mut().zip(paid) {
                *cost = (*cost).saturating_add(paid).min(NEVER);
            }
        }
        let with = all.into_iter().map(|all| {
            let least = all[least(&all)];
            all.into_iter()
                .map(|cost| bound.saturating_add(cost - least))
                .collect()
        });
        let with = with.collect();
        let mut taken = vec![0; self.tables.classes.len()];
        let mut ranks = vec![vec![0; self.tables.classes.len()]; groups];
        for group in 0..groups {
            best[group] = alive[group][best[group]];
            self.take(group, best[group], prices, &mut taken, &mut ranks[group]);
        }
        Priced {
            bound,
            with,
            best,
            ranks,
            taken,
        }
    }

    /// What each state of a group pays for slots, and its traffic outside the edges.
    fn alone(&self, group: usize, prices: &[i64], alive: &[usize]) -> Vec<i64> {
        let choices = 0..self.tables.choices[group].len();
        let orders: Vec<Vec<(i64, usize)>> =
            choices.map(|choice| self.order(group, choice, prices)).collect();
        let least_cost = |state: &usize| {
            let State { choice, sites } = self.states[group][*state];
            let mut pays = self.own[group][*state];
            self.fill(group, choice, sites, &orders[choice], |_, ranks, price| {
                pays = pays.saturating_add(price.saturating_mul(ranks as i64));
            });
            pays.min(NEVER)
        };
        alive.iter().map(least_cost).collect()
    }

    /// The classes that suit a group, cheapest first, each with what a rank pays there.
    fn order(&self, group: usize, choice: usize, prices: &[i64]) -> Vec<(i64, usize)> {
        let row = &self.tables.choices[group][choice];
        let does = |class: &usize| row.fit[*class] > 0 && row.compute[*class] <= self.slowest;
        let pays = |class: usize| {
            // A rank that needs more than a slot's share of the memory uses the corresponding part of a node.
            let slots = self.tables.classes[class].slots as i64;
            (prices[class].saturating_mul(slots) / row.fit[class] as i64, class)
        };
        let mut order: Vec<(i64, usize)> = { 0..self.tables.classes.len() }.filter(does).map(pays).collect();
        order.sort_unstable();
        order
    }

    /// Puts a group's ranks where they pay least.
    fn fill(
        &self,
        group: usize,
        choice: usize,
        sites: Sites,
        order: &[(i64, usize)],
        mut put: impl FnMut(usize, u64, i64),
    ) {
        let row = &self.tables.choices[group][choice];
        let mut left = row.ranks;
        for (price, class) in order {
            let class_row = &self.tables.classes[*class];
            if left == 0 {
                break;
            }
            if sites & 1 << class_row.site != 0 {
                let ranks = left.min(class_row.nodes * row.fit[*class]);
                left -= ranks;
                put(*class, ranks, *price);
            }
        }
    }

    fn take(&self, group: usize, state: usize, prices: &[i64], taken: &mut [i64], put: &mut [u64]) {
        let State { choice, sites } = self.states[group][state];
        let row = &self.tables.choices[group][choice];
        let order = self.order(group, choice, prices);
        self.fill(group, choice, sites, &order, |class, ranks, _| {
            taken[class] += (ranks * self.tables.classes[class].slots / row.fit[class]) as i64;
            put[class] = ranks;
        });
    }
}

impl Edge {
    /// For each state of the parent, the least cost of a state of the child and the edge, and which state
    /// that is.
    fn by_child(&self, alive: &[Vec<usize>], costs: &[i64]) -> Vec<(i64, usize)> {
        let row = |parent: &usize| {
            let row = &self.cost[parent * self.children..][..self.children];
            let mut least = (NEVER, 0);
            for (index, child) in alive[self.child].iter().enumerate() {
                let cost = row[*child] + costs[index];
                if cost < least.0 {
                    least = (cost, index);
                }
            }
            least
        };
        alive[self.parent].iter().map(row).collect()
    }

    /// The same for each state of the child.
    fn by_parent(&self, alive: &[Vec<usize>], costs: &[i64]) -> Vec<i64> {
        let mut least = vec![NEVER; alive[self.child].len()];
        for (index, parent) in alive[self.parent].iter().enumerate() {
            let row = &self.cost[parent * self.children..][..self.children];
            for (least, child) in least.iter_mut().zip(&alive[self.child]) {
                *least = (*least).min(row[*child] + costs[index]);
            }
        }
        least
    }
}

fn edge_of(tables: &Tables, parent: usize, child: usize, states: &[Vec<State>]) -> Edge {
    let children = states[child].len();
    let mut cost = vec![0_i64; states[parent].len() * children];
    for (one, row) in states[parent].iter().zip(cost.chunks_mut(children.max(1))) {
        let good = members(one.sites)
            .map(|site| tables.compatible(parent, site, child))
            .fold(Sites::MAX, |all, good| all & good);
        for pair in &tables.pairs {
            if pair.groups != (parent, child) && pair.groups != (child, parent) {
                continue;
            }
            let to: Vec<u64> = (0..tables.sites)
                .map(|far| worst(tables, pair, one.sites, 1 << far))
                .collect();
            for (cost, other) in row.iter_mut().zip(&states[child]) {
                let takes = members(other.sites).map(|far| to[far]).max().unwrap_or(0);
                *cost = cost.saturating_add(bounded(takes)).min(NEVER);
            }
        }
        for (cost, other) in row.iter_mut().zip(&states[child]) {
            if other.sites & !good != 0 {
                *cost = NEVER;
            }
        }
    }
    Edge {
        parent,
        child,
        children,
        cost,
    }
}

fn least(costs: &[i64]) -> usize {
    { 0..costs.len() }.min_by_key(|index| costs[*index]).unwrap_or(0)
}

fn bounded(time: u64) -> i64 {
    i64::try_from(time).unwrap_or(NEVER).min(NEVER)
}
