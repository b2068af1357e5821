//! A line to one broker: polls it for ever, exchanges records with it, and carries out commands beside that.

use super::cache::BrokerKey;
use super::http::{ANSWER, CallError, Connection};
use super::membership::{ahead, clock_difference, is_of_time};
use super::session::{Session, Standing};
use super::{ClientConfig, Command, Event};
use crate::api::{
    self, Checked, Done, ErrorAnswer, ErrorKind, MAX_WAIT_SECONDS, Record, Since, SyncAnswer, SyncRequest,
};
use crate::exchange::Exchange;
use crate::revocation::{RevocationSet, SignedRevocations};
use crate::tls::{self, Expect};
use std::cell::{Cell, RefCell};
use std::net::SocketAddr;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::mpsc;
use tokio::time::sleep;

/// Most commands that wait for one broker; more are refused, so that a slow one holds up no other.
const MAX_ORDERS: usize = 256;

/// Most exchanges of records after one answer, each with up to a thousand records.
const MAX_EXCHANGES: usize = 64;

/// The state of one line.
pub(super) struct Line {
    pub(super) key: BrokerKey,
    /// Where the broker is found, `HOST:PORT`.
    pub(super) addresses: Vec<String>,
    /// Which of the addresses answered last.
    current: Cell<usize>,
    /// What the broker was told, and in which of its histories.
    told: RefCell<Option<(String, Record)>>,
    messages_until: Cell<u64>,
    exchange: RefCell<Exchange>,
    /// Whether the broker has said that it has records.
    has_records: Cell<bool>,
    orders: RefCell<Option<mpsc::Receiver<Command>>>,
}

impl Line {
    /// Makes a line, and the channel that gives it commands.
    pub(super) fn new(key: BrokerKey, addresses: Vec<String>) -> (Line, mpsc::Sender<Command>) {
        let (orders, ordered) = mpsc::channel(MAX_ORDERS);
        let line = Line {
            key,
            addresses,
            current: Cell::new(0),
            told: RefCell::new(None),
            messages_until: Cell::new(0),
            exchange: RefCell::default(),
            has_records: Cell::new(false),
            orders: RefCell::new(Some(ordered)),
        };
        (line, orders)
    }

    pub(super) async fn run(self, session: Rc<Session>) {
        let Some(orders) = self.orders.take() else {
            return;
        };
        tokio::join!(self.poll(&session), self.obey(&session, orders));
    }

