//! The session's thread: holds a line to each broker of the grid, and shares among them what concerns the
//! gateway as a whole.
//!
//! ```text
//! gateway's loop <── events ── [session] ── line ── long poll ──> broker 1
//!                ── commands ─>    |     ── line ── long poll ──> broker 2
//!                                  records, certificate, members: what any of them says
//! ```
//! One of the lines that are up is the first: it serves as "the broker" when the gateway asks for something
//! that any one broker can answer. In a grid of one broker there is one line.

use super::cache::{self, BrokerKey, Cache, Changes};
use super::heard::Heard;
use super::membership::Membership;
use super::{BrokerState, ClientConfig, Command, Event};
use crate::api::{JobStart, Member, Message, Record};
use crate::records::{Records, SignedRecord, Standing as BrokerStanding, Statement};
use crate::tls::Trust;
use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::mpsc::SyncSender;
use std::time::{Duration, Instant};
use tokio::sync::{mpsc, watch};

/// A larger difference of clocks is reported. It is small enough that nothing fails yet: a certificate begins
/// five minutes before it is made.
pub const SKEW_SECONDS: u64 = 60;

/// Time between two writes of the members: a busy grid would otherwise write megabytes at each change.
const KEEP: Duration = Duration::from_secs(5);

/// A list of at most this many members is written at once.
const FEW: usize = 64;

pub(super) struct Parts {
    pub(super) config: ClientConfig,
    pub(super) trust: Trust,
    pub(super) cache: Cache,
    pub(super) events: SyncSender<Event>,
    pub(super) record: watch::Receiver<Record>,
    pub(super) load: watch::Receiver<u32>,
    pub(super) states: watch::Sender<Vec<BrokerState>>,
}

/// Whether a broker answers.
pub(super) enum Standing {
    /// Nobody has answered or failed yet.
    Trying,
    /// The broker answers.
    Up {
        observed: SocketAddr,
        broker: SocketAddr,
        ahead: i64,
    },
    /// The broker does not answer, for this reason.
    Down(String),
}

/// What the session knows about a line.
struct Known {
    addresses: Vec<String>,
    standing: Standing,
    orders: mpsc::Sender<Command>,
}

impl Known {
    fn is_up(&self) -> bool {
        matches!(self.standing, Standing::Up { .. })
    }

    /// Queues a command; false if too many wait.
    fn order(&self, command: Command) -> bool {
        self.orders.try_send(command).is_ok()
    }
}

/// The whole state of the thread.
pub(super) struct Session {
    pub(super) config: ClientConfig,
    pub(super) trust: Trust,
    pub(super) membership: RefCell<Membership>,
    /// Rises when the certificate is renewed: connections that show the old one are then useless.
    pub(super) renewals: Cell<u64>,
    pub(super) renew_again: Cell<u64>,
    pub(super) is_renewing: Cell<bool>,
    pub(super) cache: RefCell<Cache>,
    events: SyncSender<Event>,
    pub(super) record: watch::Receiver<Record>,
    pub(super) load: watch::Receiver<u32>,
    lines: RefCell<BTreeMap<BrokerKey, Known>>,
    /// What the gateway may see of the lines.
    states: watch::Sender<Vec<BrokerState>>,
    /// The line that serves as the broker, if one is up.
    first: Cell<Option<BrokerKey>>,
    said_away: Cell<bool>,
    skewed: Cell<bool>,
    kept: Cell<Option<Instant>>,
    /// Whether members could not be written, and the gateway was told so.
    said_unkept: Cell<bool>,
    heard: RefCell<Heard>,
    /// Jobs that run here, for brokers that come back.
    pub(super) jobs: RefCell<BTreeMap<String, JobStart>>,
    /// Rises with the records.
    pub(super) known: watch::Sender<u64>,
}

