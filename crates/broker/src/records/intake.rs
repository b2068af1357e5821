//! Decides which records from others are taken, and when: only a limited number from one signer, and none
//! that names a time far ahead before that time is near. Pure.

use super::{Added, MAX_ADMISSIONS, MAX_REVOKED, Records, SignedRecord, Statement};
use std::collections::BTreeMap;

/// How far ahead of this host's clock, in seconds, a time in a record may be. A broker whose clock is wrong
/// by more signs nothing that counts; one that lies cannot put a site out for longer.
pub(crate) const MOST_AHEAD: u64 = 86_400;

/// How much smaller this limit is at a broker. A broker's own records must name later times than those that
/// it believes, and others must believe them at once, even if their clocks are behind.
pub(crate) const MARGIN: u64 = 3600;

/// Most records of one signer that wait for their time, and how far ahead that may be. A broker that follows
/// the rules signs such a record only if a lying one has named a time that was only just near enough.
const MOST_WAITING: usize = 256;
const MOST_AWAITED: u64 = 2 * MOST_AHEAD;

/// Most news from one broker that are taken at a time: twice all that it may have signed. Each is written to
/// the disk and passed on.
pub(crate) const MOST_NEWS: u64 = 2 * (MAX_ADMISSIONS + MAX_REVOKED) as u64;

/// Most news from one broker that are taken in an hour beyond these.
pub(crate) const NEWS_AN_HOUR: u64 = 1000;

/// What happened to a record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Taken {
    /// The record was news.
    News,
    /// The record says nothing new.
    Known,
    /// The record's signer has signed more than a broker may.
    Full,
    /// The record is taken later, if at all: the time that it names is far ahead, or its signer has sent too
    /// much in one hour.
    Postponed,
}

/// How much one signer may still send.
#[derive(Debug)]
struct Budget {
    left: u64,
    since: u64,
}

/// What was taken from each signer, and what waits.
#[derive(Debug, Default)]
pub(crate) struct Intake {
    /// The number of this broker, if this is one.
    own: Option<u8>,
    budgets: BTreeMap<u8, Budget>,
    waiting: BTreeMap<u8, Vec<(Statement, SignedRecord)>>,
}

impl Intake {
    /// Says which broker this is: it believes its own records as a gateway does.
    pub(crate) fn set_own(&mut self, number: u8) {
        self.own = Some(number);
    }

    /// Takes a record whose signature is known to be right.
    pub(crate) fn take(
        &mut self,
        into: &mut Records,
        (statement, signed): (Statement, SignedRecord),
        now: u64,
    ) -> Taken {
        let signer = statement.signer();
        let ahead = statement.latest().saturating_sub(now);
        if ahead > self.most_ahead(signer) {
            if ahead <= MOST_AWAITED {
                self.wait(signer, (statement, signed));
            }
            return Taken::Postponed;
        }
        let left = self.budget(signer, now);
        if *left == 0 {
            return Taken::Postponed;
        }
        match into.add(statement, signed) {
            Ok(Added::News) => {
                *left -= 1;
                Taken::News
            }
            Ok(Added::Known) => Taken::Known,
            Err(_) => Taken::Full,
        }
    }

    /// Takes waiting records whose time has come near. They stay in the queue until they are known, because
    /// the disk may refuse what `into` becomes. Records of an expelled broker are dropped.
    pub(crate) fn take_due(&mut self, into: &mut Records, now: u64) -> Vec<(Statement, SignedRecord)> {
        let mut news = Vec::new();
        self.waiting.retain(|signer, _| !into.is_expelled(*signer));
        for record in std::mem::take(&mut self.waiting).into_values().flatten() {
            // Those that are still too far ahead wait again.
            if self.take(into, record.clone(), now) == Taken::News {
                self.wait(record.0.signer(), record.clone());
                news.push(record);
            }
        }
        news
    }

    /// Whether the time of any waiting record has come near.
    pub(crate) fn has_due(&self, now: u64) -> bool {
        let is_due = |(signer, waiting): (&u8, &Vec<(Statement, SignedRecord)>)| {
            let latest = now.saturating_add(self.most_ahead(*signer));
            waiting.iter().any(|(statement, _)| statement.latest() <= latest)
        };
        self.waiting.iter().any(is_due)
    }

    fn most_ahead(&self, signer: u8) -> u64 {
        match self.own {
            Some(own) if own != signer => MOST_AHEAD - MARGIN,
            _ => MOST_AHEAD,
        }
    }

    fn wait(&mut self, signer: u8, record: (Statement, SignedRecord)) {
        let waiting = self.waiting.entry(signer).or_default();
        if waiting.len() < MOST_WAITING && !waiting.contains(&record) {
            waiting.push(record);
        }
    }

    fn budget(&mut self, signer: u8, now: u64) -> &mut u64 {
        let begun = Budget {
            left: MOST_NEWS,
            since: now,
        };
        let budget = self.budgets.entry(signer).or_insert(begun);
        let more = now.saturating_sub(budget.since).saturating_mul(NEWS_AN_HOUR) / 3600;
        // If a clock was set back, the count begins anew.
        if more > 0 || now < budget.since {
            budget.left = budget.left.saturating_add(more).min(MOST_NEWS);
            budget.since = now;
        }
        &mut budget.left
    }
}
