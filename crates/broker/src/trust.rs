//! Judges the certificates that others show, by the grid's authority, the revocations and the time. No
//! sockets.

use crate::clock::{Clock, date, span};
use crate::identity::{Certified, Identity, IdentityError, Role};
use crate::records::{Intake, RecordError, Records, SignedRecord, Statement, Taken};
use crate::revocation::Revocations;
use rustls::crypto::ring;
use rustls::pki_types::{CertificateDer, TrustAnchor, UnixTime};
use sha2::{Digest, Sha256};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock};
use std::time::Duration;
use webpki::{EndEntityCert, KeyUsage, anchor_from_trusted_cert};

/// What happened to records that were to be taken.
#[derive(Debug, Default)]
pub(crate) struct Union {
    /// Records that were news, in order.
    pub(crate) news: Vec<(Statement, SignedRecord)>,
    /// Records that may be taken later: they name a time that is too far ahead, or there are too many for one
    /// hour.
    pub(crate) postponed: usize,
}

/// The peer that a process expects at the other end.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Expect {
    /// The broker.
    Broker,
    /// The gateway of this site.
    Site(String),
    /// The gateway of any site.
    AnySite,
}

/// Why a peer is not the expected one.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum TrustError {
    /// The certificate was not issued by this grid's authority.
    #[error(
        "the authority of grid {grid} did not sign its certificate ({reason}); sites of another grid cannot be joined"
    )]
    Stranger {
        /// This grid.
        grid: String,
        /// The verifier's reason.
        reason: String,
    },
    /// The authority issued the certificate, but it contains nothing that can be used.
    #[error(transparent)]
    Identity(#[from] IdentityError),
    /// A member of the grid, but not the expected one.
    #[error("it is {found}, not {expected}")]
    Other {
        /// The identity in the certificate.
        found: Identity,
        /// The identity that was expected.
        expected: String,
    },
    /// The certificate is not valid yet, by this clock.
    #[error(
        "the certificate of {who} begins at {}, in {}, by this host's clock ({}): this clock is at least that late, or \
         the clock of the broker that made the certificate is early; set both by NTP", date(*begins),
        span(begins.saturating_sub(*now)), date(*now)
    )]
    NotYetValid {
        /// The certificate's owner.
        who: Identity,
        /// First second of its life.
        begins: u64,
        /// This host's time.
        now: u64,
    },
    /// The certificate is no longer valid, by this clock.
    #[error(
        "the certificate of {who} ended at {}, {} ago by this host's clock ({}); if that clock is right, its gateway \
         renews it at the broker, or the site joins again with a new token", date(*ended), span(now.saturating_sub(*ended)), date(*now)
    )]
    Expired {
        /// The certificate's owner.
        who: Identity,
        /// Last second of its life.
        ended: u64,
        /// This host's time.
        now: u64,
    },
    /// The certificate was voided before its end.
    #[error("{0}")]
    Revoked(String),
    /// There is no certificate at all, or it is from another authority than the token's.
    #[error("{0}")]
    Missing(&'static str),
}

/// What a process believes. Clones share the revocations and the records.
#[derive(Debug, Clone)]
pub struct Trust {
    grid: String,
    authority: CertificateDer<'static>,
    anchor: TrustAnchor<'static>,
    revocations: Revocations,
    /// What the brokers know together; empty if the grid has only one.
    records: Arc<RwLock<Records>>,
    intake: Arc<Mutex<Intake>>,
    clock: Clock,
}

impl Trust {
    /// Trusts one grid's authority.
    ///
    /// # Errors
    /// The certificate cannot be read.
    pub fn new(
        grid: &str,
        authority: &CertificateDer<'_>,
        revocations: Revocations,
        clock: Clock,
    ) -> Result<Trust, TrustError> {
        let anchor = anchor_from_trusted_cert(authority).map_err(|_| IdentityError::Certificate)?;
        Ok(Trust {
            grid: grid.to_owned(),
            authority: authority.clone().into_owned(),
            anchor: anchor.to_owned(),
            revocations,
            records: Arc::default(),
            intake: Arc::default(),
            clock,
        })
    }

