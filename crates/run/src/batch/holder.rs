//! `causeway holder`: gets an allocation at its site for a run, holds it, and has it given back when the
//! input, which is the run's connection, ends. A gateway starts it; `causeway run` is at the other end.

use super::commands::{Batch, NAME};
use super::estimate::now;
use super::intent::Intent;
use super::listener::{Heard, Secret, accept, random, script, spawn};
use super::release;
use super::spending::Spending;
use causeway_batch::budget::Taken;
use causeway_batch::word::{FromHolder, HeldNode, Request, ToHolder, check_options};
use causeway_control::{self as control, NodeInfo};
use causeway_host::say;
use causeway_remote::frame::Frame;
use causeway_remote::parent;
use std::fs::File;
use std::io::{self, PipeWriter, Write};
use std::net::{IpAddr, SocketAddr, TcpListener};
use std::os::fd::FromRawFd;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::time::{Duration, Instant, SystemTime};

/// The pauses between polls, the first and the longest. An allocation's first node reports its start; polls
/// show why an allocation waits, and whether it is refused or lost. Sites ask users to poll rarely.
const FIRST_LOOK: Duration = Duration::from_secs(2);
const LOOK_SELDOM: Duration = Duration::from_secs(60);

/// How long an allocation's first node may take to answer, and may be silent.
const ANSWERS_WITHIN: Duration = Duration::from_secs(60);

/// Most events that may wait while a command runs. Whoever sends another one waits, too.
const MOST_EVENTS: usize = 8;

/// How many polls in a row must not list the allocation for it to count as lost.
const MOST_ABSENT: u32 = 3;

/// See the module.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// Where the gateway serves commands.
    #[arg(long)]
    control: PathBuf,
    #[command(flatten)]
    batch: Batch,
    /// Where nodes of the site reach this host.
    #[arg(long)]
    listen: IpAddr,
    /// The directory in which intents lie.
    #[arg(long)]
    intents: PathBuf,
    /// Words for the batch system, of the site's own.
    #[arg(long = "option", allow_hyphen_values = true)]
    options: Vec<String>,
    /// Options that a run may choose.
    #[arg(long = "allow")]
    allowed: Vec<String>,
    /// Most processes of an allocation.
    #[arg(long)]
    max_ranks: Option<u32>,
    /// Most minutes of an allocation.
    #[arg(long)]
    max_minutes: Option<u32>,
    #[command(flatten)]
    spending: Spending,
}

/// An event to handle.
enum Event {
    Word(ToHolder),
    /// The run, or the gateway, has gone.
    Ended,
    /// The allocation's first node has connected.
    Begun,
    /// The connection of the allocation's first node has ended.
    Silent,
}

/// Runs until its input ends.
pub fn main(args: &Args) -> ExitCode {
    super::unblock_signals();
    // SAFETY: descriptors 0 and 1 are open (std sees to it), and only these two owners use them.
    let (input, output) = unsafe { (File::from_raw_fd(0), File::from_raw_fd(1)) };
    let (sender, events) = sync_channel(MOST_EVENTS);
    match Holder::begin(args, input, output, &sender) {
        Ok(mut holder) => {
            holder.run(&events);
            holder.charge();
            ExitCode::SUCCESS
        }
        Err(error) => {
            say::error(format_args!("causeway holder: {error}"));
            ExitCode::FAILURE
        }
    }
}

/// What was requested from the batch system.
struct Asked {
    name: String,
    /// The pipe whose closing has the allocation given back.
    release: PipeWriter,
    /// The allocation's id, once the batch system has answered.
    id: Option<String>,
}

struct Holder<'a> {
    args: &'a Args,
    output: File,
    listener: SocketAddr,
    secret: Secret,
    request: Option<Request>,
    asked: Option<Asked>,
    is_held: bool,
    /// What the allocation was charged.
    taken: Option<Taken>,
    /// Since when the allocation is known to be running, whether or not its nodes are known.
    runs_since: Option<Instant>,
    /// Whether the allocation was requested for a later start.
    is_delayed: bool,
    /// When the allocation must be begun, if it does not begin by itself.
    begins_at: Option<Instant>,
    /// Why the allocation's nodes are not known yet, although the first node has answered.
    unknown: Option<String>,
    /// How many polls in a row did not list the allocation.
    absent: u32,
    /// The number of connections from the first node: a new one may come before the old one has ended.
    connections: u32,
    /// Since when an answer from the first node is due.
    awaited_since: Option<Instant>,
    /// Whether the run was told what the batch system has.
    has_offered: bool,
    /// Whether the run was told that it cannot have the allocation; it is told nothing more.
    has_failed: bool,
}

