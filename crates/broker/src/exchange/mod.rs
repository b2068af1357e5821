//! Exchanges records with a broker: each side tells what the other lacks. Pure.
//!
//! A broker numbers its records in the order in which it took them ([`Log`]). Whoever asks it, a gateway or
//! another broker, remembers up to where it was told, and which records it has given ([`Exchange`]).

#[cfg(test)]
mod model;

use crate::api::{MAX_RECORDS, RecordsAnswer, RecordsRequest, Since};
use crate::records::{Records, SignedRecord};
use sha2::{Digest, Sha256};
use std::collections::HashSet;

/// Bytes of the records of one request or answer; as JSON they are about half as much again.
const MAX_BYTES: usize = 512 * 1024;

/// Records that are remembered as spent, in 4 MB; beyond that all are forgotten.
const MAX_SPENT: usize = 65_536;

/// Records in the order in which they were taken, of one start of a broker.
#[derive(Debug, Clone, Default)]
pub(crate) struct Log {
    taken: Vec<SignedRecord>,
    hashes: HashSet<[u8; 32]>,
    /// Hashes of records that were right, and said nothing new: nor will they ever.
    spent: HashSet<[u8; 32]>,
}

impl Log {
    /// Begins with all that is known.
    pub(crate) fn of(records: &Records) -> Log {
        Log {
            taken: records.signed().cloned().collect(),
            hashes: records.signed().map(hash).collect(),
            spent: HashSet::new(),
        }
    }

    /// Whether a record was taken before, so that its signature need not be checked again.
    pub(crate) fn has(&self, record: &SignedRecord) -> bool {
        let hash = hash(record);
        self.hashes.contains(&hash) || self.spent.contains(&hash)
    }

    /// Notes a record that was right and said nothing new: whoever sends it without end is not to have its
    /// signature checked each time.
    pub(crate) fn pass_over(&mut self, record: &SignedRecord) {
        if self.spent.len() >= MAX_SPENT {
            self.spent.clear();
        }
        self.spent.insert(hash(record));
    }

    pub(crate) fn push(&mut self, record: SignedRecord) {
        self.hashes.insert(hash(&record));
        self.taken.push(record);
    }

    /// How many there are: the number up to which somebody knows them.
    pub(crate) fn position(&self) -> u64 {
        self.taken.len() as u64
    }

    /// Returns those after a position, as many as fit, the position that they lead to, and whether there are
    /// more.
    pub(crate) fn since(&self, position: u64) -> (Vec<SignedRecord>, u64, bool) {
        let start = usize::try_from(position)
            .unwrap_or(usize::MAX)
            .min(self.taken.len());
        let records = fit(self.taken[start..].iter());
        let end = start + records.len();
        (records, end as u64, end < self.taken.len())
    }
}

/// As many as one body holds, and one at least.
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

/// Notes what a broker has told, and what it was told.
#[derive(Debug, Clone, Default)]
pub(crate) struct Exchange {
    since: Option<Since>,
    /// Hashes of the records that it has, in its present history.
    theirs: HashSet<[u8; 32]>,
}

impl Exchange {
    /// Returns what to ask next, with what the broker lacks.
    pub(crate) fn request(&self, own: &Records) -> RecordsRequest {
        let lacking = own.signed().filter(|record| !self.theirs.contains(&hash(record)));
        RecordsRequest {
            since: self.since.clone(),
            // Before its first answer nothing is known of it, and it may have them all.
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

    /// Whether the broker has records that were not fetched, if it is at this position now.
    pub(crate) fn lacks(&self, history: &str, position: u64) -> bool {
        let known = self.since.as_ref().filter(|since| since.history == history);
        known.map_or(0, |since| since.revision) < position
    }

    /// Notes what an answer to this request tells. True when there is nothing more to ask or tell.
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
        self.since = Some(answer.now.clone());
        !answer.more && !self.is_behind(own)
    }
}

fn hash(record: &SignedRecord) -> [u8; 32] {
    Sha256::digest(&record.text).into()
}
