//! The membership of a host in a grid, as a site: its key, its certificate and the broker's address, in one
//! file of mode 0600.

use super::cache;
use super::http::{ANSWER, CallError, Connection};
use super::pending::Pending;
use crate::api::{self, CertificateAnswer, EnrolRequest, TimeAnswer};
use crate::authority::AuthorityError;
use crate::clock::{Clock, span};
use crate::credentials::Credentials;
use crate::files::{self, FileError};
use crate::identity::{Certified, hexadecimal};
use crate::join_token::{Fingerprint, JoinToken};
use crate::records::SignedRecord;
use crate::revocation::Revocations;
use crate::tls::{self, Expect, Trust, TrustError};
use causeway_service::Proxy;
use causeway_wire::TextError;
use serde::{Deserialize, Serialize};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Name of the file in the directory that a gateway keeps.
pub const MEMBERSHIP_FILE: &str = "membership.json";

const VERSION: u32 = 1;

/// A site's place in a grid.
#[derive(Clone)]
pub struct Membership {
    /// The grid.
    pub grid: String,
    /// The site.
    pub site: String,
    /// Where the broker can be found, `HOST:PORT`.
    pub brokers: Vec<String>,
    /// Key and certificate.
    pub credentials: Credentials,
    /// What the certificate says.
    pub certified: Certified,
    texts: Texts,
}

#[derive(Clone, Serialize, Deserialize)]
struct Texts {
    version: u32,
    grid: String,
    site: String,
    brokers: Vec<String>,
    authority: String,
    certificate: String,
    key: String,
    /// Hash of the secret of the token with which the site joined.
    #[serde(default)]
    token: String,
}

