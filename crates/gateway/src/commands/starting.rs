//! Processes that start others on this site's nodes: one `causeway start-node` for each, whose standard input
//! and output are the stream. They end with the stream.

use crate::base::Bundle;
use crate::commands::allocations::allocation_of;
use crate::commands::batch_words::start_arguments;
use crate::commands::recording::{Unrecorded, can_record, note};
use crate::commands::spawner::{Outcome, Program};
use crate::commands::starter::{GRACE, Start, Starter, Waiting, Whose};
use crate::commands::{CommandContext, Commands};
use crate::driver::Driver;
use crate::keys::{LegKey, PairKey};
use crate::membership::consent::{self, Refusal};
use crate::membership::jobs::Job;
use crate::site::opening::Process;
use crate::sys::socket;
use crate::sys::timers::CommandsDeadline;
use causeway_control::{BATCH_NODE, audit::AuditEvent, spawned::error_frame};
use causeway_tunnel::StreamId;
use causeway_wire::{Reason, Token};
use std::ffi::OsString;
use std::io::{self, Write};
use std::os::fd::OwnedFd;
use std::time::{Duration, Instant};

/// How long a hand-over waits for processes that are being started.
const START_PATIENCE: Duration = Duration::from_secs(1);

/// Most processes on a node that a job may have beside one for each slot, to keep and copy its files.
const FOR_FILES: u32 = 2;

/// How many jobs of one site may each have as many processes here as one job may. An MPI needs one process
/// for each node, and a node has at least one slot.
const JOBS_OF_FULL_SIZE: usize = 8;

impl Commands {
    /// Starts the remote shell to a node of this site, with `socket` as its standard input and output.
    pub(super) fn start_on_node(&mut self, driver: &Driver, start: Start, socket: OwnedFd) -> io::Result<()> {
        // One argument for each word: a word may contain blanks, as a ProxyCommand does.
        let (shell, batch) = start_arguments(&driver.config, &start.site, start.allocation.as_ref());
        let words = shell
            .into_iter()
            .map(|word| OsString::from(format!("--word={word}")));
        let control = driver.config.control.clone().into_os_string();
        let (site, own) = ("--site".into(), OsString::from(&driver.config.site));
        let mpi = &driver.config.mpi;
        let mpi = [("--mpi-start", &mpi.start), ("--mpi-setup", &mpi.setup)].into_iter();
        let mpi =
            mpi.filter_map(|(option, text)| Some(OsString::from(format!("{option}={}", text.as_ref()?))));
        let bound = driver
            .config
            .accept
            .files
            .filter(|_| start.site != driver.config.site);
        let bound = bound.map(|bytes| OsString::from(format!("--files={bytes}")));
        let arguments = ["start-node".into(), "--control".into(), control, site, own]
            .into_iter()
            .chain(mpi)
            .chain(bound)
            .chain(batch)
            .chain(words)
            .chain(["--".into(), OsString::from(&start.node)]);
        let arguments = arguments.collect();
        self.begin_start(driver, start, arguments, socket)
    }

    pub(super) fn begin_start(
        &mut self,
        driver: &Driver,
        start: Start,
        arguments: Vec<OsString>,
        socket: OwnedFd,
    ) -> io::Result<()> {
        let program = Program {
            path: driver.program.clone(),
            arguments,
            socket,
        };
        let key = self.starts.vacant_key();
        self.spawner.start(key, program)?;
        self.starts.insert(start);
        Ok(())
    }

    /// Processes have been started, or could not be.
    pub(in crate::commands) fn on_spawner(&mut self, context: &mut CommandContext<'_>) {
        for outcome in self.spawner.outcomes() {
            self.on_outcome(context, outcome);
        }
        // If the process ended at once, nobody was in charge of it yet when the kernel reported that.
        self.look_after_starters(context.driver);
    }

    /// Waits for processes that are being started, because nobody is in charge of a process until the loop
    /// hears of it. False if that takes longer than [`START_PATIENCE`].
    pub(crate) fn await_starts(&mut self, context: &mut CommandContext<'_>) -> bool {
        let until = Instant::now() + START_PATIENCE;
        self.give_up_looks(context);
        while !self.starts.is_empty() {
            match self.spawner.await_outcome(until) {
                Some(outcome) => self.on_outcome(context, outcome),
                None => return false,
            }
        }
        self.await_records(context, until)
    }

