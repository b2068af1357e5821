//! The holder that a certificate names: a site of a grid, or the grid's broker.
//!
//! The certificate contains it as its one URI name, `causeway://GRID/site/SITE` or `causeway://GRID/broker`.
//! Host names and addresses play no part: gateways move, and addresses repeat behind translators.

use crate::records::Admission;
pub(crate) use crate::text::hexadecimal;
use causeway_wire::grid;
use rustls::pki_types::CertificateDer;
use std::fmt;
use x509_parser::der_parser::oid::Oid;
use x509_parser::extensions::GeneralName;
use x509_parser::prelude::{FromDer, X509Certificate};

/// Longest URI read.
const MAX_URI: usize = 256;

/// Who speaks.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Identity {
    /// The grid, 1 to 63 letters, digits, `-`, `_` or `.`.
    pub grid: String,
    /// Its role in the grid.
    pub role: Role,
}

/// What a certificate's holder is in its grid.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Role {
    /// The broker.
    Broker,
    /// The gateway of this site.
    Site(String),
}

/// What a certificate says; whether it is true is for [`crate::tls::Trust`] to find out.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Certified {
    /// Who it speaks for.
    pub identity: Identity,
    /// Its serial number in hexadecimal.
    pub serial: String,
    /// First second of its life, in seconds since 1970.
    pub not_before: u64,
    /// Last second of its life.
    pub not_after: u64,
    /// How its site joined; `None` for a broker, and for a site of a grid of one broker.
    pub admission: Option<Admission>,
    /// Hash of the certificate of the broker's authority that issued it, once that is known to be true;
    /// `None` if the grid's authority issued it.
    pub issuer: Option<[u8; 32]>,
}

/// Why a certificate names nobody.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum IdentityError {
    /// The bytes are no certificate.
    #[error("the certificate cannot be read")]
    Certificate,
    /// There is no identity, there are several, or something else is beside it.
    #[error("the certificate has {0} names where it should have one URI; it was not made by 'causeway grid'")]
    Names(usize),
    /// How the identity's site joined cannot be read.
    #[error("the certificate says how its site joined in a form that this version does not know")]
    Admission,
    /// The name is not an identity of this form.
    #[error("{0:?} is no causeway://GRID/site/SITE and no causeway://GRID/broker")]
    Uri(String),
}

impl Identity {
    /// The identity of a site.
    pub fn site(grid: &str, site: &str) -> Identity {
        Identity {
            grid: grid.to_owned(),
            role: Role::Site(site.to_owned()),
        }
    }

    /// The identity of the broker.
    pub fn broker(grid: &str) -> Identity {
        Identity {
            grid: grid.to_owned(),
            role: Role::Broker,
        }
    }

    /// Its form in a certificate.
    pub fn uri(&self) -> String {
        match &self.role {
            Role::Broker => format!("causeway://{}/broker", self.grid),
            Role::Site(site) => format!("causeway://{}/site/{site}", self.grid),
        }
    }

    /// Reads the form of a certificate.
    ///
    /// # Errors
    /// Anything that does not have exactly that form.
    pub fn parse(uri: &str) -> Result<Identity, IdentityError> {
        let wrong = || IdentityError::Uri(uri.chars().take(MAX_URI).collect());
        if uri.len() > MAX_URI {
            return Err(wrong());
        }
        let path = uri.strip_prefix("causeway://").ok_or_else(wrong)?;
        let words: Vec<&str> = path.split('/').collect();
        let identity = match words[..] {
            [grid, "broker"] => Identity::broker(grid),
            [grid, "site", site] if grid::is_site_name(site) => Identity::site(grid, site),
            _ => return Err(wrong()),
        };
        if grid::is_site_name(&identity.grid) {
            Ok(identity)
        } else {
            Err(wrong())
        }
    }
}

impl fmt::Display for Identity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.role {
            Role::Broker => write!(f, "the broker of grid {}", self.grid),
            Role::Site(site) => write!(f, "site {site} of grid {}", self.grid),
        }
    }
}

