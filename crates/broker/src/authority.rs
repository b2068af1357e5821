//! The grid's certificate authority: makes certificates, and signs the list of revoked ones.

use crate::clock::Clock;
use crate::files::{self, FileError};
use crate::identity::{ADMISSION_OID, Identity, admission_extension, hexadecimal};
use crate::join_token::Fingerprint;
use crate::records::{Admission, SignedRecord, Statement};
use causeway_wire::grid;
use rcgen::string::Ia5String;
use rcgen::{
    BasicConstraints, CertificateParams, CertificateSigningRequestParams, CustomExtension, DistinguishedName,
    DnType, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair, KeyUsagePurpose, PKCS_ECDSA_P256_SHA256,
    PublicKeyData, SanType, SerialNumber, SigningKey,
};
use ring::signature::{ECDSA_P256_SHA256_ASN1, UnparsedPublicKey};
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;
use sha2::{Digest, Sha256};
use std::path::Path;
use time::OffsetDateTime;

/// How long a certificate is valid unless the broker's configuration says otherwise: a stolen one expires by
/// itself, and a gateway may be switched off for a holiday.
pub const LIFE_SECONDS: u64 = 30 * 86_400;

/// How much earlier than now a certificate begins, so that hosts whose clocks are a few minutes apart accept
/// each other's.
pub const BACKDATED_SECONDS: u64 = 300;

/// The authority outlives its grid: a new authority would be a new grid.
const AUTHORITY_LIFE_SECONDS: u64 = 20 * 365 * 86_400;

/// How much earlier an authority begins: what a broker certifies begins by the clock of a different host from
/// the one on which its authority was made.
const AUTHORITY_BACKDATED_SECONDS: u64 = 86_400;

/// Files in a grid's directory.
pub(crate) const CERTIFICATE_FILE: &str = "ca.pem";
pub(crate) const KEY_FILE: &str = "ca.key";
/// The files of a broker's own authority, in a grid of several brokers.
pub(crate) const OWN_CERTIFICATE_FILE: &str = "broker-ca.pem";
pub(crate) const OWN_KEY_FILE: &str = "broker-ca.key";

/// Longest certificate request and certificate, as PEM: with P-256 keys they take a quarter of that.
pub const MAX_PEM: usize = 4096;

/// The certificate authority with its private key: the grid's, or one of a broker's own that the grid's has
/// certified.
pub struct Authority {
    grid: String,
    certificate: CertificateDer<'static>,
    pem: String,
    /// The broker's own certificate authority, with its PEM, if this is one.
    own: Option<(CertificateDer<'static>, String)>,
    issuer: Issuer<'static, KeyPair>,
    life_seconds: u64,
}

/// A new certificate.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Issued {
    /// The certificate, as PEM, followed by that of the broker's authority that issued it, if one did.
    pub pem: String,
    /// Serial number in hexadecimal.
    pub serial: String,
    /// See [`crate::identity::Certified::not_before`].
    pub not_before: u64,
    /// Last second of its life.
    pub not_after: u64,
}

