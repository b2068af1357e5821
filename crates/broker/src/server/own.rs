//! The broker's own certificate: the broker holds the authority's key, so it issues the next one itself.

use super::Shared;
use crate::authority::{Authority, AuthorityError, new_key};
use crate::clock::date;
use crate::credentials::Credentials;
use crate::files;
use crate::identity::{Certified, Identity};
use crate::state::State;
use crate::tls::{Expect, Trust, broker_config};
use rustls::ServerConfig;
use std::path::{Path, PathBuf};
use std::sync::{Arc, PoisonError, RwLock, RwLockReadGuard};
use std::time::Duration;

pub(crate) const CERTIFICATE_FILE: &str = "broker.pem";
pub(crate) const KEY_FILE: &str = "broker.key";

/// How often the broker checks whether its certificate is old: a third of the shortest life that the
/// configuration allows is a minute.
const LOOK: Duration = Duration::from_secs(30);

pub(super) struct OwnCertificate {
    directory: PathBuf,
    now: RwLock<Present>,
}

struct Present {
    server: Arc<ServerConfig>,
    certified: Certified,
    credentials: Credentials,
}

#[derive(Debug, thiserror::Error)]
pub(crate) enum OwnError {
    #[error(transparent)]
    Authority(#[from] AuthorityError),
    #[error(transparent)]
    File(#[from] files::FileError),
    #[error(transparent)]
    Identity(#[from] crate::identity::IdentityError),
    #[error("{0}")]
    Tls(#[from] rustls::Error),
}

impl OwnCertificate {
    /// Reads the certificate in the directory, or makes a new one if that is missing or soon due for renewal.
    pub(super) fn open(directory: &Path, state: &State) -> Result<OwnCertificate, OwnError> {
        let there = read(directory, &state.authority, &state.trust);
        let credentials = match there {
            Some(credentials) => credentials,
            None => make(directory, &state.authority, state.now())?,
        };
        Ok(OwnCertificate {
            directory: directory.to_owned(),
            now: RwLock::new(Present::of(credentials, &state.trust)?),
        })
    }

    pub(super) fn config(&self) -> Arc<ServerConfig> {
        self.present().server.clone()
    }

    /// What this broker shows when it dials another one.
    pub(super) fn credentials(&self) -> Credentials {
        self.present().credentials.clone()
    }

    fn present(&self) -> RwLockReadGuard<'_, Present> {
        self.now.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn renew_if_old(&self, state: &State) -> Result<Option<u64>, OwnError> {
        let now = state.now();
        if now < self.present().certified.renew_at() {
            return Ok(None);
        }
        let credentials = make(&self.directory, &state.authority, now)?;
        let present = Present::of(credentials, &state.trust)?;
        let until = present.certified.not_after;
        *self.now.write().unwrap_or_else(PoisonError::into_inner) = present;
        Ok(Some(until))
    }
}

impl Present {
    fn of(credentials: Credentials, trust: &Trust) -> Result<Present, OwnError> {
        Ok(Present {
            certified: Certified::read(&credentials.certificate)?,
            server: http(broker_config(&credentials, trust)?),
            credentials,
        })
    }
}

/// Makes the next certificate when the present one is old; existing connections keep theirs.
pub(super) async fn keep_fresh(shared: Arc<Shared>) {
    let mut looks = tokio::time::interval(LOOK);
    loop {
        looks.tick().await;
        match shared.own.renew_if_old(&shared.lock()) {
            Ok(None) => {}
            Ok(Some(until)) => shared
                .log
                .say(format_args!("has a new certificate, good until {}", date(until))),
            Err(error) => shared
                .log
                .say(format_args!("renew the broker's certificate: {error}")),
        }
    }
}

/// Makes a key and a certificate, and writes their files.
pub(crate) fn make(directory: &Path, authority: &Authority, now: u64) -> Result<Credentials, OwnError> {
    let (key, request) = new_key()?;
    let issued = authority.certify(&request, &Identity::broker(authority.grid()), now, 0)?;
    // If this process is killed between the two, they do not fit each other, and both are made anew at the
    // next start.
    files::replace(&directory.join(CERTIFICATE_FILE), issued.pem.as_bytes(), 0o644)?;
    files::replace(&directory.join(KEY_FILE), key.as_bytes(), 0o600)?;
    Ok(Credentials::from_pem(
        &issued.pem,
        authority.certificate_pem(),
        &key,
    )?)
}

fn read(directory: &Path, authority: &Authority, trust: &Trust) -> Option<Credentials> {
    let certificate = files::read_text(&directory.join(CERTIFICATE_FILE)).ok()?;
    let key = files::read_secret(&directory.join(KEY_FILE)).ok()?;
    let credentials = Credentials::from_pem(&certificate, authority.certificate_pem(), &key).ok()?;
    let certified = trust.check(&credentials.chain(), &Expect::Broker).ok()?;
    let fits = broker_config(&credentials, trust).is_ok();
    (fits && trust.clock().now() < certified.renew_at()).then_some(credentials)
}

fn http(mut config: ServerConfig) -> Arc<ServerConfig> {
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    Arc::new(config)
}