    /// Returns what the brokers of the grid know together, as far as this process has heard of it.
    pub fn records(&self) -> Records {
        self.with_records(Records::clone)
    }

    /// Reads the records without copying them.
    pub fn with_records<T>(&self, look: impl FnOnce(&Records) -> T) -> T {
        look(&self.records.read().unwrap_or_else(PoisonError::into_inner))
    }

    /// Replaces the records by a set that has grown and is on disk already.
    pub(crate) fn set_records(&self, records: Records) {
        *self.records.write().unwrap_or_else(PoisonError::into_inner) = records;
    }

    fn intake(&self) -> MutexGuard<'_, Intake> {
        self.intake.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Sets which broker this is, if the grid has several.
    pub(crate) fn set_broker(&self, number: u8) {
        self.intake().set_own(number);
    }

    /// Takes records into a set.
    ///
    /// # Errors
    /// A record is not signed as it must be; the error is that of the first. What a broker signed beyond its
    /// bounds is left out.
    pub(crate) fn union(&self, into: &mut Records, records: &[SignedRecord]) -> Result<Union, RecordError> {
        let now = self.clock.now();
        let mut intake = self.intake();
        let mut union = Union::default();
        for record in records {
            let statement = record.verify(&self.grid, &self.authority, into)?;
            let record = (statement, record.clone());
            match intake.take(into, record.clone(), now) {
                Taken::News => union.news.push(record),
                Taken::Known | Taken::Full => {}
                Taken::Postponed => union.postponed += 1,
            }
        }
        Ok(union)
    }

    /// Adds to a set the postponed records whose time has come. Returns what was news.
    pub(crate) fn union_due(&self, into: &mut Records) -> Vec<(Statement, SignedRecord)> {
        self.intake().take_due(into, self.clock.now())
    }

    /// Whether the time of any postponed record has come.
    pub(crate) fn has_due(&self) -> bool {
        self.intake().has_due(self.clock.now())
    }

    /// Adds to a set records that were taken before: they count, whatever this host's clock says now.
    ///
    /// # Errors
    /// A record is not signed as it must be; the error is that of the first.
    pub(crate) fn read_back(&self, into: &mut Records, records: &[SignedRecord]) -> Result<(), RecordError> {
        for record in records {
            let statement = record.verify(&self.grid, &self.authority, into)?;
            // More than a broker may sign was never kept.
            let _ = into.add(statement, record.clone());
        }
        Ok(())
    }

    /// The grid.
    pub fn grid(&self) -> &str {
        &self.grid
    }

