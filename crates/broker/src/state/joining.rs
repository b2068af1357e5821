//! Tokens, certificates and revocations: who gets in, and who is put out.

use super::{ANCESTORS, REVOCATIONS, Refusal, State, internal};
use crate::api::{CertificateAnswer, EnrolRequest, ErrorKind, Member, RenewRequest, Subnet};
use crate::authority::{AuthorityError, BACKDATED_SECONDS, Issued};
use crate::clock::{date, span};
use crate::identity::{Certified, Identity, hexadecimal};
use crate::join_token::JoinToken;
use crate::records::{Admission, Admitted, SignedRecord};
use crate::revocation::{ExtendError, RevocationSet, SignedRevocations};
use crate::store::{self, Change};
use crate::subnet::MAX_GRANTED;
use crate::trust::TrustError;
use causeway_wire::grid;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use std::net::SocketAddr;

/// The most tokens that are kept, and how long after their end. During that time the answer to a late token
/// is that it is late, not forged.
const MAX_TOKENS: usize = 10_000;
const TOKEN_MEMORY_SECONDS: u64 = 30 * 86_400;

/// Longest life of a token: it lies in mails and histories of shells meanwhile.
pub const MAX_TTL_SECONDS: u64 = 7 * 86_400;

/// The most lists of revocations that are remembered as known. The broker asks again for one that it does not
/// remember.
const MAX_ANCESTORS: usize = 4096;

/// What the store keeps of a token.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct TokenRecord {
    pub(super) site: String,
    pub(super) expires: u64,
    pub(super) used: Option<Used>,
    /// The token was taken back.
    pub(super) void: bool,
    /// Ranges that the site may have once it has joined with this token. Without any it may have ranges that
    /// nobody has on the Internet.
    #[serde(default)]
    pub(super) subnets: Vec<Subnet>,
    /// What it admits, where the grid has several brokers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) admission: Option<Admission>,
}

/// How a token was used.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct Used {
    at: u64,
    from: SocketAddr,
    /// Hash of the certificate request: who lost the answer may ask again for the same key.
    request: String,
}