    fn on_outcome(&mut self, context: &mut CommandContext<'_>, Outcome { key, started }: Outcome) {
        let Some(start) = self.starts.try_remove(key) else {
            return;
        };
        if let Waiting::Nobody(purpose) = start.waiting {
            return self.on_helper_begun(context, &purpose, started);
        }
        let own = start.site == context.driver.config.site;
        match started {
            Ok(process) if own => {
                self.take_own(context, &start, process);
                self.finish_start(context, start.waiting, Ok(()));
            }
            Ok(process) => self.record(context, start, process),
            Err(error) => {
                let (node, site) = (&start.node, &start.site);
                context.say(format_args!("start a process on {node} for {site}: {error}"));
                self.finish_start(context, start.waiting, Err(error));
            }
        }
    }

    /// Tells whoever waits for a process whether it runs.
    pub(super) fn finish_start(
        &mut self,
        context: &mut CommandContext<'_>,
        waiting: Waiting,
        started: io::Result<()>,
    ) {
        match waiting {
            Waiting::Stream(leg, generation) => {
                let runs = started.is_ok();
                let (site, mut base) = context.site_and_base();
                site.processes().on_begun(&mut base, leg, generation, runs);
            }
            Waiting::Command(mut command) => {
                if let Err(error) = started {
                    // A few bytes fit into the socket; if not, nobody reads them.
                    let _ = command.write(&error_frame(&error.to_string()));
                }
            }
            // The one who waits is not a process on a node, and has been told.
            Waiting::Nobody(_) => {}
        }
    }

    /// Starts the process that a stream of another site asks for.
    ///
    /// # Errors
    /// Why none is started, for the far side.
    pub(crate) fn start_for_stream(
        &mut self,
        context: &mut CommandContext<'_>,
        pair: PairKey,
        id: StreamId,
        process: Process,
    ) -> Result<(), Reason> {
        match process {
            Process::Sink(token) => self.open_sink(context, pair, id, token),
            Process::Node(token, node) => self.open_node(context, pair, id, token, &node),
        }
    }

    /// Another site asks for a process on a node of this one. It gets none elsewhere: hosts outside the site
    /// that this user's keys open are not part of the grid.
    fn open_node(
        &mut self,
        context: &mut CommandContext<'_>,
        pair: PairKey,
        id: StreamId,
        token: Token,
        node: &str,
    ) -> Result<(), Reason> {
        let site = context.tunnels.pairs().site_of(pair).to_owned();
        if node.strip_prefix(BATCH_NODE) == Some(&context.config().site) {
            return self.open_holder(context, (pair, site), id, token);
        }
        let judged = judge_start(context, &site, token, node).and_then(|name| {
            self.has_room(context, &token, &site)?;
            can_record(context.driver)?;
            Ok(name)
        });
        let name = match judged {
            Ok(name) => name,
            Err((kind, why)) => {
                context.record_refusal((kind, why), &site, token);
                return Err(reason_of(kind));
            }
        };
        self.open_process(
            context,
            pair,
            id,
            (token, site, name),
            |commands, driver, start, socket| commands.start_on_node(driver, start, socket),
        )
    }

