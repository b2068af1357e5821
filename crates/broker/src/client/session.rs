//! The session's thread: polls the broker for ever, and carries out commands beside that.

use super::cache::{self, Cache};
use super::http::{ANSWER, CallError, Connection};
use super::membership::{Membership, ahead, clock_difference, is_of_time};
use super::{ClientConfig, Command, Event};
use crate::api::{
    self, CertificateAnswer, Done, ErrorAnswer, ErrorKind, JobsAnswer, JobsRequest, MAX_WAIT_SECONDS,
    ReachAnswer, ReachRequest, Record, RelaysAnswer, RenewRequest, Since, SyncAnswer, SyncRequest,
};
use crate::authority::new_key;
use crate::revocation::{RevocationSet, SignedRevocations};
use crate::tls::{self, Expect, Trust};
use std::cell::{Cell, RefCell};
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::mpsc::SyncSender;
use std::time::{Duration, Instant};
use tokio::sync::{mpsc, watch};
use tokio::time::sleep;

/// A larger difference of clocks is reported: a certificate begins five minutes before it is made.
pub const SKEW_SECONDS: u64 = 60;

/// Time between two writings of the members: a busy grid would otherwise write megabytes at each change.
const KEEP: Duration = Duration::from_secs(5);

/// A list of at most so many members is written at once.
const FEW: usize = 64;

/// Time between tries to renew, or a tenth of what is left: there are ten days for it, unless the grid's
/// certificates are shorter.
const RENEW_AGAIN_SECONDS: u64 = 3600;

/// The same once it is over.
const EXPIRED_AGAIN_SECONDS: u64 = 60;

pub(super) struct Parts {
    pub(super) config: ClientConfig,
    pub(super) trust: Trust,
    pub(super) cache: Cache,
    pub(super) events: SyncSender<Event>,
    pub(super) record: watch::Receiver<Record>,
    pub(super) load: watch::Receiver<u32>,
}

/// The whole state of the thread.
pub(super) struct Session {
    config: ClientConfig,
    trust: Trust,
    membership: RefCell<Membership>,
    cache: RefCell<Cache>,
    events: SyncSender<Event>,
    record: watch::Receiver<Record>,
    load: watch::Receiver<u32>,
    /// Which of the broker's addresses answered last.
    broker: Cell<usize>,
    /// What the broker was told, in which of its histories.
    told: RefCell<Option<(String, Record)>>,
    messages_until: Cell<u64>,
    connected: Cell<bool>,
    said_away: Cell<bool>,
    skewed: Cell<bool>,
    kept: Cell<Option<Instant>>,
    renew_again: Cell<u64>,
}

impl Session {
    pub(super) fn new(parts: Parts) -> Session {
        Session {
            membership: RefCell::new(parts.config.membership.clone()),
            config: parts.config,
            trust: parts.trust,
            cache: RefCell::new(parts.cache),
            events: parts.events,
            record: parts.record,
            load: parts.load,
            broker: Cell::new(0),
            told: RefCell::new(None),
            messages_until: Cell::new(0),
            connected: Cell::new(false),
            said_away: Cell::new(false),
            skewed: Cell::new(false),
            kept: Cell::new(None),
            renew_again: Cell::new(0),
        }
    }

    pub(super) async fn run(&self, commands: mpsc::Receiver<Command>) {
        let known: Vec<_> = self.cache.borrow().members.values().cloned().collect();
        for member in known {
            self.tell(Event::Member(Box::new(member)));
        }
        tokio::join!(self.poll(), self.obey(commands));
    }

    /// Writes what is not written yet.
    pub(super) fn end(&self) {
        self.keep_members();
    }

    fn tell(&self, event: Event) {
        // Nobody listens any more: the session is about to be ended.
        if self.events.send(event).is_ok() {
            (self.config.wake)();
        }
    }

