//! The union of records, and the answers that follow from it.
//!
//! Invariants: the same records make the same set in any order and however often they come, as long as no
//! signer passes its bound, which happens only if it breaks the rules. The answer "expelled" never changes
//! back, nor does "revoked", unless the broker that said so is expelled.

use super::signed::authority_of;
use super::{Admission, Admitted, BrokerRecord, ROOT, Revocation, SHARES, SignedRecord, Standing, Statement};
use crate::clock::date;
use sha2::{Digest, Sha256};
use std::collections::BTreeMap;

/// Most admissions that are taken from one broker, so that a broker whose keys were stolen cannot fill
/// anybody's memory: four times the largest grid. With 64 granted ranges each they take 20 MB.
pub const MAX_ADMISSIONS: usize = 4096;

/// The same for one site: each is compared with the others. Admissions that one broker gave in succession
/// replace each other, so there are hardly ever two.
const MAX_OF_SITE: usize = 64;

/// Most sites that one broker may revoke: four times the largest grid.
pub const MAX_REVOKED: usize = 4096;

/// What a record says, and the record itself, for others that lack it.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Held<T> {
    what: T,
    signed: SignedRecord,
}

/// The records that a process knows.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Records {
    brokers: BTreeMap<u8, Held<BrokerRecord>>,
    /// The admissions of each site.
    admitted: BTreeMap<String, BTreeMap<Admission, Held<Admitted>>>,
    /// How many of these each broker has signed.
    counts: BTreeMap<u8, usize>,
    /// The latest from each broker for each site.
    revocations: BTreeMap<(u8, String), Held<Revocation>>,
}

/// What a record adds to a set.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Added {
    /// The set has grown.
    News,
    /// The record says nothing that the set does not know.
    Known,
}

/// A broker has signed more than a broker may.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error(
    "broker {0} has signed more records than a broker may; whoever holds the grid's authority should expel it"
)]
pub struct Full(pub u8);

/// Why a site's certificate no longer counts.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Out {
    /// The site was put out.
    #[error(
        "the certificate of site {site} was revoked at {}; it may join again with a new token ('causeway grid token --site \
         {site}' where a broker runs)", date(*until)
    )]
    Revoked {
        /// The site.
        site: String,
        /// When, in seconds since 1970.
        until: u64,
    },
    /// Somebody else has the site's name.
    #[error(
        "the name {site} belongs to another host: broker {broker} admitted it, with a token of {}; join with a new token, for \
         another name or, if this host is to take that one's place, for the same", date(*given)
    )]
    Another {
        /// The site.
        site: String,
        /// Who admitted the other one.
        broker: u8,
        /// When the token of the other one was given.
        given: u64,
    },
    /// The site has been admitted more often than there was time for.
    #[error(
        "the certificate of site {site} says that broker {broker} admitted it anew more often than there was time for, which no \
         broker does; join again with a token of another broker"
    )]
    OutOfOrder {
        /// The site.
        site: String,
        /// The broker that admitted the site.
        broker: u8,
    },
    /// The broker that admitted it was expelled.
    #[error(
        "site {site} was admitted by broker {broker}, which the grid's authority has expelled; it may join again with a token of \
         another broker"
    )]
    Expelled {
        /// The site.
        site: String,
        /// The broker that admitted the site.
        broker: u8,
    },
}

impl Records {
    /// Takes a record whose signature is known to be right.
    ///
    /// # Errors
    /// The statement's signer has signed too many.
    pub fn add(&mut self, statement: Statement, signed: SignedRecord) -> Result<Added, Full> {
        match statement {
            Statement::Broker(what) => Ok(self.add_broker(Held { what, signed })),
            Statement::Admitted(what) => self.add_admitted(Held { what, signed }),
            Statement::Revocation(what) => self.add_revocation(Held { what, signed }),
        }
    }

    fn add_broker(&mut self, held: Held<BrokerRecord>) -> Added {
        let number = held.what.number;
        let order = |record: &BrokerRecord| (record.standing == Standing::Expelled, record.revision);
        let known = self.brokers.get(&number);
        if known.is_some_and(|known| (order(&known.what), &known.what) >= (order(&held.what), &held.what)) {
            return Added::Known;
        }
        self.brokers.insert(number, held);
        if self.is_expelled(number) {
            self.retain_admitted(|admission| admission.broker != number);
            self.revocations.retain(|(broker, _), _| *broker != number);
        }
        Added::News
    }