/// Why there is no authority, or no certificate from it.
#[derive(Debug, thiserror::Error)]
pub enum AuthorityError {
    /// A file.
    #[error(transparent)]
    File(#[from] FileError),
    /// The name would not fit into a certificate's URI.
    #[error("{0:?} is no name for a grid: 1 to 63 letters, digits, '-', '_' or '.'")]
    Name(String),
    /// Key or certificate cannot be used.
    #[error("certificate authority: {0}")]
    Crypto(#[from] rcgen::Error),
    /// The two files are not of one authority.
    #[error("{0} is not the key of {1}")]
    Mismatch(&'static str, &'static str),
    /// The broker's own authority is not of this grid.
    #[error("{OWN_CERTIFICATE_FILE} is not signed by the grid's authority, {CERTIFICATE_FILE}")]
    NotOfGrid,
    /// The bytes are not a request, or ask for a key of another kind.
    #[error("the certificate request is refused: {0}")]
    Request(&'static str),
}

impl Authority {
    /// Makes the authority of a new grid.
    ///
    /// # Errors
    /// The name is invalid, or there are no random numbers.
    pub fn create(grid: &str, clock: &Clock) -> Result<Authority, AuthorityError> {
        if !grid::is_site_name(grid) {
            return Err(AuthorityError::Name(grid.to_owned()));
        }
        let key = KeyPair::generate_for(&PKCS_ECDSA_P256_SHA256)?;
        // This allows one more authority below it: a broker's own.
        let params = authority_params(&format!("Causeway grid {grid}"), 1, clock.now())?;
        let made = params.self_signed(&key)?;
        Ok(Authority {
            grid: grid.to_owned(),
            certificate: made.der().clone(),
            pem: made.pem(),
            own: None,
            issuer: Issuer::new(params, key),
            life_seconds: LIFE_SECONDS,
        })
    }

    /// Makes a broker's own authority, certified by this one.
    ///
    /// # Errors
    /// There are no random numbers, or this authority is itself a broker's.
    pub fn create_for_broker(&self, number: u8, clock: &Clock) -> Result<Authority, AuthorityError> {
        if self.own.is_some() {
            return Err(AuthorityError::NotOfGrid);
        }
        let key = KeyPair::generate_for(&PKCS_ECDSA_P256_SHA256)?;
        let name = format!("Causeway broker {number} of grid {}", self.grid);
        let params = authority_params(&name, 0, clock.now())?;
        let made = params.signed_by(&key, &self.issuer)?;
        Ok(Authority {
            grid: self.grid.clone(),
            certificate: self.certificate.clone(),
            pem: self.pem.clone(),
            own: Some((made.der().clone(), made.pem())),
            issuer: Issuer::new(params, key),
            life_seconds: LIFE_SECONDS,
        })
    }

    /// Writes key and certificate into a directory that has none: both or neither. A broker's own authority
    /// goes beside the certificate of the grid's.
    ///
    /// # Errors
    /// The files exist already, or the system refuses.
    pub fn save(&self, directory: &Path) -> Result<(), AuthorityError> {
        let key = self.issuer.key().serialize_pem();
        let key_name = self.own.as_ref().map_or(KEY_FILE, |_| OWN_KEY_FILE);
        let key_file = directory.join(key_name);
        files::create(&key_file, key.as_bytes(), 0o600)?;
        let mut certificates = vec![(CERTIFICATE_FILE, &self.pem)];
        if let Some((_, pem)) = &self.own {
            certificates.push((OWN_CERTIFICATE_FILE, pem));
        }
        for (name, pem) in certificates {
            let path = directory.join(name);
            let is_there = self.own.is_some()
                && name == CERTIFICATE_FILE
                && files::read_text(&path).is_ok_and(|there| there == self.pem);
            let written = if is_there {
                Ok(())
            } else {
                files::create(&path, pem.as_bytes(), 0o644)
            };
            if let Err(error) = written {
                // A key without its certificate would be in the way of the next attempt.
                let _ = std::fs::remove_file(key_file);
                return Err(error.into());
            }
        }
        Ok(())
    }

    /// Reads what [`Authority::save`] wrote.
    ///
    /// # Errors
    /// A file is missing or damaged, the two are of different authorities, or the key is readable by others.
    pub fn load(grid: &str, directory: &Path) -> Result<Authority, AuthorityError> {
        let pem = files::read_text(&directory.join(CERTIFICATE_FILE))?;
        let certificate = certificate_of(&pem)?;
        let own_file = directory.join(OWN_CERTIFICATE_FILE);
        let (own, key_name) = if own_file.exists() {
            let pem = files::read_text(&own_file)?;
            let own = certificate_of(&pem)?;
            if !is_signed_by(&own, &certificate) {
                return Err(AuthorityError::NotOfGrid);
            }
            (Some((own, pem)), OWN_KEY_FILE)
        } else {
            (None, KEY_FILE)
        };
        let key = KeyPair::from_pem(&files::read_secret(&directory.join(key_name))?)?;
        let key_certificate = own.as_ref().map_or(&certificate, |(own, _)| own);
        let is_its = x509_parser::parse_x509_certificate(key_certificate)
            .is_ok_and(|(_, parsed)| parsed.public_key().raw == key.subject_public_key_info());
        if !is_its {
            let certificate_name = own.as_ref().map_or(CERTIFICATE_FILE, |_| OWN_CERTIFICATE_FILE);
            return Err(AuthorityError::Mismatch(key_name, certificate_name));
        }
        Ok(Authority {
            grid: grid.to_owned(),
            issuer: Issuer::from_ca_cert_der(key_certificate, key)?,
            certificate,
            pem,
            own,
            life_seconds: LIFE_SECONDS,
        })
    }

    /// Makes the certificates that it issues live this long.
    pub(crate) fn with_life(self, life_seconds: u64) -> Authority {
        Authority { life_seconds, ..self }
    }

    /// Name of the grid.
    pub fn grid(&self) -> &str {
        &self.grid
    }

    /// The certificate of the grid's authority, which everybody of the grid knows.
    pub fn certificate(&self) -> &CertificateDer<'static> {
        &self.certificate
    }

    /// The certificate of the broker's own authority, where the grid has several brokers.
    pub fn own(&self) -> Option<&CertificateDer<'static>> {
        self.own.as_ref().map(|(certificate, _)| certificate)
    }

    /// The certificate of the grid's authority as PEM.
    pub fn certificate_pem(&self) -> &str {
        &self.pem
    }

    /// Returns the fingerprint by which a token names the authority.
    pub fn fingerprint(&self) -> Fingerprint {
        Sha256::digest(&self.certificate).into()
    }

    /// Certifies the key of a request for `identity`. It ignores everything else in the request: the caller
    /// knows who asks. They begin no earlier than `begins`.
    ///
    /// # Errors
    /// The request is invalid, its sender does not have the key, or the key is not of the one kind used here.
    pub fn certify(
        &self,
        request: &str,
        identity: &Identity,
        now: u64,
        begins: u64,
    ) -> Result<Issued, AuthorityError> {
        let request = read_request(request)?;
        self.issue(&request.public_key, (identity, None), now, begins)
    }

    /// The same in a grid of several brokers, for a site that joined by this admission.
    pub(crate) fn certify_admitted(
        &self,
        request: &str,
        (identity, admission): (&Identity, &Admission),
        now: u64,
    ) -> Result<Issued, AuthorityError> {
        let request = read_request(request)?;
        self.issue(&request.public_key, (identity, Some(admission)), now, 0)
    }

    /// Certifies a key of this process.
    pub(crate) fn issue(
        &self,
        key: &impl PublicKeyData,
        (identity, admission): (&Identity, Option<&Admission>),
        now: u64,
        begins: u64,
    ) -> Result<Issued, AuthorityError> {
        let not_before = now.saturating_sub(BACKDATED_SECONDS).max(begins);
        let not_after = now.saturating_add(self.life_seconds);
        let serial = random_serial()?;
        let mut params = CertificateParams::default();
        params.distinguished_name = common_name(&identity.to_string());
        params.not_before = moment(not_before);
        params.not_after = moment(not_after);
        params.serial_number = Some(serial.clone());
        let uri = Ia5String::try_from(identity.uri())?;
        params.subject_alt_names = vec![SanType::URI(uri)];
        params.is_ca = IsCa::ExplicitNoCa;
        params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
        params.extended_key_usages = vec![
            ExtendedKeyUsagePurpose::ClientAuth,
            ExtendedKeyUsagePurpose::ServerAuth,
        ];
        if let Some(admission) = admission {
            let content = admission_extension(admission);
            let extension = CustomExtension::from_oid_content(&ADMISSION_OID, content);
            params.custom_extensions = vec![extension];
        }
        let made = params.signed_by(key, &self.issuer)?;
        let own = self.own.as_ref().map_or("", |(_, pem)| pem.as_str());
        Ok(Issued {
            pem: format!("{}{own}", made.pem()),
            serial: hexadecimal(&serial.to_bytes()),
            not_before,
            not_after,
        })
    }

    /// Signs a statement: the grid's authority signs those about its brokers, a broker those about sites.
    ///
    /// # Errors
    /// The statement cannot be signed.
    pub fn state(&self, statement: &Statement) -> Result<SignedRecord, AuthorityError> {
        SignedRecord::make(&self.grid, statement, |bytes| self.sign(bytes))
    }

    /// An ECDSA signature of the authority over `bytes`.
    pub(crate) fn sign(&self, bytes: &[u8]) -> Result<Vec<u8>, AuthorityError> {
        Ok(self.issuer.key().sign(bytes)?)
    }
}

/// Reads a request, and checks that its sender has the key.
fn read_request(request: &str) -> Result<CertificateSigningRequestParams, AuthorityError> {
    if request.len() > MAX_PEM {
        return Err(AuthorityError::Request("it is too long"));
    }
    let request = CertificateSigningRequestParams::from_pem(request)
        .map_err(|_| AuthorityError::Request("it cannot be read, or was not signed by its own key"))?;
    if request.public_key.algorithm() != &PKCS_ECDSA_P256_SHA256 {
        return Err(AuthorityError::Request("its key is not of the kind ECDSA P-256"));
    }
    Ok(request)
}

/// Returns the hash of the key that a request is for, in hexadecimal.
pub(crate) fn requested_key(request: &str) -> Result<String, AuthorityError> {
    let key = read_request(request)?.public_key.subject_public_key_info();
    Ok(hexadecimal(&Sha256::digest(key)))
}

pub(crate) fn certificate_of(pem: &str) -> Result<CertificateDer<'static>, AuthorityError> {
    CertificateDer::from_pem_slice(pem.as_bytes())
        .map_err(|_| AuthorityError::Crypto(rcgen::Error::CouldNotParseCertificate))
}

