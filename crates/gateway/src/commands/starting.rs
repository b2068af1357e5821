//! Processes that start others on this site's nodes: one `causeway start-node` each, its standard input and
//! output being the stream. They end with it.

use crate::commands::starter::Starter;
use crate::commands::{Below, Commands};
use crate::driver::Driver;
use crate::keys::{LegKey, PairKey};
use crate::membership::consent::{self, Refusal};
use crate::membership::jobs::Job;
use crate::site::leg::{Socket, Stage};
use crate::sys::timers::Deadline;
use causeway_broker::clock::Clock;
use causeway_control::audit::AuditEvent;
use causeway_tunnel::StreamId;
use causeway_wire::{Reason, Token};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use std::io;
use std::os::fd::OwnedFd;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// What a starter gets to end by itself once its job is over, before it is killed.
const GRACE: Duration = Duration::from_secs(5);

/// Jobs of one site that may each have as many processes here as one job may: an MPI needs one for each node, and
/// there are at least as many slots.
const JOBS_OF_FULL_SIZE: usize = 8;

/// A process that is to be started.
pub(super) struct Order<'a> {
    /// Of its job.
    pub(super) token: Token,
    /// The site of its job.
    pub(super) site: &'a str,
    /// The node, by the name that the remote shell knows.
    pub(super) node: &'a str,
}

impl Commands {
    /// Starts the remote shell to a node of this site, with `socket` as its standard input and output.
    pub(super) fn start_on_node(
        &mut self,
        driver: &mut Driver,
        order: &Order<'_>,
        socket: OwnedFd,
    ) -> io::Result<()> {
        let output = socket.try_clone()?;
        // One argument per word: a word may hold blanks, as a ProxyCommand does.
        let words = driver.config.remote_shell.iter();
        let child = Command::new(&driver.program)
            .arg("start-node")
            .arg("--control")
            .arg(&driver.config.control)
            .args(words.map(|word| format!("--word={word}")))
            .arg("--")
            .arg(order.node)
            .stdin(Stdio::from(socket))
            .stdout(Stdio::from(output))
            .spawn()?;
        self.look_after(&child, order);
        Ok(())
    }

    /// Starts what reads a stream to its end and says how much came.
    fn start_sink(&mut self, driver: &mut Driver, order: &Order<'_>, socket: OwnedFd) -> io::Result<()> {
        let output = socket.try_clone()?;
        let mut sink = Command::new(&driver.program);
        sink.arg("sink")
            .stdin(Stdio::from(socket))
            .stdout(Stdio::from(output));
        let child = sink.spawn()?;
        self.look_after(&child, order);
        Ok(())
    }

    fn look_after(&mut self, child: &Child, order: &Order<'_>) {
        self.starters.push(Starter {
            process: Pid::from_raw(child.id().cast_signed()),
            token: order.token,
            site: order.site.to_owned(),
            node: order.node.to_owned(),
            since: Clock::system().now(),
            doomed: None,
        });
    }

    /// Writes down the start of the process that was started last. Where that cannot be, another site's process
    /// ends at once: nothing of others' runs here unseen. This site's own goes on.
    pub(super) fn record_start(&mut self, driver: &mut Driver, job: Option<&Job>) -> io::Result<()> {
        let Some(starter) = self.starters.last() else {
            return Ok(());
        };
        let mut entry = starter.entry(&driver.audit, AuditEvent::Start);
        if let Some(job) = job {
            entry.user.clone_from(&job.user);
            entry.name.clone_from(&job.name);
        }
        let written = driver.audit.write(entry);
        if let Err(error) = &written {
            driver.log.refuse("audit", &driver.config.site, error);
            if starter.site != driver.config.site {
                // Its end kills it.
                self.starters.pop();
                return written;
            }
        }
        Ok(())
    }

    /// Another site asks for a process on a node of this one. It gets none anywhere else: what this user's
    /// keys open beyond the site is no part of the grid.
    pub(crate) fn open_node(
        &mut self,
        below: &mut Below<'_>,
        pair: PairKey,
        id: StreamId,
        token: Token,
        node: &str,
    ) -> Result<(), Reason> {
        let site = below.site_of(pair);
        let judged = judge_start(below, &site, token, node).and_then(|name| {
            self.has_room(below.base.driver, &token, &site)?;
            Ok(name)
        });
        let name = match judged {
            Ok(name) => name,
            Err((kind, why)) => {
                consent::record_refusal(&mut below.base, kind, &site, token, why);
                return Err(reason_of(kind));
            }
        };
        let order = Order {
            token,
            site: &site,
            node: &name,
        };
        self.open_process(below, pair, id, token, |commands, driver, socket| {
            let started = commands.start_on_node(driver, &order, socket);
            started.inspect_err(|error| {
                let text = format_args!("start a process on {node} for {site}: {error}");
                driver.log.say(text);
            })
        })
    }