    fn add_admitted(&mut self, held: Held<Admitted>) -> Result<Added, Full> {
        let (site, admission) = (held.what.site.clone(), held.what.admission.clone());
        let ends = |later: &Admission, earlier: &Admission| {
            // Both must be from the same broker, so that if one is void, so is the other.
            (&later.origin, later.broker) == (&earlier.origin, earlier.broker)
                && later.generation > earlier.generation
                && later.given > earlier.given
        };
        let there = self.admitted.get(&site);
        let is_known = there.is_some_and(|there| match there.get(&admission) {
            // Only one is kept of two things that a broker says about one admission.
            Some(known) => known.signed.text <= held.signed.text,
            None => there.keys().any(|known| ends(known, &admission)),
        });
        // What another broker has revoked is kept: it counts again if that broker is expelled.
        let own = self.revocations.get(&(admission.broker, site.clone()));
        let is_void = !admission.is_in_order()
            || self.is_expelled(admission.broker)
            || own.is_some_and(|revoked| admission.given <= revoked.what.until);
        if is_known || is_void {
            return Ok(Added::Known);
        }
        let is_new = there.is_none_or(|there| !there.contains_key(&admission));
        let count = there.map_or(0, |there| {
            there
                .keys()
                .filter(|known| known.broker == admission.broker)
                .count()
        });
        if is_new && (count >= MAX_OF_SITE || self.count_admitted(admission.broker) >= MAX_ADMISSIONS) {
            return Err(Full(admission.broker));
        }
        let there = self.admitted.entry(site).or_default();
        let before = there.len();
        there.retain(|known, _| !ends(&admission, known));
        let ended = before - there.len();
        let count = self.counts.entry(admission.broker).or_default();
        *count = (*count + usize::from(is_new)).saturating_sub(ended);
        there.insert(admission, held);
        Ok(Added::News)
    }

    fn add_revocation(&mut self, held: Held<Revocation>) -> Result<Added, Full> {
        if self.is_expelled(held.what.broker) {
            return Ok(Added::Known);
        }
        let key = (held.what.broker, held.what.site.clone());
        match self.revocations.get(&key) {
            Some(known) if known.what.until >= held.what.until => return Ok(Added::Known),
            None if self.count_revoked(held.what.broker) >= MAX_REVOKED => {
                return Err(Full(held.what.broker));
            }
            _ => {}
        }
        let Revocation { site, until, broker } = held.what.clone();
        self.revocations.insert(key, held);
        if self.last_given(&site).is_some() {
            let there = self.admitted.entry(site).or_default();
            there.retain(|admission, _| admission.broker != broker || admission.given > until);
            self.retain_admitted(|_| true);
        }
        Ok(Added::News)
    }

    fn retain_admitted(&mut self, keeps: impl Fn(&Admission) -> bool) {
        self.counts.clear();
        self.admitted.retain(|_, there| {
            there.retain(|admission, _| keeps(admission));
            for admission in there.keys() {
                *self.counts.entry(admission.broker).or_default() += 1;
            }
            !there.is_empty()
        });
    }

    /// How many admissions of a broker are held.
    pub fn count_admitted(&self, broker: u8) -> usize {
        self.counts.get(&broker).copied().unwrap_or(0)
    }

    /// How many sites a broker has revoked.
    pub fn count_revoked(&self, broker: u8) -> usize {
        let keys = (broker, String::new())..=(broker, LAST_NAME.to_owned());
        self.revocations.range(keys).count()
    }

    /// How many records are held.
    pub(crate) fn len(&self) -> usize {
        self.brokers.len() + self.revocations.len() + self.counts.values().sum::<usize>()
    }

    /// What `broker` signs in its own name before it takes the record that `expelled` is expelled: the
    /// revocations of sites that it let in itself, as `has_admitted` says. These sites exist, and letting one
    /// in again by mistake is worse than making it ask for a new token.
    pub fn to_say_again(
        &self,
        expelled: u8,
        broker: u8,
        has_admitted: impl Fn(&str) -> bool,
    ) -> Vec<Revocation> {
        let keys = (expelled, String::new())..=(expelled, LAST_NAME.to_owned());
        let said = self.revocations.range(keys).map(|(_, held)| &held.what);
        let lacks = |said: &&Revocation| {
            let own = self.revocations.get(&(broker, said.site.clone()));
            own.is_none_or(|own| own.what.until < said.until) && has_admitted(&said.site)
        };
        let again = said.filter(lacks).map(|said| Revocation {
            broker,
            ..said.clone()
        });
        again.collect()
    }