    /// Its authority's certificate.
    pub fn authority(&self) -> &CertificateDer<'static> {
        &self.authority
    }

    /// The certificates that are void. [`Revocations::adopt`] changes them for every configuration made from
    /// this.
    pub fn revocations(&self) -> &Revocations {
        &self.revocations
    }

    /// Its clock.
    pub fn clock(&self) -> &Clock {
        &self.clock
    }

    /// The identity in these certificates, the peer's own first, whether or not they are valid now: see
    /// [`Trust::standing`].
    ///
    /// # Errors
    /// The certificates are from another authority, or name nobody in this grid.
    pub fn identify(&self, shown: &[CertificateDer<'_>]) -> Result<Certified, TrustError> {
        let [end_entity, between @ ..] = shown else {
            return Err(TrustError::Missing("it showed no certificate"));
        };
        let stranger = |reason: String| TrustError::Stranger {
            grid: self.grid.clone(),
            reason,
        };
        let parsed = EndEntityCert::try_from(end_entity).map_err(|error| stranger(error.to_string()))?;
        let dates = Certified::read(end_entity);
        // The certificate is verified as of a time within its life, or any time if it names none: whether it
        // is valid now is judged separately, with an explanation.
        let time = dates.as_ref().map_or(0, |certified| certified.not_before);
        let mut issuer = None;
        for usage in [KeyUsage::client_auth(), KeyUsage::server_auth()] {
            let path = parsed
                .verify_for_usage(
                    ring::default_provider().signature_verification_algorithms.all,
                    std::slice::from_ref(&self.anchor),
                    between,
                    UnixTime::since_unix_epoch(Duration::from_secs(time)),
                    usage,
                    None,
                    None,
                )
                .map_err(|error| stranger(format!("{error:?}")))?;
            let intermediate = path.intermediate_certificates().next();
            issuer = intermediate.map(|certificate| Sha256::digest(certificate.der()).into());
        }
        let certified = Certified { issuer, ..dates? };
        if certified.identity.grid != self.grid {
            return Err(stranger(format!("it is of grid {}", certified.identity.grid)));
        }
        Ok(certified)
    }

    /// Whether a certificate is valid now.
    ///
    /// # Errors
    /// It is not yet valid, has expired, or was revoked.
    pub fn standing(&self, certified: &Certified) -> Result<(), TrustError> {
        let now = self.clock.now();
        if let Some(reason) = self.revocations.refuses(certified) {
            return Err(TrustError::Revoked(reason));
        }
        if let Some(reason) = self.out(certified) {
            return Err(TrustError::Revoked(reason));
        }
        let who = || certified.identity.clone();
        if now < certified.not_before {
            return Err(TrustError::NotYetValid {
                who: who(),
                begins: certified.not_before,
                now,
            });
        }
        if now > certified.not_after {
            return Err(TrustError::Expired {
                who: who(),
                ended: certified.not_after,
                now,
            });
        }
        Ok(())
    }

    /// Why a certificate no longer counts, by what the brokers know together.
    fn out(&self, certified: &Certified) -> Option<String> {
        self.with_records(|records| {
            if let Some(broker) = certified.issuer.and_then(|issuer| records.expelled_issuer(&issuer)) {
                return Some(format!(
                    "broker {broker} issued the certificate of {}, and the grid's authority has expelled it; join again with a \
                     token of another broker",
                    certified.identity
                ));
            }
            let site = certified.site()?;
            let judged = records.judge(site, &certified.admission());
            judged.err().map(|out| out.to_string())
        })
    }

    /// Whether a certificate may be renewed: it is valid now, or has expired no longer ago than this.
    ///
    /// # Errors
    /// Those of [`Trust::standing`].
    pub fn may_renew(&self, certified: &Certified, grace_seconds: u64) -> Result<(), TrustError> {
        match self.standing(certified) {
            Err(TrustError::Expired { ended, now, .. }) if now.saturating_sub(ended) <= grace_seconds => {
                Ok(())
            }
            standing => standing,
        }
    }

    /// The reason why a peer with these certificates may not go on, if they are void. Expiry is no reason.
    pub fn voided(&self, shown: &[CertificateDer<'_>]) -> Option<String> {
        match self.identify(shown) {
            Ok(certified) => self
                .revocations
                .refuses(&certified)
                .or_else(|| self.out(&certified)),
            Err(error) => Some(error.to_string()),
        }
    }

    /// Returns the holder of these certificates, if it is the expected one and may speak now.
    ///
    /// # Errors
    /// See [`TrustError`].
    pub fn check(&self, shown: &[CertificateDer<'_>], expect: &Expect) -> Result<Certified, TrustError> {
        let certified = self.identify(shown)?;
        let (right, expected) = match (expect, &certified.identity.role) {
            (Expect::Broker, role) => (*role == Role::Broker, "the broker".to_owned()),
            (Expect::Site(site), Role::Site(found)) => (found == site, format!("site {site}")),
            (Expect::Site(site), Role::Broker) => (false, format!("site {site}")),
            (Expect::AnySite, role) => (*role != Role::Broker, "a site".to_owned()),
        };
        if !right {
            return Err(TrustError::Other {
                found: certified.identity,
                expected,
            });
        }
        self.standing(&certified)?;
        Ok(certified)
    }
}

#[cfg(test)]
#[path = "trust_tests.rs"]
mod tests;
