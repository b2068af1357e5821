//! A record in the form in which it travels and is kept: the text that was signed, and the signature.

use super::{Admission, MAX_BROKERS, ROOT, Records, SHARES, Statement};
use crate::subnet::MAX_GRANTED;
use crate::text::is_host_and_port;
use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use causeway_wire::{TextError, grid};
use ring::signature::{ECDSA_P256_SHA256_ASN1, UnparsedPublicKey};
use rustls::pki_types::CertificateDer;
use serde::{Deserialize, Serialize};

const VERSION: u32 = 1;

/// Precedes the text that is signed, so that a record's signature is valid for nothing else: the same keys
/// sign certificates and lists of revocations.
const CONTEXT: &[u8] = b"causeway record\n";

/// Longest text that is read, in bytes: an admission with 64 granted ranges has 5000.
pub const MAX_RECORD: usize = 8192;

/// A signature of P-256 has 72 bytes at most, 96 in base64.
pub(crate) const MAX_SIGNATURE: usize = 128;

/// A record with its signature.
#[derive(Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SignedRecord {
    /// The statement as JSON.
    pub text: String,
    /// ECDSA P-256 with SHA-256, ASN.1, base64url; made by the grid's authority or a broker's own.
    pub signature: String,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Text {
    version: u32,
    grid: String,
    statement: Statement,
}

/// Why a record is refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum RecordError {
    /// The record is damaged, or forged.
    #[error("a record is not signed by who has to have signed it")]
    Signature,
    /// The text is not a record.
    #[error("a record cannot be read: {0}")]
    Format(String),
    /// The record is of another grid.
    #[error("a record is of grid {0}")]
    Grid(String),
    /// No record of the authority names its signer, so nobody can tell whether it is a broker.
    #[error("a record is signed by broker {0}, of which nothing is known")]
    Unknown(u8),
}

impl SignedRecord {
    /// Makes a record; `sign` signs with the key that certifies sites.
    ///
    /// # Errors
    /// No signature can be made.
    pub(crate) fn make<E>(
        grid: &str,
        statement: &Statement,
        sign: impl FnOnce(&[u8]) -> Result<Vec<u8>, E>,
    ) -> Result<SignedRecord, E> {
        let text = Text {
            version: VERSION,
            grid: grid.to_owned(),
            statement: statement.clone(),
        };
        // Structs of strings and numbers have a JSON form.
        let text = serde_json::to_string(&text).unwrap_or_default();
        let signature = sign(&[CONTEXT, text.as_bytes()].concat())?;
        Ok(SignedRecord {
            text,
            signature: URL_SAFE_NO_PAD.encode(signature),
        })
    }

    /// Reads a record, and checks that the right party has signed it. `known` contains the brokers.
    ///
    /// # Errors
    /// See [`RecordError`].
    pub fn verify(
        &self,
        grid: &str,
        root: &CertificateDer<'_>,
        known: &Records,
    ) -> Result<Statement, RecordError> {
        let statement = self.read(grid)?;
        if known.holds(&statement, self) {
            return Ok(statement);
        }
        let signer = statement.signer();
        let own;
        let certificate = if signer == ROOT {
            root
        } else {
            let broker = known.broker(signer).ok_or(RecordError::Unknown(signer))?;
            own = authority_of(&broker.authority).ok_or(RecordError::Unknown(signer))?;
            &own
        };
        let (_, parsed) =
            x509_parser::parse_x509_certificate(certificate).map_err(|_| RecordError::Signature)?;
        let key = &parsed.public_key().subject_public_key.data;
        let signature = URL_SAFE_NO_PAD.decode(&self.signature);
        let signature = signature.map_err(|_| RecordError::Signature)?;
        UnparsedPublicKey::new(&ECDSA_P256_SHA256_ASN1, key)
            .verify(&[CONTEXT, self.text.as_bytes()].concat(), &signature)
            .map_err(|_| RecordError::Signature)?;
        Ok(statement)
    }

    /// The grid that it claims to be of.
    pub fn grid(&self) -> Option<String> {
        let text = serde_json::from_str::<Text>(&self.text).ok()?;
        Some(text.grid)
    }

