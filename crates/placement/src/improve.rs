//! Makes a placement better step by step: most groups stay on their sites, the others are placed anew. It proves
//! nothing, but large jobs get good placements by it long before the search comes to them.

use crate::found::{Found, Limits};
use crate::model::Objective;
use crate::node::Node;
use crate::search::Search;
use crate::tables::Tables;

/// Steps for one attempt: most that succeed need fewer.
const STEPS: u32 = 100;

/// Improves a placement within the limits by one objective, until no attempt succeeds or it may not go on.
pub(crate) fn improve(
    tables: &Tables,
    limits: &Limits,
    objective: Objective,
    found: &mut Found,
    may_go_on: &mut dyn FnMut() -> bool,
) {
    let attempts = attempts(tables);
    let mut since = 0;
    for free in attempts.iter().cycle() {
        if since == attempts.len() {
            return;
        }
        since += 1;
        let Some(less) = found.value(objective).checked_sub(1) else {
            return;
        };
        let mut limits = limits.clone();
        limits.set(objective, less);
        let mut steps = 0;
        let mut goes_on = true;
        let search = Search::new(tables, limits, Some(objective)).within(around(tables, found, free));
        let ended = search.run(&mut || {
            steps += 1;
            goes_on = steps <= STEPS && may_go_on();
            goes_on
        });
        if let Some(best) = ended.best {
            *found = best;
            since = 0;
        }
        if !goes_on && steps <= STEPS {
            return;
        }
    }
}

/// The groups that are placed anew together: each group with those that it has traffic with, the two of each
/// pair, and each alone.
fn attempts(tables: &Tables) -> Vec<Vec<usize>> {
    let pairs = || tables.pairs.iter().map(|pair| pair.groups).filter(|(one, other)| one != other);
    let mut attempts: Vec<Vec<usize>> = (0..tables.groups()).map(|group| vec![group]).collect();
    attempts.extend(pairs().map(|(one, other)| vec![one, other]));
    for group in 0..tables.groups() {
        let beside = pairs().filter_map(|(one, other)| match group {
            _ if group == one => Some(other),
            _ if group == other => Some(one),
            _ => None,
        });
        let star: Vec<usize> = [group].into_iter().chain(beside).collect();
        if star.len() > 2 {
            attempts.push(star);
        }
    }
    attempts
}

/// The placements in which all other groups have the choices and sites that they have.
fn around(tables: &Tables, found: &Found, free: &[usize]) -> Node {
    let mut node = Node::all(tables);
    for group in (0..tables.groups()).filter(|group| !free.contains(group)) {
        node.allowed[group] &= found.used[group];
        node.choice[group] = found.choice[group];
    }
    node
}