impl Session {
    pub(super) fn new(parts: Parts) -> Session {
        Session {
            membership: RefCell::new(parts.config.membership.clone()),
            config: parts.config,
            trust: parts.trust,
            renewals: Cell::new(0),
            renew_again: Cell::new(0),
            is_renewing: Cell::new(false),
            cache: RefCell::new(parts.cache),
            events: parts.events,
            record: parts.record,
            load: parts.load,
            lines: RefCell::default(),
            states: parts.states,
            first: Cell::new(None),
            said_away: Cell::new(false),
            skewed: Cell::new(false),
            kept: Cell::new(None),
            said_unkept: Cell::new(false),
            heard: RefCell::default(),
            jobs: RefCell::default(),
            known: watch::Sender::new(0),
        }
    }

    /// Reports what was known at an earlier start.
    pub(super) fn begin(&self) {
        let unread = self.cache.borrow_mut().take_trouble();
        if let Some(error) = unread {
            self.tell(Event::Trouble(format!(
                "{error}; the brokers tell everything anew"
            )));
        }
        let known: Vec<_> = self.cache.borrow().members().values().cloned().collect();
        for member in known {
            self.tell(Event::Member(Box::new(member)));
        }
    }

    /// Writes what is not written yet.
    pub(super) fn end(&self) {
        self.keep_members();
    }

    pub(super) fn tell(&self, event: Event) {
        // If nobody listens any more, the session is about to end.
        if self.events.send(event).is_ok() {
            (self.config.wake)();
        }
    }

    /// The brokers' addresses, by number; those of the membership if the grid has one broker.
    pub(super) fn wanted(&self) -> BTreeMap<BrokerKey, Vec<String>> {
        let several = self.trust.with_records(|records| {
            let serving = records
                .brokers()
                .filter(|broker| broker.standing == BrokerStanding::Serving);
            let serving = serving.map(|broker| (broker.number, broker.public.clone()));
            serving.collect::<BTreeMap<_, _>>()
        });
        if several.is_empty() {
            return BTreeMap::from([(ONLY, self.membership.borrow().brokers.clone())]);
        }
        several
    }

    /// Adds a line to a broker. The line receives the broker's commands.
    pub(super) fn add_line(&self, key: BrokerKey, addresses: Vec<String>, orders: mpsc::Sender<Command>) {
        self.cache.borrow_mut().begin(key, key == ONLY);
        let known = Known {
            addresses,
            standing: Standing::Trying,
            orders,
        };
        self.lines.borrow_mut().insert(key, known);
        self.show();
    }

    /// Removes the line to a broker that no longer serves, or serves elsewhere.
    pub(super) fn remove_line(&self, key: BrokerKey) {
        if self.lines.borrow_mut().remove(&key).is_none() {
            return;
        }
        let is_expelled = self.trust.with_records(|records| records.is_expelled(key));
        self.cache.borrow_mut().end(key, is_expelled);
        let changes = self.cache.borrow_mut().look_again(self.is_out());
        self.tell_changes(changes);
        if is_expelled {
            causeway_memory::return_free_heap();
        }
        if self.first.get() == Some(key) {
            self.first.set(None);
            self.choose_first();
        }
        self.show();
    }

    /// Lists the existing lines, with the addresses of their brokers.
    pub(super) fn lines(&self) -> BTreeMap<BrokerKey, Vec<String>> {
        let lines = self.lines.borrow();
        lines
            .iter()
            .map(|(key, line)| (*key, line.addresses.clone()))
            .collect()
    }

    /// Whether a line is up.
    pub(super) fn is_up(&self, key: BrokerKey) -> bool {
        self.lines.borrow().get(&key).is_some_and(Known::is_up)
    }

    fn set(&self, key: BrokerKey, standing: Standing) {
        if let Some(line) = self.lines.borrow_mut().get_mut(&key) {
            line.standing = standing;
        }
        self.show();
    }

    /// Whether any line is up.
    pub(super) fn is_any_up(&self) -> bool {
        self.first.get().is_some()
    }

    /// Whether the grid has several brokers.
    pub(super) fn are_several(&self) -> bool {
        !self.lines.borrow().contains_key(&ONLY)
    }

    /// Whether this line may announce this site now. A site that has no virtual addresses yet gets them from
    /// one broker, and then asks the others for the same.
    pub(super) fn may_announce(&self, key: BrokerKey) -> bool {
        let record = self.record.borrow();
        if !record.overlap_ok || !record.virtual_subnets.is_empty() {
            return true;
        }
        let lines = self.lines.borrow();
        let mut before = lines.range(..key);
        before.all(|(_, line)| matches!(line.standing, Standing::Down(_)))
    }