    async fn poll(&self, session: &Session) {
        let mut record = session.record.clone();
        let mut known = session.known.subscribe();
        let mut connection = None;
        let mut failures = 0;
        loop {
            if !session.may_announce(self.key) {
                tokio::select! {
                    changed = record.changed() => if changed.is_err() { return },
                    () = sleep(LOOK) => {}
                }
                continue;
            }
            let lacks_something = async {
                while known.changed().await.is_ok() {
                    let exchange = self.exchange.borrow();
                    if session.trust.with_records(|records| exchange.is_behind(records)) {
                        return;
                    }
                }
                std::future::pending().await
            };
            let outcome = tokio::select! {
                outcome = self.round(session, &mut connection) => outcome,
                // The pending request contains an old record: the connection is useless now.
                changed = record.changed() => {
                    connection = None;
                    match changed {
                        Ok(()) => continue,
                        Err(_) => return,
                    }
                }
                // Another broker has reported something that this one must hear at once.
                () = lacks_something => {
                    connection = None;
                    continue;
                }
            };
            let Err(error) = outcome else {
                failures = 0;
                continue;
            };
            connection = None;
            failures += 1;
            let pause = self.on_failure(session, error, failures).await;
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

    /// Asks once and takes the answer.
    async fn round(&self, session: &Session, connection: &mut Option<Connection>) -> Result<(), CallError> {
        session.renew_if_due(self).await?;
        // The broker checks the connection's certificate at each request.
        let renewals = session.renewals.get();
        let kept = connection.take().filter(Connection::is_open);
        let open = match kept.filter(|kept| kept.renewals == renewals) {
            Some(open) => connection.insert(open),
            None => connection.insert(self.connect(session).await?),
        };
        let (asked, telling) = self.question(session);
        let deadline = ANSWER + Duration::from_secs(asked.wait_seconds);
        let answer: SyncAnswer = open.post(api::SYNC, &asked, deadline).await?;
        answer.check().map_err(|why| CallError::Answer(why.to_string()))?;
        if let Some(record) = telling {
            *self.told.borrow_mut() = Some((answer.now.history.clone(), record));
        }
        let wants = answer.wants_revocations;
        session.take_due_records();
        // This is done before the rest is believed: a gateway that is told that a site is gone then knows
        // already that it was revoked, and does not let it in again.
        if let Some(records) = answer.records {
            self.has_records.set(true);
            self.exchange_records(session, open, (&answer.now.history, records))
                .await?;
        }
        self.on_answer(session, answer, open.address)?;
        if wants {
            let known = session.trust.revocations().now();
            if let Some(signed) = known.signed() {
                let _: Done = open.post(api::REVOCATIONS, signed, ANSWER).await?;
            }
        }
        Ok(())
    }

    /// Fetches the records that this gateway lacks, and sends those that the broker lacks.
    async fn exchange_records(
        &self,
        session: &Session,
        open: &mut Connection,
        (history, records): (&str, u64),
    ) -> Result<(), CallError> {
        let due = {
            let exchange = self.exchange.borrow();
            exchange.lacks(history, records) || session.trust.with_records(|own| exchange.is_behind(own))
        };
        if !due {
            return Ok(());
        }
        for _ in 0..MAX_EXCHANGES {
            let asked = session
                .trust
                .with_records(|own| self.exchange.borrow().request(own));
            let answer = open.exchange(&asked).await?;
            answer.check().map_err(|why| CallError::Answer(why.to_string()))?;
            session
                .on_records(&answer.records)
                .map_err(|error| CallError::Answer(error.to_string()))?;
            let mut exchange = self.exchange.borrow_mut();
            if session
                .trust
                .with_records(|own| exchange.on_answer(&asked, &answer, own))
            {
                break;
            }
        }
        Ok(())
    }

    fn question(&self, session: &Session) -> (SyncRequest, Option<Record>) {
        let record = session.record.borrow().clone();
        let since = session.cache.borrow().since(self.key).cloned();
        let revocations = session.trust.revocations().now();
        let told = self.told.borrow();
        let known = match (&*told, &since) {
            (Some((history, told)), Some(Since { history: present, .. })) => {
                history == present && *told == record
            }
            _ => false,
        };
        let telling = (!known).then_some(record.clone());
        let is_up = session.is_up(self.key);
        let asked = SyncRequest {
            instance: record.instance,
            record: telling.clone(),
            since,
            revocations: revocations.counter(),
            revocations_digest: revocations.digest(),
            messages_until: self.messages_until.get(),
            load: *session.load.borrow(),
            // The first answer shows that the broker is reachable; and a short-lived certificate must be
            // renewed in time.
            wait_seconds: match is_up {
                true => MAX_WAIT_SECONDS.min(session.seconds_until_renewal().max(1)),
                false => 0,
            },
            records: self.has_records.get().then(|| self.exchange.borrow().position()),
        };
        (asked, telling)
    }

    fn on_answer(
        &self,
        session: &Session,
        mut answer: SyncAnswer,
        broker: SocketAddr,
    ) -> Result<(), CallError> {
        let ahead = ahead(session.config.clock.now(), answer.time);
        session.check_clock(self.key, ahead);
        let observed = answer.observed;
        let up = Standing::Up {
            observed,
            broker,
            ahead,
        };
        session.on_up(self.key, up);
        if answer.wants_record {
            *self.told.borrow_mut() = None;
        }
        if let Some(signed) = answer.revocations.take() {
            on_revocations(session, &signed);
        }
        let is_out = session.is_out();
        let applied = session.cache.borrow_mut().apply(self.key, &mut answer, &is_out);
        match applied {
            Ok(changes) => session.tell_changes(changes),
            Err(error) => {
                let changes = session.cache.borrow_mut().look_again(is_out);
                session.tell_changes(changes);
                return Err(CallError::Answer(error.to_string()));
            }
        }
        for message in answer.messages {
            // A poll that was given up may have been answered: its messages arrive again.
            if message.number > self.messages_until.get() {
                self.messages_until.set(message.number);
                session.on_message(self.key, message);
            }
        }
        Ok(())
    }

    /// Reports what is wrong; returns how long to wait.
    async fn on_failure(&self, session: &Session, error: CallError, failures: u32) -> Duration {
        session.keep_members();
        if let CallError::Trust { broker, reason } = &error
            && is_of_time(reason)
        {
            let fingerprint = session.membership.borrow().fingerprint();
            let proxy = session.config.proxy.as_ref();
            let difference = clock_difference(broker, (fingerprint, proxy), &session.config.clock);
            if let Ok(ahead) = difference.await {
                session.check_clock(self.key, ahead);
            }
        }
        self.current.set(self.current.get() + 1);
        let was_up = session.is_up(self.key);
        let others_serve = session.on_down(self.key, error.to_string());
        match error {
            CallError::Refused(refusal) if refusal.kind != ErrorKind::Busy => {
                session.check_clock(self.key, ahead(session.config.clock.now(), refusal.time));
                self.on_refusal(session, refusal, others_serve);
                session.config.refused
            }
            other => {
                if others_serve && was_up {
                    session.tell(Event::Trouble(format!("{other}; other brokers answer")));
                }
                session.on_all_down();
                backoff(&session.config, failures)
            }
        }
    }

    fn on_refusal(
        &self,
        session: &Session,
        ErrorAnswer { kind, message, .. }: ErrorAnswer,
        others_serve: bool,
    ) {
        *self.told.borrow_mut() = None;
        if kind == ErrorKind::BadRequest {
            // Whatever this broker does not understand about the history, it must send everything anew.
            session.cache.borrow_mut().begin_anew(self.key);
            *self.exchange.borrow_mut() = Exchange::default();
            self.has_records.set(false);
        }
        // A broker that puts this site out speaks for all, because revocations spread.
        if others_serve && kind != ErrorKind::Revoked {
            let key = self.key;
            return session.tell(Event::Trouble(format!(
                "broker {key} refuses: {message}; other brokers answer"
            )));
        }
        session.tell(Event::Refused { kind, message });
    }

    pub(super) async fn connect(&self, session: &Session) -> Result<Connection, CallError> {
        let broker = self
            .addresses
            .get(self.current.get() % self.addresses.len().max(1))
            .cloned()
            .unwrap_or_default();
        let config = {
            let membership = session.membership.borrow();
            tls::client_config(&membership.credentials, &session.trust, Expect::Broker)
        };
        let config = config.map_err(|error| CallError::Tls {
            broker: broker.clone(),
            reason: error.to_string(),
        })?;
        let renewals = session.renewals.get();
        let proxy = session.config.proxy.as_ref();
        let mut opened = Connection::open(&broker, Arc::new(config), proxy).await?;
        opened.renewals = renewals;
        Ok(opened)
    }
}

fn on_revocations(session: &Session, signed: &SignedRevocations) {
    match RevocationSet::verify(signed, session.trust.grid(), session.trust.authority()) {
        Ok(set) => {
            // The revocations are written to the disk first: they are kept for ever.
            if let Err(error) = super::cache::keep_revocations(&session.config.directory, signed) {
                session.tell(Event::Trouble(error.to_string()));
            }
            if session.trust.revocations().adopt(set.clone()) {
                session.tell(Event::Revocations(set));
            }
        }
        Err(error) => session.tell(Event::Trouble(format!("the broker's answer: {error}"))),
    }
}

/// How often a line checks whether another line has obtained virtual addresses for this site.
const LOOK: Duration = Duration::from_millis(200);

/// The pause after a failure, which doubles each time. Only a random part of it, half at least, is waited, so
/// that gateways that lost the broker together do not come back together.
fn backoff(config: &ClientConfig, failures: u32) -> Duration {
    let doubled = config
        .retry
        .start()
        .saturating_mul(1 << failures.saturating_sub(1).min(16));
    let longest = doubled.min(*config.retry.end());
    let mut random = [0; 2];
    // Without random numbers, the whole time is waited.
    let share = match getrandom::fill(&mut random) {
        Ok(()) => 0.5 + f64::from(u16::from_le_bytes(random)) / 131_072.0,
        Err(_) => 1.0,
    };
    longest.mul_f64(share)
}