/// Why a host has not become a site.
#[derive(Debug, thiserror::Error)]
pub enum JoinError {
    /// The host became a site with this very token.
    #[error("this host is site {site} of grid {grid} already, by this token")]
    Already {
        /// The site.
        site: String,
        /// The grid.
        grid: String,
    },
    /// The host is a different site from the token's.
    #[error(
        "this host is site {site} of grid {grid} already ({}), but the token is for {}; remove that file to give up that \
         place",
        path.display(),
        if wanted == site { format!("site {site} of another grid") } else { format!("site {wanted}") }
    )]
    Other {
        /// The site.
        site: String,
        /// The grid.
        grid: String,
        /// The token's site.
        wanted: String,
        /// The file that says so.
        path: PathBuf,
    },
    /// The broker was not reached, or refused.
    #[error("join with the token of site {site}: {source}")]
    Call {
        /// The token's site.
        site: String,
        /// The reason.
        source: CallError,
    },
    /// No certificate seems valid because the clocks differ.
    #[error(
        "the clocks differ: this host's is {} {} the broker's at {broker}; set both by NTP, then try again ({reason})",
        span(difference.unsigned_abs()), if *difference > 0 { "ahead of" } else { "behind" }
    )]
    Clock {
        /// The broker's address.
        broker: String,
        /// How many seconds this host's clock is ahead.
        difference: i64,
        /// What the certificate's check said.
        reason: TrustError,
    },
    /// The broker's answer is not a certificate for this site.
    #[error("the broker's certificate for this site cannot be used: {0}")]
    Certificate(String),
    /// No key could be made.
    #[error("make a key: {0}")]
    Key(#[from] AuthorityError),
    /// The membership's file cannot be read or written.
    #[error(transparent)]
    File(#[from] FileError),
    /// There is no thread, or there are no descriptors.
    #[error("start a thread: {0}")]
    Thread(std::io::Error),
}

/// Joins a grid: makes a key in `directory`, which stays there, and has it certified. Blocks until that is
/// done or refused. A host whose certificate was revoked or has run out joins anew with a new token.
///
/// # Errors
/// See [`JoinError`].
pub fn join(token: &JoinToken, directory: &Path, clock: &Clock) -> Result<Membership, JoinError> {
    join_through(None, token, directory, clock)
}

/// The same, through a proxy if there is one.
///
/// # Errors
/// Those of [`join`].
pub fn join_through(
    proxy: Option<&Proxy>,
    token: &JoinToken,
    directory: &Path,
    clock: &Clock,
) -> Result<Membership, JoinError> {
    files::make_directory(directory)?;
    if let Some(there) = Membership::load(directory)? {
        let is_the_tokens = there.site == token.site && there.fingerprint() == token.authority;
        let is_by_token = there.texts.token == JoinToken::hash(&token.secret);
        let Membership { site, grid, .. } = there;
        if !is_the_tokens {
            return Err(JoinError::Other {
                site,
                grid,
                wanted: token.site.clone(),
                path: directory.join(MEMBERSHIP_FILE),
            });
        }
        if is_by_token {
            return Err(JoinError::Already { site, grid });
        }
    }
    let pending = Pending::of(token, directory)?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let (membership, records) = runtime
        .map_err(JoinError::Thread)?
        .block_on(enrol(token, pending, clock, proxy))?;
    membership.save(directory)?;
    if !records.is_empty() {
        keep_first_records(&membership, &records, directory, clock)?;
    }
    Pending::forget(directory)?;
    Ok(membership)
}

async fn enrol(
    token: &JoinToken,
    pending: Pending,
    clock: &Clock,
    proxy: Option<&Proxy>,
) -> Result<(Membership, Vec<SignedRecord>), JoinError> {
    let Pending { key, request, .. } = pending;
    let asked = EnrolRequest {
        authority: hexadecimal(&token.authority),
        site: token.site.clone(),
        secret: hexadecimal(&token.secret),
        request,
    };
    let mut last = None;
    for broker in &token.brokers {
        match ask(broker, (token.authority, proxy), clock, &asked).await {
            Ok(answer) => {
                let records = answer.records.clone();
                return Ok((accept(token, clock, answer, key)?, records));
            }
            Err(source @ CallError::Refused(_)) => return Err(call(token, source)),
            Err(error) => last = Some((broker, error)),
        }
    }
    match last {
        Some((broker, CallError::Trust { reason, .. })) if is_of_time(&reason) => {
            let difference = clock_difference(broker, (token.authority, proxy), clock).await;
            let difference = difference.map_err(|source| call(token, source))?;
            Err(JoinError::Clock {
                broker: broker.clone(),
                difference,
                reason,
            })
        }
        Some((_, source)) => Err(call(token, source)),
        None => Err(JoinError::Certificate("the token names no broker".to_owned())),
    }
}

/// Keeps what the broker reports about the others, and how this site joined. If this host was a site of the
/// grid before, what it knew stays.
fn keep_first_records(
    membership: &Membership,
    records: &[SignedRecord],
    directory: &Path,
    clock: &Clock,
) -> Result<(), JoinError> {
    let wrong = |reason: String| JoinError::Certificate(reason);
    let trust = membership.trust(Revocations::default(), clock.clone());
    let trust = trust.map_err(|error| wrong(error.to_string()))?;
    cache::records(directory, &trust)?;
    let mut grown = trust.records();
    let read = trust.union(&mut grown, records);
    read.map_err(|error| wrong(error.to_string()))?;
    Ok(cache::keep_records(directory, &grown)?)
}

fn call(token: &JoinToken, source: CallError) -> JoinError {
    let site = token.site.clone();
    JoinError::Call { site, source }
}

async fn ask(
    broker: &str,
    (authority, proxy): (Fingerprint, Option<&Proxy>),
    clock: &Clock,
    asked: &EnrolRequest,
) -> Result<CertificateAnswer, CallError> {
    let config = tls::joining_config(authority, clock.clone()).map_err(|error| internal(broker, &error))?;
    Connection::open(broker, Arc::new(config), proxy)
        .await?
        .post(api::ENROL, asked, ANSWER)
        .await
}

/// Whether a wrong clock may be the cause.
pub(super) fn is_of_time(reason: &TrustError) -> bool {
    matches!(
        reason,
        TrustError::NotYetValid { .. } | TrustError::Expired { .. }
    )
}

/// Returns by how many seconds this host's clock is ahead of the broker's.
pub(super) async fn clock_difference(
    broker: &str,
    (authority, proxy): (Fingerprint, Option<&Proxy>),
    clock: &Clock,
) -> Result<i64, CallError> {
    let config = tls::asking_time_config(authority).map_err(|error| internal(broker, &error))?;
    let answer: TimeAnswer = Connection::open(broker, Arc::new(config), proxy)
        .await?
        .get(api::TIME)
        .await?;
    Ok(ahead(clock.now(), answer.time))
}

/// Seconds from one time to another; negative if the other is earlier.
pub(super) fn ahead(own: u64, other: u64) -> i64 {
    let difference = i128::from(own) - i128::from(other);
    i64::try_from(difference).unwrap_or(if difference > 0 { i64::MAX } else { i64::MIN })
}

fn internal(broker: &str, error: &rustls::Error) -> CallError {
    CallError::Tls {
        broker: broker.to_owned(),
        reason: error.to_string(),
    }
}

fn accept(
    token: &JoinToken,
    clock: &Clock,
    answer: CertificateAnswer,
    key: String,
) -> Result<Membership, JoinError> {
    let wrong = |reason: String| JoinError::Certificate(reason);
    let credentials = Credentials::from_pem(&answer.certificate, &answer.authority, &key)
        .map_err(|error| wrong(error.to_string()))?;
    let trust = tls::trust_by_fingerprint(&credentials.chain(), &token.authority, clock.clone());
    let trust = trust.map_err(|error| wrong(error.to_string()))?;
    let texts = Texts {
        version: VERSION,
        grid: trust.grid().to_owned(),
        site: token.site.clone(),
        brokers: token.brokers.clone(),
        authority: answer.authority,
        certificate: answer.certificate,
        key,
        token: JoinToken::hash(&token.secret),
    };
    Membership::from_texts(texts, &trust).map_err(|error| wrong(error.into()))
}

impl Membership {
    /// Reads what [`join`] wrote; `None` if nobody has joined.
    ///
    /// # Errors
    /// The file cannot be read, is incomplete, or is readable by others.
    pub fn load(directory: &Path) -> Result<Option<Membership>, FileError> {
        let path = directory.join(MEMBERSHIP_FILE);
        if !path.exists() {
            return Ok(None);
        }
        let text = files::read_secret(&path)?;
        let damaged = |reason: String| {
            let error = std::io::Error::new(std::io::ErrorKind::InvalidData, reason);
            FileError::at("read", &path)(error)
        };
        let texts: Texts = serde_json::from_str(&text).map_err(|error| damaged(error.to_string()))?;
        if texts.version != VERSION {
            return Err(damaged(format!(
                "version {}, this program knows {VERSION}",
                texts.version
            )));
        }
        let credentials = Credentials::from_pem(&texts.certificate, &texts.authority, &texts.key);
        let credentials = credentials.map_err(|error| damaged(error.to_string()))?;
        let certified =
            Certified::read(&credentials.certificate).map_err(|error| damaged(error.to_string()))?;
        Ok(Some(Membership {
            grid: texts.grid.clone(),
            site: texts.site.clone(),
            brokers: texts.brokers.clone(),
            credentials,
            certified,
            texts,
        }))
    }

    /// Returns the trust that a gateway of this site has.
    ///
    /// # Errors
    /// The authority's certificate cannot be read.
    pub fn trust(&self, revocations: Revocations, clock: Clock) -> Result<Trust, TrustError> {
        Trust::new(&self.grid, &self.credentials.authority, revocations, clock)
    }

    /// Returns the time at which the certificate is to be renewed, in seconds since 1970: after two thirds of
    /// its life. A [`super::Client`] does that by itself.
    pub fn renew_at(&self) -> u64 {
        self.certified.renew_at()
    }

    pub(super) fn fingerprint(&self) -> Fingerprint {
        use sha2::{Digest, Sha256};
        Sha256::digest(&self.credentials.authority).into()
    }

    /// The same membership with its next certificate.
    pub(super) fn renewed(
        &self,
        answer: CertificateAnswer,
        key: String,
        trust: &Trust,
    ) -> Result<Membership, TextError> {
        let texts = Texts {
            certificate: answer.certificate,
            key,
            ..self.texts.clone()
        };
        Membership::from_texts(texts, trust)
    }

    pub(super) fn save(&self, directory: &Path) -> Result<(), FileError> {
        // Strings have a JSON form.
        let text = serde_json::to_vec(&self.texts).unwrap_or_default();
        files::replace(&directory.join(MEMBERSHIP_FILE), &text, 0o600)
    }

    /// Makes a membership, if the certificate is what it must be and belongs to this key.
    fn from_texts(texts: Texts, trust: &Trust) -> Result<Membership, TextError> {
        let credentials = Credentials::from_pem(&texts.certificate, &texts.authority, &texts.key);
        let credentials = credentials.map_err(|error| error.to_string())?;
        let certified = trust
            .check(&credentials.chain(), &Expect::Site(texts.site.clone()))
            .map_err(|error| error.to_string())?;
        tls::client_config(&credentials, trust, Expect::Broker).map_err(|error| error.to_string())?;
        Ok(Membership {
            grid: texts.grid.clone(),
            site: texts.site.clone(),
            brokers: texts.brokers.clone(),
            credentials,
            certified,
            texts,
        })
    }
}

/// Prints no key.
impl std::fmt::Debug for Membership {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(
            f,
            "Membership({} until {})",
            self.certified.identity, self.certified.not_after
        )
    }
}
