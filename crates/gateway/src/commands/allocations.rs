//! Allocations of the site's batch system that jobs may run in: the questions about them, and the batch
//! system's answers.
//!
//! `causeway ask-batch` runs the batch system's commands and reports the result with [`Request::Looked`]. A
//! gateway believes nothing that another site says about an allocation at this site.
//!
//! [`Request::Looked`]: causeway_control::Request::Looked

use crate::base::Bundle;
use crate::commands::batch_words::asking_arguments;
use crate::commands::command::Stage;
use crate::commands::spawner::Program;
use crate::commands::starter::{Helper, Purpose, Start, Waiting};
use crate::commands::{CommandContext, Commands};
use crate::config::Config;
use crate::driver::Driver;
use crate::keys::{CommandKey, PairKey};
use crate::membership::held::held_nodes;
use crate::membership::jobs::{Job, Jobs};
use crate::sys::timers::CommandsDeadline;
use crate::tunnels::message::{AllocationRefusal, GatewayToGateway, JobRefusal};
use causeway_batch::is_id;
use causeway_control::{NodeInfo, Reply};
use causeway_wire::{TextError, Token};
use nix::unistd::Pid;
use std::collections::{BTreeMap, HashMap};
use std::ffi::OsString;
use std::time::{Duration, Instant};

/// How long a batch system may take to answer: its controller may be busy or away.
const PATIENCE: Duration = Duration::from_secs(20);

/// How much longer the far site may take than its batch system.
const ON_THE_WAY: Duration = Duration::from_secs(10);

/// For how long an answer can be used to start a job.
const SERVES: Duration = Duration::from_secs(60);

/// Most questions to the batch system at a time; one for each other site.
const MOST_LOOKS: usize = 8;

/// Most answers that are kept for future jobs.
const MOST_KNOWN: usize = 256;

/// The allocations that are known, and the questions in progress.
#[derive(Default)]
pub(super) struct Allocations {
    /// The questions, by the number under which the batch system is asked.
    looks: HashMap<u64, Look>,
    known: HashMap<Asked, Known>,
    last_number: u64,
}

/// Who asked for which allocation of which site.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct Asked {
    asker: String,
    site: String,
    id: String,
}

struct Known {
    nodes: Vec<NodeInfo>,
    since: Instant,
}

/// A question to the batch system.
struct Look {
    asker: Asker,
    id: String,
    until: Instant,
    /// The process that asks, once it runs.
    process: Option<Helper>,
    /// Whether that process has ended.
    has_ended: bool,
}

enum Asker {
    /// A command of this host, and its generation.
    Command(CommandKey, u64),
    /// Another site, with the number of its question.
    Site(PairKey, String, u64),
}

impl Allocations {
    fn keep(&mut self, asked: Asked, nodes: Vec<NodeInfo>) {
        let now = Instant::now();
        self.known.retain(|_, known| now - known.since < SERVES);
        if self.known.len() < MOST_KNOWN || self.known.contains_key(&asked) {
            self.known.insert(asked, Known { nodes, since: now });
        }
    }

    fn nodes(&self, asked: &Asked) -> Option<&[NodeInfo]> {
        let known = self.known.get(asked)?;
        (known.since.elapsed() < SERVES).then_some(&known.nodes)
    }
}

impl Commands {
    /// A command asks for the nodes of an allocation, at this site or another.
    pub(super) fn find_allocation(
        &mut self,
        context: &mut CommandContext<'_>,
        key: CommandKey,
        site: String,
        id: String,
    ) {
        if let Err(why) = self.seek(context, key, site, id) {
            self.answer(context, key, Reply::Error(why.into()));
        }
    }

