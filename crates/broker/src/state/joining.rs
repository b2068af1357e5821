//! Tokens and certificates: who gets in.

use super::{Refusal, State, internal};
use crate::api::{CertificateAnswer, EnrolRequest, ErrorKind, RenewRequest, Subnet};
use crate::authority::{AuthorityError, Issued};
use crate::clock::{date, span};
use crate::identity::{Certified, Identity, hexadecimal};
use crate::join_token::JoinToken;
use crate::records::{Admission, Admitted, SignedRecord};
use crate::store::{self, Change};
use crate::subnet::MAX_GRANTED;
use crate::trust::TrustError;
use causeway_wire::grid;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use std::net::SocketAddr;

/// The most tokens that are kept, and for how long after their end. During that time, somebody who uses such
/// a token is told that it is late, not that it is forged.
const MAX_TOKENS: usize = 10_000;
const TOKEN_MEMORY_SECONDS: u64 = 30 * 86_400;

/// The longest life of a token: during it, the token lies in mails and shell histories.
pub const MAX_TTL_SECONDS: u64 = 7 * 86_400;

/// What the store keeps of a token.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct TokenRecord {
    pub(super) site: String,
    pub(super) expires: u64,
    pub(super) used: Option<Used>,
    /// Whether the token was taken back.
    pub(super) void: bool,
    /// Ranges that the site may have once it has joined with this token. If there are none, it may have
    /// ranges that nobody has on the Internet.
    #[serde(default)]
    pub(super) subnets: Vec<Subnet>,
    /// What it admits, if the grid has several brokers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) admission: Option<Admission>,
}

/// How a token was used.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct Used {
    at: u64,
    from: SocketAddr,
    /// Hash of the certificate request: a host that lost the answer may ask again for the same key.
    request: String,
}

impl TokenRecord {
    /// When a site joined with it.
    pub(super) fn used_at(&self) -> Option<u64> {
        self.used.as_ref().map(|used| used.at)
    }
}

impl State {
    /// Makes a token with which `site` may join. If ranges are given, its addresses must lie in them.
    pub(crate) fn create_token(
        &mut self,
        site: &str,
        ttl_seconds: u64,
        subnets: &[Subnet],
    ) -> Result<JoinToken, Refusal> {
        let refuse = |message: String| Refusal::new(ErrorKind::BadRequest, message);
        if !grid::is_site_name(site) {
            let message = format!("{site:?} is no name of a site: 1 to 63 letters, digits, '-', '_' or '.'");
            return Err(refuse(message));
        }
        if ttl_seconds == 0 || ttl_seconds > MAX_TTL_SECONDS {
            return Err(refuse(format!("a token lives at most {}", span(MAX_TTL_SECONDS))));
        }
        if subnets.len() > MAX_GRANTED {
            return Err(refuse(format!("a token grants {MAX_GRANTED} ranges at most")));
        }
        self.must_serve()?;
        let now = self.now();
        self.forget_tokens(now)?;
        if self.tokens.len() >= MAX_TOKENS {
            let message = format!(
                "{MAX_TOKENS} tokens were given in the last {}",
                span(TOKEN_MEMORY_SECONDS)
            );
            return Err(Refusal::new(ErrorKind::Busy, message));
        }
        let mut secret = [0; 32];
        getrandom::fill(&mut secret)
            .map_err(|error| Refusal::new(ErrorKind::Internal, format!("random numbers: {error}")))?;
        let token = JoinToken {
            brokers: self.public.clone(),
            authority: self.authority.fingerprint(),
            site: site.to_owned(),
            secret,
            expires: now.saturating_add(ttl_seconds),
        };
        let record = TokenRecord {
            site: site.to_owned(),
            expires: token.expires,
            used: None,
            void: false,
            subnets: subnets.to_vec(),
            admission: self.admission_of(site, &secret, now),
        };
        let hash = JoinToken::hash(&secret);
        self.store
            .change(Change::default().put(store::TOKENS, &hash, &record))?;
        self.tokens.insert(hash, record);
        Ok(token)
    }