    /// Tells the gateway which brokers there are, and which of them answer.
    fn show(&self) {
        let states = {
            let lines = self.lines.borrow();
            let several = lines.iter().filter(|(key, _)| **key != ONLY);
            let states = several.map(|(key, line)| BrokerState {
                number: *key,
                addresses: line.addresses.clone(),
                away: match &line.standing {
                    Standing::Up { .. } => None,
                    Standing::Trying => Some("not reached yet".to_owned()),
                    Standing::Down(reason) => Some(reason.clone()),
                },
            });
            states.collect()
        };
        self.states.send_replace(states);
    }

    /// Notes that a line has an answer.
    pub(super) fn on_up(&self, key: BrokerKey, standing: Standing) {
        let was_up = self.is_up(key);
        self.set(key, standing);
        if was_up {
            return;
        }
        self.said_away.set(false);
        if self.first.get().is_none() {
            return self.choose_first();
        }
        // The gateway itself compares its jobs with the first one's.
        if let Some(line) = self.lines.borrow().get(&key) {
            // If too many wait, it is told only of those that begin from now on.
            let _ = line.order(Command::CompareJobs);
        }
    }

    /// Notes that a line is down, for this reason. Returns whether another one is up.
    pub(super) fn on_down(&self, key: BrokerKey, reason: String) -> bool {
        self.set(key, Standing::Down(reason));
        if self.first.get() == Some(key) {
            self.first.set(None);
            self.choose_first();
        }
        self.is_any_up()
    }

    /// Reports once that no broker answers.
    pub(super) fn on_all_down(&self) {
        let reasons: Option<Vec<String>> = {
            let lines = self.lines.borrow();
            let each = lines.values().map(|line| match &line.standing {
                Standing::Down(reason) => Some(reason.clone()),
                _ => None,
            });
            each.collect()
        };
        if let Some(reasons) = reasons
            && !self.said_away.replace(true)
        {
            self.tell(Event::Away(reasons.join("; ")));
        }
    }

    fn choose_first(&self) {
        let found = {
            let lines = self.lines.borrow();
            lines.iter().find_map(|(key, line)| match line.standing {
                Standing::Up {
                    observed,
                    broker,
                    ahead,
                } => Some((*key, observed, broker, ahead)),
                _ => None,
            })
        };
        let Some((key, observed, broker, ahead)) = found else {
            return;
        };
        self.first.set(Some(key));
        self.tell(Event::Connected {
            observed,
            broker,
            ahead,
        });
    }

    /// Whether this line serves as the broker; if none does, any will do.
    pub(super) fn is_first(&self, key: BrokerKey) -> bool {
        self.first.get().is_none_or(|first| first == key)
    }

    /// Gives a command to each broker that it concerns.
    pub(super) fn share_out(&self, command: &Command) {
        match command {
            Command::JobStarted(job) => {
                self.jobs.borrow_mut().insert(job.id.clone(), job.clone());
            }
            Command::JobEnded(id) => {
                self.jobs.borrow_mut().remove(id);
            }
            Command::Bring { from, records } => {
                if let Err(error) = self.on_records(records) {
                    let (from, reason) = (from.clone(), error.to_string());
                    self.tell(Event::Forged { from, reason });
                }
                return;
            }
            _ => {}
        }
        let lines = self.lines.borrow();
        for line in self.concerned(&lines, command) {
            if !line.order(command.clone()) {
                let reason = format!("too much is asked of the broker at {}", line.addresses.join(", "));
                let what = command.to_string();
                self.tell(Event::Failed { what, reason });
            }
        }
    }

