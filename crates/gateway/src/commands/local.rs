//! Serves the commands of this host: see `control` for what they ask and what they are answered.

use crate::base::Bundle;
use crate::commands::choice::sites_for_jobs;
use crate::commands::command::{Command, KeptCommand, Stage};
use crate::commands::event::CommandsEvent;
use crate::commands::{CommandContext, Commands};
use crate::inherited::InheritError;
use crate::keys::CommandKey;
use crate::membership::jobs::{Job, Origin};
use crate::sys::source::Class;
use crate::sys::timers::CommandsDeadline;
use causeway_control::{Envelope, MAX_WEIGHT, Plan, Reply, Request, VERSION};
use causeway_wire::TextError;
use mio::Interest;
use mio::net::UnixStream;
use std::collections::{BTreeSet, VecDeque};
use std::io::{ErrorKind, Read, Write};
use std::time::{Duration, Instant};

/// How long a command may take to send its request, which it does at once, and a site to confirm a job, which
/// takes a round trip.
pub(super) const DEADLINE: Duration = Duration::from_secs(5);

/// Longest request: it contains the names of a job and of its sites, which also have to fit into a map.
const REQUEST_BYTES: usize = 256 * 1024;

impl Commands {
    /// Goes on serving the commands of a predecessor, whose jobs live as long as these commands.
    pub(in crate::commands) fn inherit_commands(
        &mut self,
        context: &mut CommandContext<'_>,
        kept: Vec<(usize, KeptCommand)>,
    ) -> Result<(), InheritError> {
        let inherit = |(key, kept)| Ok::<_, InheritError>((key, Command::inherit(kept)?));
        self.connections = kept.into_iter().map(inherit).collect::<Result<_, _>>()?;
        let interest = Interest::READABLE | Interest::WRITABLE;
        for (key, command) in self.connections.iter_mut() {
            let token = Class::Command.token(key.0);
            context
                .driver
                .registry()
                .register(&mut command.socket, token, interest)?;
            if matches!(command.stage, Stage::Reading(_) | Stage::Starting(_)) {
                context.set_deadline(DEADLINE, CommandsDeadline::Command(key, command.generation));
            }
        }
        Ok(())
    }

    /// Acts on the decision about a hand-over that a command asked for; a refusal comes with its reason.
    pub(crate) fn on_successor(
        &mut self,
        context: &mut CommandContext<'_>,
        key: CommandKey,
        considered: Result<(), TextError>,
    ) {
        match considered {
            Ok(()) => {
                if let Some(command) = self.connections.get_mut(key) {
                    command.stage = Stage::HandingOver;
                }
            }
            Err(refusal) => self.answer(context, key, Reply::Error(refusal.into())),
        }
    }

    /// Answers the commands that asked for the hand-over.
    pub(crate) fn answer_hand_over(&mut self, context: &mut CommandContext<'_>, reply: &Reply) {
        let asked = self.connections.iter();
        let asked = asked.filter(|(_, command)| matches!(command.stage, Stage::HandingOver));
        for key in asked.map(|(key, _)| key).collect::<Vec<_>>() {
            self.answer(context, key, reply.clone());
        }
    }

    /// Accepts the connection of a command.
    pub(crate) fn accept(&mut self, context: &mut CommandContext<'_>, mut socket: UnixStream) {
        let key = self.connections.vacant_key();
        let interest = Interest::READABLE | Interest::WRITABLE;
        if let Err(error) =
            context
                .driver
                .registry()
                .register(&mut socket, Class::Command.token(key.0), interest)
        {
            return context.say(format_args!("command: {error}"));
        }
        let generation = context.driver.next_generation();
        self.connections.insert(Command {
            socket,
            generation,
            stage: Stage::Reading(Vec::new()),
            output: VecDeque::new(),
            is_held: false,
        });
        context.set_deadline(DEADLINE, CommandsDeadline::Command(key, generation));
        self.on_command(context, key);
    }

