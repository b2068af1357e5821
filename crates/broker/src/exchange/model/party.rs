//! A broker or a gateway of the model: what it has on its disk, and what it takes and reports.

use super::super::{Exchange, Log};
use crate::api::{RecordsAnswer, RecordsRequest, Since};
use crate::records::{Admission, BrokerRecord, Intake, Records, SignedRecord, Standing, Statement, Taken};
use std::collections::BTreeMap;

/// A token as its broker keeps it.
#[derive(Clone)]
pub(super) struct Given {
    pub(super) site: usize,
    pub(super) admission: Admission,
    pub(super) used_by: Option<String>,
}

/// Holds what a party has on its disk.
#[derive(Clone, Default)]
pub(super) struct Disk {
    pub(super) records: Records,
    /// Everything that was ever taken, to compute the answer without any pruning.
    pub(super) raw: Vec<Statement>,
    pub(super) tokens: Vec<Given>,
}

pub(super) struct Party {
    pub(super) disk: Disk,
    pub(super) old: Disk,
    pub(super) log: Log,
    pub(super) intake: Intake,
    pub(super) history: u64,
    /// The exchange with each other party, by its number.
    pub(super) met: BTreeMap<usize, Exchange>,
    pub(super) is_full: bool,
    /// Whether the party keeps nothing in its log that no longer counts.
    pub(super) prunes: bool,
    /// Seconds by which its clock is ahead, plus 300.
    pub(super) clock: u64,
}

impl Party {
    pub(super) fn new(clock: u64) -> Party {
        Party {
            disk: Disk::default(),
            old: Disk::default(),
            log: Log::default(),
            intake: Intake::default(),
            history: 0,
            met: BTreeMap::new(),
            is_full: false,
            prunes: clock.is_multiple_of(2),
            clock,
        }
    }

    /// Writes to the disk before anybody is told; false if the disk is full.
    pub(super) fn keep(&mut self, statement: Statement, now: u64) -> bool {
        if self.is_full {
            return false;
        }
        let signed = signed(&statement);
        let record = (statement, signed);
        let taken = self.intake.take(&mut self.disk.records, record.clone(), now);
        match taken {
            Taken::News => self.note(record),
            Taken::Known => self.disk.raw.push(record.0),
            Taken::Full | Taken::Postponed => {}
        }
        true
    }

    pub(super) fn note(&mut self, (statement, signed): (Statement, SignedRecord)) {
        self.disk.raw.push(statement);
        self.log.push(signed);
        self.log.prune(&self.disk.records, self.prunes);
    }

    /// Takes what has waited for its time.
    pub(super) fn take_due(&mut self, now: u64) {
        for record in self.intake.take_due(&mut self.disk.records, now) {
            self.note(record);
        }
    }

    pub(super) fn start_again(&mut self) {
        self.history += 1;
        self.log = Log::of(&self.disk.records);
        self.met.clear();
    }

    pub(super) fn answer(&mut self, asked: &RecordsRequest, now: u64) -> Option<RecordsAnswer> {
        for record in &asked.records {
            let statement = serde_json::from_str(&record.text).unwrap();
            if !self.keep(statement, now) {
                return None;
            }
        }
        let history = self.history.to_string();
        let since = asked.since.as_ref().filter(|since| since.history == history);
        let (records, revision, more) = self.log.since(since.map_or(0, |since| since.revision));
        Some(RecordsAnswer {
            now: Since { history, revision },
            records,
            more,
        })
    }
}

fn signed(statement: &Statement) -> SignedRecord {
    SignedRecord {
        text: serde_json::to_string(statement).unwrap(),
        signature: String::new(),
    }
}

pub(super) fn broker_record(number: u8, revision: u32, standing: Standing) -> Statement {
    Statement::Broker(BrokerRecord {
        number,
        revision,
        standing,
        public: vec![format!("b{number}:7443")],
        authority: String::new(),
        share: number - 1,
    })
}