    /// The certificate for a token.
    pub(crate) fn enrol(
        &mut self,
        asked: &EnrolRequest,
        from: SocketAddr,
    ) -> Result<CertificateAnswer, Refusal> {
        if asked.authority != hexadecimal(&self.authority.fingerprint()) {
            return Err(Refusal::new(
                ErrorKind::TokenOtherGrid,
                format!("the token is of another grid than {}", self.authority.grid()),
            ));
        }
        let now = self.now();
        let hash = secret_hash(&asked.secret);
        let known = self.tokens.get(&hash).filter(|token| token.site == asked.site);
        let Some(token) = known.cloned() else {
            return Err(Refusal::new(
                ErrorKind::TokenForged,
                format!(
                    "no token of this secret was ever given to site {}; it is forged, or older than {}",
                    asked.site,
                    span(TOKEN_MEMORY_SECONDS)
                ),
            ));
        };
        self.must_serve()?;
        let request = hexadecimal(&Sha256::digest(&asked.request));
        check_token(&token, &request, now)?;
        let (issued, record) = self.issue_for(&token, asked, now)?;
        let used = Used {
            at: now,
            from,
            request,
        };
        let token = TokenRecord {
            used: Some(used),
            ..token
        };
        self.keep_joined(hash, token, record.as_ref())?;
        let mut answer = self.certificate_answer(issued);
        // The site's gateway first learns of the other brokers from these; and its own record is among them,
        // which it passes on even if this broker dies now.
        if self.number().is_some() {
            answer.records = self
                .trust
                .with_records(|records| records.signed_brokers().cloned().collect());
            answer.records.extend(record);
        }
        Ok(answer)
    }

    /// The certificate for a token, and the record of it if the grid has several brokers.
    fn issue_for(
        &self,
        token: &TokenRecord,
        asked: &EnrolRequest,
        now: u64,
    ) -> Result<(Issued, Option<SignedRecord>), Refusal> {
        // A token from the time of one broker contains no admission.
        let kept = token.admission.clone();
        let admission = kept.or_else(|| self.admission_of(&token.site, &secret_of(&asked.secret), now));
        let Some(admission) = admission else {
            return Ok((self.certify(&asked.request, &token.site)?, None));
        };
        let admitted = Admitted {
            site: token.site.clone(),
            admission,
            granted: token.subnets.clone(),
        };
        let (issued, record) = self.admit(&token.site, &asked.request, admitted)?;
        Ok((issued, Some(record)))
    }

    /// Issues the next certificate of a site.
    pub(crate) fn renew(
        &mut self,
        certified: &Certified,
        asked: &RenewRequest,
    ) -> Result<CertificateAnswer, Refusal> {
        self.must_serve()?;
        let issued = match (self.number(), certified.site()) {
            (Some(_), _) => self.certify_again(&asked.request, certified)?,
            (None, site) => self.certify(&asked.request, site.unwrap_or_default())?,
        };
        Ok(self.certificate_answer(issued))
    }

    fn certify(&self, request: &str, site: &str) -> Result<Issued, Refusal> {
        let identity = Identity::site(self.authority.grid(), site);
        // Otherwise it would be void from its beginning.
        let begins = self
            .trust
            .revocations()
            .now()
            .before(site)
            .map_or(0, |before| before.saturating_add(1));
        let issued = self.authority.certify(request, &identity, self.now(), begins);
        issued.map_err(not_issued)
    }

    fn certificate_answer(&self, issued: Issued) -> CertificateAnswer {
        CertificateAnswer {
            certificate: issued.pem,
            authority: self.authority.certificate_pem().to_owned(),
            time: self.now(),
            records: Vec::new(),
        }
    }

    /// Notes that a token was used: from now on the site may have the ranges that it grants.
    fn keep_joined(
        &mut self,
        hash: String,
        token: TokenRecord,
        record: Option<&SignedRecord>,
    ) -> Result<(), Refusal> {
        let change = Change::default().put(store::TOKENS, &hash, &token);
        let (site, subnets) = (token.site.clone(), token.subnets.clone());
        let change = change.and(match subnets.as_slice() {
            [] => Change::default().remove(store::GRANTS, &site),
            subnets => Change::default().put(store::GRANTS, &site, &subnets),
        });
        match record {
            Some(record) => drop(self.keep_records(std::slice::from_ref(record), &[], change)?),
            None => self.store.change(change)?,
        }
        if subnets.is_empty() {
            self.grants.remove(&site);
        } else {
            self.grants.insert(site, subnets);
        }
        self.tokens.insert(hash, token);
        Ok(())
    }