    async fn poll(&self) {
        let mut record = self.record.clone();
        let mut connection = None;
        let mut failures = 0;
        loop {
            let outcome = tokio::select! {
                outcome = self.round(&mut connection) => outcome,
                // What is waited for was asked with an old record: the connection is of no use any more.
                changed = record.changed() => {
                    connection = None;
                    match changed {
                        Ok(()) => continue,
                        Err(_) => return,
                    }
                }
            };
            let Err(error) = outcome else {
                failures = 0;
                continue;
            };
            connection = None;
            failures += 1;
            let pause = self.on_failure(error, failures).await;
            tokio::select! {
                () = sleep(pause) => {}
                changed = record.changed() => {
                    if changed.is_err() {
                        return;
                    }
                }
            }
        }
    }

    /// Asks one question and takes its answer.
    async fn round(&self, connection: &mut Option<Connection>) -> Result<(), CallError> {
        if self.renew_if_due().await? {
            // The broker looks at the certificate of the connection at each request.
            *connection = None;
        }
        let open = match connection.take().filter(Connection::is_open) {
            Some(open) => connection.insert(open),
            None => connection.insert(self.connect().await?),
        };
        let (asked, telling) = self.question();
        let deadline = ANSWER + Duration::from_secs(asked.wait_seconds);
        let answer: SyncAnswer = open.post(api::SYNC, &asked, deadline).await?;
        if let Some(record) = telling {
            *self.told.borrow_mut() = Some((answer.now.history.clone(), record));
        }
        let wants = answer.wants_revocations;
        self.on_answer(answer, open.address);
        if wants {
            let known = self.trust.revocations().now();
            if let Some(signed) = known.signed() {
                let _: Done = open.post(api::REVOCATIONS, signed, ANSWER).await?;
            }
        }
        Ok(())
    }

    fn question(&self) -> (SyncRequest, Option<Record>) {
        let record = self.record.borrow().clone();
        let since = self.cache.borrow().since.clone();
        let revocations = self.trust.revocations().now();
        let told = self.told.borrow();
        let known = match (&*told, &since) {
            (Some((history, told)), Some(Since { history: present, .. })) => {
                history == present && *told == record
            }
            _ => false,
        };
        let telling = (!known).then_some(record.clone());
        let asked = SyncRequest {
            records: None,
            instance: record.instance,
            record: telling.clone(),
            since,
            revocations: revocations.counter(),
            revocations_digest: revocations.digest(),
            messages_until: self.messages_until.get(),
            load: *self.load.borrow(),
            // The first answer tells that the broker is there; and a short certificate is to be renewed in
            // time.
            wait_seconds: match self.connected.get() {
                true => MAX_WAIT_SECONDS.min(self.seconds_until_renewal().max(1)),
                false => 0,
            },
        };
        (asked, telling)
    }

    fn on_answer(&self, mut answer: SyncAnswer, broker: SocketAddr) {
        let ahead = ahead(self.config.clock.now(), answer.time);
        self.check_clock(ahead);
        self.said_away.set(false);
        if !self.connected.replace(true) {
            self.tell(Event::Connected {
                observed: answer.observed,
                broker,
                ahead,
            });
        }
        if answer.wants_record {
            *self.told.borrow_mut() = None;
        }
        if let Some(signed) = answer.revocations.take() {
            self.on_revocations(&signed);
        }
        let changes = self.cache.borrow_mut().apply(&mut answer);
        // First: a gateway that is killed once it knows somebody shall know him at its next start.
        let few = self.cache.borrow().members.len() <= FEW;
        if few || self.kept.get().is_none_or(|kept| kept.elapsed() >= KEEP) {
            self.keep_members();
        }
        for member in changes.members {
            self.tell(Event::Member(Box::new(member)));
        }
        for site in changes.removed {
            self.tell(Event::Removed(site));
        }
        for message in answer.messages {
            // A poll that was given up may have been answered: its messages come again.
            if message.number > self.messages_until.get() {
                self.messages_until.set(message.number);
                self.tell(Event::Message(message));
            }
        }
    }

