//! Two halves of the ranks that speak little with each other, as two sites would have them.
//!
//! Kernighan and Lin (1970): two ranks of different halves change places while that saves messages. It finds
//! a split that no such change improves, which need not be the best of all.

use std::collections::BTreeMap;

/// With more ranks nothing is looked for: each round compares all pairs.
pub const MOST: u32 = 512;

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

/// Improves the split after the first `first` ranks; `None` where there is nothing to choose, or too much.
pub fn improved(pairs: &BTreeMap<(u32, u32), (u64, u64)>, ranks: u32, first: u32) -> Option<Split> {
    if first == 0 || first >= ranks || ranks > MOST {
        return None;
    }
    let mut second: Vec<bool> = (0..ranks).map(|rank| rank >= first).collect();
    let speak = both_ways(pairs, ranks);
    // What a rank would save by going over to the other half.
    let gain = |second: &[bool], rank: usize| -> i64 {
        let each = speak[rank].iter().zip(second);
        each.map(|(&count, &half)| if half == second[rank] { -count } else { count })
            .sum()
    };
    // Each round saves at least one message; so many are enough for any that we have seen.
    for _ in 0..2 * ranks {
        let gains: Vec<i64> = (0..second.len()).map(|rank| gain(&second, rank)).collect();
        let (ones, others): (Vec<usize>, Vec<usize>) = (0..second.len()).partition(|&rank| !second[rank]);
        let changes = ones
            .iter()
            .flat_map(|&one| others.iter().map(move |&other| (one, other)));
        let saved = |&(one, other): &(usize, usize)| gains[one] + gains[other] - 2 * speak[one][other];
        let Some(best) = changes.max_by_key(saved).filter(|pair| saved(pair) > 0) else {
            break;
        };
        second.swap(best.0, best.1);
    }
    let messages = crossing(pairs, &second);
    Some(Split { second, messages })
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
        // Even ranks speak with even ones, odd with odd ones.
        let pairs = pairs(&[(0, 2, 100), (2, 4, 100), (1, 3, 100), (5, 3, 100), (0, 1, 1)]);
        let second: Vec<bool> = (0..6).map(|rank| rank >= 3).collect();
        assert_eq!(crossing(&pairs, &second), 200);
        let split = improved(&pairs, 6, 3).unwrap();
        assert_eq!(split.messages, 1);
        assert_eq!(split.second[0], split.second[2]);
        assert_eq!(split.second.iter().filter(|second| **second).count(), 3);
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