    /// Hashes of these tokens, those that are void already left out.
    pub(super) fn tokens_of(&self, which: impl Fn(&TokenRecord) -> bool) -> Vec<String> {
        let meant = self
            .tokens
            .iter()
            .filter(|(_, token)| !token.void && which(token));
        meant.map(|(hash, _)| hash.clone()).collect()
    }

    pub(super) fn voided(&self, hashes: &[String]) -> Change {
        let tokens = hashes.iter().filter_map(|hash| self.tokens.get_key_value(hash));
        tokens.fold(Change::default(), |change, (hash, token)| {
            let mut token = token.clone();
            token.void = true;
            change.put(store::TOKENS, hash, &token)
        })
    }

    fn forget_tokens(&mut self, now: u64) -> Result<(), Refusal> {
        let old = |token: &TokenRecord| token.expires.saturating_add(TOKEN_MEMORY_SECONDS) < now;
        let mut change = Change::default();
        for (hash, _) in self.tokens.iter().filter(|(_, token)| old(token)) {
            change = change.remove(store::TOKENS, hash);
        }
        self.store.change(change)?;
        self.tokens.retain(|_, token| !old(token));
        Ok(())
    }
}

/// The site for which a certificate speaks, if the certificate is valid now.
pub(crate) fn site_of(certified: Option<&Certified>, state: &State) -> Result<String, Refusal> {
    site_by(certified, |certified| state.trust.standing(certified))
}

/// The site whose certificate this is, if it may get the next one.
pub(crate) fn renewing_site(certified: Option<&Certified>, state: &State) -> Result<String, Refusal> {
    site_by(certified, |certified| {
        state.trust.may_renew(certified, state.renewal_grace_seconds)
    })
}

fn site_by(
    certified: Option<&Certified>,
    judge: impl FnOnce(&Certified) -> Result<(), TrustError>,
) -> Result<String, Refusal> {
    let Some(certified) = certified else {
        return Err(Refusal::new(
            ErrorKind::NoCertificate,
            "only members of the grid may ask this; join with a token first ('causeway gateway --join TOKEN')",
        ));
    };
    judge(certified)?;
    match certified.site() {
        Some(site) => Ok(site.to_owned()),
        None => Err(Refusal::new(ErrorKind::NotYours, "the broker is no site")),
    }
}

pub(super) fn not_issued(error: AuthorityError) -> Refusal {
    match error {
        AuthorityError::Request(_) => Refusal::new(ErrorKind::BadRequest, error.to_string()),
        other => internal(other),
    }
}

/// The hash, in hexadecimal, under which a token with this secret is kept.
fn secret_hash(secret: &str) -> String {
    JoinToken::hash(&secret_of(secret))
}

/// Decodes a secret, which was checked to be hexadecimal.
fn secret_of(secret: &str) -> [u8; 32] {
    let digit = |byte: u8| (byte as char).to_digit(16).unwrap_or(0) as u8;
    let mut bytes = [0; 32];
    for (byte, pair) in bytes.iter_mut().zip(secret.as_bytes().chunks_exact(2)) {
        *byte = digit(pair[0]) << 4 | digit(pair[1]);
    }
    bytes
}

/// Whether a token may be used, or was used by this very request.
fn check_token(token: &TokenRecord, request: &str, now: u64) -> Result<(), Refusal> {
    let new = format!(
        "; ask for a new one ('causeway grid token --site {}')",
        token.site
    );
    if let Some(used) = token.used.as_ref().filter(|used| used.request != request) {
        let message = format!(
            "the token was used at {} from {}{new}",
            date(used.at),
            used.from.ip()
        );
        return Err(Refusal::new(ErrorKind::TokenUsed, message));
    }
    if token.void || now > token.expires {
        let why = if token.void {
            "the token was taken back when the broker was restored or the site revoked".to_owned()
        } else {
            format!(
                "the token expired {} ago, at {}",
                span(now - token.expires),
                date(token.expires)
            )
        };
        return Err(Refusal::new(ErrorKind::TokenExpired, format!("{why}{new}")));
    }
    Ok(())
}
