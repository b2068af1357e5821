//! Serves the commands of this host: see `control` for what they ask and get.

use crate::base::base;
use crate::gateway::Gateway;
use crate::inherited::{InheritError, descriptor};
use crate::membership::directory::Whereabouts;
use crate::membership::jobs::{Job, Origin};
use crate::sys::timers::Deadline;
use crate::sys::token::Class;
use crate::telemetry::view;
use crate::traversal::relay::client::Invitation;
use crate::traversal::relay::selection::Offer;
use crate::tunnels::lane::LaneEnd;
use crate::tunnels::message::GatewayToGateway;
use causeway_control::{Envelope, JobReply, MAX_WEIGHT, Reply, Request, VERSION};
use causeway_wire::Token;
use mio::Interest;
use mio::net::UnixStream;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeSet, VecDeque};
use std::io::{ErrorKind, Read, Write};
use std::os::fd::RawFd;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::time::{Duration, Instant};

/// A command writes its request at once; a site confirms a job within a round trip.
const DEADLINE: Duration = Duration::from_secs(5);

/// Longest request: a job's or a node's name.
const REQUEST_BYTES: usize = 64 * 1024;

pub(crate) struct Command {
    socket: UnixStream,
    pub(crate) born: u64,
    pub(crate) stage: Stage,
    output: VecDeque<u8>,
}

pub(crate) enum Stage {
    Reading(Vec<u8>),
    /// Other sites have not confirmed the job yet.
    Starting(Token),
    /// The job lives as long as this connection.
    Holding(Token),
    /// The gateway of the site of this name has been asked for an answer, at this time.
    Pinging(String, Instant),
    /// The program that asks is to have this gateway, and answers the command itself.
    HandingOver,
    /// Nothing more is expected; closed when the answer is out.
    Answered,
}

impl Command {
    pub(crate) fn keep(&self) -> KeptCommand {
        KeptCommand {
            descriptor: self.socket.as_raw_fd(),
            born: self.born,
            stage: match &self.stage {
                Stage::Reading(line) => KeptCommandStage::Reading(line.clone()),
                Stage::Starting(token) => KeptCommandStage::Starting(token.0),
                Stage::Holding(token) => KeptCommandStage::Holding(token.0),
                Stage::HandingOver => KeptCommandStage::HandingOver,
                // Answered with why there is no time.
                Stage::Pinging(..) | Stage::Answered => KeptCommandStage::Answered,
            },
            output: match &self.stage {
                Stage::Pinging(..) => Reply::Error("the gateway was handed over meanwhile".to_owned()).line(),
                _ => self.output.iter().copied().collect(),
            },
        }
    }

    fn inherit(kept: KeptCommand) -> Result<Command, InheritError> {
        Ok(Command {
            socket: UnixStream::from_std(descriptor(kept.descriptor)?.into()),
            born: kept.born,
            stage: match kept.stage {
                KeptCommandStage::Reading(line) => Stage::Reading(line),
                KeptCommandStage::Starting(token) => Stage::Starting(Token(token)),
                KeptCommandStage::Holding(token) => Stage::Holding(Token(token)),
                KeptCommandStage::HandingOver => Stage::HandingOver,
                KeptCommandStage::Answered => Stage::Answered,
            },
            output: kept.output.into(),
        })
    }
}

impl AsFd for Command {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

impl Gateway {
    /// Goes on serving the commands of a predecessor, whose jobs live as long as they do.
    pub(crate) fn inherit_commands(&mut self, kept: Vec<(usize, KeptCommand)>) -> Result<(), InheritError> {
        let inherit = |(key, kept)| Ok::<_, InheritError>((key, Command::inherit(kept)?));
        self.commands.connections = kept.into_iter().map(inherit).collect::<Result<_, _>>()?;
        let interest = Interest::READABLE | Interest::WRITABLE;
        for (key, command) in &mut self.commands.connections {
            let token = Class::Command.token(key);
            self.driver
                .registry()
                .register(&mut command.socket, token, interest)?;
            if matches!(command.stage, Stage::Reading(_) | Stage::Starting(_)) {
                self.driver
                    .timers
                    .set(DEADLINE, Deadline::Command(key, command.born));
            }
        }
        Ok(())
    }

    /// Answers those that asked for the hand-over.
    pub(crate) fn answer_hand_over(&mut self, reply: &Reply) {
        let asked = self.commands.connections.iter();
        let asked = asked.filter(|(_, command)| matches!(command.stage, Stage::HandingOver));
        for key in asked.map(|(key, _)| key).collect::<Vec<_>>() {
            self.answer(key, reply.clone());
        }
    }