    pub(in crate::commands) fn on_command(&mut self, context: &mut CommandContext<'_>, key: CommandKey) {
        self.write_answer(context, key);
        let mut byte = [0; 1];
        loop {
            let Some(command) = self.connections.get_mut(key) else {
                return;
            };
            match command.socket.read(&mut byte) {
                Ok(0) => return self.end_command(context, key),
                Ok(_) => {}
                Err(error) if error.kind() == ErrorKind::WouldBlock => return,
                Err(error) if error.kind() == ErrorKind::Interrupted => continue,
                Err(_) => return self.end_command(context, key),
            }
            // Byte by byte, because the bytes after the line of a spawn request belong to the process.
            let Stage::Reading(line) = &mut command.stage else {
                continue;
            };
            if byte[0] != b'\n' {
                line.push(byte[0]);
                if line.len() > REQUEST_BYTES {
                    return self.answer(
                        context,
                        key,
                        Reply::Error(format!("request longer than {REQUEST_BYTES} bytes")),
                    );
                }
                continue;
            }
            let line = std::mem::take(line);
            match serde_json::from_slice::<Envelope<Request>>(&line) {
                // A newer program may ask for a hand-over, whatever else has changed between it and this one.
                Ok(Envelope { version, body })
                    if version == VERSION || matches!(body, Request::HandOver { .. }) =>
                {
                    self.serve(context, key, body);
                    let stage = self.connections.get(key).map(|command| &command.stage);
                    // The answer must be sent before the end of the input ends the command.
                    if matches!(stage, Some(Stage::Answered)) {
                        return;
                    }
                }
                Ok(Envelope { version, .. }) => {
                    let text = format!("the command speaks version {version}, this gateway {VERSION}");
                    self.answer(context, key, Reply::Error(text));
                }
                Err(error) => self.answer(
                    context,
                    key,
                    Reply::Error(format!("request not understood: {error}")),
                ),
            }
        }
    }

    pub(in crate::commands) fn on_command_deadline(
        &mut self,
        context: &mut CommandContext<'_>,
        key: CommandKey,
        generation: u64,
    ) {
        let Some(command) = self
            .connections
            .get(key)
            .filter(|command| command.generation == generation)
        else {
            return;
        };
        match command.stage {
            Stage::Reading(_) => self.end_command(context, key),
            // A site that does not answer must not keep a job from starting at the other sites.
            Stage::Starting(token) => {
                let awaited = context
                    .membership
                    .jobs_mut()
                    .get_mut(&token)
                    .map(|job| job.awaited.clone());
                for site in awaited.unwrap_or_default() {
                    let text = format!("it did not confirm a job within {DEADLINE:?}; jobs start without it");
                    context.refuse("job-unconfirmed", format_args!("site {site}"), text);
                }
                self.job_confirmed(context, key);
            }
            Stage::Pinging(ref site, _) => {
                let text = format!(
                    "no answer from {site} within {DEADLINE:?}: the tunnel is stalled, or the gateway there has a version \
                     that does not answer"
                );
                self.answer(context, key, Reply::Error(text));
            }
            Stage::Seeking(ref site, _, until) if until <= Instant::now() => {
                let text = format!("no answer from {site} about its allocation");
                self.answer(context, key, Reply::Error(text));
            }
            Stage::Seeking(..) | Stage::Holding(_) | Stage::HandingOver | Stage::Answered => {}
        }
    }

    fn serve(&mut self, context: &mut CommandContext<'_>, key: CommandKey, request: Request) {
        match request {
            Request::Status {} => {
                let status = context.view().status(context.driver);
                self.answer(context, key, Reply::Status(Box::new(status)));
            }
            Request::Sites {} => {
                let sites = sites_for_jobs(context);
                self.answer(context, key, Reply::Sites(sites));
            }
            Request::Job { name, weight, plan } => {
                let job = new_job(key, name, weight, plan);
                self.start_job(context, key, job);
            }
            Request::Connect { name, site, lingers } => {
                let job = Job {
                    bare: true,
                    lingers,
                    ..new_job(key, name, 1, Plan::at(site))
                };
                self.start_job(context, key, job);
            }
            Request::Transparent { name, weight, plan } => {
                let job = Job {
                    transparent: true,
                    ..new_job(key, name, weight, plan)
                };
                self.start_job(context, key, job);
            }
            Request::Started {
                pid,
                node_pid,
                command,
            } => {
                self.on_started(context.driver, pid, node_pid, command);
                self.answer(context, key, Reply::Noted {});
            }
            Request::Allocation { site, id } => self.find_allocation(context, key, site, id),
            Request::Looked { number, nodes, why } => {
                self.on_looked(context, key, number, why.map_or(Ok(nodes), Err));
            }
            Request::Allocated { id, nodes } => self.on_allocated(context, key, id, nodes),
            Request::Carry { jobs } => self.carry(context, key, &jobs),
            Request::Ping { site } => self.ping(context, key, site),
            Request::HandOver {
                state_version,
                program,
                config,
            } => self.events.push_back(CommandsEvent::HandOver {
                command: key,
                state_version,
                program,
                config,
            }),
            spawn @ Request::Spawn { .. } => self.spawn_for(context, key, &spawn),
        }
    }