    fn seek(
        &mut self,
        context: &mut CommandContext<'_>,
        key: CommandKey,
        site: String,
        id: String,
    ) -> Result<(), TextError> {
        if !is_id(&id) {
            return Err(
                format!("{id:?} is not the id of an allocation, such as 12, or 12.SERVER with PBS").into(),
            );
        }
        let pair = match site == context.config().site {
            true => None,
            false => Some(self.way_to(context, &site)?),
        };
        if pair.is_none()
            && let Some(nodes) = held_nodes(context.jobs(), &site, &site, &id)
        {
            let told = self.in_grid(context, &nodes);
            let asker = site.clone();
            self.allocations.keep(Asked { asker, site, id }, nodes);
            self.answer(context, key, Reply::Allocation { nodes: told });
            return Ok(());
        }
        let Some(command) = self.connections.get_mut(key) else {
            return Ok(());
        };
        let number = command.generation;
        let until = Instant::now() + PATIENCE + ON_THE_WAY;
        command.stage = Stage::Seeking(site, id.clone(), until);
        match pair {
            Some(pair) => {
                context.tell(pair, GatewayToGateway::AllocationAsk { number, id });
                context.set_deadline(PATIENCE + ON_THE_WAY, CommandsDeadline::Command(key, number));
                Ok(())
            }
            None => {
                let begun = self.look(context, Asker::Command(key, number), id);
                begun.map_err(|why| match why {
                    AllocationRefusal::NoBatch => {
                        "this site's gateway uses no batch system: add [batch] to its gateway.toml".into()
                    }
                    _ => format!("the batch system is asked {MOST_LOOKS} times at once already; try again")
                        .into(),
                })
            }
        }
    }

    /// Another site asks for an allocation of this one.
    pub(super) fn on_allocation_ask(
        &mut self,
        context: &mut CommandContext<'_>,
        (pair, site): (PairKey, &str),
        number: u64,
        id: String,
    ) {
        let (judged, own) = (self.judge_ask(context, site, &id), context.config().site.clone());
        let held = held_nodes(context.jobs(), &own, site, &id);
        if let Some(held) = held.filter(|_| judged.is_ok()) {
            let nodes = self.in_grid(context, &held);
            let (asker, site) = (site.to_owned(), own);
            self.allocations.keep(Asked { asker, site, id }, held);
            context.tell(
                pair,
                GatewayToGateway::AllocationIs {
                    number,
                    nodes,
                    why: None,
                },
            );
            return;
        }
        let asker = Asker::Site(pair, site.to_owned(), number);
        if let Err(why) = judged.and_then(|()| self.look(context, asker, id.clone())) {
            let text = format!("allocation {id:?} asked for: {why:?}");
            context.refuse("allocation", format_args!("site {site}"), text);
            let (nodes, why) = (Vec::new(), Some(why));
            context.tell(pair, GatewayToGateway::AllocationIs { number, nodes, why });
        }
    }

    fn judge_ask(&self, context: &CommandContext<'_>, site: &str, id: &str) -> Result<(), AllocationRefusal> {
        let config = context.config();
        let batch = config.batch.as_ref().ok_or(AllocationRefusal::NoBatch)?;
        if !batch.is_open_to(site) || !config.accept.takes_jobs_of(site) {
            return Err(AllocationRefusal::From);
        }
        if !is_id(id) {
            return Err(AllocationRefusal::Unusable);
        }
        let mut looks = self.allocations.looks.values();
        match looks.any(|look| matches!(&look.asker, Asker::Site(_, other, _) if other == site)) {
            true => Err(AllocationRefusal::Busy),
            false => Ok(()),
        }
    }

    /// Asks the batch system.
    fn look(
        &mut self,
        context: &mut CommandContext<'_>,
        asker: Asker,
        id: String,
    ) -> Result<(), AllocationRefusal> {
        let config = &context.driver.config;
        let batch = config.batch.as_ref().ok_or(AllocationRefusal::NoBatch)?;
        if self.allocations.looks.len() >= MOST_LOOKS {
            return Err(AllocationRefusal::Busy);
        }
        self.allocations.last_number += 1;
        let number = self.allocations.last_number;
        let word = |text: String| OsString::from(text);
        let mut arguments: Vec<OsString> = vec!["ask-batch".into(), "--control".into()];
        arguments.push(config.control.clone().into_os_string());
        arguments.push(word(format!("--number={number}")));
        arguments.extend(asking_arguments(config, batch));
        arguments.push(word(id.clone()));
        // The child has nothing to read there, and reports its answer as a command.
        let (near, far) = std::os::unix::net::UnixStream::pair().map_err(|_| AllocationRefusal::Busy)?;
        drop(near);
        let program = Program {
            path: context.driver.program.clone(),
            arguments,
            socket: far.into(),
        };
        let start = Start {
            token: Token([0; Token::BYTES]),
            site: config.site.clone(),
            node: String::new(),
            allocation: None,
            waiting: Waiting::Nobody(Purpose::Look(number)),
        };
        let key = self.starts.vacant_key();
        self.spawner
            .start(key, program)
            .map_err(|_| AllocationRefusal::Busy)?;
        self.starts.insert(start);
        let look = Look {
            asker,
            id,
            until: Instant::now() + PATIENCE,
            process: None,
            has_ended: false,
        };
        self.allocations.looks.insert(number, look);
        context.set_deadline(PATIENCE, CommandsDeadline::Looks);
        Ok(())
    }