fn is_signed_by(certificate: &CertificateDer<'_>, authority: &CertificateDer<'_>) -> bool {
    let parsed = (
        x509_parser::parse_x509_certificate(certificate),
        x509_parser::parse_x509_certificate(authority),
    );
    let (Ok((_, certificate)), Ok((_, authority))) = parsed else {
        return false;
    };
    let key = &authority.public_key().subject_public_key.data;
    UnparsedPublicKey::new(&ECDSA_P256_SHA256_ASN1, key)
        .verify(
            certificate.tbs_certificate.as_ref(),
            &certificate.signature_value.data,
        )
        .is_ok()
}

/// The contents of a certificate authority's certificate; `below` is how many authorities may be under it.
fn authority_params(name: &str, below: u8, now: u64) -> Result<CertificateParams, AuthorityError> {
    let mut params = CertificateParams::default();
    params.distinguished_name = common_name(name);
    params.not_before = moment(now.saturating_sub(AUTHORITY_BACKDATED_SECONDS));
    params.not_after = moment(now.saturating_add(AUTHORITY_LIFE_SECONDS));
    params.serial_number = Some(random_serial()?);
    params.is_ca = IsCa::Ca(BasicConstraints::Constrained(below));
    params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
    Ok(params)
}

/// A new private key and the request to certify it, both as PEM.
///
/// # Errors
/// The system provides no random numbers.
pub fn new_key() -> Result<(String, String), AuthorityError> {
    let key = KeyPair::generate_for(&PKCS_ECDSA_P256_SHA256)?;
    let mut params = CertificateParams::default();
    params.distinguished_name = DistinguishedName::new();
    let request = params.serialize_request(&key)?.pem()?;
    Ok((key.serialize_pem(), request))
}