    pub(crate) fn on_command_connection(&mut self, mut socket: UnixStream) {
        let key = self.commands.connections.vacant_key();
        let interest = Interest::READABLE | Interest::WRITABLE;
        if let Err(error) = self
            .driver
            .registry()
            .register(&mut socket, Class::Command.token(key), interest)
        {
            return self.driver.log.say(format_args!("command: {error}"));
        }
        let born = self.driver.birth();
        self.commands.connections.insert(Command {
            socket,
            born,
            stage: Stage::Reading(Vec::new()),
            output: VecDeque::new(),
        });
        self.driver.timers.set(DEADLINE, Deadline::Command(key, born));
        self.on_command(key);
    }

    pub(crate) fn on_command(&mut self, key: usize) {
        self.write_answer(key);
        let mut byte = [0; 1];
        loop {
            let Some(command) = self.commands.connections.get_mut(key) else {
                return;
            };
            match command.socket.read(&mut byte) {
                Ok(0) => return self.end_command(key),
                Ok(_) => {}
                Err(error) if error.kind() == ErrorKind::WouldBlock => return,
                Err(error) if error.kind() == ErrorKind::Interrupted => continue,
                Err(_) => return self.end_command(key),
            }
            // Byte by byte: after the line of a spawn request the bytes belong to the process.
            let Stage::Reading(line) = &mut command.stage else {
                continue;
            };
            if byte[0] != b'\n' {
                line.push(byte[0]);
                if line.len() > REQUEST_BYTES {
                    return self.answer(
                        key,
                        Reply::Error(format!("request longer than {REQUEST_BYTES} bytes")),
                    );
                }
                continue;
            }
            let line = std::mem::take(line);
            match serde_json::from_slice::<Envelope<Request>>(&line) {
                // A newer program asks for a hand-over, whatever else has changed between it and this one.
                Ok(Envelope { version, body })
                    if version == VERSION || matches!(body, Request::HandOver { .. }) =>
                {
                    self.serve(key, body);
                }
                Ok(Envelope { version, .. }) => {
                    let text = format!("the command speaks version {version}, this gateway {VERSION}");
                    self.answer(key, Reply::Error(text));
                }
                Err(error) => self.answer(key, Reply::Error(format!("request not understood: {error}"))),
            }
        }
    }

    pub(crate) fn on_command_deadline(&mut self, key: usize, born: u64) {
        let Some(command) = self
            .commands
            .connections
            .get(key)
            .filter(|command| command.born == born)
        else {
            return;
        };
        match command.stage {
            Stage::Reading(_) => self.end_command(key),
            // A site that stands still keeps no job from those that it takes no part in.
            Stage::Starting(token) => {
                let awaited = self
                    .membership
                    .jobs
                    .get_mut(&token)
                    .map(|job| job.awaited.clone());
                for site in awaited.unwrap_or_default() {
                    let text = format!("it did not confirm a job within {DEADLINE:?}; jobs start without it");
                    self.driver
                        .log
                        .refuse("job-unconfirmed", format_args!("site {site}"), text);
                }
                self.job_confirmed(key);
            }
            Stage::Pinging(ref site, _) => {
                let text = format!(
                    "no answer from {site} within {DEADLINE:?}: the tunnel stands still, or the gateway there is of a version \
                     that does not answer"
                );
                self.answer(key, Reply::Error(text));
            }
            Stage::Holding(_) | Stage::HandingOver | Stage::Answered => {}
        }
    }

    fn serve(&mut self, key: usize, request: Request) {
        match request {
            Request::Status {} => {
                let status = view!(self).status(&self.driver);
                self.answer(key, Reply::Status(Box::new(status)));
            }
            Request::Job { name, weight, plan } => {
                let mut job = new_job(key, name, weight);
                job.plan = plan;
                self.start_job(key, job);
            }
            Request::Connect { name } => {
                let mut job = new_job(key, name, 1);
                job.plain = true;
                self.start_job(key, job);
            }
            Request::Transparent { name, weight, plan } => {
                let mut job = new_job(key, name, weight);
                job.plan = plan;
                job.transparent = true;
                self.start_job(key, job);
            }
            Request::Ping { site } => self.ping(key, site),
            Request::HandOver {
                state_version,
                program,
                config,
            } => match self.accept_successor(state_version, program, config) {
                Ok(()) => {
                    if let Some(command) = self.commands.connections.get_mut(key) {
                        command.stage = Stage::HandingOver;
                    }
                }
                Err(refusal) => self.answer(key, Reply::Error(refusal.to_string())),
            },
            Request::Spawn { token, node } => match token.parse() {
                Ok(token) if self.membership.jobs.knows(&token) => self.spawn(key, token, &node),
                Ok(_) => self.answer(key, Reply::Error("the job of this token has ended".to_owned())),
                Err(error) => self.answer(key, Reply::Error(error.to_string())),
            },
        }
    }

