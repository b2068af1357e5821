//! Gives a command's connection to a process on a node, at this site or another.

use crate::base::Bundle;
use crate::commands::allocations::allocation_of;
use crate::commands::command::Command;
use crate::commands::starter::{Start, Waiting};
use crate::commands::{CommandContext, Commands};
use crate::driver::Driver;
use crate::keys::{CommandKey, PairKey};
use crate::membership::directory::Whereabouts;
use crate::sys::socket;
use causeway_control::spawned::error_frame;
use causeway_control::{BATCH_NODE, Reply, descriptor};
use causeway_wire::Token;
use mio::net::{TcpStream, UnixStream};
use std::io::{self, Write};
use std::os::fd::{AsFd, OwnedFd};

impl Commands {
    pub(super) fn spawn(
        &mut self,
        context: &mut CommandContext<'_>,
        key: CommandKey,
        token: Token,
        (node, takes_connection): (&str, bool),
    ) {
        // This host's names are tried first: another site may have a node of the same name, for example
        // "localhost".
        let holds_at = node.strip_prefix(BATCH_NODE);
        let place = match self.is_this_host(node) {
            _ if holds_at == Some(&context.config().site) => Whereabouts::Here,
            _ if let Some(site) = holds_at => Whereabouts::At(site.to_owned()),
            true => Whereabouts::Here,
            false => find_node(context, &token, node),
        };
        let pair = match &place {
            Whereabouts::Here => None,
            Whereabouts::At(site) => match context.tunnels.pairs().key_of(site) {
                Some(pair) => Some(pair),
                None => {
                    let why = format!("node {node} is at {site}, but there is no tunnel to {site}");
                    return self.answer(context, key, Reply::Error(why));
                }
            },
            Whereabouts::Nowhere => {
                return self.answer(
                    context,
                    key,
                    Reply::Error(format!("no site of the grid has a node {node}")),
                );
            }
        };
        if let Whereabouts::At(site) = &place
            && let Some(why) = why_no_part(context, &token, site)
        {
            let why = format!("site {site} takes no part in this job: {why}");
            return self.answer(context, key, Reply::Error(why));
        }
        if let Some(pair) = pair {
            return self.give_stream(context, key, pair, token, (node, takes_connection));
        }
        self.answer_at_once(context, key, &Reply::Spawn {});
        // A reply that could not be written has ended the command.
        let Some(command) = self.connections.try_remove(key) else {
            return;
        };
        match holds_at {
            Some(_) => self.give_to_holder(context, command.socket, token),
            None => self.give_to_starter(context, command.socket, token, node),
        }
    }

    /// Gives a command a stream to a node of another site. The stream gets a new connection, over TCP,
    /// because the kernel counts its bytes, which the next worker needs to know if this one is killed. A
    /// command whose connection is forwarded cannot receive the new one: its stream uses the old one, until a
    /// worker is killed.
    fn give_stream(
        &mut self,
        context: &mut CommandContext<'_>,
        key: CommandKey,
        pair: PairKey,
        token: Token,
        (node, takes_connection): (&str, bool),
    ) {
        if !takes_connection {
            self.answer_at_once(context, key, &Reply::Spawn {});
        }
        let Some(mut command) = self.connections.try_remove(key) else {
            return;
        };
        let given = if takes_connection {
            give_connection(&command)
        } else {
            let deregistered = context.driver.registry().deregister(&mut command.socket);
            deregistered.map(|()| TcpStream::from_std(OwnedFd::from(command.socket).into()))
        };
        match given {
            Ok(near) => {
                if let Err(reason) = self.join_node(context, pair, near, token, node) {
                    context.say(format_args!("start on {node}: {}", reason.text()));
                }
            }
            Err(error) => context.say(format_args!("start on {node}: its connection: {error}")),
        }
    }

    /// Gives a command's connection to a starter of this site. The loop has nothing to do with it afterwards.
    fn give_to_starter(
        &mut self,
        context: &mut CommandContext<'_>,
        mut socket: UnixStream,
        token: Token,
        node: &str,
    ) {
        let directory = context.directory();
        let job = context.jobs().get(&token);
        let name = match job.and_then(|job| job.allocated_at(&context.config().site)) {
            Some(nodes) => directory.name_among(nodes, node),
            // The head node has a name here without being one of the site's compute nodes; `spawn` has
            // checked that.
            None => { directory.listed_name(node) }
                .or_else(|| directory.own_address_name(node))
                .or_else(|| Some(node.to_owned())),
        };
        let Some(name) = name else {
            let why = format!("{node} is no node of the job's allocation at this site");
            // A few bytes fit into the socket; if not, nobody reads them.
            let _ = socket.write(&error_frame(&why));
            return;
        };
        let allocation = allocation_of(context.jobs(), context.config(), &token);
        self.give(
            context,
            socket,
            (token, name, allocation),
            Commands::start_on_node,
        );
    }

    /// Gives a command's connection to a process that is started here, as its standard input and output.
    pub(super) fn give(
        &mut self,
        context: &mut CommandContext<'_>,
        mut socket: UnixStream,
        (token, node, allocation): (Token, String, Option<(String, Vec<u32>)>),
        begin: impl FnOnce(&mut Commands, &Driver, Start, OwnedFd) -> io::Result<()>,
    ) {
        let what = node.clone();
        let given = context
            .driver
            .registry()
            .deregister(&mut socket)
            .map(|()| std::os::unix::net::UnixStream::from(OwnedFd::from(socket)))
            .and_then(|mut socket| {
                socket.set_nonblocking(false)?;
                let start = Start {
                    token,
                    site: context.config().site.clone(),
                    node,
                    allocation,
                    waiting: Waiting::Command(socket.try_clone()?),
                };
                let far = socket.try_clone()?;
                begin(self, context.driver, start, far.into())
                    .inspect_err(|error| drop(socket.write(&error_frame(&error.to_string()))))
            });
        if let Err(error) = given {
            context.say(format_args!("start on {what}: {error}"));
        }
    }

    /// The head node may be named by its host name, although it is not a compute node.
    fn is_this_host(&self, node: &str) -> bool {
        nix::unistd::gethostname()
            .is_ok_and(|name| name.to_str().is_some_and(|name| name.eq_ignore_ascii_case(node)))
    }
}

/// Sends a connection with the answer to a command; returns the near end.
fn give_connection(command: &Command) -> io::Result<TcpStream> {
    let (near, far) = socket::loopback_pair()?;
    descriptor::give(&command.socket, &Reply::Spawn {}.line(), far.as_fd())?;
    Ok(near)
}

/// Finds the site of a node: first among the nodes of the job's allocations, which the sites do not list.
fn find_node(context: &CommandContext<'_>, token: &Token, node: &str) -> Whereabouts {
    let allocated = context.jobs().get(token).map(|job| &job.allocated);
    let mut allocated = allocated.into_iter().flatten();
    let found = allocated.find(|(_, nodes)| context.directory().name_among(nodes, node).is_some());
    match found {
        Some((site, _)) if *site == context.config().site => Whereabouts::Here,
        Some((site, _)) => Whereabouts::At(site.clone()),
        None => context.directory().find_node(node),
    }
}

/// Why another site does not know a job, and starts nothing for it; `None` if it does.
fn why_no_part(context: &CommandContext<'_>, token: &Token, site: &str) -> Option<String> {
    let job = context.jobs().get(token)?;
    if job.takes_part(site) {
        return None;
    }
    Some(match job.refused.get(site) {
        Some(why) => why.for_user(&context.config().site, site),
        None => "the job was not started for it, or it joined later".to_owned(),
    })
}
