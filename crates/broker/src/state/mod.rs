//! The broker's state, and the change that each request makes to it. No sockets; the disk through [`Store`],
//! the time through a clock.
//!
//! One lock protects all of it, and what must not be forgotten is on disk before the lock is released:
//! answers never mention anything that a crash could undo. A thousand gateways that each ask every half
//! minute make forty requests a second.

mod jobs;
pub(crate) mod joining;
mod listing;
mod mail;
mod news;
mod revoking;
pub(crate) mod several;
mod syncing;

pub use joining::MAX_TTL_SECONDS;
pub(crate) use joining::{renewing_site, site_of};
pub use listing::{ListedBroker, ListedSite, ListedToken, Listing};
pub(crate) use several::partner_of;
pub(crate) use syncing::Turn;

use crate::api::{self, ErrorAnswer, ErrorKind, Member, Subnet};
use crate::authority::{Authority, AuthorityError};
use crate::clock::Clock;
use crate::config::BrokerConfig;
use crate::members::Members;
use crate::revocation::{RevocationSet, Revocations, SignedRevocations};
use crate::store::{self, Store, StoreError};
use crate::tls::{Trust, TrustError};
use jobs::Register;
use joining::TokenRecord;
use mail::Mail;
use news::Budget;
use several::Several;
use std::collections::HashMap;
use syncing::Presence;
use tokio::sync::watch;

/// The key in `META`.
const REVOCATIONS: &str = "revocations";
const ANCESTORS: &str = "ancestors";

pub(crate) struct State {
    pub(crate) authority: Authority,
    pub(crate) trust: Trust,
    /// Where sites find the broker; part of every token.
    public: Vec<String>,
    store: Store,
    clock: Clock,
    /// Tokens, by the hash of the secret.
    tokens: HashMap<String, TokenRecord>,
    members: Members,
    /// Granted ranges, by site.
    grants: HashMap<String, Vec<Subnet>>,
    jobs: Register,
    presence: HashMap<String, Presence>,
    /// How much news each site may still announce.
    budgets: HashMap<String, Budget>,
    mail: Mail,
    /// Hashes of earlier lists of revocations that the present one contains in full; the newest last.
    ancestors: Vec<String>,
    /// A random number, new at each start. Revisions from another start mean nothing, even after an old copy
    /// of the store was put back.
    history: String,
    /// When the store was last told when sites have spoken.
    seen_kept: u64,
    /// Rises with every change that concerns all gateways: to members or revocations.
    news: watch::Sender<u64>,
    /// How long after its end a certificate may be renewed.
    renewal_grace_seconds: u64,
    /// What it knows together with other brokers; `None` in a grid of one broker.
    several: Option<Several>,
    /// When records were last exchanged with each other broker, and why that has failed since, if it did.
    meetings: HashMap<u8, (Option<u64>, Option<String>)>,
}

/// Why a broker's state cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum StateError {
    /// The authority's files cannot be used.
    #[error(transparent)]
    Authority(#[from] AuthorityError),
    /// The database cannot be used.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The authority's certificate.
    #[error(transparent)]
    Trust(#[from] TrustError),
    /// What was read back is damaged.
    #[error("{0}")]
    Damaged(String),
    /// The system provides no random numbers.
    #[error("random numbers: {0}")]
    Random(std::io::Error),
}

/// The refusal of a request: its kind, and one sentence.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub(crate) struct Refusal {
    pub(crate) kind: ErrorKind,
    pub(crate) message: String,
}

impl Refusal {
    pub(crate) fn new(kind: ErrorKind, message: impl Into<String>) -> Refusal {
        let message = message.into();
        Refusal { kind, message }
    }

    pub(crate) fn answer(self, time: u64) -> ErrorAnswer {
        ErrorAnswer {
            kind: self.kind,
            message: self.message,
            time,
        }
    }
}

impl From<StoreError> for Refusal {
    fn from(error: StoreError) -> Refusal {
        Refusal::new(ErrorKind::Internal, error.to_string())
    }
}

