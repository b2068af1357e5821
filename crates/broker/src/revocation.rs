//! The list of certificates that are void before their time.
//!
//! A revocation names a site and a moment: every certificate of that site that begins until then is void. The
//! list is signed by the grid's authority and counts its versions. Gateways keep it for ever and give it back
//! to a broker that lost it: restoring an old disk lets nobody in again.

use crate::authority::{Authority, AuthorityError, BACKDATED_SECONDS};
use crate::clock::date;
use crate::identity::{Certified, hexadecimal};
use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use causeway_wire::grid;
use ring::signature::{ECDSA_P256_SHA256_ASN1, UnparsedPublicKey};
use rustls::pki_types::CertificateDer;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use std::collections::BTreeMap;
use std::sync::{Arc, PoisonError, RwLock};

/// The most sites that a list may name: four times the largest grid.
pub const MAX_REVOKED: usize = 4096;

/// Longest list that is read: all sites with the longest names, and room in a body for the escaped quotes.
pub const MAX_BYTES: usize = 512 * 1024;

/// The list, as it is signed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct List {
    version: u32,
    grid: String,
    counter: u64,
    /// Sites, each with the time (seconds since 1970) up to which certificates that begin are void.
    revoked: BTreeMap<String, u64>,
}

const VERSION: u32 = 1;

/// A list in the form in which it travels and is kept: the text that was signed, and the signature.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SignedRevocations {
    /// The list as JSON.
    pub list: String,
    /// ECDSA P-256 with SHA-256, ASN.1, base64url.
    pub signature: String,
}

/// Why a list is refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum RevocationError {
    /// The list is damaged, or forged.
    #[error("the list of revocations is not signed by the grid's authority")]
    Signature,
    /// The text is not a list.
    #[error("the list of revocations cannot be read: {0}")]
    Format(String),
    /// The list is of another grid, whose authority has the same key.
    #[error("the list of revocations is of grid {0}")]
    Grid(String),
}

/// Why a list was not extended.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ExtendError {
    /// The list is full, because everybody who has it keeps it for ever.
    #[error(
        "the list of revocations is full: it names {MAX_REVOKED} sites, and has no room for {0}; nothing was revoked. \
         To exclude it, make a new grid for the remaining sites"
    )]
    Full(String),
    /// The list could not be signed.
    #[error(transparent)]
    Authority(#[from] AuthorityError),
}

/// Revocations that are known to be true.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct RevocationSet {
    counter: u64,
    revoked: BTreeMap<String, u64>,
    signed: Option<SignedRevocations>,
}

impl RevocationSet {
    /// Checks a list.
    ///
    /// # Errors
    /// See [`RevocationError`].
    pub fn verify(
        signed: &SignedRevocations,
        grid: &str,
        authority: &CertificateDer<'_>,
    ) -> Result<RevocationSet, RevocationError> {
        if signed.list.len() > MAX_BYTES {
            return Err(RevocationError::Format("it is too long".to_owned()));
        }
        let (_, parsed) =
            x509_parser::parse_x509_certificate(authority).map_err(|_| RevocationError::Signature)?;
        let key = &parsed.public_key().subject_public_key.data;
        let signature = URL_SAFE_NO_PAD.decode(&signed.signature);
        let signature = signature.map_err(|_| RevocationError::Signature)?;
        UnparsedPublicKey::new(&ECDSA_P256_SHA256_ASN1, key)
            .verify(signed.list.as_bytes(), &signature)
            .map_err(|_| RevocationError::Signature)?;
        let list: List =
            serde_json::from_str(&signed.list).map_err(|error| RevocationError::Format(error.to_string()))?;
        if list.grid != grid {
            return Err(RevocationError::Grid(list.grid));
        }
        if list.version != VERSION {
            return Err(RevocationError::Format(format!("version {}", list.version)));
        }
        Ok(RevocationSet {
            counter: list.counter,
            revoked: list.revoked,
            signed: Some(signed.clone()),
        })
    }

    /// Its version: a higher one knows more.
    pub fn counter(&self) -> u64 {
        self.counter
    }

    /// The list with its signature; `None` as long as nothing was ever revoked.
    pub fn signed(&self) -> Option<&SignedRevocations> {
        self.signed.as_ref()
    }

    /// Identifies exactly this list: two lists with the same counter may differ after a broker was restored.
    /// Empty for the empty set.
    pub fn digest(&self) -> String {
        let list = self.signed.as_ref();
        list.map_or_else(String::new, |signed| hexadecimal(&Sha256::digest(&signed.list)))
    }

    /// The sites, each with the time up to which certificates that begin are void.
    pub fn revoked(&self) -> impl Iterator<Item = (&str, u64)> {
        self.revoked.iter().map(|(site, before)| (site.as_str(), *before))
    }

    /// The time up to which a site's certificates that begin are void.
    pub fn before(&self, site: &str) -> Option<u64> {
        self.revoked.get(site).copied()
    }

    /// Returns the reason why a certificate is void, if it is.
    pub fn refuses(&self, certified: &Certified) -> Option<String> {
        let site = certified.site()?;
        let before = self.before(site)?;
        (certified.not_before <= before).then(|| {
            format!(
                "the certificate of site {site} was revoked at {}; it may join again with a new token ('causeway grid token \
                 --site {site}' where the broker runs)",
                date(before.saturating_add(BACKDATED_SECONDS))
            )
        })
    }