    /// Lists the processes of this host for jobs. Processes that are still being started count like those
    /// that run.
    pub(super) fn under_way(&self) -> impl Iterator<Item = Whose<'_>> {
        let running = self.starters.iter().map(Starter::whose);
        let unrecorded = self.unrecorded.values().map(Unrecorded::whose);
        let starting = self.starts.iter().map(|(_, start)| start.whose());
        running.chain(unrecorded).chain(starting)
    }

    /// Whether one more process may be started for a job of another site: neither one job nor one site may
    /// use up everything.
    pub(super) fn has_room(
        &self,
        context: &CommandContext<'_>,
        token: &Token,
        site: &str,
    ) -> Result<(), Refusal> {
        let config = context.config();
        let nodes = { context.jobs().get(token) }.map_or(&config.nodes[..], |job| job.nodes(config));
        let add = |sum: u32, slots: u32| sum.saturating_add(slots).saturating_add(FOR_FILES);
        let usual = nodes.iter().map(|node| node.slots).fold(0, add);
        let most = config.accept.max_processes.unwrap_or(usual).max(1) as usize;
        let processes = || self.under_way().filter(|process| !process.is_holder());
        let whose = if processes().filter(|process| process.token == token).count() >= most {
            format!("its job has {most} processes")
        } else if processes().filter(|process| process.site == site).count()
            >= most.saturating_mul(JOBS_OF_FULL_SIZE)
        {
            format!("jobs of its site have {JOBS_OF_FULL_SIZE} times {most} processes")
        } else {
            return Ok(());
        };
        let why =
            format!("{whose} here already, which is max_processes in [accept], or the slots of the nodes");
        Err(("max-processes", why))
    }

    /// Another site measures what a stream carries. The job is known to belong to `causeway connect`.
    fn open_sink(
        &mut self,
        context: &mut CommandContext<'_>,
        pair: PairKey,
        id: StreamId,
        token: Token,
    ) -> Result<(), Reason> {
        let site = context.tunnels.pairs().site_of(pair).to_owned();
        if let Err((kind, why)) = self.has_room(context, &token, &site) {
            context.record_refusal((kind, why), &site, token);
            return Err(reason_of(kind));
        }
        self.open_process(
            context,
            pair,
            id,
            (token, site, SINK.to_owned()),
            |commands, driver, start, socket| {
                commands.begin_start(driver, start, vec!["sink".into()], socket)
            },
        )
    }

    /// Gives a stream to a process of this host, as its standard input and output, once the process runs.
    pub(super) fn open_process(
        &mut self,
        context: &mut CommandContext<'_>,
        pair: PairKey,
        id: StreamId,
        (token, site, node): (Token, String, String),
        begin: impl FnOnce(&mut Commands, &Driver, Start, OwnedFd) -> io::Result<()>,
    ) -> Result<(), Reason> {
        let pair_of_sockets = socket::loopback_pair().inspect_err(|error| {
            context.say(format_args!(
                "start a process: a connection within this host: {error}"
            ));
        });
        let (near, far) = pair_of_sockets.map_err(|_| Reason::Exhausted)?;
        let (own, mut base) = context.site_and_base();
        let (leg, generation) = own.processes().begin(&mut base, pair, id, near, token)?;
        let waiting = Waiting::Stream(leg, generation);
        let start = Start {
            allocation: allocation_of(base.jobs(), base.config(), &token),
            token,
            site,
            node,
            waiting,
        };
        begin(self, base.driver, start, far.into()).map_err(|error| {
            base.say(format_args!("start a process: {error}"));
            own.processes().forget(&mut base, leg);
            Reason::Exhausted
        })
    }

    /// Carries a command's connection to a node of another site.
    pub(in crate::commands) fn join_node(
        &mut self,
        context: &mut CommandContext<'_>,
        pair: PairKey,
        socket: mio::net::TcpStream,
        token: Token,
        node: &str,
    ) -> Result<LegKey, Reason> {
        let (site, mut base) = context.site_and_base();
        site.processes().ask_for(&mut base, pair, socket, token, node)
    }

    /// A job is over: its starters have lost their streams and end; those that do not are killed.
    pub(in crate::commands) fn end_starters(&mut self, context: &mut CommandContext<'_>, token: &Token) {
        let doom = Instant::now() + GRACE;
        for starter in self.starters.iter_mut().filter(|starter| starter.token == *token) {
            starter.doomed = Some(doom);
        }
        // Nobody waits for these any more.
        self.unrecorded
            .retain(|_, unrecorded| unrecorded.whose().token != token);
        context.set_deadline(GRACE, CommandsDeadline::Starters);
    }

    /// `start-node` reports what a node runs for it.
    pub(super) fn on_started(&mut self, driver: &mut Driver, pid: u32, node_pid: u32, command: String) {
        let mut starters = self.starters.iter();
        let Some(starter) = starters.find(|starter| starter.process.as_raw().cast_unsigned() == pid) else {
            return;
        };
        let mut entry = starter.entry(&driver.audit, AuditEvent::Command);
        entry.node_pid = Some(node_pid);
        entry.command = command;
        note(driver, entry);
    }
}

/// The name of the node in the audit if this host itself counts the bytes that arrive.
const SINK: &str = "(counts what comes, on this host)";

/// The reason that the asking gateway is told for a refusal.
pub(super) fn reason_of(kind: &str) -> Reason {
    match kind {
        "max-processes" | "max-allocations" | "audit" => Reason::Exhausted,
        _ => Reason::Denied,
    }
}