fn common_name(name: &str) -> DistinguishedName {
    let mut names = DistinguishedName::new();
    // X.520 allows 64 characters; only people read this name.
    names.push(DnType::CommonName, name.chars().take(64).collect::<String>());
    names
}

/// 127 random bits, positive and never short: RFC 5280 wants a positive number of at most 20 bytes.
fn random_serial() -> Result<SerialNumber, AuthorityError> {
    let mut bytes = [0; 16];
    getrandom::fill(&mut bytes).map_err(|_| AuthorityError::Crypto(rcgen::Error::RingUnspecified))?;
    bytes[0] = bytes[0] & 0x7f | 0x40;
    Ok(SerialNumber::from_slice(&bytes))
}

fn moment(unix_seconds: u64) -> OffsetDateTime {
    let seconds = i64::try_from(unix_seconds).unwrap_or(i64::MAX);
    OffsetDateTime::from_unix_timestamp(seconds).unwrap_or(OffsetDateTime::UNIX_EPOCH)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::identity::Certified;

    #[test]
    fn a_certificate_says_whom_it_is_for_and_how_long() {
        let authority = Authority::create("g5k", &Clock::system()).unwrap();
        let (_, request) = new_key().unwrap();
        let identity = Identity::site("g5k", "rennes");
        let issued = authority.certify(&request, &identity, 1_000_000, 0).unwrap();
        let read = CertificateDer::from_pem_slice(issued.pem.as_bytes()).unwrap();
        let read = Certified::read(&read).unwrap();
        assert_eq!(read.identity, identity);
        assert_eq!(read.serial, issued.serial);
        assert_eq!(
            (read.not_before, read.not_after),
            (999_700, 1_000_000 + LIFE_SECONDS)
        );
        assert!(read.renew_at() > 1_000_000 + LIFE_SECONDS / 2 && read.renew_at() < 1_000_000 + LIFE_SECONDS);
        let later = authority
            .certify(&request, &identity, 1_000_000, 999_999)
            .unwrap();
        assert_eq!(later.not_before, 999_999);
    }

    #[test]
    fn an_authority_is_read_back_and_never_overwritten() {
        let dir = tempfile::tempdir().unwrap();
        let authority = Authority::create("g5k", &Clock::system()).unwrap();
        authority.save(dir.path()).unwrap();
        assert!(authority.save(dir.path()).is_err());
        let read = Authority::load("g5k", dir.path()).unwrap();
        assert_eq!(read.fingerprint(), authority.fingerprint());
        let other = Authority::create("g5k", &Clock::system()).unwrap();
        std::fs::write(dir.path().join(CERTIFICATE_FILE), other.certificate_pem()).unwrap();
        assert!(matches!(
            Authority::load("g5k", dir.path()),
            Err(AuthorityError::Mismatch(KEY_FILE, CERTIFICATE_FILE))
        ));
        assert!(matches!(
            Authority::create("a b", &Clock::system()),
            Err(AuthorityError::Name(_))
        ));
    }

    #[test]
    fn a_request_that_its_key_did_not_sign_or_of_another_kind_is_refused() {
        let authority = Authority::create("g5k", &Clock::system()).unwrap();
        let identity = Identity::site("g5k", "rennes");
        let refused = |request: &str| {
            authority
                .certify(request, &identity, 1_000_000, 0)
                .unwrap_err()
                .to_string()
        };
        assert!(refused("").contains("cannot be read"));
        assert!(refused(&"a".repeat(MAX_PEM + 1)).contains("too long"));
        let key = KeyPair::generate_for(&rcgen::PKCS_ED25519).unwrap();
        let request = CertificateParams::default().serialize_request(&key).unwrap();
        assert!(refused(&request.pem().unwrap()).contains("P-256"));
    }
}