impl Certified {
    /// Reads a certificate without checking it.
    ///
    /// # Errors
    /// See [`IdentityError`].
    pub fn read(certificate: &CertificateDer<'_>) -> Result<Certified, IdentityError> {
        let (rest, parsed) =
            X509Certificate::from_der(certificate).map_err(|_| IdentityError::Certificate)?;
        let names = parsed.subject_alternative_name();
        let names = names.map_err(|_| IdentityError::Certificate)?;
        let names = names.map_or(&[][..], |names| &names.value.general_names[..]);
        let [GeneralName::URI(uri)] = names else {
            return Err(IdentityError::Names(names.len()));
        };
        if !rest.is_empty() {
            return Err(IdentityError::Certificate);
        }
        let seconds = |time: i64| u64::try_from(time).unwrap_or(0);
        Ok(Certified {
            identity: Identity::parse(uri)?,
            serial: hexadecimal(parsed.raw_serial()),
            not_before: seconds(parsed.validity().not_before.timestamp()),
            not_after: seconds(parsed.validity().not_after.timestamp()),
            admission: admission_in(&parsed)?,
            issuer: None,
        })
    }

    /// How its site joined. A certificate that does not say is of a grid that had one broker.
    pub fn admission(&self) -> Admission {
        let from_single_broker = || Admission::from_single_broker(self.not_before);
        self.admission.clone().unwrap_or_else(from_single_broker)
    }

    /// The site it speaks for; `None` if it is the broker's.
    pub fn site(&self) -> Option<&str> {
        match &self.identity.role {
            Role::Site(site) => Some(site),
            Role::Broker => None,
        }
    }

    /// Returns the time at which it is to be renewed: two thirds of its life leave a third for a broker that
    /// is away.
    pub fn renew_at(&self) -> u64 {
        renew_at(self.not_before, self.not_after)
    }
}

/// The extension that contains an admission: the arc of UUIDs (X.667), with a random number. Nobody else
/// reads it, so it is not critical.
pub(crate) const ADMISSION_OID: [u64; 3] = [2, 25, 4_710_894_261_650_302_951];

/// Longest admission that is read.
const MAX_ADMISSION: usize = 1024;

/// An admission as the extension has it: JSON in a UTF8String.
pub(crate) fn admission_extension(admission: &Admission) -> Vec<u8> {
    // Structs of strings and numbers have a JSON form; it is shorter than 64 KiB.
    let json = serde_json::to_vec(admission).unwrap_or_default();
    let length = (json.len() as u16).to_be_bytes();
    [&[UTF8_STRING, TWO_BYTES, length[0], length[1]], json.as_slice()].concat()
}

/// The tag of this string, and the form of its length, in DER.
const UTF8_STRING: u8 = 0x0c;
const TWO_BYTES: u8 = 0x82;

fn admission_in(certificate: &X509Certificate<'_>) -> Result<Option<Admission>, IdentityError> {
    let oid = Oid::from(&ADMISSION_OID).map_err(|_| IdentityError::Admission)?;
    let found = certificate.get_extension_unique(&oid);
    let Some(found) = found.map_err(|_| IdentityError::Admission)? else {
        return Ok(None);
    };
    let json = match found.value {
        [UTF8_STRING, TWO_BYTES, high, low, json @ ..]
            if json.len() == usize::from(u16::from_be_bytes([*high, *low]))
                && json.len() <= MAX_ADMISSION =>
        {
            json
        }
        _ => return Err(IdentityError::Admission),
    };
    serde_json::from_slice(json)
        .map(Some)
        .map_err(|_| IdentityError::Admission)
}

/// Returns the time at which a certificate with this beginning and end is to be renewed, all in seconds since
/// 1970; see [`Certified::renew_at`].
pub fn renew_at(not_before: u64, not_after: u64) -> u64 {
    not_before + not_after.saturating_sub(not_before) / 3 * 2
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn literal_uris_are_as_certificates_of_other_versions_have_them() {
        for identity in [Identity::site("g5k", "rennes"), Identity::broker("g5k")] {
            assert_eq!(Identity::parse(&identity.uri()), Ok(identity));
        }
        assert_eq!(
            Identity::site("g5k", "rennes").uri(),
            "causeway://g5k/site/rennes"
        );
        assert_eq!(Identity::broker("g5k").uri(), "causeway://g5k/broker");
    }

    #[test]
    fn what_only_looks_like_an_identity_is_refused() {
        for uri in [
            "",
            "causeway://",
            "causeway://g5k",
            "causeway://g5k/",
            "causeway:///broker",
            "causeway://g5k/broker/",
            "causeway://g5k/site/",
            "causeway://g5k/site/a/b",
            "causeway://g5k/site/a b",
            "causeway://g 5k/broker",
            "https://g5k/broker",
            &format!("causeway://g5k/site/{}", "a".repeat(64)),
            &format!("causeway://g5k/site/{}", "a".repeat(1000)),
        ] {
            assert!(Identity::parse(uri).is_err(), "{uri}");
        }
    }
}