/// The job for which another site asks for a process here, if that job may start some; otherwise kind and
/// reason of the refusal.
pub(super) fn judge_job<'a>(
    context: &'a CommandContext<'_>,
    site: &str,
    token: Token,
    node: &str,
) -> Result<&'a Job, Refusal> {
    let Some(job) = context.jobs().get(&token) else {
        let why = format!("process asked for on {node:?} with an unknown job token");
        return Err(("unknown-token", why));
    };
    if !job.is_from(site) {
        let why =
            format!("process asked for on {node:?} under a job of another site, where its launcher runs");
        return Err(("no-part", why));
    }
    // This is asked again, although it was asked when the job was announced: the configuration may have
    // changed since.
    if let Some(refusal) = consent::why_not(context.config(), job) {
        let why = format!("process asked for on {node:?}: {}", refusal.in_log());
        return Err(("not-accepted", why));
    }
    if job.bare {
        let why =
            format!("process asked for on {node:?} under a job of 'causeway connect', which starts none");
        return Err(("not-accepted", why));
    }
    Ok(job)
}

/// The remote shell's name of the node on which another site asks for a process; otherwise kind and reason of
/// the refusal.
pub(super) fn judge_start(
    context: &CommandContext<'_>,
    site: &str,
    token: Token,
    node: &str,
) -> Result<String, Refusal> {
    let job = judge_job(context, site, token, node)?;
    let (name, whose) = match job.allocated_at(&context.config().site) {
        Some(nodes) => (
            context.directory().name_among(nodes, node),
            "no node of the job's allocation here",
        ),
        None => (
            context.directory().listed_name(node),
            "no listed node of this site",
        ),
    };
    name.ok_or_else(|| {
        (
            "unknown-node",
            format!("process asked for on {node:?}, which is {whose}"),
        )
    })
}

#[cfg(test)]
pub(in crate::commands) mod tests {
    use super::*;
    use crate::Config;
    use crate::Gateway;
    use crate::commands::command_context;
    use crate::membership::jobs::Origin;
    use std::os::unix::fs::PermissionsExt;
    use std::sync::atomic::{AtomicU16, Ordering};

    /// A gateway on loopback, of a separate site, with one job.
    pub(in crate::commands) fn gateway(directory: &std::path::Path, token: Token) -> Gateway {
        let key = directory.join("grid.key");
        std::fs::write(&key, "0123456789abcdef").unwrap();
        std::fs::set_permissions(&key, PermissionsExt::from_mode(0o600)).unwrap();
        // Another run of this test on the same machine listens elsewhere.
        let own = std::process::id() % 250;
        static NEXT: AtomicU16 = AtomicU16::new(7000);
        let port = NEXT.fetch_add(1, Ordering::Relaxed);
        let text = format!(
            r#"
            [site]
            name = "rennes"
            subnets = ["127.9.0.0/16"]
            nodes = [{{ name = "rennes-1", address = "127.9.{own}.1" }}]
            [accept]
            jobs = ["nancy"]
            [listen]
            lan = ["127.9.{own}.253:{port}"]
            control = "{}"
            [grid]
            key_file = "grid.key"
            "#,
            directory.join("gateway.sock").display()
        );
        let config = Config::parse(&text, &directory.join("gateway.toml")).unwrap();
        let mut gateway = Gateway::new(config).unwrap();
        let origin = Origin::Site("nancy".into());
        let job = Job::new("mpirun".into(), 1, origin, Default::default());
        gateway.membership.jobs_mut().start(token, job);
        gateway
    }

    #[test]
    fn another_site_starts_nothing_but_on_nodes_of_this_one() {
        let directory = tempfile::tempdir().unwrap();
        let token = Token([1; 16]);
        let mut gateway = gateway(directory.path(), token);
        let nodes = ["-oProxyCommand=id", "localhost", "127.0.0.1", "nancy-1", ""];
        for node in nodes {
            let judged = judge_start(&command_context!(gateway), "nancy", token, node);
            assert_eq!(judged.unwrap_err().0, "unknown-node", "{node}");
        }
        let judged = |gateway: &mut Gateway, site: &str| {
            judge_start(&command_context!(gateway), site, token, "rennes-1")
        };
        assert_eq!(judged(&mut gateway, "nancy").as_deref(), Ok("rennes-1"));
        assert_eq!(judged(&mut gateway, "lyon").unwrap_err().0, "no-part");
        gateway.driver.config.accept.jobs.clear();
        assert_eq!(judged(&mut gateway, "nancy").unwrap_err().0, "not-accepted");
        assert!(gateway.commands.starters.is_empty());
    }
}