    fn start_job(&mut self, key: usize, mut job: Job) {
        // By its real addresses others would not find it, or somebody else.
        if self.membership.awaits_addresses(&mut self.driver) {
            let why = "the grid's broker has not given this site virtual addresses yet: 'causeway status' says whether it answers; one of \
                       an earlier version never will";
            return self.answer(key, Reply::Error(why.to_owned()));
        }
        let mut bytes = [0; Token::BYTES];
        if let Err(error) = getrandom::fill(&mut bytes) {
            return self.answer(
                key,
                Reply::Error(format!("no random numbers for a job token: {error}")),
            );
        }
        let token = Token(bytes);
        // A site whose lanes are all down learns of the job when one is back; waiting for that would keep the others.
        let up = self.tunnels.pairs.iter().filter(|(_, pair)| pair.is_up());
        job.awaited = up.map(|(_, pair)| pair.site.clone()).collect();
        let alone = job.awaited.is_empty();
        self.driver
            .log
            .say(format_args!("job {} starts: {}", token.hint(), job.name));
        self.membership
            .register_job(&mut self.driver, &mut self.tunnels, &token, &job);
        let announcement = job.announcement(&token);
        self.membership.jobs.start(token, job);
        if let Some(command) = self.commands.connections.get_mut(key) {
            command.stage = Stage::Starting(token);
        }
        for pair in self.tunnels.by_site.values().copied().collect::<Vec<_>>() {
            self.tunnels.tell(&mut self.driver, pair, announcement.clone());
        }
        if alone {
            self.job_confirmed(key);
        }
    }

    /// Every site that has a tunnel knows the job, or has had its time: the job's processes may start.
    pub(crate) fn job_confirmed(&mut self, key: usize) {
        let Some(command) = self.commands.connections.get_mut(key) else {
            return;
        };
        let Stage::Starting(token) = command.stage else {
            return;
        };
        command.stage = Stage::Holding(token);
        let awaited = self
            .membership
            .jobs
            .get_mut(&token)
            .map(|job| job.awaited.clone());
        let mut sites = view!(self).sites();
        for site in &mut sites {
            if site.unreachable.is_none()
                && awaited
                    .as_ref()
                    .is_some_and(|awaited| awaited.contains(&site.name))
            {
                site.unreachable = Some(format!("its gateway did not confirm the job within {DEADLINE:?}"));
            }
        }
        let reply = Reply::Job(JobReply {
            token: token.to_hex(),
            grid: self.membership.directory.grid().to_string(),
            site: self.driver.config.site.clone(),
            sites,
            links: self.tunnels.links(&mut self.driver),
        });
        self.put_answer(key, &reply);
    }

    fn spawn(&mut self, key: usize, token: Token, node: &str) {
        let place = match self.membership.directory.find_node(node) {
            Whereabouts::Nowhere if self.is_this_host(node) => Whereabouts::Here,
            place => place,
        };
        let pair = match &place {
            Whereabouts::Here => None,
            Whereabouts::At(site) => match self.tunnels.by_site.get(site) {
                Some(pair) => Some(*pair),
                None => {
                    let why = format!("node {node} is at {site}, to which there is no tunnel");
                    return self.answer(key, Reply::Error(why));
                }
            },
            Whereabouts::Nowhere => {
                return self.answer(
                    key,
                    Reply::Error(format!("no site of the grid has a node {node}")),
                );
            }
        };
        self.put_answer(key, &Reply::Spawn {});
        // A reply that could not be written ended the command.
        let Some(command) = self.commands.connections.try_remove(key) else {
            return;
        };
        match pair {
            Some(pair) => {
                if let Err(reason) = self.join_node(pair, command.socket, token, node) {
                    self.driver
                        .log
                        .say(format_args!("start on {node}: {}", reason.text()));
                }
            }
            None => self.give_to_starter(command.socket, token, node),
        }
    }