    /// The process that asks the batch system has started, or could not be.
    pub(super) fn on_look_begun(
        &mut self,
        context: &mut CommandContext<'_>,
        number: u64,
        started: std::io::Result<Pid>,
    ) {
        match started {
            Ok(process) => match self.allocations.looks.get_mut(&number) {
                Some(look) => look.process = Some(Helper::of(process)),
                // The question's time is over already.
                None => drop(Helper::of(process)),
            },
            Err(error) => self.end_look(context, number, Err(format!("ask the batch system: {error}"))),
        }
    }

    /// The process that asks the batch system reports the answer.
    pub(super) fn on_looked(
        &mut self,
        context: &mut CommandContext<'_>,
        key: CommandKey,
        number: u64,
        found: Result<Vec<NodeInfo>, String>,
    ) {
        self.end_look(context, number, found);
        self.answer(context, key, Reply::Noted {});
    }

    /// Ends a question, and tells the asker.
    fn end_look(
        &mut self,
        context: &mut CommandContext<'_>,
        number: u64,
        found: Result<Vec<NodeInfo>, String>,
    ) {
        let Some(look) = self.allocations.looks.remove(&number) else {
            return;
        };
        let own = context.config().site.clone();
        let id = look.id;
        let asked = |asker: &str| Asked {
            asker: asker.to_owned(),
            site: own.clone(),
            id: id.clone(),
        };
        match (look.asker, found) {
            (Asker::Command(key, generation), found) => {
                let reply = match found {
                    Ok(nodes) => {
                        let told = self.in_grid(context, &nodes);
                        self.allocations.keep(asked(&own), nodes);
                        Reply::Allocation { nodes: told }
                    }
                    Err(why) => Reply::Error(why),
                };
                self.answer_seeker(context, key, generation, reply);
            }
            (Asker::Site(pair, site, number), found) => {
                let (nodes, why) = match found {
                    Ok(nodes) => {
                        let told = self.in_grid(context, &nodes);
                        self.allocations.keep(asked(&site), nodes);
                        (told, None)
                    }
                    Err(why) => {
                        context.refuse("allocation", format_args!("site {site}"), why);
                        (Vec::new(), Some(AllocationRefusal::Unusable))
                    }
                };
                context.tell(pair, GatewayToGateway::AllocationIs { number, nodes, why });
            }
        }
    }

    pub(super) fn in_grid(&self, context: &CommandContext<'_>, nodes: &[NodeInfo]) -> Vec<NodeInfo> {
        let site = context.directory().own_site();
        let told = nodes.iter().map(|node| NodeInfo {
            address: site.in_grid(node.address),
            ..node.clone()
        });
        told.collect()
    }

    fn answer_seeker(
        &mut self,
        context: &mut CommandContext<'_>,
        key: CommandKey,
        generation: u64,
        reply: Reply,
    ) {
        let asks = |command: &super::command::Command| {
            command.generation == generation && matches!(command.stage, Stage::Seeking(..))
        };
        if self.connections.get(key).is_some_and(asks) {
            self.answer(context, key, reply);
        }
    }

    /// Another site answers. The nodes that it names must be at its own addresses.
    pub(super) fn on_allocation(
        &mut self,
        context: &mut CommandContext<'_>,
        from: &str,
        number: u64,
        nodes: Vec<NodeInfo>,
        why: Option<AllocationRefusal>,
    ) {
        let asked = self
            .connections
            .iter()
            .find_map(|(key, command)| match &command.stage {
                Stage::Seeking(site, id, _) if command.generation == number && site == from => {
                    Some((key, id.clone()))
                }
                _ => None,
            });
        let Some((key, id)) = asked else { return };
        let own = context.config().site.clone();
        let reply = match why {
            Some(why) => Reply::Error(why.for_user(&own, from, &id)),
            None => match context.directory().may_have(from, &nodes) {
                Ok(()) => {
                    let asked = Asked {
                        asker: own,
                        site: from.to_owned(),
                        id,
                    };
                    self.allocations.keep(asked, nodes.clone());
                    Reply::Allocation { nodes }
                }
                Err(why) => Reply::Error(format!("the gateway of {from} {why}")),
            },
        };
        self.answer(context, key, reply);
    }