    fn on_revocations(&self, signed: &SignedRevocations) {
        match RevocationSet::verify(signed, self.trust.grid(), self.trust.authority()) {
            Ok(set) => {
                // On the disk first: they are kept for ever.
                if let Err(error) = cache::keep_revocations(&self.config.directory, signed) {
                    self.tell(Event::Trouble(error.to_string()));
                }
                if self.trust.revocations().adopt(set.clone()) {
                    self.tell(Event::Revocations(set));
                }
            }
            Err(error) => self.tell(Event::Trouble(format!("the broker's answer: {error}"))),
        }
    }

    fn check_clock(&self, ahead: i64) {
        let skewed = ahead.unsigned_abs() > SKEW_SECONDS;
        if self.skewed.replace(skewed) != skewed {
            self.tell(Event::ClockSkew { ahead });
        }
    }

    fn keep_members(&self) {
        let kept = self.cache.borrow_mut().keep();
        self.kept.set(Some(Instant::now()));
        if let Err(error) = kept {
            self.tell(Event::Trouble(error.to_string()));
        }
    }

    /// Says what is wrong, and how long to wait.
    async fn on_failure(&self, error: CallError, failures: u32) -> Duration {
        self.connected.set(false);
        self.keep_members();
        if let CallError::Trust { broker, reason } = &error
            && is_of_time(reason)
        {
            let fingerprint = self.membership.borrow().fingerprint();
            if let Ok(ahead) = clock_difference(
                broker,
                (fingerprint, self.config.proxy.as_ref()),
                &self.config.clock,
            )
            .await
            {
                self.check_clock(ahead);
            }
        }
        self.broker.set(self.broker.get() + 1);
        match error {
            CallError::Refused(refusal) if refusal.kind != ErrorKind::Busy => {
                self.check_clock(ahead(self.config.clock.now(), refusal.time));
                *self.told.borrow_mut() = None;
                let (kind, message) = (refusal.kind, refusal.message);
                if kind == ErrorKind::BadRequest {
                    // Whatever this broker does not understand of the history, it shall tell all anew.
                    self.cache.borrow_mut().begin_anew();
                }
                self.tell(Event::Refused { kind, message });
                self.config.refused
            }
            other => {
                if !self.said_away.replace(true) {
                    self.tell(Event::Away(other.to_string()));
                }
                backoff(&self.config, failures)
            }
        }
    }

    async fn connect(&self) -> Result<Connection, CallError> {
        let (broker, config) = {
            let membership = self.membership.borrow();
            let brokers = &membership.brokers;
            let broker = brokers
                .get(self.broker.get() % brokers.len().max(1))
                .cloned()
                .unwrap_or_default();
            (
                broker,
                tls::client_config(&membership.credentials, &self.trust, Expect::Broker),
            )
        };
        let config = config.map_err(|error| CallError::Tls {
            broker: broker.clone(),
            reason: error.to_string(),
        })?;
        Connection::open(&broker, Arc::new(config), self.config.proxy.as_ref()).await
    }

    fn seconds_until_renewal(&self) -> u64 {
        let due = self.membership.borrow().renew_at().max(self.renew_again.get());
        due.saturating_sub(self.config.clock.now())
    }

    /// Has the certificate renewed after two thirds of its life, or when that is over; true when it was.
    async fn renew_if_due(&self) -> Result<bool, CallError> {
        let now = self.config.clock.now();
        if self.seconds_until_renewal() > 0 {
            return Ok(false);
        }
        let left = self.membership.borrow().certified.not_after.saturating_sub(now);
        let pause = match left {
            // The broker's refusal of the poll that follows says what to do.
            0 => EXPIRED_AGAIN_SECONDS,
            left => RENEW_AGAIN_SECONDS.min(left / 10).max(1),
        };
        self.renew_again.set(now.saturating_add(pause));
        let (key, request) = new_key().map_err(|error| CallError::Answer(error.to_string()))?;
        let mut connection = self.connect().await?;
        let answer: CertificateAnswer = connection
            .post(api::RENEW, &RenewRequest { request }, ANSWER)
            .await?;
        let renewed = self.membership.borrow().renewed(answer, key, &self.trust);
        let renewed =
            renewed.map_err(|reason| CallError::Answer(format!("the new certificate: {reason}")))?;
        if let Err(error) = renewed.save(&self.config.directory) {
            self.tell(Event::Trouble(error.to_string()));
        }
        let (credentials, certified) = (renewed.credentials.clone(), renewed.certified.clone());
        *self.membership.borrow_mut() = renewed;
        self.renew_again.set(0);
        self.tell(Event::Renewed(credentials, certified));
        Ok(true)
    }