    /// Whether one more process may be started for a job of another site: neither one job nor one site takes all.
    fn has_room(&self, driver: &Driver, token: &Token, site: &str) -> Result<(), Refusal> {
        let slots = driver.config.nodes.iter().map(|node| node.slots).sum();
        let most = driver.config.accept.max_processes.unwrap_or(slots) as usize;
        let count = |is: &dyn Fn(&Starter) -> bool| self.starters.iter().filter(|known| is(known)).count();
        let whose = if count(&|known| known.token == *token) >= most {
            format!("its job has {most} processes")
        } else if count(&|known| known.site == site) >= most.saturating_mul(JOBS_OF_FULL_SIZE) {
            format!("jobs of its site have {JOBS_OF_FULL_SIZE} times {most} processes")
        } else {
            return Ok(());
        };
        let why = format!(
            "{whose} here already, which is max_processes in [accept], or the slots of the listed nodes"
        );
        Err(("max-processes", why))
    }

    /// Another site measures what a stream carries. The job is known to be one of `causeway connect`.
    pub(crate) fn open_sink(
        &mut self,
        below: &mut Below<'_>,
        pair: PairKey,
        id: StreamId,
        token: Token,
    ) -> Result<(), Reason> {
        let site = below.site_of(pair);
        if let Err((kind, why)) = self.has_room(below.base.driver, &token, &site) {
            consent::record_refusal(&mut below.base, kind, &site, token, why);
            return Err(reason_of(kind));
        }
        let order = Order {
            token,
            site: &site,
            node: SINK,
        };
        self.open_process(below, pair, id, token, |commands, driver, socket| {
            let started = commands.start_sink(driver, &order, socket);
            started.inspect_err(|error| driver.log.say(format_args!("start a sink: {error}")))
        })
    }

    /// Gives a stream to a process of this host, as its standard input and output.
    fn open_process(
        &mut self,
        below: &mut Below<'_>,
        pair: PairKey,
        id: StreamId,
        token: Token,
        start: impl FnOnce(&mut Commands, &mut Driver, OwnedFd) -> io::Result<()>,
    ) -> Result<(), Reason> {
        let (near, far) = std::os::unix::net::UnixStream::pair().map_err(|_| Reason::Exhausted)?;
        let near = near
            .set_nonblocking(true)
            .map(|()| mio::net::UnixStream::from_std(near));
        let near = near.map_err(|_| Reason::Exhausted)?;
        start(self, below.base.driver, far.into()).map_err(|_| Reason::Exhausted)?;
        let job = below.base.membership.jobs.get(&token);
        self.record_start(below.base.driver, job)
            .map_err(|_| Reason::Exhausted)?;
        let key = below
            .site
            .add_leg(&mut below.base, Socket::Unix(near), pair, id, token, Stage::Open)?;
        if let Some(pair) = below.base.tunnels.pairs.get_mut(pair) {
            pair.tunnel.opened(id);
        }
        below.site.schedule(&mut below.base, key);
        Ok(())
    }

    /// Carries a command's connection to a node of another site.
    pub(crate) fn join_node(
        &mut self,
        below: &mut Below<'_>,
        pair: PairKey,
        socket: mio::net::UnixStream,
        token: Token,
        node: &str,
    ) -> Result<LegKey, Reason> {
        let target = causeway_tunnel::Target::Node(node.to_owned());
        let request = causeway_tunnel::OpenRequest { token, target };
        below.site.open_stream(
            &mut below.base,
            pair,
            &request,
            Socket::Unix(socket),
            Stage::Spawning,
        )
    }

    /// A job is over: its starters lost their streams and end; those that do not are killed.
    pub(crate) fn end_starters(&mut self, below: &mut Below<'_>, token: &Token) {
        let doom = Instant::now() + GRACE;
        for starter in self.starters.iter_mut().filter(|starter| starter.token == *token) {
            starter.doomed = Some(doom);
        }
        below.base.driver.timers.set(GRACE, Deadline::Starters);
    }

