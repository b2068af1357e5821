//! Mutual TLS 1.3 inside a grid: who may speak, and to whom.
//!
//! [`Trust`] is what a process believes: the grid's authority, the revocations and the clock. Configurations for rustls are
//! made from it and a process's own [`Credentials`]; both ends prove themselves.

use crate::authority::Credentials;
use crate::clock::{Clock, date, span};
use crate::identity::{Certified, Identity, IdentityError, Role};
use crate::revocation::Revocations;
use crate::token::Fingerprint;
use rustls::client::Resumption;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{CryptoProvider, ring, verify_tls13_signature};
use rustls::pki_types::{CertificateDer, ServerName, TrustAnchor, UnixTime};
use rustls::server::danger::{ClientCertVerified, ClientCertVerifier};
use rustls::{
    CertificateError, ClientConfig, DigitallySignedStruct, DistinguishedName, OtherError, ServerConfig,
    SignatureScheme,
};
use sha2::{Digest, Sha256};
use std::sync::Arc;
use std::time::Duration;
use webpki::{EndEntityCert, KeyUsage, anchor_from_trusted_cert};

/// Whom a process expects at the other end.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Expect {
    /// The broker.
    Broker,
    /// The gateway of this site.
    Site(String),
    /// The gateway of whichever site.
    AnySite,
}

/// Why somebody is not who they have to be.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum TrustError {
    /// Not issued by this grid's authority.
    #[error(
        "its certificate is not of the authority of grid {grid} ({reason}); sites of another grid cannot be joined"
    )]
    Stranger {
        /// This grid.
        grid: String,
        /// What verifying said.
        reason: String,
    },
    /// Issued by it, but says nothing that can be used.
    #[error(transparent)]
    Identity(#[from] IdentityError),
    /// Somebody of the grid, but not the one who was meant.
    #[error("it is {found}, not {expected}")]
    Other {
        /// Who it is.
        found: Identity,
        /// Who it should have been.
        expected: String,
    },
    /// Its life has not begun, by this clock.
    #[error(
        "the certificate of {who} begins at {}, in {}, by this host's clock ({}): this clock is at least that late, or \
         the clock of the broker that made the certificate is early; set both by NTP", date(*begins),
        span(begins.saturating_sub(*now)), date(*now)
    )]
    NotYetValid {
        /// Whose.
        who: Identity,
        /// First second of its life.
        begins: u64,
        /// This host's time.
        now: u64,
    },
    /// Its life is over, by this clock.
    #[error(
        "the certificate of {who} ended at {}, {} ago by this host's clock ({}); if that clock is right, the site has to \
         join again with a new token", date(*ended), span(now.saturating_sub(*ended)), date(*now)
    )]
    Expired {
        /// Whose.
        who: Identity,
        /// Last second of its life.
        ended: u64,
        /// This host's time.
        now: u64,
    },
    /// Void before its time.
    #[error("{0}")]
    Revoked(String),
    /// No certificate at all, or another authority than the token's.
    #[error("{0}")]
    Missing(&'static str),
}

/// What a process believes. Clones share the revocations.
#[derive(Debug, Clone)]
pub struct Trust {
    grid: String,
    authority: CertificateDer<'static>,
    anchor: TrustAnchor<'static>,
    revocations: Revocations,
    clock: Clock,
}