    /// Carries out commands, one after the other: they are few, and their order means something.
    async fn obey(&self, mut commands: mpsc::Receiver<Command>) {
        let mut connection: Option<Connection> = None;
        while let Some(command) = commands.recv().await {
            let what = match &command {
                Command::Send(message) => format!("send {} to {}", message.kind, message.to),
                Command::Reach(_) => "ask to be dialled".to_owned(),
                Command::JobStarted(job) => format!("register job {}", job.name),
                Command::JobEnded(_) => "end a job".to_owned(),
                Command::ListJobs => "list jobs".to_owned(),
                Command::Relays => "list relays".to_owned(),
            };
            if let Err(error) = self.carry_out(&mut connection, &command).await {
                connection = None;
                let reason = error.to_string();
                self.tell(Event::Failed { what, reason });
            }
        }
    }

    async fn carry_out(
        &self,
        connection: &mut Option<Connection>,
        command: &Command,
    ) -> Result<(), CallError> {
        let kept = connection.take().filter(Connection::is_open);
        let again = kept.is_some();
        let open = match kept {
            Some(kept) => connection.insert(kept),
            None => connection.insert(self.connect().await?),
        };
        match self.ask(open, command).await {
            // The broker ends a connection that is idle, and this one may be of an old certificate; all
            // commands may be given twice.
            Err(
                CallError::Lost { .. }
                | CallError::Refused(ErrorAnswer {
                    kind: ErrorKind::Expired,
                    ..
                }),
            ) if again => {
                let open = connection.insert(self.connect().await?);
                self.ask(open, command).await
            }
            other => other,
        }
    }

    async fn ask(&self, open: &mut Connection, command: &Command) -> Result<(), CallError> {
        match command {
            Command::Send(message) => {
                let _: Done = open.post(api::SEND, message, ANSWER).await?;
            }
            Command::Reach(addresses) => {
                let asked = ReachRequest {
                    addresses: addresses.clone(),
                };
                let answer: ReachAnswer = open.post(api::REACH, &asked, ANSWER).await?;
                self.tell(Event::Reached(answer.results));
            }
            Command::JobStarted(job) => self.jobs(open, &JobsRequest::Start(job.clone()), false).await?,
            Command::JobEnded(id) => {
                self.jobs(open, &JobsRequest::End { id: id.clone() }, false)
                    .await?
            }
            Command::ListJobs => self.jobs(open, &JobsRequest::List {}, true).await?,
            Command::Relays => {
                let answer: RelaysAnswer = open.get(api::RELAYS).await?;
                self.tell(Event::Relays(answer.relays));
            }
        }
        Ok(())
    }

    async fn jobs(&self, open: &mut Connection, asked: &JobsRequest, tell: bool) -> Result<(), CallError> {
        let answer: JobsAnswer = open.post(api::JOBS, asked, ANSWER).await?;
        if tell {
            self.tell(Event::Jobs(answer.jobs));
        }
        Ok(())
    }
}

/// The pause after a failure: it doubles each time. Chance takes between half of it and all, so that gateways
/// that lost the broker together do not come back together.
fn backoff(config: &ClientConfig, failures: u32) -> Duration {
    let doubled = config
        .retry
        .start()
        .saturating_mul(1 << failures.saturating_sub(1).min(16));
    let longest = doubled.min(*config.retry.end());
    let mut random = [0; 2];
    // Without random numbers all of it.
    let share = match getrandom::fill(&mut random) {
        Ok(()) => 0.5 + f64::from(u16::from_le_bytes(random)) / 131_072.0,
        Err(_) => 1.0,
    };
    longest.mul_f64(share)
}
