//! A gateway's end of the broker: a thread that keeps a session, for callers that know of no async runtime.
//!
//! ```text
//! gateway's loop ── update, send, reach, ... ──> [thread: session] ── long polls ──> each broker
//!               <── poll_event, wake ──────────        |
//!                               members.json, revocations.json, records.json, membership.json
//! ```
//! The broker may be away: what was known is read from the directory at the start, and events resume once it
//! is back.

mod cache;
mod heard;
mod http;
mod line;
mod lines;
mod membership;
mod orders;
mod pending;
mod renewal;
mod session;

pub use cache::known_member;
pub use http::CallError;
pub(crate) use http::Connection;
pub use membership::{JoinError, MEMBERSHIP_FILE, Membership, join, join_through};
pub use session::SKEW_SECONDS;

use crate::api::{ErrorKind, Job, JobStart, Member, Message, Reached, Record, Relay};
use crate::clock::Clock;
use crate::credentials::Credentials;
use crate::files::FileError;
use crate::identity::Certified;
use crate::records::SignedRecord;
use crate::revocation::{RevocationSet, Revocations};
use crate::tls::{Trust, TrustError};
use causeway_service::Proxy;
use std::net::SocketAddr;
use std::ops::RangeInclusive;
use std::path::PathBuf;
use std::rc::Rc;
use std::sync::mpsc::{Receiver, sync_channel};
use std::thread::JoinHandle;
use std::time::Duration;
use tokio::sync::{mpsc, watch};
use tokio::task::LocalSet;

/// Most events that wait for the gateway; if there are more, the thread waits, and so do the broker's
/// answers.
const MAX_EVENTS: usize = 1024;

/// Most commands that wait for the thread; more are refused.
const MAX_COMMANDS: usize = 256;

/// What a session is made of.
pub struct ClientConfig {
    /// Who this gateway is.
    pub membership: Membership,
    /// The directory in which the gateway keeps its membership, and what it knows about the grid.
    pub directory: PathBuf,
    /// The proxy through which the broker is reached, if there is one.
    pub proxy: Option<Proxy>,
    /// What it announces about itself.
    pub record: Record,
    /// The clock that it uses.
    pub clock: Clock,
    /// First and longest pause before the broker is tried again.
    pub retry: RangeInclusive<Duration>,
    /// Pause after a refusal that needs a person to act.
    pub refused: Duration,
    /// Called from the session's thread after each event: wakes the gateway's loop. Must not block.
    pub wake: Box<dyn Fn() + Send>,
}

impl ClientConfig {
    /// Makes a client with the usual pauses: a broker that comes back is noticed within half a minute, but
    /// not by a thousand gateways at once.
    pub fn new(
        membership: Membership,
        directory: PathBuf,
        record: Record,
        wake: Box<dyn Fn() + Send>,
    ) -> ClientConfig {
        ClientConfig {
            membership,
            directory,
            proxy: None,
            record,
            clock: Clock::system(),
            retry: Duration::from_millis(500)..=Duration::from_secs(30),
            refused: Duration::from_secs(60),
            wake,
        }
    }
}

/// What the gateway is told.
#[derive(Debug, Clone)]
pub enum Event {
    /// A site is new or has changed; it may be this gateway's own. At the start, the sites of the last
    /// session come first.
    Member(Box<Member>),
    /// A site is no longer a member.
    Removed(String),
    /// Another gateway has sent a message.
    Message(Message),
    /// More certificates are void: lanes of these sites end. The [`Trust`] knows them already.
    Revocations(RevocationSet),
    /// News of brokers and revocations, for other gateways.
    Records(Vec<SignedRecord>),
    /// Another gateway has brought records that nobody in the grid has signed.
    Forged {
        /// Its site.
        from: String,
        /// The mistake that was found first.
        reason: String,
    },
    /// The broker answers again, or for the first time.
    Connected {
        /// The address from which this gateway speaks, as the broker sees it.
        observed: SocketAddr,
        /// Where the broker is.
        broker: SocketAddr,
        /// How many seconds this host's clock is ahead of the broker's.
        ahead: i64,
    },
    /// The broker does not answer, for this reason. Reported once until it answers again.
    Away(String),
    /// The broker refuses what this gateway wants; the gateway goes on trying.
    Refused {
        /// Why, for programs.
        kind: ErrorKind,
        /// Why, for people.
        message: String,
    },
    /// The clocks of this host and the broker differ by more than [`SKEW_SECONDS`], or no longer do. Reported
    /// when that changes.
    ClockSkew {
        /// How many seconds this host's clock is ahead.
        ahead: i64,
    },
    /// The certificate was renewed: new connections use these.
    Renewed(Box<(Credentials, Certified)>),
    /// Answer to [`Client::reach`].
    Reached(Vec<Reached>),
    /// Answer to [`Client::relays`].
    Relays(Vec<Relay>),
    /// Answer to [`Client::list_jobs`].
    Jobs(Vec<Job>),
    /// A command was not carried out.
    Failed {
        /// What was to be done, such as `send to nancy`.
        what: String,
        /// The reason.
        reason: String,
    },
    /// Trouble on this host, such as a file that cannot be written. The session goes on.
    Trouble(String),
}

