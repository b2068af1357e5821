//! Exchanges records with a broker: each side sends what the other lacks. Pure.
//!
//! A broker numbers its records in the order in which it took them ([`Log`]). The caller, a gateway or
//! another broker, remembers how far it was told, and which records it has given ([`Exchange`]).

#[cfg(test)]
mod model;

use crate::api::{MAX_RECORDS, RecordsAnswer, RecordsRequest, Since};
use crate::records::{Records, SignedRecord};
use sha2::{Digest, Sha256};
use std::collections::{BTreeMap, HashMap, HashSet};

/// Most bytes of the records in one request or answer; as JSON they take about half as much again.
const MAX_BYTES: usize = 512 * 1024;

/// Most records that are remembered as spent, in 4 MB; beyond that all are forgotten.
const MAX_SPENT: usize = 65_536;

/// Replaced records are kept until there are as many of them as of those that count, plus this many.
const SLACK: usize = 256;

/// Records in the order in which they were taken during one start of a broker.
#[derive(Debug, Clone, Default)]
pub(crate) struct Log {
    /// Holds them by position, from 0.
    taken: BTreeMap<u64, SignedRecord>,
    next: u64,
    hashes: HashMap<[u8; 32], u64>,
    /// Hashes of valid records that say nothing new and never will.
    spent: HashSet<[u8; 32]>,
}

impl Log {
    /// Begins with everything that is known.
    pub(crate) fn of(records: &Records) -> Log {
        let mut log = Log::default();
        records.signed().cloned().for_each(|record| log.push(record));
        log
    }

    /// Removes and returns the records that no longer count, or waits until there are many.
    pub(crate) fn prune(&mut self, records: &Records, now: bool) -> Vec<SignedRecord> {
        if !now && self.taken.len() <= 2 * records.len() + SLACK {
            return Vec::new();
        }
        let counting: HashSet<[u8; 32]> = records.signed().map(hash).collect();
        let gone = self.hashes.extract_if(|hash, _| !counting.contains(hash));
        let gone: Vec<u64> = gone.map(|(_, position)| position).collect();
        gone.iter()
            .filter_map(|position| self.taken.remove(position))
            .collect()
    }

    /// Whether a record was taken before, so that its signature need not be checked again.
    pub(crate) fn has(&self, record: &SignedRecord) -> bool {
        let hash = hash(record);
        self.hashes.contains_key(&hash) || self.spent.contains(&hash)
    }

    /// Notes a valid record that says nothing new: if one is sent again and again, its signature need not be
    /// checked each time.
    pub(crate) fn pass_over(&mut self, record: &SignedRecord) {
        if self.spent.len() >= MAX_SPENT {
            self.spent.clear();
        }
        self.spent.insert(hash(record));
    }

    pub(crate) fn push(&mut self, record: SignedRecord) {
        self.hashes.insert(hash(&record), self.next);
        self.taken.insert(self.next, record);
        self.next += 1;
    }

    /// How many records have been taken: the position of somebody who knows them all.
    pub(crate) fn position(&self) -> u64 {
        self.next
    }

    /// Returns the records after a position, as many as fit, the position after them, and whether there are
    /// more.
    pub(crate) fn since(&self, position: u64) -> (Vec<SignedRecord>, u64, bool) {
        let records = fit(self.taken.range(position..).map(|(_, record)| record));
        let rest = self.taken.range(position..).nth(records.len());
        (records, rest.map_or(self.next, |(end, _)| *end), rest.is_some())
    }
}

/// Takes as many records as one body can contain, at least one.
fn fit<'a>(records: impl Iterator<Item = &'a SignedRecord>) -> Vec<SignedRecord> {
    let mut bytes = 0;
    let mut fit = Vec::new();
    for record in records.take(MAX_RECORDS) {
        bytes += record.text.len() + record.signature.len();
        if bytes > MAX_BYTES && !fit.is_empty() {
            break;
        }
        fit.push(record.clone());
    }
    fit
}

