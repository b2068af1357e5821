//! Improves a placement step by step: most groups stay on their sites, the others are placed anew. It proves
//! nothing, but gives large jobs good placements long before the search reaches them.

use crate::found::{Found, Limits};
use crate::model::Objective;
use crate::node::Node;
use crate::search::Search;
use crate::tables::Tables;
use std::collections::BTreeSet;

/// Steps for one attempt: most attempts that succeed need fewer.
const STEPS: u32 = 40;

/// Improves a placement within the limits by one objective, until no attempt succeeds or the budget ends.
pub(crate) fn improve(
    tables: &Tables,
    limits: &Limits,
    objective: Objective,
    found: &mut Found,
    may_go_on: &mut dyn FnMut() -> bool,
) {
    let attempts = attempts(tables);
    let mut since = 0;
    // Both ways of splitting find something that the other does not.
    let both = [false, true].map(|proves| attempts.iter().map(move |free| (free, proves)));
    for (free, proves) in both.into_iter().flatten().collect::<Vec<_>>().iter().cycle() {
        if since == 2 * attempts.len() {
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
        let search =
            Search::new(tables, limits, Some(objective)).within(around(tables, found, free), *proves);
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

/// The groups that are placed anew together: each alone, any two, and each with the groups with which it has
/// traffic.
fn attempts(tables: &Tables) -> Vec<Vec<usize>> {
    let groups = tables.groups();
    let mut attempts: Vec<Vec<usize>> = (0..groups).map(|group| vec![group]).collect();
    attempts.extend((0..groups).flat_map(|one| (one + 1..groups).map(move |other| vec![one, other])));
    for group in 0..groups {
        let beside = tables.pairs.iter().filter_map(|pair| match pair.groups {
            (one, other) if one == group => Some(other),
            (one, other) if other == group => Some(one),
            _ => None,
        });
        let star: BTreeSet<usize> = beside.chain([group]).collect();
        if star.len() > 2 {
            attempts.push(star.into_iter().collect());
        }
    }
    attempts
}

/// The placements in which all other groups keep their choices and sites.
fn around(tables: &Tables, found: &Found, free: &[usize]) -> Node {
    let mut node = Node::all(tables);
    for group in (0..tables.groups()).filter(|group| !free.contains(group)) {
        node.allowed[group] &= found.used[group];
        node.choice[group] = found.choice[group];
    }
    node
}
