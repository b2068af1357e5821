//! All legs of a gateway, by their keys and by their jobs.
//!
//! The end of a job costs as much as the job has legs, not as much as all jobs have: so a site may begin and
//! end jobs as often as it likes.
//!
//! Invariant: `by_job` contains each leg once, under its token, and no job without legs.

use crate::keys::{LegKey, Table};
use crate::site::leg::Leg;
use causeway_wire::Token;
use std::collections::{HashMap, HashSet};
use std::ops::{Deref, Index, IndexMut};

#[derive(Default)]
pub(crate) struct Legs {
    table: Table<LegKey, Leg>,
    by_job: HashMap<Token, HashSet<LegKey>>,
    /// Number of streams so far, and the most at one time.
    opened: u64,
    peak: usize,
}

impl Legs {
    /// Returns how many streams there have been so far.
    pub(crate) fn opened(&self) -> u64 {
        self.opened
    }

    /// Returns the largest number of streams at one time.
    pub(crate) fn peak(&self) -> usize {
        self.peak
    }

    pub(in crate::site) fn count_opened(&mut self) {
        self.opened += 1;
    }

    /// Notes how many streams there are now.
    pub(in crate::site) fn count_present(&mut self) {
        self.peak = self.peak.max(self.len());
    }

    /// Goes on counting where a predecessor stopped.
    pub(in crate::site) fn inherit_counts(&mut self, opened: u64, peak: usize) {
        (self.opened, self.peak) = (opened, peak);
    }

    pub(in crate::site) fn insert(&mut self, leg: Leg) -> LegKey {
        let token = leg.token;
        let key = self.table.insert(leg);
        self.by_job.entry(token).or_default().insert(key);
        key
    }

    pub(in crate::site) fn try_remove(&mut self, key: LegKey) -> Option<Leg> {
        let leg = self.table.try_remove(key)?;
        self.leave(key, &leg.token);
        Some(leg)
    }

    pub(in crate::site) fn get_mut(&mut self, key: LegKey) -> Option<&mut Leg> {
        self.table.get_mut(key)
    }

    pub(in crate::site) fn iter_mut(&mut self) -> impl Iterator<Item = (LegKey, &mut Leg)> {
        self.table.iter_mut()
    }

    /// The legs of a job. They are collected first, because what is done with one may remove others.
    pub(in crate::site) fn keys_for_job(&self, token: &Token) -> Vec<LegKey> {
        let keys = self.by_job.get(token).into_iter().flatten();
        keys.copied().collect()
    }

    /// Moves a leg to another job, whose weight it gets.
    pub(in crate::site) fn give(&mut self, key: LegKey, token: Token, weight: u32) {
        let Some(leg) = self.table.get_mut(key) else {
            return;
        };
        leg.weight = weight;
        let before = std::mem::replace(&mut leg.token, token);
        self.leave(key, &before);
        self.by_job.entry(token).or_default().insert(key);
    }

    /// Notes everything present as changed, and every change from now on.
    pub(in crate::site) fn note_changes(&mut self) {
        self.table.note_changes();
    }

    /// Takes the keys of what has changed, or is gone.
    pub(in crate::site) fn take_touched(&mut self) -> Vec<LegKey> {
        self.table.take_touched()
    }

    fn leave(&mut self, key: LegKey, token: &Token) {
        let Some(keys) = self.by_job.get_mut(token) else {
            return;
        };
        keys.remove(&key);
        if keys.is_empty() {
            self.by_job.remove(token);
        }
    }
}

impl Deref for Legs {
    type Target = Table<LegKey, Leg>;

    fn deref(&self) -> &Table<LegKey, Leg> {
        &self.table
    }
}

impl Index<LegKey> for Legs {
    type Output = Leg;

    fn index(&self, key: LegKey) -> &Leg {
        &self.table[key]
    }
}

impl IndexMut<LegKey> for Legs {
    fn index_mut(&mut self, key: LegKey) -> &mut Leg {
        &mut self.table[key]
    }
}

impl FromIterator<(usize, Leg)> for Legs {
    fn from_iter<I: IntoIterator<Item = (usize, Leg)>>(entries: I) -> Legs {
        let table: Table<LegKey, Leg> = entries.into_iter().collect();
        let mut by_job: HashMap<Token, HashSet<LegKey>> = HashMap::new();
        for (key, leg) in table.iter() {
            by_job.entry(leg.token).or_default().insert(key);
        }
        Legs {
            table,
            by_job,
            opened: 0,
            peak: 0,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::keys::PairKey;
    use crate::site::leg::Stage;
    use crate::site::socket::Socket;
    use causeway_tunnel::StreamId;

    fn leg(token: u8) -> Leg {
        let (process, _) = crate::sys::socket::loopback_pair().unwrap();
        let job = (Token([token; 16]), 1);
        Leg::new(
            Socket::accepted(process),
            PairKey(0),
            StreamId(1),
            job,
            0,
            Stage::Open,
            &causeway_memory::Arena::private(),
        )
    }

    fn keys(legs: &Legs, token: u8) -> Vec<usize> {
        let mut keys: Vec<usize> = legs
            .keys_for_job(&Token([token; 16]))
            .iter()
            .map(|key| key.0)
            .collect();
        keys.sort_unstable();
        keys
    }

    #[test]
    fn a_jobs_legs_are_known_wherever_they_come_from_and_go() {
        let mut legs = Legs::default();
        for token in [1, 2, 1, 1] {
            legs.insert(leg(token));
        }
        assert_eq!((keys(&legs, 1), keys(&legs, 2)), (vec![0, 2, 3], vec![1]));
        legs.try_remove(LegKey(2)).unwrap();
        assert!(legs.try_remove(LegKey(2)).is_none());
        legs.give(LegKey(3), Token([2; 16]), 5);
        assert_eq!((keys(&legs, 1), keys(&legs, 2)), (vec![0], vec![1, 3]));
        assert_eq!(legs[LegKey(3)].weight, 5);
        legs.try_remove(LegKey(0)).unwrap();
        assert!(keys(&legs, 1).is_empty() && legs.by_job.len() == 1);
        // The state after a hand-over.
        let legs: Legs = [(7, leg(1)), (9, leg(2)), (11, leg(1))].into_iter().collect();
        assert_eq!((keys(&legs, 1), keys(&legs, 2)), (vec![7, 11], vec![9]));
    }
}