    /// Gives a command's connection to a starter of this site, which the loop then has nothing to do with.
    fn give_to_starter(&mut self, mut socket: UnixStream, token: Token, node: &str) {
        // The head node has a name here without being one of the site's compute nodes; `spawn` has looked.
        let name = self.membership.directory.shell_name(node);
        let name = name.unwrap_or_else(|| node.to_owned());
        let given = self
            .driver
            .registry()
            .deregister(&mut socket)
            .and_then(|()| std::os::unix::net::UnixStream::from(OwnedFd::from(socket)).into_blocking())
            .and_then(|socket| self.start_on_node(&name, token, socket));
        if let Err(error) = given {
            self.driver.log.say(format_args!("start on {node}: {error}"));
        }
    }

    /// The head node may be asked for by its host name, though it is no compute node.
    fn is_this_host(&self, node: &str) -> bool {
        nix::unistd::gethostname().is_ok_and(|name| name.to_str() == Some(node))
    }

    pub(crate) fn answer(&mut self, key: usize, reply: Reply) {
        self.put_answer(key, &reply);
        let Some(command) = self.commands.connections.get_mut(key) else {
            return;
        };
        let previous = std::mem::replace(&mut command.stage, Stage::Answered);
        if let Stage::Starting(token) = previous {
            self.end_job(&token);
        }
        self.write_answer(key);
    }

    fn put_answer(&mut self, key: usize, reply: &Reply) {
        let Some(command) = self.commands.connections.get_mut(key) else {
            return;
        };
        command.output.extend(reply.line());
        self.write_answer(key);
    }

    fn write_answer(&mut self, key: usize) {
        let Some(command) = self.commands.connections.get_mut(key) else {
            return;
        };
        while !command.output.is_empty() {
            match command.socket.write(command.output.as_slices().0) {
                Ok(count) => drop(command.output.drain(..count)),
                Err(error) if error.kind() == ErrorKind::WouldBlock => return,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(_) => return self.end_command(key),
            }
        }
        if matches!(command.stage, Stage::Answered) {
            self.end_command(key);
        }
    }

    /// The command is gone or done; a job it held ends.
    fn end_command(&mut self, key: usize) {
        let Some(command) = self.commands.connections.try_remove(key) else {
            return;
        };
        if let Stage::Starting(token) | Stage::Holding(token) = command.stage {
            self.end_job(&token);
        }
    }

    fn end_job(&mut self, token: &Token) {
        let Some(job) = self.membership.jobs.end(token) else {
            return;
        };
        // Those of other sites end as they start, without a word: a site could fill the log with them.
        if matches!(job.origin, Origin::Here(_)) {
            self.driver
                .log
                .say(format_args!("job {} has ended: {}", token.hint(), job.name));
            self.membership.unregister_job(token, &job);
            for pair in self.tunnels.by_site.values().copied().collect::<Vec<_>>() {
                self.tunnels.tell(
                    &mut self.driver,
                    pair,
                    GatewayToGateway::JobEnd {
                        token: token.to_hex(),
                    },
                );
            }
        }
        // A plain connection ends with the command that made it, as its kernel does that: a reset would take from the far side
        // what was sent last.
        if !job.plain {
            if job.transparent {
                self.site.leave_transparent_streams(&mut base!(self), token);
            }
            self.site.end_streams(&mut base!(self), token);
        }
        self.end_starters(token);
        self.membership
            .settle_addresses(&mut self.driver, &mut self.tunnels);
    }