    /// The union with another set, signed anew; `None` if it is no more than this set.
    pub(crate) fn extended(
        &self,
        more: impl IntoIterator<Item = (String, u64)>,
        counter: u64,
        authority: &Authority,
    ) -> Result<Option<RevocationSet>, ExtendError> {
        let mut revoked = self.revoked.clone();
        for (site, before) in more.into_iter().filter(|(site, _)| grid::is_site_name(site)) {
            if revoked.len() >= MAX_REVOKED && !revoked.contains_key(&site) {
                return Err(ExtendError::Full(site));
            }
            let known = revoked.entry(site).or_default();
            *known = before.max(*known);
        }
        if revoked == self.revoked && (counter < self.counter || revoked.is_empty()) {
            return Ok(None);
        }
        let list = List {
            version: VERSION,
            grid: authority.grid().to_owned(),
            counter: counter.max(self.counter) + 1,
            revoked,
        };
        // Maps of strings and numbers have a JSON form.
        let text = serde_json::to_string(&list).unwrap_or_default();
        let signature = URL_SAFE_NO_PAD.encode(authority.sign(text.as_bytes())?);
        Ok(Some(RevocationSet {
            counter: list.counter,
            revoked: list.revoked,
            signed: Some(SignedRevocations {
                list: text,
                signature,
            }),
        }))
    }
}

/// The revocations that a process knows at present; clones share them.
#[derive(Debug, Clone, Default)]
pub struct Revocations(Arc<RwLock<RevocationSet>>);

impl Revocations {
    /// A set to begin with.
    pub fn new(set: RevocationSet) -> Revocations {
        Revocations(Arc::new(RwLock::new(set)))
    }

    /// The revocations that are known now.
    pub fn now(&self) -> RevocationSet {
        self.0.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Replaces the present list by a later one; an earlier one changes nothing. True when it was replaced.
    pub fn adopt(&self, set: RevocationSet) -> bool {
        let mut present = self.0.write().unwrap_or_else(PoisonError::into_inner);
        let later = set.counter > present.counter;
        if later {
            *present = set;
        }
        later
    }

    /// See [`RevocationSet::refuses`].
    pub fn refuses(&self, certified: &Certified) -> Option<String> {
        let present = self.0.read().unwrap_or_else(PoisonError::into_inner);
        present.refuses(certified)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock::Clock;
    use crate::identity::Identity;

    fn authority() -> Authority {
        Authority::create("g5k", &Clock::system()).unwrap()
    }

    fn certified(site: &str, not_before: u64) -> Certified {
        Certified {
            identity: Identity::site("g5k", site),
            serial: "01".into(),
            not_before,
            not_after: u64::MAX,
            admission: None,
            issuer: None,
        }
    }

    #[test]
    fn a_revocation_ends_what_was_issued_before_it_and_nothing_else() {
        let authority = authority();
        let set = RevocationSet::default();
        let set = set
            .extended([("rennes".to_owned(), 100)], 0, &authority)
            .unwrap()
            .unwrap();
        let known = Revocations::new(set.clone());
        assert!(
            known
                .refuses(&certified("rennes", 100))
                .unwrap()
                .contains("was revoked")
        );
        assert_eq!(known.refuses(&certified("rennes", 101)), None);
        assert_eq!(known.refuses(&certified("nancy", 1)), None);
        let again = set.extended([("rennes".to_owned(), 100)], 0, &authority).unwrap();
        assert_eq!(again, None);
    }

    #[test]
    fn a_list_that_is_older_or_not_signed_by_the_grids_authority_changes_nothing() {
        let authority = authority();
        let first = RevocationSet::default()
            .extended([("rennes".to_owned(), 100)], 0, &authority)
            .unwrap()
            .unwrap();
        let second = first
            .extended([("nancy".to_owned(), 200)], 0, &authority)
            .unwrap()
            .unwrap();
        let known = Revocations::default();
        assert!(known.adopt(second.clone()));
        assert!(!known.adopt(first));
        assert_eq!(known.now(), second);
        let signed = second.signed().unwrap();
        let verify =
            |signed: &SignedRevocations, grid| RevocationSet::verify(signed, grid, authority.certificate());
        assert_eq!(verify(signed, "g5k"), Ok(second.clone()));
        assert_eq!(verify(signed, "other"), Err(RevocationError::Grid("g5k".into())));
        let mut forged = signed.clone();
        forged.list = forged.list.replace("nancy", "lyon");
        assert_eq!(verify(&forged, "g5k"), Err(RevocationError::Signature));
        let other = super::tests::authority();
        let foreign = RevocationSet::verify(signed, "g5k", other.certificate());
        assert_eq!(foreign, Err(RevocationError::Signature));
    }

    #[test]
    fn a_list_that_is_full_takes_no_other_site_and_says_so() {
        let authority = authority();
        let many = (0..MAX_REVOKED).map(|number| (format!("site-{number}"), 100));
        let full = RevocationSet::default()
            .extended(many, 0, &authority)
            .unwrap()
            .unwrap();
        let more = |site: &str| full.extended([(site.to_owned(), 200)], 0, &authority);
        assert!(matches!(more("rennes"), Err(ExtendError::Full(site)) if site == "rennes"));
        let again = more("site-7").unwrap().unwrap();
        assert_eq!(again.before("site-7"), Some(200), "one it names already");
    }
}