/// One broker of several, as this gateway sees it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BrokerState {
    /// Its number.
    pub number: u8,
    /// Where it is found, `HOST:PORT`.
    pub addresses: Vec<String>,
    /// Why it does not answer; `None` while it does.
    pub away: Option<String>,
}

/// What the gateway wants.
#[derive(Debug, Clone)]
enum Command {
    Send(crate::api::SendRequest),
    Reach(Vec<SocketAddr>),
    JobStarted(JobStart),
    JobEnded(String),
    ListJobs,
    /// Tell a broker that is not the first one which jobs run.
    CompareJobs,
    /// Take records that another gateway has brought.
    Bring {
        from: String,
        records: Vec<SignedRecord>,
    },
    Relays,
}

/// Names what was wanted, such as `send punch to nancy`.
impl std::fmt::Display for Command {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Command::Send(message) => write!(f, "send {} to {}", message.kind, message.to),
            Command::Reach(_) => f.write_str("ask to be dialled"),
            Command::JobStarted(job) => write!(f, "register job {}", job.name),
            Command::JobEnded(_) => f.write_str("end a job"),
            Command::ListJobs | Command::CompareJobs => f.write_str("list jobs"),
            Command::Relays => f.write_str("list relays"),
            Command::Bring { from, .. } => write!(f, "take records of site {from}"),
        }
    }
}

/// Too much is asked at a time, or the session has ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the broker's session is busy with {MAX_COMMANDS} requests, or has ended")]
pub struct Busy;