    /// Collects starters that have ended and kills those that should have.
    pub(crate) fn look_after_starters(&mut self, driver: &mut Driver) {
        let now = Instant::now();
        self.starters.retain_mut(|starter| {
            if starter.doomed.is_some_and(|doom| doom <= now) {
                let _ = kill(starter.process, Signal::SIGKILL);
            }
            let Some(outcome) = starter.poll_end() else {
                return true;
            };
            let mut entry = starter.entry(&driver.audit, AuditEvent::End);
            entry.seconds = Some(Clock::system().now().saturating_sub(starter.since));
            entry.outcome = outcome;
            if let Err(error) = driver.audit.write(entry) {
                driver.log.refuse("audit", &driver.config.site, error);
            }
            // Collected: its number may be another process's by now.
            starter.process = Pid::from_raw(0);
            false
        });
    }

    /// `start-node` tells what a node runs for it.
    pub(super) fn on_started(&mut self, driver: &mut Driver, pid: u32, node_pid: u32, command: String) {
        let mut starters = self.starters.iter();
        let Some(starter) = starters.find(|starter| starter.process.as_raw().cast_unsigned() == pid) else {
            return;
        };
        let mut entry = starter.entry(&driver.audit, AuditEvent::Command);
        entry.node_pid = Some(node_pid);
        entry.command = command;
        if let Err(error) = driver.audit.write(entry) {
            driver.log.refuse("audit", &driver.config.site, error);
        }
    }
}

/// What stands for the node where this host itself counts what comes.
const SINK: &str = "(counts what comes, on this host)";

/// What the asking gateway is told of a refusal.
fn reason_of(kind: &str) -> Reason {
    match kind {
        "max-processes" => Reason::Exhausted,
        _ => Reason::Denied,
    }
}

/// What the remote shell calls the node on which another site asks for a process; else kind and reason of the
/// refusal.
fn judge_start(below: &Below<'_>, site: &str, token: Token, node: &str) -> Result<String, Refusal> {
    let Some(job) = below.base.membership.jobs.get(&token) else {
        let why = format!("process asked for on {node:?} with an unknown job token");
        return Err(("unknown-token", why));
    };
    if !job.is_from(site) {
        let why =
            format!("process asked for on {node:?} under a job of another site, where its launcher runs");
        return Err(("no-part", why));
    }
    // Again, though it was asked when the job was announced: the configuration may have changed since.
    if let Some(refusal) = consent::why_not(&below.base.driver.config, job) {
        let why = format!("process asked for on {node:?}: {}", refusal.in_log());
        return Err(("not-accepted", why));
    }
    if job.plain {
        let why =
            format!("process asked for on {node:?} under a job of 'causeway connect', which starts none");
        return Err(("not-accepted", why));
    }
    below.base.membership.directory.listed_name(node).ok_or_else(|| {
        let why = format!("process asked for on {node:?}, which is no listed node of this site");
        ("unknown-node", why)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Config;
    use crate::Gateway;
    use crate::commands::below;
    use crate::membership::jobs::{Job, Origin};
    use std::os::unix::fs::PermissionsExt;

    /// A gateway of a site of its own on loopback, with one job.
    fn gateway(directory: &std::path::Path, token: Token) -> Gateway {
        let key = directory.join("grid.key");
        std::fs::write(&key, "0123456789abcdef").unwrap();
        std::fs::set_permissions(&key, PermissionsExt::from_mode(0o600)).unwrap();
        // Another run of this test on the same machine listens elsewhere.
        let own = std::process::id() % 250;
        let text = format!(
            r#"
            [site]
            name = "rennes"
            subnets = ["127.9.0.0/16"]
            nodes = [{{ name = "rennes-1", address = "127.9.{own}.1" }}]
            [accept]
            jobs = ["nancy"]
            [listen]
            lan = ["127.9.{own}.253:7000"]
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
        gateway.membership.jobs.start(token, job);
        gateway
    }

    #[test]
    fn another_site_starts_nothing_but_on_nodes_of_this_one() {
        let directory = tempfile::tempdir().unwrap();
        let token = Token([1; 16]);
        let mut gateway = gateway(directory.path(), token);
        let nodes = ["-oProxyCommand=id", "localhost", "127.0.0.1", "nancy-1", ""];
        for node in nodes {
            let judged = judge_start(&below!(gateway), "nancy", token, node);
            assert_eq!(judged.unwrap_err().0, "unknown-node", "{node}");
        }
        let judged =
            |gateway: &mut Gateway, site: &str| judge_start(&below!(gateway), site, token, "rennes-1");
        assert_eq!(judged(&mut gateway, "nancy").as_deref(), Ok("rennes-1"));
        assert_eq!(judged(&mut gateway, "lyon").unwrap_err().0, "no-part");
        gateway.driver.config.accept.jobs.clear();
        assert_eq!(judged(&mut gateway, "nancy").unwrap_err().0, "not-accepted");
        assert!(gateway.commands.starters.is_empty());
    }
}