/// Notes what a broker has reported, and what it was told.
#[derive(Debug, Clone, Default)]
pub(crate) struct Exchange {
    since: Option<Since>,
    /// Hashes of the records that the broker has, in its present history.
    theirs: HashSet<[u8; 32]>,
}

impl Exchange {
    /// Returns the next request, which includes what the broker lacks.
    pub(crate) fn request(&self, own: &Records) -> RecordsRequest {
        let lacking = own.signed().filter(|record| !self.theirs.contains(&hash(record)));
        RecordsRequest {
            since: self.since.clone(),
            // Before its first answer, nothing is known about the broker, and it may have all of them.
            records: match self.since {
                Some(_) => fit(lacking),
                None => Vec::new(),
            },
        }
    }

    /// Whether the broker lacks anything.
    pub(crate) fn is_behind(&self, own: &Records) -> bool {
        own.signed().any(|record| !self.theirs.contains(&hash(record)))
    }

    /// The position in the broker's log that is known.
    pub(crate) fn position(&self) -> u64 {
        self.since.as_ref().map_or(0, |since| since.revision)
    }

    /// Whether the broker has records that were not fetched, given that it is at this position now.
    pub(crate) fn lacks(&self, history: &str, position: u64) -> bool {
        let known = self.since.as_ref().filter(|since| since.history == history);
        known.map_or(0, |since| since.revision) < position
    }

    /// Notes what an answer to this request says. True when there is nothing more to ask or tell.
    pub(crate) fn on_answer(
        &mut self,
        asked: &RecordsRequest,
        answer: &RecordsAnswer,
        own: &Records,
    ) -> bool {
        let same = self.since.as_ref().map(|since| &since.history) == Some(&answer.now.history);
        if !same {
            self.theirs.clear();
        }
        self.theirs.extend(asked.records.iter().map(hash));
        self.theirs.extend(answer.records.iter().map(hash));
        // Records that no longer count are given to nobody.
        if self.theirs.len() > 2 * own.len() + SLACK + MAX_RECORDS {
            let counting: HashSet<[u8; 32]> = own.signed().map(hash).collect();
            self.theirs.retain(|hash| counting.contains(hash));
        }
        self.since = Some(answer.now.clone());
        !answer.more && !self.is_behind(own)
    }
}

fn hash(record: &SignedRecord) -> [u8; 32] {
    Sha256::digest(&record.text).into()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::records::{Added, Revocation, Statement};

    fn revocation(until: u64) -> (Statement, SignedRecord) {
        let site = "rennes".to_owned();
        let statement = Statement::Revocation(Revocation {
            site,
            until,
            broker: 1,
        });
        let text = serde_json::to_string(&statement).unwrap();
        let signature = String::new();
        (statement, SignedRecord { text, signature })
    }

    #[test]
    fn what_others_have_taken_the_place_of_leaves_the_log_and_whoever_asks_gets_what_is_left() {
        let (mut records, mut log) = (Records::default(), Log::default());
        let mut gone = 0;
        for until in 0..10_000 {
            let (statement, signed) = revocation(until);
            assert_eq!(records.add(statement, signed.clone()), Ok(Added::News));
            log.push(signed);
            gone += log.prune(&records, false).len();
            assert!(log.taken.len() <= 2 + SLACK && log.hashes.len() == log.taken.len());
        }
        assert_eq!(log.taken.len() + gone, 10_000);
        gone += log.prune(&records, true).len();
        assert_eq!((gone, log.position()), (9_999, 10_000));
        let last = revocation(9_999).1;
        for position in [0, 5_000, 9_999] {
            assert_eq!(log.since(position), (vec![last.clone()], 10_000, false));
        }
        assert_eq!(log.since(10_000), (Vec::new(), 10_000, false));
        assert!(log.has(&last) && !log.has(&revocation(5).1));
    }
}
