//! Why a job cannot be placed: a set of requirements that cannot be met together, and none of which can be
//! left out. It is found by leaving out one after the other; then smaller sets are tried, if there are few.

use crate::Spent;
use crate::answer::{Refusal, Requirement};
use crate::found::Limits;
use crate::model::{Job, Network, Resources};
use crate::search::Search;
use crate::tables::{Scope, Tables};
use std::collections::BTreeSet;

/// Most sets that are tried in order to find a smaller one than leaving out has found.
const MAX_TRIED: usize = 2000;

/// Explains why a job that was found to be impossible is so.
pub(crate) fn explain(resources: &Resources, job: &Job, spent: &mut Spent) -> Refusal {
    let all = all(job);
    let mut asker = Asker {
        resources,
        job,
        all: &all,
        spent,
        is_sure: true,
    };
    let mut conflict = all.clone();
    // What is left out first is the least likely to be named: a user thinks of ranks and memory before
    // networks.
    for requirement in all.iter().rev() {
        if !conflict.remove(requirement) {
            continue;
        }
        if !asker.conflicts(&conflict) {
            conflict.insert(*requirement);
        }
    }
    let is_irreducible = asker.is_sure;
    let (smaller, is_smallest) = asker.smaller(conflict.len());
    Refusal {
        conflict: smaller.unwrap_or(conflict),
        is_irreducible,
        is_smallest: is_smallest && is_irreducible,
    }
}

/// Everything that a job asks for.
fn all(job: &Job) -> BTreeSet<Requirement> {
    let mut all = BTreeSet::from([Requirement::Reach]);
    all.extend(job.latest_start_seconds.map(|_| Requirement::Start));
    for (group, asked) in job.groups.iter().enumerate() {
        all.insert(Requirement::Ranks(group));
        all.extend(asked.within.map(|_| Requirement::Within(group)));
        for alternative in &asked.alternatives {
            all.extend((alternative.memory_bytes > 0).then_some(Requirement::Memory(group)));
            all.extend((!alternative.features.is_empty()).then_some(Requirement::Features(group)));
            all.extend((alternative.min_speed > 0).then_some(Requirement::Speed(group)));
            all.extend(alternative.sites.as_ref().map(|_| Requirement::Sites(group)));
        }
    }
    let asking = job
        .between
        .iter()
        .filter(|between| between.network != Network::default());
    all.extend(asking.map(|between| Requirement::between(between.groups.0, between.groups.1)));
    all
}

struct Asker<'a, 'b> {
    resources: &'a Resources,
    job: &'a Job,
    all: &'a BTreeSet<Requirement>,
    spent: &'a mut Spent<'b>,
    /// Whether every question was answered.
    is_sure: bool,
}

impl Asker<'_, '_> {
    /// Says whether these requirements cannot be met together; false if the budget ends before that is known.
    fn conflicts(&mut self, these: &BTreeSet<Requirement>) -> bool {
        if (self.spent)() >= 1000 {
            self.is_sure = false;
            return false;
        }
        let without: BTreeSet<Requirement> = self.all.difference(these).copied().collect();
        let scope = Scope {
            resources: self.resources,
            job: self.job,
            without: &without,
        };
        let search_all = Limits::none(&[]);
        let ended = Search::new(&Tables::new(&scope), search_all, None).run(&mut || (self.spent)() < 1000);
        self.is_sure &= ended.best.is_some() || ended.open.is_none();
        ended.best.is_none() && ended.open.is_none()
    }

    /// Looks for a conflict of fewer than `than` requirements. Also returns whether all such sets were tried.
    fn smaller(&mut self, than: usize) -> (Option<BTreeSet<Requirement>>, bool) {
        let all: Vec<Requirement> = self.all.iter().copied().collect();
        let mut tried = 0;
        for size in 1..than {
            let mut picked: Vec<usize> = (0..size).collect();
            loop {
                let these: BTreeSet<Requirement> = picked.iter().map(|index| all[*index]).collect();
                if means_something(&these) {
                    tried += 1;
                    if tried > MAX_TRIED {
                        return (None, false);
                    }
                    if self.conflicts(&these) {
                        return (Some(these), self.is_sure);
                    }
                    if !self.is_sure {
                        return (None, false);
                    }
                }
                if !advance(&mut picked, all.len()) {
                    break;
                }
            }
        }
        (None, self.is_sure)
    }
}

/// Says whether each requirement can matter: one about a group matters only together with the group's ranks.
fn means_something(these: &BTreeSet<Requirement>) -> bool {
    let has = |group: usize| these.contains(&Requirement::Ranks(group));
    these.iter().all(|requirement| match *requirement {
        Requirement::Ranks(_) | Requirement::Reach | Requirement::Start => true,
        Requirement::Memory(group)
        | Requirement::Features(group)
        | Requirement::Speed(group)
        | Requirement::Sites(group)
        | Requirement::Within(group) => has(group),
        Requirement::Between(one, other) => has(one) && has(other),
    })
}

/// Goes to the next set of the same number of indices below `end`; returns whether there is one.
fn advance(picked: &mut [usize], end: usize) -> bool {
    let size = picked.len();
    for place in (0..size).rev() {
        if picked[place] < end - size + place {
            picked[place] += 1;
            for next in place + 1..size {
                picked[next] = picked[next - 1] + 1;
            }
            return true;
        }
    }
    false
}
