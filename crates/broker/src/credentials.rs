//! What a process shows to prove who it is.

use crate::authority::{AuthorityError, certificate_of};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};

/// A private key and its certificate, as a gateway or the broker has them.
pub struct Credentials {
    /// The certificate.
    pub certificate: CertificateDer<'static>,
    /// The certificate of the broker's authority that issued it, where the grid has several brokers.
    pub between: Option<CertificateDer<'static>>,
    /// The authority's certificate, which is shown together with it: a site that joins knows only its
    /// fingerprint.
    pub authority: CertificateDer<'static>,
    /// The private key.
    pub key: PrivateKeyDer<'static>,
}

impl Clone for Credentials {
    fn clone(&self) -> Credentials {
        Credentials {
            certificate: self.certificate.clone(),
            between: self.between.clone(),
            authority: self.authority.clone(),
            key: self.key.clone_key(),
        }
    }
}

/// Prints no key.
impl std::fmt::Debug for Credentials {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(
            f,
            "Credentials({:?})",
            crate::identity::Certified::read(&self.certificate)
        )
    }
}

impl Credentials {
    /// Returns what is shown to others: the own certificate first, the grid's authority last.
    pub fn chain(&self) -> Vec<CertificateDer<'static>> {
        let mut chain = vec![self.certificate.clone()];
        chain.extend(self.between.clone());
        chain.push(self.authority.clone());
        chain
    }

    /// Reads PEM texts. The certificate's may contain its issuer's, too: see
    /// [`crate::authority::Issued::pem`].
    ///
    /// # Errors
    /// One of them cannot be read; the error says which.
    pub fn from_pem(certificate: &str, authority: &str, key: &str) -> Result<Credentials, AuthorityError> {
        let mut chain = CertificateDer::pem_slice_iter(certificate.as_bytes());
        let mut next = || {
            let next = chain.next().transpose();
            next.map_err(|_| AuthorityError::Crypto(rcgen::Error::CouldNotParseCertificate))
        };
        let missing = AuthorityError::Crypto(rcgen::Error::CouldNotParseCertificate);
        let key = PrivateKeyDer::from_pem_slice(key.as_bytes());
        Ok(Credentials {
            certificate: next()?.ok_or(missing)?,
            between: next()?,
            authority: certificate_of(authority)?,
            key: key.map_err(|_| AuthorityError::Crypto(rcgen::Error::CouldNotParseKeyPair))?,
        })
    }
}