    /// Whether a broker has let in a site with this name; sites that another broker has revoked since count,
    /// too.
    pub(crate) fn has_admitted(&self, broker: u8, site: &str) -> bool {
        let there = self.admitted.get(site);
        there.is_some_and(|there| there.keys().any(|admission| admission.broker == broker))
    }

    /// Whether a broker has revoked this site.
    pub(crate) fn has_revoked(&self, broker: u8, site: &str) -> bool {
        self.revocations.contains_key(&(broker, site.to_owned()))
    }

    /// Whether there is no record, as in a grid of one broker.
    pub fn is_empty(&self) -> bool {
        self.brokers.is_empty() && self.admitted.is_empty() && self.revocations.is_empty()
    }

    /// The brokers, by number, including those that no longer serve.
    pub fn brokers(&self) -> impl Iterator<Item = &BrokerRecord> {
        self.brokers.values().map(|held| &held.what)
    }

    /// The broker with this number.
    pub fn broker(&self, number: u8) -> Option<&BrokerRecord> {
        self.brokers.get(&number).map(|held| &held.what)
    }

    /// Whether the authority has declared that somebody else may have this broker's keys.
    pub fn is_expelled(&self, broker: u8) -> bool {
        self.broker(broker)
            .is_some_and(|record| record.standing == Standing::Expelled)
    }

    /// The expelled broker whose own authority has this hash.
    pub(crate) fn expelled_issuer(&self, hash: &[u8; 32]) -> Option<u8> {
        let mut expelled = self
            .brokers()
            .filter(|broker| broker.standing == Standing::Expelled);
        let found = expelled.find(|broker| {
            let authority = authority_of(&broker.authority);
            authority.is_some_and(|authority| Sha256::digest(&authority)[..] == hash[..])
        });
        found.map(|broker| broker.number)
    }

    /// The time until which a site's admissions are void.
    pub fn revoked_until(&self, site: &str) -> Option<u64> {
        let revocation_by = |broker: &u8| self.revocations.get(&(*broker, site.to_owned()));
        let signers: Vec<u8> = self.signers_of_revocations();
        signers
            .iter()
            .filter_map(revocation_by)
            .map(|held| held.what.until)
            .max()
    }

    fn signers_of_revocations(&self) -> Vec<u8> {
        // The brokers are few, the sites may be many.
        let mut signers = Vec::new();
        let mut next = 0_u8;
        while let Some(((broker, _), _)) = self.revocations.range((next, String::new())..).next() {
            signers.push(*broker);
            match broker.checked_add(1) {
                Some(following) => next = following,
                None => break,
            }
        }
        signers
    }

    /// The sites that were revoked, each with the time until which its admissions are void.
    pub fn revoked(&self) -> BTreeMap<&str, u64> {
        let mut revoked = BTreeMap::new();
        for held in self.revocations.values() {
            let until = revoked.entry(held.what.site.as_str()).or_default();
            *until = held.what.until.max(*until);
        }
        revoked
    }

    /// The admission that has a name.
    pub fn holder(&self, site: &str) -> Option<&Admitted> {
        let until = self.revoked_until(site);
        self.first(site, |admission| {
            until.is_none_or(|until| admission.given > until)
        })
    }

    /// The admission that would have a name if only the broker that admitted a site could revoke it.
    pub(super) fn holder_but_for_revocations(&self, site: &str) -> Option<&Admitted> {
        self.first(site, |_| true)
    }

    fn first(&self, site: &str, counts: impl Fn(&Admission) -> bool) -> Option<&Admitted> {
        let there = self.admitted.get(site)?.values().map(|held| &held.what);
        let there = there.filter(|held| counts(&held.admission));
        there.reduce(|best, other| {
            if other.admission.precedes(&best.admission) {
                other
            } else {
                best
            }
        })
    }

    /// When the latest token was given with which a site is known to have joined.
    pub fn last_given(&self, site: &str) -> Option<u64> {
        let there = self.admitted.get(site)?;
        there.keys().map(|admission| admission.given).max()
    }