impl<'a> Holder<'a> {
    fn begin(
        args: &'a Args,
        input: File,
        output: File,
        events: &SyncSender<Event>,
    ) -> io::Result<Holder<'a>> {
        let listener = TcpListener::bind((args.listen, 0))?;
        let own = listener.local_addr()?;
        let secret = Secret::new()?;
        let sender = events.clone();
        parent::on_end(move || drop(sender.send(Event::Ended)))?;
        let sender = events.clone();
        spawn("input", move || read(input, &sender))?;
        let (sender, wanted) = (events.clone(), secret.clone());
        let hear = move |heard| {
            let _ = sender.send(match heard {
                Heard::Begun => Event::Begun,
                Heard::Silent => Event::Silent,
            });
        };
        spawn("listener", move || accept(&listener, &wanted, hear))?;
        Ok(Holder {
            args,
            output,
            listener: own,
            secret,
            request: None,
            asked: None,
            is_held: false,
            taken: None,
            runs_since: None,
            is_delayed: false,
            begins_at: None,
            unknown: None,
            absent: 0,
            connections: 0,
            awaited_since: None,
            has_offered: false,
            has_failed: false,
        })
    }

    fn run(&mut self, events: &Receiver<Event>) {
        // Only after this frame does the run treat what it reads as coming from a started process.
        self.send(&Frame::Hello);
        let mut pause = FIRST_LOOK;
        loop {
            let begins = self
                .begins_at
                .map(|at| at.saturating_duration_since(Instant::now()));
            match events.recv_timeout(begins.map_or(pause, |begins| begins.min(pause))) {
                Ok(Event::Ended) | Err(RecvTimeoutError::Disconnected) => return,
                Ok(_) if self.has_failed => {}
                Ok(Event::Word(ToHolder::Hasten)) => self.hasten(),
                Ok(Event::Word(ToHolder::Offer)) => self.offer(),
                // One request per holder: with a second one, it would lose the first.
                Ok(Event::Word(_)) if self.asked.is_some() => {}
                Ok(Event::Word(ToHolder::Ask(_))) if self.request.is_some() => {}
                Ok(Event::Word(ToHolder::Ask(request))) => self.ask(request),
                Ok(Event::Word(ToHolder::Submit { after_seconds })) => self.submit(after_seconds),
                Ok(Event::Begun) => self.begun(),
                Ok(Event::Silent) => {
                    self.connections = self.connections.saturating_sub(1);
                    if self.connections == 0 {
                        self.awaited_since = Some(Instant::now());
                        pause = FIRST_LOOK;
                        self.look();
                    }
                }
                Err(RecvTimeoutError::Timeout) if begins.is_some_and(|begins| begins <= pause) => {
                    self.hasten()
                }
                Err(RecvTimeoutError::Timeout) => {
                    self.look();
                    // The answer of an allocation that runs, or has fallen silent, is due soon.
                    let is_awaited = self.awaited_since.is_some();
                    pause = if is_awaited { FIRST_LOOK } else { pause * 3 / 2 }.min(LOOK_SELDOM);
                }
            }
        }
    }

    fn ask(&mut self, request: Request) {
        if let Err(why) = self.judge(&request) {
            return self.fail(why);
        }
        match self.args.batch.estimate(&request, &self.args.options) {
            Ok(after) => {
                self.request = Some(request);
                self.tell(FromHolder::Estimate(after));
            }
            Err(why) => self.fail(why),
        }
    }

    /// Tells the run what the batch system has, but only once: each query runs under this site's account.
    fn offer(&mut self) {
        if std::mem::replace(&mut self.has_offered, true) {
            return;
        }
        match self.args.batch.offer() {
            Ok(offer) => {
                for piece in offer.pieces(now()) {
                    self.tell(FromHolder::Offer(piece));
                }
            }
            Err(why) => self.fail(why),
        }
    }

    fn judge(&self, request: &Request) -> Result<(), String> {
        let above = |what: &str, asked: u32, most: Option<u32>| match most {
            Some(most) if asked > most => Err(format!(
                "{asked} {what} are more than max_{what} in [batch] allows, {most}"
            )),
            _ => Ok(()),
        };
        above("ranks", request.ranks, self.args.max_ranks)?;
        above("minutes", request.minutes, self.args.max_minutes)?;
        if request.ranks == 0 || request.minutes == 0 {
            return Err("an allocation needs ranks and minutes".to_owned());
        }
        check_options(&request.options, &self.args.allowed)
    }

    fn submit(&mut self, after_seconds: u64) {
        let Some(request) = self.request.take() else {
            return;
        };
        self.is_delayed = after_seconds > 0;
        if self.is_delayed && !self.args.batch.system.begins_by_itself() {
            self.begins_at = Instant::now().checked_add(Duration::from_secs(after_seconds));
        }
        if let Err(why) = self.try_submit(&request, after_seconds) {
            self.fail(why);
        }
    }

    /// Lets the request begin now. If the batch system refuses, it begins at the time for which it was
    /// requested.
    fn hasten(&mut self) {
        self.begins_at = None;
        // Only once: each query to the batch system runs under this site's account.
        if !std::mem::take(&mut self.is_delayed) {
            return;
        }
        let Some(id) = self.asked.as_ref().and_then(|asked| asked.id.as_ref()) else {
            return;
        };
        if self.is_held {
            return;
        }
        let system = self.args.batch.system;
        let hastened = self.args.batch.run(&system.hasten_words(id), "");
        // Without another attempt, the request would wait for ever.
        if hastened.is_err() && !system.begins_by_itself() {
            self.is_delayed = true;
            self.begins_at = Some(Instant::now() + FIRST_LOOK);
        }
    }

    /// Charges what an allocation has used. If this process is killed, all that was requested stays charged.
    fn charge(&mut self) {
        if let Some(taken) = self.taken.take() {
            let ran = self.runs_since.map_or(0, |since| since.elapsed().as_secs());
            self.args.spending.give_back(&taken, ran);
        }
    }

    fn try_submit(&mut self, request: &Request, after_seconds: u64) -> Result<(), String> {
        self.taken = self.args.spending.take(request.ranks, request.minutes, now())?;
        let system = self.args.batch.system;
        let name = format!("{NAME}{}", random(8).map_err(|error| error.to_string())?);
        let (intent, lock) = Intent::write(&self.args.intents, &name, &self.args.batch).map_err(|error| {
            format!(
                "write down the request in {}: {error}",
                self.args.intents.display()
            )
        })?;
        // This comes before the request: however this process ends, the release process then gives the
        // allocation back.
        let release = release::start(&intent, lock).map_err(|error| format!("start a process: {error}"))?;
        let start = (after_seconds, SystemTime::now());
        let words = system.submit_words(&name, request, start, &self.args.options);
        let asked = self.asked.insert(Asked {
            name,
            release,
            id: None,
        });
        let script = script(self.listener, &self.secret).map_err(|error| error.to_string())?;
        let said = self.args.batch.run(&words, &script)?;
        let id = system.submitted(&said.output);
        asked.id = Some(id.ok_or_else(|| format!("its answer is not understood: {}", said.output.trim()))?);
        let _ = asked.release.write_all(release::ANSWERED);
        self.look();
        Ok(())
    }

    /// Polls the state of the allocation. A poll that fails changes nothing.
    fn look(&mut self) {
        let Some(Asked {
            name, id: Some(id), ..
        }) = &self.asked
        else {
            return;
        };
        let system = self.args.batch.system;
        let Ok(said) = self.args.batch.run(&system.list_words(), "") else {
            return;
        };
        let listed = system.listed(&said.output);
        let (name, id) = (name.clone(), id.clone());
        let own = listed
            .into_iter()
            .find(|listed| listed.name == name && listed.id == id);
        let Some(own) = own else {
            self.absent += 1;
            if self.absent >= MOST_ABSENT {
                self.fail(format!("allocation {id} is listed no more"));
            }
            return;
        };
        self.absent = 0;
        own.runs()
            .then(|| self.runs_since.get_or_insert_with(Instant::now));
        if self.unknown.is_some() && own.runs() {
            self.find_nodes(&id);
        }
        let late = self
            .awaited_since
            .is_some_and(|since| since.elapsed() > ANSWERS_WITHIN);
        match () {
            () if own.has_ended() => self.fail(format!("allocation {} is over: {}", own.id, own.word)),
            () if self.is_held && !own.runs() => {
                self.fail(format!("allocation {} has stopped: it is {}", own.id, own.word));
            }
            () if late && self.unknown.is_some() => {
                let why = self.unknown.take().unwrap_or_default();
                self.fail(why);
            }
            () if late => self.fail(format!(
                "the first node of allocation {} did not answer within {ANSWERS_WITHIN:?}: a firewall may keep it from {}",
                own.id, self.listener
            )),
            () if own.runs() => {
                if !self.is_held {
                    self.awaited_since.get_or_insert_with(Instant::now);
                }
            }
            () if own.is_refused => self.fail(format!("allocation {} can never begin: {}", own.id, own.reason)),
            () => self.tell(FromHolder::Queued {
                id: own.id,
                reason: own.reason,
                after_seconds: own.start.map(from_now).or_else(|| self.begins_after()),
            }),
        }
    }

    /// The first node has connected: the allocation is running.
    fn begun(&mut self) {
        self.connections += 1;
        self.runs_since.get_or_insert_with(Instant::now);
        self.awaited_since = None;
        let Some(id) = self.asked.as_ref().and_then(|asked| asked.id.clone()) else {
            return;
        };
        if !self.is_held {
            self.find_nodes(&id);
        }
    }

    /// Asks which nodes the allocation has, and tells the run. If the controller is busy, it is asked again.
    fn find_nodes(&mut self, id: &str) {
        let nodes = self.args.batch.nodes(id, true);
        match nodes.and_then(|nodes| self.announce(id, nodes)) {
            Ok(nodes) => {
                (self.is_held, self.unknown, self.awaited_since) = (true, None, None);
                let id = id.to_owned();
                self.tell(FromHolder::Held { id, nodes });
            }
            Err(why) => {
                self.unknown = Some(why);
                self.awaited_since.get_or_insert_with(Instant::now);
            }
        }
    }

    /// Reports the nodes to the gateway, which returns their addresses in the grid.
    fn announce(&self, id: &str, nodes: Vec<NodeInfo>) -> Result<Vec<HeldNode>, String> {
        let request = control::Request::Allocated {
            id: id.to_owned(),
            nodes,
        };
        match control::ask(&self.args.control, &request) {
            Ok((control::Reply::Allocation { nodes }, _)) => Ok({ nodes.into_iter() }
                .map(|node| HeldNode {
                    name: node.name,
                    address: node.address,
                    slots: node.slots,
                })
                .collect()),
            Ok((other, _)) => Err(format!("the gateway's answer is not understood: {other:?}")),
            Err(error) => Err(error.to_string()),
        }
    }

    /// After how many seconds the allocation must be begun, if it does not begin by itself.
    fn begins_after(&self) -> Option<u64> {
        let begins = self.begins_at?.saturating_duration_since(Instant::now());
        Some(begins.as_secs())
    }

    fn fail(&mut self, why: String) {
        self.has_failed = true;
        self.tell(FromHolder::Failed(why));
    }

    fn tell(&mut self, word: FromHolder) {
        match serde_json::to_vec(&word) {
            Ok(bytes) => self.send(&Frame::Batch(bytes)),
            Err(error) => say::error(format_args!("causeway holder: {error}")),
        }
    }

    /// If the run is gone, the input ends, too.
    fn send(&mut self, frame: &Frame) {
        let _ = frame.write(&mut self.output);
    }
}

/// Reads the run's messages.
fn read(mut input: File, events: &SyncSender<Event>) {
    while let Ok(Some(frame)) = Frame::read(&mut input) {
        let Frame::Batch(bytes) = frame else { continue };
        // A newer run may send messages that this holder can ignore.
        let Ok(word) = serde_json::from_slice(&bytes) else {
            continue;
        };
        if events.send(Event::Word(word)).is_err() {
            return;
        }
    }
    let _ = events.send(Event::Ended);
}

/// A time of this host's clock, as seconds from now.
fn from_now(at: u64) -> u64 {
    at.saturating_sub(now())
}
