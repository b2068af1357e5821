//! One objective after the other: each is minimised, and its value then limits the search for the next.

use crate::Spent;
use crate::answer::{Placement, Reached, Share};
use crate::found::{Found, Limits};
use crate::improve::improve;
use crate::model::{Job, Objective, Resources};
use crate::prove::prove;
use crate::search::{self, Search};
use crate::tables::{Scope, Tables};
use std::collections::BTreeSet;

/// How a job was decided.
pub(crate) enum Ended {
    Placed(Placement),
    Impossible,
    Undecided,
}

/// Thousandths in a budget.
const WHOLE: u32 = 1000;

pub(crate) fn place(resources: &Resources, job: &Job, objectives: &[Objective], spent: &mut Spent) -> Ended {
    let scope = Scope {
        resources,
        job,
        without: &BTreeSet::new(),
    };
    let mut tables = Tables::new(&scope);
    let mut limits = Limits::none(objectives);
    let first = Search::new(&tables, limits.clone(), None).run(&mut || spent() < WHOLE);
    let Some(mut found) = first.best else {
        return match first.open {
            Some(_) => Ended::Undecided,
            None => Ended::Impossible,
        };
    };
    let mut reached = Vec::new();
    for (stage, objective) in objectives.iter().enumerate() {
        let left = u32::try_from(objectives.len() - stage).unwrap_or(u32::MAX);
        let bound = match objective {
            Objective::Start => earlier(&tables, &limits, &mut found, left, spent),
            _ => better(&tables, &limits, *objective, &mut found, left, spent),
        };
        let value = found.value(*objective);
        match objective {
            Objective::Start => tables = tables.until(value),
            _ => limits.set(*objective, value),
        }
        reached.push(Reached {
            objective: *objective,
            value,
            bound: bound.min(value),
        });
    }
    Ended::Placed(placement(&tables, found, reached))
}

/// The fraction of the budget at which one of the `left` remaining tasks must be over.
fn share_of(left: u32, spent: &mut Spent) -> u32 {
    let now = spent().min(WHOLE);
    now + (WHOLE - now) / left.max(1)
}

/// The same for an objective: the first ones matter most, and are harder because there are fewer limits.
fn end_of(left: u32, spent: &mut Spent) -> u32 {
    let now = spent().min(WHOLE);
    now + if left > 1 {
        (WHOLE - now) * 9 / 10
    } else {
        WHOLE - now
    }
}

/// Looks for a placement that is better for an objective, and returns a lower bound.
fn better(
    tables: &Tables,
    limits: &Limits,
    objective: Objective,
    found: &mut Found,
    left: u32,
    spent: &mut Spent,
) -> u64 {
    let until = end_of(left, spent);
    // At most half of it: what is not found by then needs the thoroughness of the search.
    let now = spent().min(until);
    let soon = now + (until - now) / 2;
    improve(tables, limits, objective, found, &mut || spent() < soon);
    let mut bound = 0;
    if limits.times && matches!(objective, Objective::Time | Objective::Sites) {
        bound = prove(tables, limits, objective, found, &mut || spent() < until);
        if bound == u64::MAX {
            return bound;
        }
    }
    let Some(less) = found.value(objective).checked_sub(1) else {
        return 0;
    };
    let mut limits = limits.clone();
    limits.set(objective, less);
    let search::Ended { best, open } =
        Search::new(tables, limits, Some(objective)).run(&mut || spent() < until);
    if let Some(best) = best {
        *found = best;
    }
    open.map_or(u64::MAX, |open| open.max(bound))
}

/// Looks for a placement that begins earlier, by bisection, and returns a lower bound.
fn earlier(tables: &Tables, limits: &Limits, found: &mut Found, left: u32, spent: &mut Spent) -> u64 {
    let until = end_of(left, spent);
    let starts: BTreeSet<u64> = tables.classes.iter().map(|class| class.start).collect();
    let starts: Vec<u64> = starts.into_iter().collect();
    let index = |start: u64| starts.partition_point(|other| *other < start);
    // Nothing begins before `low`; `tried` is the first start that was not tried, or could not be decided.
    let (mut low, mut tried) = (0, 0);
    while tried < index(found.start) {
        let middle = (tried + index(found.start)) / 2;
        let halves = (index(found.start) - tried).ilog2() + 1;
        let end = share_of(halves, spent).min(until);
        let then = tables.until(starts[middle]);
        let ended = Search::new(&then, limits.clone(), None).run(&mut || spent() < end);
        match (ended.best, ended.open) {
            (Some(best), _) => *found = best,
            (None, Some(_)) => tried = middle + 1,
            (None, None) => {
                low = middle + 1;
                tried = middle + 1;
            }
        }
    }
    starts.get(low).copied().unwrap_or(found.start)
}

fn placement(tables: &Tables, found: Found, reached: Vec<Reached>) -> Placement {
    let mut shares = Vec::new();
    for (group, row) in found.ranks.iter().enumerate() {
        for (class, ranks) in row.iter().enumerate().filter(|(_, ranks)| **ranks > 0) {
            let site = tables.classes[class].site;
            shares.push(Share {
                group,
                site,
                class: class - tables.classes_at[site].start,
                // A group's ranks are a u32.
                ranks: u32::try_from(*ranks).unwrap_or(u32::MAX),
            });
        }
    }
    shares.sort_unstable();
    Placement {
        alternatives: found.choice,
        shares,
        reached,
    }
}