    /// What another gateway says.
    pub(crate) fn on_message(&mut self, pair_key: usize, bytes: &[u8]) -> Result<(), LaneEnd> {
        let Some(site) = self.tunnels.pairs.get(pair_key).map(|pair| pair.site.clone()) else {
            return Ok(());
        };
        let parse = |token: &str| {
            token
                .parse::<Token>()
                .map_err(|error| LaneEnd::Refused(error.to_string()))
        };
        match GatewayToGateway::decode(bytes).map_err(LaneEnd::Refused)? {
            GatewayToGateway::Site(info) => {
                self.membership
                    .check_claims(&site, &info)
                    .and_then(|()| self.membership.directory.learn(&site, info))
                    .map_err(|why| LaneEnd::Refused(format!("site {site} {why}")))?;
                if let Some(pair) = self.tunnels.pairs.get_mut(pair_key) {
                    pair.introduced = true;
                    let peer = pair.peer;
                    self.tunnels.dial_succeeded(peer);
                }
            }
            GatewayToGateway::JobStart {
                token,
                name,
                weight,
                plain,
                transparent,
            } => {
                let weight = weight.clamp(1, MAX_WEIGHT);
                let (from, origin) = (site.clone(), Origin::Site(site));
                let mut job = Job::new(name, weight, origin, Default::default());
                job.plain = plain;
                job.transparent = transparent;
                match self.membership.jobs.learn(parse(&token)?, job) {
                    Ok(()) => {
                        let links = self.tunnels.own_links();
                        self.tunnels.tell(
                            &mut self.driver,
                            pair_key,
                            GatewayToGateway::JobKnown { token, links },
                        );
                    }
                    Err(why) => self.driver.log.refuse("job", format_args!("site {from}"), why),
                }
            }
            GatewayToGateway::JobKnown { token, links } => {
                self.tunnels.learn_links(&mut self.driver, &site, links);
                if let Some(command) = self.membership.jobs.confirmed(&parse(&token)?, &site) {
                    self.job_confirmed(command);
                }
            }
            GatewayToGateway::JobEnd { token } => {
                let token = parse(&token)?;
                if self.membership.jobs.of_site(&site).contains(&token) {
                    self.end_job(&token);
                }
            }
            GatewayToGateway::RelayAsk { to, id } => {
                self.traversal.on_relay_ask(&mut base!(self), pair_key, &to, id)
            }
            GatewayToGateway::RelayOffer {
                carried,
                beyond_microseconds,
            } => self.traversal.on_relay_offer(
                &mut base!(self),
                &site,
                Offer::new(carried, beyond_microseconds),
            ),
            GatewayToGateway::RelayNo { id, why } => {
                self.traversal.on_relay_no(&mut base!(self), &site, id, &why)
            }
            GatewayToGateway::RelayCannot { meeting, why } => {
                self.traversal
                    .on_relay_cannot(&mut base!(self), &site, meeting, &why)
            }
            GatewayToGateway::RelayGo {
                id,
                ticket,
                address,
                beyond_microseconds,
            } => {
                let invitation = Invitation {
                    id,
                    ticket,
                    address,
                    beyond_microseconds,
                };
                self.traversal.on_relay_go(&mut base!(self), &site, &invitation);
            }
            GatewayToGateway::RelayCome {
                meeting: id,
                from,
                ticket,
                address,
                beyond_microseconds,
            } => {
                let invitation = Invitation {
                    id,
                    ticket,
                    address,
                    beyond_microseconds,
                };
                self.traversal
                    .on_relay_come(&mut base!(self), pair_key, &site, &from, &invitation);
            }
            // Should the same process come back after all, it shall not find a tunnel to resume.
            GatewayToGateway::Lossy {} => self.tunnels.on_lossy(&mut self.driver, pair_key),
            GatewayToGateway::Ping { number } => self.on_ping(pair_key, number),
            GatewayToGateway::Pong {
                number,
                unix_microseconds,
                version,
            } => self.on_pong(&site, number, unix_microseconds, version),
            GatewayToGateway::Unknown => {}
            GatewayToGateway::Leaving {} => {
                self.tunnels
                    .end_pair(&mut self.driver, pair_key, &LaneEnd::Left, true)
            }
        }
        Ok(())
    }

    /// The tunnel to a site has ended: its jobs are over, and ours need not wait for it.
    pub(crate) fn on_site_gone(&mut self, site: &str, why: &str) {
        for command in self.membership.jobs.losing(site) {
            let holds = |command: &Command| matches!(command.stage, Stage::Holding(_));
            if self.commands.connections.get(command).is_some_and(holds) {
                let text = format!("this job has lost site {site}: {why}");
                self.put_answer(command, &Reply::Lost(text));
            }
        }
        for token in self.membership.jobs.of_site(site) {
            self.end_job(&token);
        }
        for command in self.membership.jobs.site_is_gone(site) {
            self.job_confirmed(command);
        }
    }
}

trait IntoBlocking {
    fn into_blocking(self) -> std::io::Result<OwnedFd>;
}

impl IntoBlocking for std::os::unix::net::UnixStream {
    fn into_blocking(self) -> std::io::Result<OwnedFd> {
        self.set_nonblocking(false)?;
        Ok(self.into())
    }
}

fn new_job(key: usize, name: String, weight: u32) -> Job {
    Job::new(
        name,
        weight.clamp(1, MAX_WEIGHT),
        Origin::Here(key),
        BTreeSet::new(),
    )
}

#[derive(Serialize, Deserialize)]
pub(crate) struct KeptCommand {
    pub(crate) descriptor: RawFd,
    pub(crate) born: u64,
    pub(crate) stage: KeptCommandStage,
    pub(crate) output: Vec<u8>,
}

#[derive(Serialize, Deserialize)]
pub(crate) enum KeptCommandStage {
    Reading(Vec<u8>),
    Starting([u8; 16]),
    Holding([u8; 16]),
    /// This one asked for the hand-over.
    HandingOver,
    Answered,
}