    /// Ends questions whose time is over.
    pub(super) fn on_looks_deadline(&mut self, context: &mut CommandContext<'_>) {
        let now = Instant::now();
        let late = self.allocations.looks.iter();
        let late = late.filter(|(_, look)| look.until <= now);
        for (number, has_ended) in late
            .map(|(number, look)| (*number, look.has_ended))
            .collect::<Vec<_>>()
        {
            let why = match has_ended {
                true => {
                    "'causeway ask-batch' ended without an answer; the gateway's log has its words".to_owned()
                }
                false => format!("the batch system did not answer within {PATIENCE:?}"),
            };
            self.end_look(context, number, Err(why));
        }
    }

    /// Collects processes that have asked. The report of one may still be in its connection.
    pub(super) fn collect_looks(&mut self, driver: &mut Driver) {
        for look in self.allocations.looks.values_mut().filter(|look| !look.has_ended) {
            if look.process.as_mut().is_some_and(Helper::has_ended) {
                look.has_ended = true;
                look.until = look.until.min(Instant::now() + LAST_WORDS);
                driver.set_deadline(LAST_WORDS, CommandsDeadline::Looks);
            }
        }
    }

    /// Gives up the questions in progress, before another program goes on with the gateway.
    pub(super) fn give_up_looks(&mut self, context: &mut CommandContext<'_>) {
        let numbers: Vec<u64> = self.allocations.looks.keys().copied().collect();
        for number in numbers {
            let why = "the gateway was handed over meanwhile; try again".to_owned();
            self.end_look(context, number, Err(why));
        }
    }

    /// The nodes of the allocations of a job that a command of this host starts.
    ///
    /// # Errors
    /// One of them is an allocation that nobody has asked for.
    pub(super) fn allocated(
        &self,
        context: &CommandContext<'_>,
        job: &Job,
    ) -> Result<BTreeMap<String, Vec<NodeInfo>>, TextError> {
        let found = job.plan.allocations.iter().map(|(site, id)| {
            let asked = Asked {
                asker: context.config().site.clone(),
                site: site.clone(),
                id: id.clone(),
            };
            let nodes = self.allocations.nodes(&asked);
            let nodes = nodes.ok_or_else(|| {
                TextError::from(format!(
                    "allocation {id} of {site} was not asked for within {SERVES:?}"
                ))
            })?;
            Ok((site.clone(), nodes.to_vec()))
        });
        found.collect()
    }

    /// Notes where a job of another site runs in an allocation of this site.
    pub(super) fn allocate_for(
        &self,
        context: &CommandContext<'_>,
        site: &str,
        job: &mut Job,
        allocations: BTreeMap<String, String>,
    ) -> Result<(), JobRefusal> {
        let own = &context.config().site;
        let Some(id) = allocations.get(own) else {
            return Ok(());
        };
        let asked = Asked {
            asker: site.to_owned(),
            site: own.clone(),
            id: id.clone(),
        };
        let nodes = self.allocations.nodes(&asked).ok_or(JobRefusal::NoAllocation)?;
        job.allocated.insert(own.clone(), nodes.to_vec());
        job.plan.allocations.insert(own.clone(), id.clone());
        Ok(())
    }
}

/// How long a process's answer may take to arrive after its end.
const LAST_WORDS: Duration = Duration::from_millis(500);

/// The allocation in which a job runs at this site, and the slots of its nodes.
pub(super) fn allocation_of(jobs: &Jobs, config: &Config, token: &Token) -> Option<(String, Vec<u32>)> {
    let job = jobs.get(token)?;
    let id = job.plan.allocations.get(&config.site)?.clone();
    let slots = job.nodes(config).iter().map(|node| node.slots).collect();
    Some((id, slots))
}