impl From<TrustError> for Refusal {
    fn from(error: TrustError) -> Refusal {
        let kind = match error {
            TrustError::Missing(_) => ErrorKind::NoCertificate,
            TrustError::NotYetValid { .. } => ErrorKind::NotYetValid,
            TrustError::Expired { .. } => ErrorKind::Expired,
            TrustError::Revoked(_) => ErrorKind::Revoked,
            TrustError::Stranger { .. } | TrustError::Identity(_) | TrustError::Other { .. } => {
                ErrorKind::NotYours
            }
        };
        Refusal::new(kind, error.to_string())
    }
}

impl State {
    /// Reads the present state.
    pub(crate) fn open(config: &BrokerConfig, clock: Clock) -> Result<State, StateError> {
        let authority =
            Authority::load(&config.grid, &config.directory)?.with_life(config.certificate_life_seconds);
        let store = Store::open(&config.store())?;
        let revocations = match find::<SignedRevocations>(&store, REVOCATIONS)? {
            None => RevocationSet::default(),
            Some(signed) => RevocationSet::verify(&signed, &config.grid, authority.certificate())
                .map_err(|error| StateError::Damaged(error.to_string()))?,
        };
        let revocations = Revocations::new(revocations);
        let trust = Trust::new(&config.grid, authority.certificate(), revocations, clock.clone())?;
        let several = Several::open(config, &authority, (&store, &trust))?;
        let mut members = Members::default();
        for (_, member) in store.all::<Member>(store::MEMBERS)? {
            members.put(member);
        }
        for (site, at) in store.all::<u64>(store::SEEN)? {
            members.seen(&site, at);
        }
        Ok(State {
            trust,
            public: config.public.clone(),
            tokens: store.all(store::TOKENS)?.into_iter().collect(),
            grants: store.all(store::GRANTS)?.into_iter().collect(),
            jobs: Register::new(store.all(store::JOBS)?),
            ancestors: find(&store, ANCESTORS)?.unwrap_or_default(),
            mail: Mail::new(clock.now()),
            presence: HashMap::new(),
            budgets: HashMap::new(),
            history: api::new_instance().map_err(StateError::Random)?,
            seen_kept: clock.now(),
            news: watch::Sender::new(0),
            members,
            renewal_grace_seconds: config.renewal_grace_seconds,
            several,
            meetings: HashMap::new(),
            authority,
            store,
            clock,
        })
    }

    /// Wakes everybody who waits for news of members and revocations.
    fn stir(&self) {
        self.news.send_modify(|count| *count += 1);
    }

    pub(crate) fn now(&self) -> u64 {
        self.clock.now()
    }

    pub(crate) fn members(&self) -> &Members {
        &self.members
    }

    /// Notes how an exchange with another broker went.
    pub(crate) fn note_meeting(&mut self, broker: u8, failed: Option<String>) {
        let now = self.now();
        let (met, trouble) = self.meetings.entry(broker).or_default();
        if failed.is_none() {
            *met = Some(now);
        }
        *trouble = failed;
    }

    /// Returns a watch that rises with every change that concerns all gateways and other brokers.
    pub(crate) fn news(&self) -> watch::Receiver<u64> {
        self.news.subscribe()
    }

    /// Returns the reason why the store's last change failed, if it did.
    pub(crate) fn store_trouble(&self) -> Option<String> {
        self.store.trouble().map(str::to_owned)
    }

    /// Returns the reason why this broker can never write again, if there is one.
    pub(crate) fn store_lost(&self) -> Option<&str> {
        self.store.lost()
    }
}

fn internal(error: AuthorityError) -> Refusal {
    Refusal::new(ErrorKind::Internal, error.to_string())
}

fn find<T: serde::de::DeserializeOwned>(store: &Store, key: &str) -> Result<Option<T>, StoreError> {
    let all = store.all::<serde_json::Value>(store::META)?;
    let found = all.into_iter().find(|(found, _)| found == key);
    Ok(found.and_then(|(_, value)| serde_json::from_value(value).ok()))
}