    /// Whether it is one that the authority signs, such as that of a broker.
    pub(crate) fn is_by_authority(&self) -> bool {
        let text = serde_json::from_str::<Text>(&self.text);
        text.is_ok_and(|text| text.statement.signer() == ROOT)
    }

    /// Reads the text without believing it.
    fn read(&self, grid: &str) -> Result<Statement, RecordError> {
        if self.text.len() > MAX_RECORD || self.signature.len() > MAX_SIGNATURE {
            return Err(RecordError::Format("it is too long".to_owned()));
        }
        let text: Text =
            serde_json::from_str(&self.text).map_err(|error| RecordError::Format(error.to_string()))?;
        if text.version != VERSION {
            return Err(RecordError::Format(format!("version {}", text.version)));
        }
        if text.grid != grid {
            return Err(RecordError::Grid(text.grid.chars().take(64).collect()));
        }
        let sound = check(&text.statement);
        sound.map_err(|why| RecordError::Format(why.to_string()))?;
        Ok(text.statement)
    }
}

/// The certificate in a broker's record.
pub(crate) fn authority_of(text: &str) -> Option<CertificateDer<'static>> {
    URL_SAFE_NO_PAD.decode(text).ok().map(CertificateDer::from)
}

/// A certificate in the form that a record has it in.
pub(crate) fn authority_text(certificate: &CertificateDer<'_>) -> String {
    URL_SAFE_NO_PAD.encode(certificate)
}

/// Whether a statement can be true: its names go into messages, and its numbers into sums.
pub(crate) fn check(statement: &Statement) -> Result<(), TextError> {
    let site = match statement {
        Statement::Broker(record) => {
            let addresses = 1..=MAX_ADDRESSES;
            if record.number == ROOT
                || record.number == MAX_BROKERS
                || record.share >= SHARES
                || !addresses.contains(&record.public.len())
                || !record.public.iter().all(|address| is_host_and_port(address))
            {
                return Err("it is of no broker that can be".into());
            }
            return authority_of(&record.authority)
                .filter(|certificate| x509_parser::parse_x509_certificate(certificate).is_ok())
                .map(drop)
                .ok_or_else(|| "it has no certificate of a broker's authority".into());
        }
        Statement::Admitted(admitted) => {
            let admission = &admitted.admission;
            let is_hash = |text: &str, digits: usize| {
                text.len() == digits && text.bytes().all(|byte| byte.is_ascii_hexdigit())
            };
            let is_token = |text: &str| is_hash(text, TOKEN_DIGITS);
            let origin = &admission.origin;
            // The authority speaks for sites from the time when the grid had one broker, and for no others.
            let is_of_one = *admission == Admission::from_single_broker(admission.given);
            let has_origin = is_token(&origin.token) || origin.broker == ROOT && origin.token.is_empty();
            let is_of_token = admission.broker != ROOT
                && has_origin
                && is_token(&admission.token)
                && is_hash(&admission.key, KEY_DIGITS);
            if admitted.granted.len() > MAX_GRANTED || !(is_of_one || is_of_token) {
                return Err("it is of no admission that can be".into());
            }
            &admitted.site
        }
        Statement::Revocation(revocation) => {
            if revocation.broker == ROOT {
                return Err("the authority signs no revocations".into());
            }
            &revocation.site
        }
    };
    if grid::is_site_name(site) {
        Ok(())
    } else {
        Err("it names no site".into())
    }
}

/// Most addresses of one broker, as in its configuration.
const MAX_ADDRESSES: usize = 4;