    fn concerned<'a>(&self, lines: &'a BTreeMap<BrokerKey, Known>, command: &Command) -> Vec<&'a Known> {
        let up = lines.iter().filter(|(_, line)| line.is_up());
        let cache = self.cache.borrow();
        let some: Vec<&Known> = match command {
            // The message is sent through each broker that knows the other site: nobody knows which of them
            // that site still reaches.
            Command::Send(message) => {
                let knows = up.filter(|(key, _)| cache.has(**key, &message.to));
                knows.map(|(_, line)| line).collect()
            }
            Command::JobStarted(_) | Command::JobEnded(_) => up.map(|(_, line)| line).collect(),
            _ => Vec::new(),
        };
        if some.is_empty() {
            let first = self.first.get().and_then(|first| lines.get(&first));
            return first.or_else(|| lines.values().next()).into_iter().collect();
        }
        some
    }

    /// Takes a message, unless another broker has already delivered it.
    pub(super) fn on_message(&self, key: BrokerKey, message: Message) {
        let is_new = self.heard.borrow_mut().is_new(key, &message, Instant::now());
        if is_new {
            self.tell(Event::Message(message));
        }
    }

    /// Takes records that have waited for their time because they named one that was far ahead.
    pub(super) fn take_due_records(&self) {
        if self.trust.has_due() {
            // Their signatures were right.
            let _ = self.on_records(&[]);
        }
    }

    /// Takes records that a broker has sent. They go to the disk first, because they are kept for ever.
    ///
    /// # Errors
    /// A record is not signed as it must be.
    pub(super) fn on_records(&self, records: &[SignedRecord]) -> Result<(), crate::records::RecordError> {
        let mut grown: Records = self.trust.records();
        let mut news = self.trust.union_due(&mut grown);
        news.extend(self.trust.union(&mut grown, records)?.news);
        if news.is_empty() {
            return Ok(());
        }
        if let Err(error) = cache::keep_records(&self.config.directory, &grown) {
            self.tell(Event::Trouble(error.to_string()));
        }
        self.trust.set_records(grown);
        let changes = self.cache.borrow_mut().look_again(self.is_out());
        self.tell_changes(changes);
        self.tell(Event::Revocations(self.trust.revocations().now()));
        let passed_on =
            |(statement, _): &(Statement, SignedRecord)| !matches!(statement, Statement::Admitted(_));
        let passed_on: Vec<SignedRecord> = {
            let news = news.into_iter().filter(passed_on);
            news.map(|(_, record)| record).collect()
        };
        if !passed_on.is_empty() {
            self.tell(Event::Records(passed_on));
        }
        self.known.send_modify(|version| *version += 1);
        Ok(())
    }

    /// Judges whether a site is out by what the brokers know together, no matter which of them still lists
    /// it.
    pub(super) fn is_out(&self) -> impl Fn(&Member) -> bool + use<> {
        let records = self.trust.records();
        let listed = self.trust.revocations().now();
        move |member| {
            let site = member.site.as_str();
            let is_revoked = records.revoked_until(site).is_some() && records.holder(site).is_none();
            let is_listed = listed
                .before(site)
                .is_some_and(|before| member.not_before <= before);
            !records.is_empty() && (is_revoked || is_listed && records.holder(site).is_none())
        }
    }

    pub(super) fn tell_changes(&self, changes: Changes) {
        // The members are written first, so that a gateway that is killed after it has learnt about a site
        // knows it at its next start.
        let few = self.cache.borrow().members().len() <= FEW;
        if few || self.kept.get().is_none_or(|kept| kept.elapsed() >= KEEP) {
            self.keep_members();
        }
        for member in changes.members {
            self.tell(Event::Member(Box::new(member)));
        }
        for site in changes.removed {
            self.tell(Event::Removed(site));
        }
    }

    pub(super) fn check_clock(&self, key: BrokerKey, ahead: i64) {
        let skewed = ahead.unsigned_abs() > SKEW_SECONDS;
        if self.is_first(key) && self.skewed.replace(skewed) != skewed {
            self.tell(Event::ClockSkew { ahead });
        }
    }

    pub(super) fn keep_members(&self) {
        let kept = self.cache.borrow_mut().keep();
        self.kept.set(Some(Instant::now()));
        let was_said = self.said_unkept.replace(kept.is_err());
        // A disk stays full for a while, and members change often.
        if let Err(error) = kept
            && !was_said
        {
            self.tell(Event::Trouble(error.to_string()));
        }
    }
}

/// The key of the only broker.
const ONLY: BrokerKey = 0;
