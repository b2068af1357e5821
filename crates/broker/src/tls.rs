//! Mutual TLS 1.3 inside a grid: who may speak, and to whom.
//!
//! [`Trust`] is what a process believes: the grid's authority, the revocations and the clock. Configurations
//! for rustls are made from it and a process's own [`Credentials`]; both ends prove themselves.

use crate::clock::Clock;
use crate::credentials::Credentials;
use crate::identity::Certified;
use crate::join_token::Fingerprint;
use crate::revocation::Revocations;
pub use crate::trust::{Expect, Trust, TrustError};
use rustls::client::Resumption;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{CryptoProvider, ring, verify_tls13_signature};
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::server::danger::{ClientCertVerified, ClientCertVerifier};
use rustls::{
    CertificateError, ClientConfig, DigitallySignedStruct, DistinguishedName, OtherError, ServerConfig,
    SignatureScheme,
};
use sha2::{Digest, Sha256};
use std::sync::Arc;

/// The configuration for dialling somebody of the grid.
///
/// # Errors
/// The key does not belong to the certificate.
pub fn client_config(
    own: &Credentials,
    trust: &Trust,
    expect: Expect,
) -> Result<ClientConfig, rustls::Error> {
    let verifier = Verifier {
        policy: Policy::Grid(trust.clone(), expect),
    };
    let chain = own.chain();
    let config = client_builder(verifier)?.with_client_auth_cert(chain, own.key.clone_key())?;
    Ok(without_resumption(config))
}

/// The configuration for being dialled by somebody of the grid.
///
/// # Errors
/// The key does not belong to the certificate.
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

/// The broker's configuration. A caller without a certificate may join. A certificate that is not yet valid,
/// or has expired, is refused with an explanation.
pub(crate) fn broker_config(own: &Credentials, trust: &Trust) -> Result<ServerConfig, rustls::Error> {
    server(
        own,
        Verifier {
            policy: Policy::Visitors(trust.clone()),
        },
    )
}

/// The configuration for joining. The broker is known by its authority's fingerprint, and this side shows no
/// certificate.
///
/// # Errors
/// None is known; rustls may have some.
pub fn joining_config(authority: Fingerprint, clock: Clock) -> Result<ClientConfig, rustls::Error> {
    let verifier = Verifier {
        policy: Policy::Fingerprint(authority, clock),
    };
    Ok(without_resumption(
        client_builder(verifier)?.with_no_client_auth(),
    ))
}

/// The configuration for asking for the broker's time, once this host's clock seems to be wrong.
pub(crate) fn asking_time_config(authority: Fingerprint) -> Result<ClientConfig, rustls::Error> {
    let verifier = Verifier {
        policy: Policy::FingerprintAtAnyTime(authority),
    };
    Ok(without_resumption(
        client_builder(verifier)?.with_no_client_auth(),
    ))
}

/// Returns the name that every TLS client gives. The URI in a certificate says who answers.
pub fn server_name() -> ServerName<'static> {
    // RFC 6761 lets nobody have this name; it is not sent.
    ServerName::IpAddress(std::net::Ipv4Addr::UNSPECIFIED.into())
}

/// Explains why a handshake failed: rustls wraps the verifier's reason.
pub fn reason(error: &rustls::Error) -> String {
    match trust_error(error) {
        Some(reason) => reason.to_string(),
        None => error.to_string(),
    }
}

/// Returns the verifier's error, if the verifier ended the handshake.
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

/// Switches resumption off: connections are few and live long, so it would save nothing, and it would outlive
/// a revocation.
fn without_resumption(mut config: ClientConfig) -> ClientConfig {
    config.resumption = Resumption::disabled();
    config.enable_sni = false;
    config
}

fn server(own: &Credentials, verifier: Verifier) -> Result<ServerConfig, rustls::Error> {
    let chain = own.chain();
    let mut config = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_protocol_versions(&[&rustls::version::TLS13])?
        .with_client_cert_verifier(Arc::new(verifier))
        .with_single_cert(chain, own.key.clone_key())?;
    config.send_tls13_tickets = 0;
    Ok(config)
}

/// Accepts every certificate whose key the other side holds: the caller finds out by other means who that is.
pub fn anybody() -> Arc<dyn ServerCertVerifier> {
    Arc::new(Verifier {
        policy: Policy::Anybody,
    })
}

#[derive(Debug)]
enum Policy {
    /// Anybody who holds the key of the shown certificate.
    Anybody,
    /// Members of the grid whose certificates are valid now.
    Grid(Trust, Expect),
    /// Members of the grid, and peers that show no certificate.
    Visitors(Trust),
    /// The broker of the authority with this fingerprint.
    Fingerprint(Fingerprint, Clock),
    /// The same, but for asking the time only.
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
            Policy::Anybody => Ok(()),
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

/// The authority among the certificates shown, if it has this fingerprint.
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

/// Whether the holder of a certificate has signed a handshake of TLS 1.3.
fn verify_signature(
    message: &[u8],
    certificate: &CertificateDer<'_>,
    signature: &DigitallySignedStruct,
) -> Result<HandshakeSignatureValid, rustls::Error> {
    let algorithms = ring::default_provider().signature_verification_algorithms;
    verify_tls13_signature(message, certificate, signature, &algorithms)
}

/// The answer to a handshake of TLS 1.2.
fn no_tls12() -> Result<HandshakeSignatureValid, rustls::Error> {
    Err(rustls::Error::General("TLS 1.2 is not spoken here".into()))
}

/// Kinds of signature that are accepted.
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
