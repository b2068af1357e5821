//! Processes that start others on this site's nodes: one `causeway start-node` each, its standard input and
//! output being the stream. They end with it.

use crate::commands::starter::Starter;
use crate::commands::{Below, Commands};
use crate::driver::Driver;
use crate::keys::{LegKey, PairKey};
use crate::membership::consent;
use crate::site::leg::{Socket, Stage};
use crate::sys::timers::Deadline;
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

impl Commands {
    /// Starts the remote shell to a node of this site, given by the name that shell knows, with `socket` as
    /// its standard input and output.
    pub(crate) fn start_on_node(
        &mut self,
        driver: &mut Driver,
        name: &str,
        token: Token,
        socket: OwnedFd,
    ) -> io::Result<()> {
        let output = socket.try_clone()?;
        // One argument per word: a word may hold blanks, as a ProxyCommand does.
        let words = driver.config.remote_shell.iter();
        let child = Command::new(&driver.program)
            .arg("start-node")
            .args(words.map(|word| format!("--word={word}")))
            .arg("--")
            .arg(name)
            .stdin(Stdio::from(socket))
            .stdout(Stdio::from(output))
            .spawn()?;
        self.look_after(&child, token);
        Ok(())
    }

    /// Starts what reads a stream to its end and says how much came.
    fn start_sink(&mut self, driver: &mut Driver, token: Token, socket: OwnedFd) -> io::Result<()> {
        let output = socket.try_clone()?;
        let mut sink = Command::new(&driver.program);
        sink.arg("sink")
            .stdin(Stdio::from(socket))
            .stdout(Stdio::from(output));
        let child = sink.spawn()?;
        self.look_after(&child, token);
        Ok(())
    }

    fn look_after(&mut self, child: &Child, token: Token) {
        self.starters.push(Starter {
            process: Pid::from_raw(child.id().cast_signed()),
            token,
            doomed: None,
        });
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
        let site = below
            .base
            .tunnels
            .pairs
            .get(pair)
            .map(|pair| pair.site.clone())
            .unwrap_or_default();
        let name = match judge_start(below, token, node) {
            Ok(name) => name,
            Err((kind, why)) => {
                below.base.driver.log.refuse(kind, site, why);
                return Err(Reason::Denied);
            }
        };
        self.open_process(below, pair, id, token, |commands, driver, socket| {
            let started = commands.start_on_node(driver, &name, token, socket);
            started.inspect_err(|error| {
                let text = format_args!("start a process on {node} for {site}: {error}");
                driver.log.say(text);
            })
        })
    }

    /// Another site measures what a stream carries. The job is known to be one of `causeway connect`.
    pub(crate) fn open_sink(
        &mut self,
        below: &mut Below<'_>,
        pair: PairKey,
        id: StreamId,
        token: Token,
    ) -> Result<(), Reason> {
        self.open_process(below, pair, id, token, |commands, driver, socket| {
            let started = commands.start_sink(driver, token, socket);
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
        below
            .site
            .open_stream(&mut below.base, pair, &request, Socket::Unix(socket), Stage::Open)
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
    pub(crate) fn look_after_starters(&mut self) {
        let now = Instant::now();
        self.starters.retain_mut(|starter| {
            if starter.doomed.is_some_and(|doom| doom <= now) {
                let _ = kill(starter.process, Signal::SIGKILL);
            }
            starter.is_running()
        });
    }
}

/// What the remote shell calls the node on which another site asks for a process; else kind and reason of the
/// refusal.
fn judge_start(below: &Below<'_>, token: Token, node: &str) -> Result<String, (&'static str, String)> {
    let Some(job) = below.base.membership.jobs.get(&token) else {
        let why = format!("process asked for on {node:?} with an unknown job token");
        return Err(("unknown-token", why));
    };
    // Again, though it was asked when the job was announced: the configuration may have changed since.
    if let Some(refusal) = consent::why_not(&below.base.driver.config.accept, job) {
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
    use crate::keys::PairKey;
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
            let opened =
                gateway
                    .commands
                    .open_node(&mut below!(gateway), PairKey(0), StreamId(1), token, node);
            assert_eq!(opened, Err(Reason::Denied), "{node}");
        }
        assert!(gateway.commands.starters.is_empty());
        assert_eq!(gateway.driver.log.refused()["unknown-node"], nodes.len() as u64);
    }
}