    /// The admission made with this token, if it is known.
    pub fn used(&self, site: &str, broker: u8, token: &str) -> Option<&Admission> {
        let mut there = self.admitted.get(site)?.keys();
        there.find(|admission| admission.broker == broker && admission.token == token)
    }

    /// Whether a site with this name was ever heard of.
    pub fn knows(&self, site: &str) -> bool {
        self.admitted.contains_key(site) || self.revoked_until(site).is_some()
    }

    /// The names that sites have.
    pub fn sites(&self) -> impl Iterator<Item = &str> {
        self.admitted.keys().map(String::as_str)
    }

    /// Whether a site's certificate with this admission counts. If the admission is not known yet, it does:
    /// the certificate itself proves that a broker admitted the site.
    ///
    /// # Errors
    /// The reason why the admission does not count.
    pub fn judge(&self, site: &str, admission: &Admission) -> Result<(), Out> {
        let site_text = || site.to_owned();
        if !admission.is_in_order() {
            let broker = admission.broker;
            return Err(Out::OutOfOrder {
                site: site_text(),
                broker,
            });
        }
        if admission.broker != ROOT && self.is_expelled(admission.broker) {
            let broker = admission.broker;
            return Err(Out::Expelled {
                site: site_text(),
                broker,
            });
        }
        if let Some(until) = self.revoked_until(site).filter(|until| admission.given <= *until) {
            return Err(Out::Revoked {
                site: site_text(),
                until,
            });
        }
        match self.holder(site) {
            Some(held) if !held.admission.is_same(admission) && held.admission.precedes(admission) => {
                Err(Out::Another {
                    site: site_text(),
                    broker: held.admission.broker,
                    given: held.admission.given,
                })
            }
            _ => Ok(()),
        }
    }

    /// The part of the virtual addresses for another broker: one that no broker has, or else that of the
    /// broker that has been gone longest. `None` if brokers that serve have them all.
    pub fn free_share(&self) -> Option<u8> {
        let takes = |share: u8, standing: &dyn Fn(Standing) -> bool| {
            self.brokers()
                .any(|broker| broker.share == share && standing(broker.standing))
        };
        let unused = (0..SHARES).find(|share| !takes(*share, &|_| true));
        let left = || {
            let mut gone = self.brokers().map(|broker| broker.share);
            gone.find(|share| !takes(*share, &|standing| standing == Standing::Serving))
        };
        unused.or_else(left)
    }

    /// The records of brokers alone.
    pub fn signed_brokers(&self) -> impl Iterator<Item = &SignedRecord> {
        self.brokers.values().map(|held| &held.signed)
    }

    /// The records that gateways pass on to each other: brokers and revocations. How a site joined is in its
    /// certificate.
    pub fn passed_on(&self) -> impl Iterator<Item = &SignedRecord> {
        let revocations = self.revocations.values().map(|held| &held.signed);
        self.signed_brokers().chain(revocations)
    }

    /// Whether exactly this record is held, so that its signature need not be checked again.
    pub(crate) fn holds(&self, statement: &Statement, signed: &SignedRecord) -> bool {
        let held = match statement {
            Statement::Broker(what) => self.brokers.get(&what.number).map(|held| &held.signed),
            Statement::Admitted(what) => {
                let admissions = self.admitted.get(&what.site);
                admissions.and_then(|there| Some(&there.get(&what.admission)?.signed))
            }
            Statement::Revocation(what) => {
                let held = self.revocations.get(&(what.broker, what.site.clone()));
                held.map(|held| &held.signed)
            }
        };
        held == Some(signed)
    }

    /// All records, brokers first, so that whoever reads them in order knows each signer before what it
    /// signed.
    pub fn signed(&self) -> impl Iterator<Item = &SignedRecord> {
        let brokers = self.brokers.values().map(|held| &held.signed);
        let revocations = self.revocations.values().map(|held| &held.signed);
        let admitted = self.admitted.values().flat_map(BTreeMap::values);
        brokers
            .chain(revocations)
            .chain(admitted.map(|held| &held.signed))
    }
}

/// Sorts after the name of any site.
const LAST_NAME: &str = "\u{10ffff}";

#[cfg(test)]
#[path = "set_tests.rs"]
mod tests;
