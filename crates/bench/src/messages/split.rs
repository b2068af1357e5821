//! Two halves of the ranks that communicate little with each other, as two sites would have them.
//!
//! Kernighan and Lin (1970): in a pass, ranks of the two halves swap places, two at a time and each once:
//! always the pair that saves most, even if that saving is negative. Of these swaps, the first few that
//! together save most are kept. Passes go on as long as they save anything. The split need not be the best
//! possible one.

use std::collections::BTreeMap;

/// With more ranks than this, no split is sought: each swap compares all pairs.
pub const MOST: u32 = 512;

const MOST_PASSES: usize = 20;

/// Messages between two halves, and the half that each rank belongs to.
#[derive(Debug, Clone, PartialEq)]
pub struct Split {
    /// True for ranks of the second half.
    pub second: Vec<bool>,
    /// Messages that cross.
    pub messages: u64,
}

/// Messages that cross when `second` says which half each rank belongs to.
pub fn crossing(pairs: &BTreeMap<(u32, u32), (u64, u64)>, second: &[bool]) -> u64 {
    let half = |rank: u32| second.get(rank as usize);
    let crosses = |(from, to): (u32, u32)| half(from) != half(to);
    let counts = pairs.iter().filter(|(pair, _)| crosses(**pair));
    counts.map(|(_, (count, _))| count).sum()
}

/// Improves the split after the first `first` ranks; `None` if there is nothing to choose, or too much.
pub fn improved(pairs: &BTreeMap<(u32, u32), (u64, u64)>, ranks: u32, first: u32) -> Option<Split> {
    if first == 0 || first >= ranks || ranks > MOST {
        return None;
    }
    let mut second: Vec<bool> = (0..ranks).map(|rank| rank >= first).collect();
    let speak = both_ways(pairs, ranks);
    // Each pass saves at least one message; few passes are needed.
    for _ in 0..MOST_PASSES {
        let changes = pass(&speak, &second);
        if changes.is_empty() {
            break;
        }
        changes.iter().for_each(|&(one, other)| second.swap(one, other));
    }
    let messages = crossing(pairs, &second);
    Some(Split { second, messages })
}

/// The swaps of one pass that together save most; empty if none saves anything.
fn pass(speak: &[Vec<i64>], second: &[bool]) -> Vec<(usize, usize)> {
    let mut half = second.to_vec();
    // What a rank would save by moving to the other half.
    let mut gains: Vec<i64> = (0..half.len())
        .map(|rank| {
            let each = speak[rank].iter().zip(&half);
            each.map(|(&count, &other)| if other == half[rank] { -count } else { count })
                .sum()
        })
        .collect();
    let (mut ones, mut others): (Vec<usize>, Vec<usize>) = (0..half.len()).partition(|&rank| !half[rank]);
    let (mut changes, mut saved, mut best) = (Vec::new(), 0, (0, 0));
    while !ones.is_empty() && !others.is_empty() {
        let both = ones
            .iter()
            .flat_map(|&one| others.iter().map(move |&other| (one, other)));
        let saving = |(one, other): (usize, usize)| gains[one] + gains[other] - 2 * speak[one][other];
        let Some(change) = both.max_by_key(|&pair| saving(pair)) else {
            break;
        };
        saved += saving(change);
        changes.push(change);
        if saved > best.0 {
            best = (saved, changes.len());
        }
        for rank in [change.0, change.1] {
            half[rank] = !half[rank];
            for (other, gain) in gains.iter_mut().enumerate() {
                let count = 2 * speak[rank][other];
                *gain += if half[other] == half[rank] { -count } else { count };
            }
        }
        ones.retain(|&rank| rank != change.0);
        others.retain(|&rank| rank != change.1);
    }
    changes.truncate(best.1);
    changes
}

/// Messages between each two ranks, both ways together.
fn both_ways(pairs: &BTreeMap<(u32, u32), (u64, u64)>, ranks: u32) -> Vec<Vec<i64>> {
    let mut speak = vec![vec![0; ranks as usize]; ranks as usize];
    for (&(from, to), &(count, _)) in pairs {
        let (from, to) = (from as usize, to as usize);
        let count = i64::try_from(count)
            .unwrap_or(i64::MAX / 4)
            .min(i64::MAX / (1 << 24));
        if from != to && from < speak.len() && to < speak.len() {
            speak[from][to] += count;
            speak[to][from] += count;
        }
    }
    speak
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pairs(of: &[(u32, u32, u64)]) -> BTreeMap<(u32, u32), (u64, u64)> {
        of.iter()
            .map(|&(from, to, count)| ((from, to), (count, count)))
            .collect()
    }

    #[test]
    fn ranks_that_speak_with_every_other_one_are_put_together() {
        // Even ranks communicate with even ones, odd with odd ones.
        let pairs = pairs(&[(0, 2, 100), (2, 4, 100), (1, 3, 100), (5, 3, 100), (0, 1, 1)]);
        let second: Vec<bool> = (0..6).map(|rank| rank >= 3).collect();
        assert_eq!(crossing(&pairs, &second), 200);
        let split = improved(&pairs, 6, 3).unwrap();
        assert_eq!(split.messages, 1);
        assert_eq!(split.second[0], split.second[2]);
        assert_eq!(split.second.iter().filter(|second| **second).count(), 3);
    }

    #[test]
    fn a_grid_in_rows_is_split_across_its_short_side() {
        // Two rows with this many ranks each: neighbours communicate, and the two rows are the two halves at
        // first.
        for columns in [4, 8, 16] {
            let across = (0..columns).map(|at| (at, at + columns, 1));
            let along = (0..2)
                .flat_map(|row| (1..columns).map(move |at| (row * columns + at - 1, row * columns + at, 1)));
            let pairs = pairs(&across.chain(along).collect::<Vec<_>>());
            let split = improved(&pairs, 2 * columns, columns).unwrap();
            assert_eq!(split.messages, 2, "{columns}");
        }
    }

    #[test]
    fn a_split_that_is_good_stays() {
        let pairs = pairs(&[(0, 1, 5), (2, 3, 5), (1, 2, 1)]);
        let split = improved(&pairs, 4, 2).unwrap();
        assert_eq!(
            (split.second, split.messages),
            (vec![false, false, true, true], 1)
        );
    }

    #[test]
    fn no_random_split_gets_worse() {
        let mut random = fastrand::Rng::with_seed(7);
        for _ in 0..200 {
            let ranks = random.u32(2..20);
            let count = random.usize(0..60);
            let all: Vec<_> = (0..count)
                .map(|_| (random.u32(0..ranks), random.u32(0..ranks), random.u64(0..1000)))
                .collect();
            let (pairs, first) = (pairs(&all), random.u32(1..ranks));
            let plain: Vec<bool> = (0..ranks).map(|rank| rank >= first).collect();
            let split = improved(&pairs, ranks, first).unwrap();
            assert!(split.messages <= crossing(&pairs, &plain));
            assert_eq!(split.second.iter().filter(|half| !**half).count(), first as usize);
        }
    }

    #[test]
    fn nothing_is_looked_for_where_there_is_one_site_or_too_much() {
        let none = pairs(&[]);
        assert_eq!(improved(&none, 4, 0), None);
        assert_eq!(improved(&none, 4, 4), None);
        assert_eq!(improved(&none, MOST + 1, 2), None);
    }
}