/// Why there is no session.
#[derive(Debug, thiserror::Error)]
pub enum ClientError {
    /// A file of the directory.
    #[error(transparent)]
    File(#[from] FileError),
    /// The authority's certificate.
    #[error(transparent)]
    Trust(#[from] TrustError),
    /// No thread can be started, or there are no descriptors left.
    #[error("start a thread: {0}")]
    Thread(std::io::Error),
}

/// A session with the broker, in a thread of its own. It ends when this is dropped.
pub struct Client {
    trust: Trust,
    record: watch::Sender<Record>,
    load: watch::Sender<u32>,
    brokers: watch::Receiver<Vec<BrokerState>>,
    commands: Option<mpsc::Sender<Command>>,
    events: Option<Receiver<Event>>,
    stop: watch::Sender<bool>,
    thread: Option<JoinHandle<()>>,
}

impl Client {
    /// Starts a session. The broker need not be there.
    ///
    /// # Errors
    /// Files cannot be read, or there is no thread.
    pub fn start(config: ClientConfig) -> Result<Client, ClientError> {
        let Membership {
            grid, credentials, ..
        } = &config.membership;
        let known = cache::revocations(&config.directory, grid, &credentials.authority)?;
        let trust = config
            .membership
            .trust(Revocations::new(known), config.clock.clone())?;
        cache::records(&config.directory, &trust)?;
        let cache = cache::Cache::open(&config.directory, grid);
        let (events_in, events) = sync_channel(MAX_EVENTS);
        let (commands, commands_out) = mpsc::channel(MAX_COMMANDS);
        let record = watch::Sender::new(config.record.clone());
        let load = watch::Sender::new(0);
        let (states, brokers) = watch::channel(Vec::new());
        let stop = watch::Sender::new(false);
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        let runtime = runtime.map_err(ClientError::Thread)?;
        let parts = session::Parts {
            config,
            trust: trust.clone(),
            cache,
            events: events_in,
            record: record.subscribe(),
            load: load.subscribe(),
            states,
        };
        let mut stopping = stop.subscribe();
        let thread = std::thread::Builder::new().name("broker-client".to_owned());
        let thread = thread.spawn(move || {
            let session = Rc::new(session::Session::new(parts));
            let tasks = LocalSet::new();
            tasks.block_on(&runtime, async {
                tokio::select! {
                    () = lines::run(&session, commands_out) => {}
                    _ = stopping.wait_for(|stop| *stop) => {}
                }
                session.end();
            });
            drop(tasks);
            // A name lookup that is under way must not delay the end.
            runtime.shutdown_background();
        });
        Ok(Client {
            trust,
            record,
            load,
            brokers,
            commands: Some(commands),
            events: Some(events),
            stop,
            thread: Some(thread.map_err(ClientError::Thread)?),
        })
    }

    /// Returns this gateway's trust. Revocations that arrive take effect in it at once.
    pub fn trust(&self) -> &Trust {
        &self.trust
    }

    /// The next event, if there is one.
    pub fn poll_event(&self) -> Option<Event> {
        self.events.as_ref()?.try_recv().ok()
    }

    /// Waits for the next event, `timeout` at most.
    pub fn wait_event(&self, timeout: Duration) -> Option<Event> {
        self.events.as_ref()?.recv_timeout(timeout).ok()
    }

    /// Lists the brokers, where the grid has several.
    pub fn brokers(&self) -> Vec<BrokerState> {
        self.brokers.borrow().clone()
    }

    /// Announces this record of the own site from now on.
    pub fn update(&self, record: Record) {
        self.record.send_replace(record);
    }

    /// Notes how busy this gateway is as a relay, 0 to 1000. The next poll tells the broker.
    pub fn set_load(&self, load: u32) {
        self.load.send_replace(load.min(1000));
    }

    /// Sends a message to another site's gateway, at once.
    ///
    /// # Errors
    /// See [`Busy`]; what fails later is an [`Event::Failed`].
    pub fn send(&self, to: &str, kind: &str, body: &str) -> Result<(), Busy> {
        self.command(Command::Send(crate::api::SendRequest {
            to: to.to_owned(),
            kind: kind.to_owned(),
            body: body.to_owned(),
        }))
    }

    /// Makes the broker dial addresses of the own record: [`Event::Reached`].
    ///
    /// # Errors
    /// See [`Busy`].
    pub fn reach(&self, addresses: Vec<SocketAddr>) -> Result<(), Busy> {
        self.command(Command::Reach(addresses))
    }

    /// Reports that a job has begun here.
    ///
    /// # Errors
    /// See [`Busy`].
    pub fn job_started(&self, job: JobStart) -> Result<(), Busy> {
        self.command(Command::JobStarted(job))
    }

    /// Reports that a job that began here has ended.
    ///
    /// # Errors
    /// See [`Busy`].
    pub fn job_ended(&self, id: &str) -> Result<(), Busy> {
        self.command(Command::JobEnded(id.to_owned()))
    }

    /// Asks which jobs run in the grid: [`Event::Jobs`].
    ///
    /// # Errors
    /// See [`Busy`].
    pub fn list_jobs(&self) -> Result<(), Busy> {
        self.command(Command::ListJobs)
    }

    /// Takes records that another site's gateway has brought: what is new goes to the brokers, and comes back
    /// as [`Event::Records`].
    ///
    /// # Errors
    /// See [`Busy`].
    pub fn bring(&self, from: &str, records: Vec<SignedRecord>) -> Result<(), Busy> {
        let from = from.to_owned();
        self.command(Command::Bring { from, records })
    }

    /// Asks who carries streams of others: [`Event::Relays`].
    ///
    /// # Errors
    /// See [`Busy`].
    pub fn relays(&self) -> Result<(), Busy> {
        self.command(Command::Relays)
    }

    /// Ends the session, and writes what it knows.
    pub fn stop(mut self) {
        self.end();
    }

    fn command(&self, command: Command) -> Result<(), Busy> {
        let commands = self.commands.as_ref().ok_or(Busy)?;
        commands.try_send(command).map_err(|_| Busy)
    }

    fn end(&mut self) {
        self.stop.send_replace(true);
        // A thread that waits for the gateway to take events no longer waits.
        self.events = None;
        self.commands = None;
        if let Some(thread) = self.thread.take() {
            // If the thread has panicked, the runtime has already reported it.
            let _ = thread.join();
        }
    }
}

impl Drop for Client {
    fn drop(&mut self) {
        self.end();
    }
}