impl State {
    /// Makes a token with which `site` may join. Its addresses must lie in these ranges, where any are named.
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
        let (issued, record) = match &token.admission {
            Some(admission) if self.number().is_some() => {
                let admitted = Admitted {
                    site: token.site.clone(),
                    admission: admission.clone(),
                    granted: token.subnets.clone(),
                };
                let (issued, record) = self.admit(&token.site, &asked.request, admitted)?;
                (issued, Some(record))
            }
            _ => (self.certify(&asked.request, &token.site)?, None),
        };
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
        // The first that the site's gateway knows of the other brokers; and its own record, which it gives to
        // them even if this broker dies now.
        if self.number().is_some() {
            answer.records = self
                .trust
                .with_records(|records| records.signed_brokers().cloned().collect());
            answer.records.extend(record);
        }
        Ok(answer)
    }

    /// The next certificate of who has one.
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

    /// Voids all certificates and tokens of a site; the counter of the new list.
    pub(crate) fn revoke(&mut self, site: &str) -> Result<u64, Refusal> {
        if !grid::is_site_name(site) {
            let message = format!("{site:?} is no name of a site");
            return Err(Refusal::new(ErrorKind::BadRequest, message));
        }
        if let Some(number) = self.number() {
            return self.revoke_together(site, number);
        }
        let known = self.trust.revocations().now();
        let before = self
            .last_beginning(site)
            .max(known.before(site).map_or(0, |before| before.saturating_add(1)));
        let more = known
            .extended([(site.to_owned(), before)], 0, &self.authority)
            .map_err(not_extended)?;
        let void = self.tokens_of(|token| token.site == site);
        self.keep_revocations(more, self.ancestors.clone(), &void)?;
        Ok(self.trust.revocations().now().counter())
    }

    /// The latest beginning that a certificate of this site may have. Certificates are made with an earlier
    /// one than now, but the clock may have been ahead when that was.
    pub(super) fn last_beginning(&self, site: &str) -> u64 {
        let joined = self.tokens.values().filter(|token| token.site == site);
        let joined = joined
            .filter_map(|token| Some(token.used.as_ref()?.at))
            .max()
            .unwrap_or(0);
        let begun = self.members.site(site).map_or(0, |member| member.not_before);
        self.now()
            .max(joined)
            .saturating_sub(BACKDATED_SECONDS)
            .max(begun)
    }

    /// Takes revocations that a gateway knows and this broker lost with its disk; true when there were any.
    pub(crate) fn merge_revocations(&mut self, signed: &SignedRevocations) -> Result<bool, Refusal> {
        let theirs = RevocationSet::verify(signed, self.authority.grid(), self.authority.certificate())
            .map_err(|error| Refusal::new(ErrorKind::BadRequest, error.to_string()))?;
        if self.knows_revocations(&theirs.digest()) {
            return Ok(false);
        }
        let own = self.trust.revocations().now();
        let mine_are_theirs = own
            .revoked()
            .all(|(site, before)| theirs.before(site) >= Some(before));
        let merged = if mine_are_theirs && theirs.counter() > own.counter() {
            Some(theirs.clone())
        } else if self.number().is_some() {
            // The list ended with the time of one broker: only the grid's authority could sign a longer one.
            (theirs.counter() > own.counter()).then(|| theirs.clone())
        } else {
            let more = theirs.revoked().map(|(site, before)| (site.to_owned(), before));
            own.extended(more, theirs.counter(), &self.authority)
                .map_err(not_extended)?
        };
        let mut ancestors = self.ancestors.clone();
        ancestors.push(theirs.digest());
        // An old store may hold tokens that were used since.
        let void = self.tokens_of(|token| token.used.is_none());
        self.keep_revocations(merged, ancestors, &void)?;
        Ok(true)
    }

    /// Whether the present list holds all of the list with this digest.
    pub(super) fn knows_revocations(&self, digest: &str) -> bool {
        digest.is_empty()
            || self.trust.revocations().now().digest() == digest
            || self.ancestors.iter().any(|known| known == digest)
    }

    fn certify(&self, request: &str, site: &str) -> Result<Issued, Refusal> {
        let identity = Identity::site(self.authority.grid(), site);
        // Else it would be void from its beginning.
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

    /// A token is used: from now on the site may have what it grants.
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

    /// Hashes of tokens that are to be void and are not yet.
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

    pub(super) fn void_tokens(&mut self, hashes: &[String]) {
        for hash in hashes {
            if let Some(token) = self.tokens.get_mut(hash) {
                token.void = true;
            }
        }
    }

    /// What the disk forgets of sites that are out.
    pub(super) fn without_sites(&self, out: &[String]) -> Change {
        out.iter().fold(Change::default(), |change, site| {
            change
                .remove(store::MEMBERS, site)
                .remove(store::SEEN, site)
                .remove(store::GRANTS, site)
                .and(self.without_jobs_of(site, None))
        })
    }

    /// What the memory forgets of them.
    pub(super) fn forget_sites(&mut self, out: &[String]) {
        for site in out {
            self.members.remove(site);
            self.grants.remove(site);
            self.presence.remove(site);
            self.mail.forget(site);
            self.forget_jobs_of(site, None);
        }
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

    /// Removes the sites on the list, where it is new, and voids tokens: does all of it, or nothing where the
    /// disk does not take it.
    fn keep_revocations(
        &mut self,
        set: Option<RevocationSet>,
        mut ancestors: Vec<String>,
        void: &[String],
    ) -> Result<(), Refusal> {
        let mut change = Change::default();
        let mut out: Vec<String> = Vec::new();
        if let Some(set) = &set {
            let before = self.trust.revocations().now().digest();
            if !before.is_empty() {
                ancestors.push(before);
            }
            change = change.put(store::META, REVOCATIONS, &set.signed());
            let put_out = |member: &&Member| {
                set.before(&member.site)
                    .is_some_and(|before| member.not_before <= before)
            };
            out.extend(
                self.members
                    .iter()
                    .filter(put_out)
                    .map(|member| member.site.clone()),
            );
        }
        let surplus = ancestors.len().saturating_sub(MAX_ANCESTORS);
        ancestors.drain(..surplus);
        if ancestors != self.ancestors {
            change = change.put(store::META, ANCESTORS, &ancestors);
        }
        let change = change.and(self.without_sites(&out));
        self.store.change(change.and(self.voided(void)))?;
        self.ancestors = ancestors;
        self.void_tokens(void);
        self.forget_sites(&out);
        if let Some(set) = set {
            self.trust.revocations().adopt(set);
            self.stir();
        }
        Ok(())
    }
}

/// Whether a certificate may speak now; the site it speaks for.
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

fn not_extended(error: ExtendError) -> Refusal {
    match error {
        ExtendError::Full(_) => Refusal::new(ErrorKind::Busy, error.to_string()),
        ExtendError::Authority(error) => internal(error),
    }
}

/// Hash of a secret in hexadecimal, as tokens are found by it.
fn secret_hash(secret: &str) -> String {
    let digit = |byte: u8| (byte as char).to_digit(16).unwrap_or(0) as u8;
    let mut bytes = [0; 32];
    for (byte, pair) in bytes.iter_mut().zip(secret.as_bytes().chunks_exact(2)) {
        *byte = digit(pair[0]) << 4 | digit(pair[1]);
    }
    JoinToken::hash(&bytes)
}

/// Whether a token may be used, or was by this very request.
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