    fn spawn_for(&mut self, context: &mut CommandContext<'_>, key: CommandKey, spawn: &Request) {
        let Request::Spawn {
            token,
            node,
            takes_connection,
        } = spawn
        else {
            return;
        };
        match token.parse() {
            Ok(token) if context.jobs().knows(&token) => {
                self.spawn(context, key, token, (node, *takes_connection));
            }
            Ok(_) => self.answer(
                context,
                key,
                Reply::Error("the job of this token has ended".to_owned()),
            ),
            Err(error) => self.answer(context, key, Reply::Error(error.to_string())),
        }
    }

    pub(in crate::commands) fn answer(
        &mut self,
        context: &mut CommandContext<'_>,
        key: CommandKey,
        reply: Reply,
    ) {
        self.put_answer(key, &reply);
        let Some(command) = self.connections.get_mut(key) else {
            return;
        };
        let previous = std::mem::replace(&mut command.stage, Stage::Answered);
        if let Stage::Starting(token) = previous {
            self.end_job(context, &token);
        }
    }

    /// Answers a command once the next worker would know what the answer says.
    pub(super) fn put_answer(&mut self, key: CommandKey, reply: &Reply) {
        let Some(command) = self.connections.get_mut(key) else {
            return;
        };
        command.output.extend(reply.line());
        if !std::mem::replace(&mut command.is_held, true) {
            self.unanswered.push(key);
        }
    }

    /// Answers a command before anything is written down, because its connection is about to be given away.
    pub(super) fn answer_at_once(
        &mut self,
        context: &mut CommandContext<'_>,
        key: CommandKey,
        reply: &Reply,
    ) {
        if let Some(command) = self.connections.get_mut(key) {
            command.output.extend(reply.line());
        }
        self.write_answer(context, key);
    }

    /// Whether a command waits for [`send_answers`](Commands::send_answers).
    pub(crate) fn has_answers(&self) -> bool {
        !self.unanswered.is_empty()
    }

    /// Sends the answers. Call this once the state is written down, and then write it down again: otherwise
    /// the next worker would send them a second time.
    pub(crate) fn send_answers(&mut self, context: &mut CommandContext<'_>) {
        for key in std::mem::take(&mut self.unanswered) {
            if let Some(command) = self.connections.get_mut(key) {
                command.is_held = false;
                self.write_answer(context, key);
            }
        }
    }

    fn write_answer(&mut self, context: &mut CommandContext<'_>, key: CommandKey) {
        let Some(command) = self.connections.get_mut(key) else {
            return;
        };
        if command.is_held {
            return;
        }
        while !command.output.is_empty() {
            match command.socket.write(command.output.as_slices().0) {
                Ok(count) => drop(command.output.drain(..count)),
                Err(error) if error.kind() == ErrorKind::WouldBlock => return,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(_) => return self.end_command(context, key),
            }
        }
        if matches!(command.stage, Stage::Answered) {
            self.end_command(context, key);
        }
    }

    /// The command is gone or served; if it held a job, that ends.
    pub(super) fn end_command(&mut self, context: &mut CommandContext<'_>, key: CommandKey) {
        let Some(command) = self.connections.try_remove(key) else {
            return;
        };
        let stage = &command.stage;
        let job = match stage {
            Stage::Starting(token) | Stage::Holding(token) => Some(*token),
            _ => None,
        };
        context.driver.closing.push(command.socket.into());
        if let Some(token) = job {
            self.end_job(context, &token);
        }
    }
}

fn new_job(key: CommandKey, name: String, weight: u32, plan: Plan) -> Job {
    let weight = weight.clamp(1, MAX_WEIGHT);
    Job {
        plan,
        ..Job::new(name, weight, Origin::Here(key), BTreeSet::new())
    }
}
