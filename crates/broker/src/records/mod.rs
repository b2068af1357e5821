//! What the brokers of a grid know together: signed records, in sets that only grow. Pure: no clock, no
//! socket, no disk.
//!
//! ```text
//! authority (offline) ── signs ──> BrokerRecord: number, certificate authority, places, share, standing
//! broker 1..=255 ─────── signs ──> Admitted: a site joined with a token of this broker
//!                        └──────── Revocation: what was given to a site until then is void
//! ```
//! Brokers agree on nothing beforehand. The same records give the same answers, in whichever order they came
//! (`set`), and parties that meet join their sets by union (`crate::exchange`). `signed` has the signatures,
//! `giving` what a broker that follows the rules signs, `intake` what is taken from others, and when.
//!
//! The rules:
//! - A revocation names a site and a time. It voids each admission whose token was given until then, with all
//!   certificates that were renewed from it, at any broker: a certificate carries its [`Admission`]. So it
//!   does not help to renew at a broker that has not heard of the revocation.
//! - A name belongs to one admission: that of the earliest origin, and of that origin, the latest generation.
//!   A broker that knows who has a name gives a token that continues the same origin. Two brokers that do not
//!   know of each other give different origins, and the earlier one has the name.
//! - A record that names a time far ahead is taken only when that time is near. A broker that follows the
//!   rules names times that are hardly later than those it believes.
//! - A broker that the authority has expelled counts as having admitted and revoked nobody. Other brokers
//!   sign its revocations anew for the sites that they had let in themselves ([`Records::to_say_again`]).

mod giving;
mod intake;
mod set;
mod signed;

pub use giving::Unusable;
pub(crate) use intake::{Intake, Taken};
#[cfg(test)]
pub(crate) use intake::{MARGIN, MOST_AHEAD, MOST_NEWS, NEWS_AN_HOUR};
pub use set::{Added, Full, MAX_ADMISSIONS, MAX_REVOKED, Out, Records};
pub(crate) use signed::MAX_SIGNATURE as MAX_RECORD_SIGNATURE;
pub(crate) use signed::authority_text;
#[cfg(test)]
pub(crate) use signed::check as check_statement;
pub use signed::{MAX_RECORD, RecordError, SignedRecord};

use crate::subnet::Subnet;
use serde::{Deserialize, Serialize};

/// The signer number that stands for the grid's authority.
pub const ROOT: u8 = 0;

/// Parts into which the virtual addresses are divided: this many brokers can assign some.
pub const SHARES: u8 = 16;

/// Most brokers of a grid, ever: the number of a broker that is gone is never reused, so this bounds how
/// often one can be replaced.
pub const MAX_BROKERS: u8 = 255;

/// Leads from a certificate back to the token with which its site joined. It stays the same when the
/// certificate is renewed.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Admission {
    /// The first admission of the name: see [`Origin`].
    pub origin: Origin,
    /// Rises each time that the site joins again with a token from a broker that knew of it.
    pub generation: u32,
    /// When the token was given, in seconds since 1970.
    pub given: u64,
    /// The broker that gave the token.
    pub broker: u8,
    /// A name of the token that reveals nothing about its secret: 32 hexadecimal digits.
    pub token: String,
    /// SHA-256 of the key that the site joined with: a token that was used twice, because a broker was
    /// restored from an old copy, made two admissions.
    pub key: String,
}

/// The first admission of a name: it distinguishes a site that came back from another that was given the same
/// name elsewhere.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Origin {
    /// When its token was given. 0 for a site that joined before the grid had several brokers.
    pub given: u64,
    /// The broker that gave the token.
    pub broker: u8,
    /// The token's name.
    pub token: String,
}

impl Admission {
    /// The admission of a certificate that contains none, from a grid of one broker: it is the same for all
    /// certificates of a site.
    pub fn from_single_broker(not_before: u64) -> Admission {
        Admission {
            origin: Origin {
                given: 0,
                broker: ROOT,
                token: String::new(),
            },
            generation: 0,
            given: not_before,
            broker: ROOT,
            token: String::new(),
            key: String::new(),
        }
    }

    /// Whether these are of one token and one key.
    pub fn is_same(&self, other: &Admission) -> bool {
        (self.broker, &self.token, &self.key) == (other.broker, &other.token, &other.key)
    }

    /// Whether there was time for that many generations: each token is at least a second younger than the one
    /// before. Otherwise an admission does not count. So whatever one broker says, the next one can rise
    /// above it.
    pub(crate) fn is_in_order(&self) -> bool {
        let since = self.given.checked_sub(self.origin.given);
        since.is_some_and(|since| since >= u64::from(self.generation))
    }

    /// Orders the admissions of one name: the least one has it.
    fn rank(&self) -> impl Ord + '_ {
        (
            &self.origin,
            std::cmp::Reverse(self.generation),
            self.given,
            self.broker,
            &self.token,
            &self.key,
        )
    }

    /// Whether this one has the name, if both were given it.
    pub fn precedes(&self, other: &Admission) -> bool {
        self.rank() < other.rank()
    }
}

/// A site has joined.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Admitted {
    /// Its name.
    pub site: String,
    /// Its admission.
    pub admission: Admission,
    /// The ranges that must contain its subnets; empty: those that nobody has on the Internet.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub granted: Vec<Subnet>,
}

/// A site was put out.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Revocation {
    /// Its name.
    pub site: String,
    /// Admissions whose token was given up to then are void, in seconds since 1970.
    pub until: u64,
    /// Which broker says so.
    pub broker: u8,
}

/// A broker of the grid, as the authority signs it.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct BrokerRecord {
    /// Its number, from 1; no other broker of the grid ever gets it.
    pub number: u8,
    /// Rises with each record of this broker: the last one holds.
    pub revision: u32,
    /// The later of these values wins if two records have the same revision.
    pub standing: Standing,
    /// Where it is found, `HOST:PORT`.
    pub public: Vec<String>,
    /// The certificate of its own certificate authority, in DER and base64url.
    pub authority: String,
    /// The part of the virtual addresses from which it assigns, less than [`SHARES`].
    pub share: u8,
}

/// Whether a broker serves.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Standing {
    /// The broker serves.
    Serving,
    /// The broker no longer serves. Sites that it admitted stay admitted.
    Retired,
    /// Somebody else may have the broker's keys: sites that it admitted must join anew.
    Expelled,
}

/// What a record says.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Statement {
    /// There is a broker; signed by the authority.
    Broker(BrokerRecord),
    /// A site has joined; signed by the broker that admitted it.
    Admitted(Admitted),
    /// A site was put out; signed by a broker.
    Revocation(Revocation),
}

impl Statement {
    /// Who must have signed it: a broker's number, or [`ROOT`].
    pub fn signer(&self) -> u8 {
        match self {
            Statement::Broker(_) => ROOT,
            Statement::Admitted(admitted) => admitted.admission.broker,
            Statement::Revocation(revocation) => revocation.broker,
        }
    }

    /// The latest time that it names, in seconds since 1970.
    pub fn latest(&self) -> u64 {
        match self {
            Statement::Broker(_) => 0,
            Statement::Admitted(admitted) => admitted.admission.given.max(admitted.admission.origin.given),
            Statement::Revocation(revocation) => revocation.until,
        }
    }
}