impl Trust {
    /// Believes in one grid's authority.
    ///
    /// # Errors
    /// A certificate that cannot be read.
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
            clock,
        })
    }

    /// The grid.
    pub fn grid(&self) -> &str {
        &self.grid
    }

    /// Its authority's certificate.
    pub fn authority(&self) -> &CertificateDer<'static> {
        &self.authority
    }

    /// What is void; [`Revocations::adopt`] changes it for every configuration made from this.
    pub fn revocations(&self) -> &Revocations {
        &self.revocations
    }

    /// Its clock.
    pub fn clock(&self) -> &Clock {
        &self.clock
    }

    /// Who showed these certificates, the own one first, whether or not their time has come: see [`Trust::standing`].
    ///
    /// # Errors
    /// Certificates of another authority, and what names nobody of this grid.
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
        // A time within its life, or any where it names none: whether that life is now is told apart, in words.
        let time = dates.as_ref().map_or(0, |certified| certified.not_before);
        for usage in [KeyUsage::client_auth(), KeyUsage::server_auth()] {
            parsed
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
        }
        let certified = dates?;
        if certified.identity.grid != self.grid {
            return Err(stranger(format!("it is of grid {}", certified.identity.grid)));
        }
        Ok(certified)
    }

    /// Whether a certificate is good now.
    ///
    /// # Errors
    /// Not yet valid, expired, or revoked.
    pub fn standing(&self, certified: &Certified) -> Result<(), TrustError> {
        let now = self.clock.now();
        if let Some(reason) = self.revocations.refuses(certified) {
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

    /// Who showed these certificates, if it is who is expected, and may speak now.
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

/// For dialling somebody of the grid.
///
/// # Errors
/// A key that is not the certificate's.
pub fn client_config(
    own: &Credentials,
    trust: &Trust,
    expect: Expect,
) -> Result<ClientConfig, rustls::Error> {
    let verifier = Verifier {
        policy: Policy::Grid(trust.clone(), expect),
    };
    let chain = vec![own.certificate.clone(), own.authority.clone()];
    let config = client_builder(verifier)?.with_client_auth_cert(chain, own.key.clone_key())?;
    Ok(without_resumption(config))
}

/// For being dialled by somebody of the grid.
///
/// # Errors
/// A key that is not the certificate's.
pub fn server_config(
    own: &Credentials,
    trust: &Trust,
    expect: Expect,
) -> Result<ServerConfig, rustls::Error> {
    server(
        own,
        Verifier {
            policy: Policy::Grid(trust.clone(), expect),
        },
    )
}

/// For the broker: who shows no certificate may join, and whether a certificate's time has come is answered in words.
pub(crate) fn broker_config(own: &Credentials, trust: &Trust) -> Result<ServerConfig, rustls::Error> {
    server(
        own,
        Verifier {
            policy: Policy::Visitors(trust.clone()),
        },
    )
}

/// For joining: the broker is known by its authority's fingerprint, and nothing is shown to it.
///
/// # Errors
/// None that is known; rustls may have some.
pub fn joining_config(authority: Fingerprint, clock: Clock) -> Result<ClientConfig, rustls::Error> {
    let verifier = Verifier {
        policy: Policy::Fingerprint(authority, clock),
    };
    Ok(without_resumption(
        client_builder(verifier)?.with_no_client_auth(),
    ))
}

/// For asking what time it is at the broker, once the own clock seems to be wrong.
pub(crate) fn asking_time_config(authority: Fingerprint) -> Result<ClientConfig, rustls::Error> {
    let verifier = Verifier {
        policy: Policy::FingerprintAtAnyTime(authority),
    };
    Ok(without_resumption(
        client_builder(verifier)?.with_no_client_auth(),
    ))
}

/// What every TLS client names; who answers is told by its certificate's URI.
pub fn server_name() -> ServerName<'static> {
    // RFC 6761 keeps the name for nobody; it is not sent.
    ServerName::IpAddress(std::net::Ipv4Addr::UNSPECIFIED.into())
}

/// Why a handshake failed, in words: rustls wraps what the verifier said.
pub fn reason(error: &rustls::Error) -> String {
    match trust_error(error) {
        Some(reason) => reason.to_string(),
        None => error.to_string(),
    }
}

/// What the verifier said, where it was the one who ended a handshake.
pub fn trust_error(error: &rustls::Error) -> Option<&TrustError> {
    match error {
        rustls::Error::InvalidCertificate(CertificateError::Other(OtherError(reason))) => {
            reason.downcast_ref()
        }
        _ => None,
    }
}

type ClientBuilder = rustls::ConfigBuilder<ClientConfig, rustls::client::WantsClientCert>;

fn client_builder(verifier: Verifier) -> Result<ClientBuilder, rustls::Error> {
    Ok(
        ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
            .with_protocol_versions(&[&rustls::version::TLS13])?
            .dangerous()
            .with_custom_certificate_verifier(Arc::new(verifier)),
    )
}

/// Connections are few and live long: resumption would save nothing, and would outlive a revocation.
fn without_resumption(mut config: ClientConfig) -> ClientConfig {
    config.resumption = Resumption::disabled();
    config.enable_sni = false;
    config
}

fn server(own: &Credentials, verifier: Verifier) -> Result<ServerConfig, rustls::Error> {
    let chain = vec![own.certificate.clone(), own.authority.clone()];
    let mut config = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_protocol_versions(&[&rustls::version::TLS13])?
        .with_client_cert_verifier(Arc::new(verifier))
        .with_single_cert(chain, own.key.clone_key())?;
    config.send_tls13_tickets = 0;
    Ok(config)
}

#[derive(Debug)]
enum Policy {
    /// Members of the grid whose certificates are good now.
    Grid(Trust, Expect),
    /// Members of the grid, and those who show nothing.
    Visitors(Trust),
    /// The broker of the authority with this fingerprint.
    Fingerprint(Fingerprint, Clock),
    /// The same, for asking the time only.
    FingerprintAtAnyTime(Fingerprint),
}

#[derive(Debug)]
struct Verifier {
    policy: Policy,
}

impl Verifier {
    fn check(&self, first: &CertificateDer<'_>, more: &[CertificateDer<'_>]) -> Result<(), TrustError> {
        let shown: Vec<CertificateDer<'_>> = [first].into_iter().chain(more).cloned().collect();
        match &self.policy {
            Policy::Grid(trust, expect) => trust.check(&shown, expect).map(|_| ()),
            Policy::Visitors(trust) => trust.identify(&shown).map(|_| ()),
            Policy::Fingerprint(authority, clock) => {
                let trust = trust_by_fingerprint(&shown, authority, clock.clone())?;
                trust.check(&shown, &Expect::Broker).map(|_| ())
            }
            Policy::FingerprintAtAnyTime(authority) => {
                let trust = trust_by_fingerprint(&shown, authority, Clock::system())?;
                trust.identify(&shown).map(|_| ())
            }
        }
    }
}