/// Hexadecimal digits of a token's name and of a key's hash.
const TOKEN_DIGITS: usize = 32;
const KEY_DIGITS: usize = 64;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::authority::Authority;
    use crate::clock::Clock;
    use crate::records::{Admitted, BrokerRecord, Origin, Revocation, Standing};

    /// An authority, one of its brokers, and the records of that broker.
    fn grid() -> (Authority, Authority, Records) {
        let clock = Clock::system();
        let root = Authority::create("g5k", &clock).unwrap();
        let broker = root.create_for_broker(2, &clock).unwrap();
        let statement = Statement::Broker(BrokerRecord {
            number: 2,
            revision: 0,
            standing: Standing::Serving,
            public: vec!["b:7443".into()],
            authority: authority_text(broker.own().unwrap()),
            share: 1,
        });
        let signed = root.state(&statement).unwrap();
        let mut known = Records::default();
        let read = signed.verify("g5k", root.certificate(), &known);
        known.add(read.unwrap(), signed).unwrap();
        (root, broker, known)
    }

    fn revocation(broker: u8) -> Statement {
        Statement::Revocation(Revocation {
            site: "rennes".into(),
            until: 1_795_327_857,
            broker,
        })
    }

    #[test]
    fn literal_text_is_as_other_versions_sign_it() {
        let (_, broker, _) = grid();
        let text = r#"{"version":1,"grid":"g5k","statement":{"revocation":{"site":"rennes","until":1795327857,"broker":2}}}"#;
        assert_eq!(broker.state(&revocation(2)).unwrap().text, text);
        let admitted = Statement::Admitted(Admitted {
            site: "rennes".into(),
            admission: Admission::from_single_broker(7),
            granted: Vec::new(),
        });
        let text = concat!(
            r#"{"version":1,"grid":"g5k","statement":{"admitted":{"site":"rennes","admission":{"origin":{"given":0,"#,
            r#""broker":0,"token":""},"generation":0,"given":7,"broker":0,"token":"","key":""}}}}"#
        );
        assert_eq!(broker.state(&admitted).unwrap().text, text);
    }

    #[test]
    fn what_is_damaged_or_signed_by_somebody_else_is_refused() {
        let (root, broker, known) = grid();
        let verify = |record: &SignedRecord| record.verify("g5k", root.certificate(), &known);
        let signed = broker.state(&revocation(2)).unwrap();
        assert_eq!(verify(&signed), Ok(revocation(2)));
        for at in 0..signed.text.len() {
            let mut bytes = signed.text.clone().into_bytes();
            bytes[at] ^= 1;
            let text = String::from_utf8_lossy(&bytes).into_owned();
            let signature = signed.signature.clone();
            assert!(verify(&SignedRecord { text, signature }).is_err(), "{at}");
        }
        // A broker speaks only for itself, and the authority for no broker.
        assert_eq!(
            verify(&broker.state(&revocation(3)).unwrap()),
            Err(RecordError::Unknown(3))
        );
        assert_eq!(
            verify(&root.state(&revocation(2)).unwrap()),
            Err(RecordError::Signature)
        );
        let other = signed.verify("other", root.certificate(), &known);
        assert_eq!(other, Err(RecordError::Grid("g5k".into())));
        let long = SignedRecord {
            text: " ".repeat(MAX_RECORD + 1),
            ..signed
        };
        assert!(matches!(verify(&long), Err(RecordError::Format(_))));
    }

    #[test]
    fn a_broker_makes_no_broker_and_speaks_for_no_site_from_before_it_was_there() {
        let (root, broker, known) = grid();
        let verify = |statement: &Statement| {
            let signed = broker.state(statement).unwrap();
            signed.verify("g5k", root.certificate(), &known)
        };
        let record = known.broker(2).cloned().unwrap();
        let forged = Statement::Broker(BrokerRecord { number: 3, ..record });
        assert_eq!(verify(&forged), Err(RecordError::Signature));
        let mut admitted = Admitted {
            site: "rennes".into(),
            admission: Admission::from_single_broker(7),
            granted: Vec::new(),
        };
        assert_eq!(
            verify(&Statement::Admitted(admitted.clone())),
            Err(RecordError::Signature)
        );
        admitted.admission.broker = 2;
        assert!(matches!(
            verify(&Statement::Admitted(admitted.clone())),
            Err(RecordError::Format(_))
        ));
        admitted.admission.token = "0".repeat(32);
        admitted.admission.key = "0".repeat(64);
        // It continues the name of a site from the time of one broker: its broker knew that one.
        assert!(verify(&Statement::Admitted(admitted.clone())).is_ok());
        admitted.admission.origin = Origin {
            given: 0,
            broker: 2,
            token: "no token".into(),
        };
        assert!(matches!(
            verify(&Statement::Admitted(admitted)),
            Err(RecordError::Format(_))
        ));
    }
}