/// The authority among the shown certificates, if it has this fingerprint.
pub(crate) fn trust_by_fingerprint(
    shown: &[CertificateDer<'_>],
    authority: &Fingerprint,
    clock: Clock,
) -> Result<Trust, TrustError> {
    let right = |shown: &&CertificateDer<'_>| Sha256::digest(shown)[..] == authority[..];
    let found = shown.iter().find(right).ok_or(TrustError::Missing(
        "whoever answers there is not of the grid that the token is for: its authority's fingerprint is another one",
    ))?;
    let grid = shown.first().map(Certified::read).transpose()?;
    let grid = grid.map_or_else(String::new, |certified| certified.identity.grid);
    Trust::new(&grid, found, Revocations::default(), clock)
}

fn refused(error: TrustError) -> rustls::Error {
    rustls::Error::InvalidCertificate(CertificateError::Other(OtherError(Arc::new(error))))
}

fn verify_signature(
    message: &[u8],
    certificate: &CertificateDer<'_>,
    signature: &DigitallySignedStruct,
) -> Result<HandshakeSignatureValid, rustls::Error> {
    let algorithms = ring::default_provider().signature_verification_algorithms;
    verify_tls13_signature(message, certificate, signature, &algorithms)
}

fn no_tls12() -> Result<HandshakeSignatureValid, rustls::Error> {
    Err(rustls::Error::General("TLS 1.2 is not spoken here".into()))
}

fn schemes() -> Vec<SignatureScheme> {
    let provider: CryptoProvider = ring::default_provider();
    provider.signature_verification_algorithms.supported_schemes()
}

impl ServerCertVerifier for Verifier {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        _: &ServerName<'_>,
        _: &[u8],
        _: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        self.check(end_entity, intermediates).map_err(refused)?;
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        _: &[u8],
        _: &CertificateDer<'_>,
        _: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        no_tls12()
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        verify_signature(message, certificate, signature)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        schemes()
    }
}

impl ClientCertVerifier for Verifier {
    fn root_hint_subjects(&self) -> &[DistinguishedName] {
        &[]
    }

    fn client_auth_mandatory(&self) -> bool {
        !matches!(self.policy, Policy::Visitors(_))
    }

    fn verify_client_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        _: UnixTime,
    ) -> Result<ClientCertVerified, rustls::Error> {
        self.check(end_entity, intermediates).map_err(refused)?;
        Ok(ClientCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        _: &[u8],
        _: &CertificateDer<'_>,
        _: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        no_tls12()
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        verify_signature(message, certificate, signature)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        schemes()
    }
}
