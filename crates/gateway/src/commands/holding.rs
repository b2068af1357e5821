//! Starts holders: processes that get an allocation of this site's batch system for a job, hold it, and give
//! it back when their stream ends. `causeway run` is at the other end of the stream.

use crate::base::Bundle;
use crate::commands::batch_words::asking_arguments;
use crate::commands::recording::can_record;
use crate::commands::starter::{HOLDER, Start};
use crate::commands::starting::{judge_job, reason_of};
use crate::commands::{CommandContext, Commands};
use crate::driver::Driver;
use crate::keys::{CommandKey, PairKey};
use crate::membership::consent::Refusal;
use causeway_batch::is_id;
use causeway_control::{NodeInfo, Reply};
use causeway_tunnel::StreamId;
use causeway_wire::{Reason, TextError, Token};
use mio::net::UnixStream;
use nix::sys::socket::getsockopt;
use nix::sys::socket::sockopt::PeerCredentials;
use std::ffi::OsString;
use std::io;
use std::os::fd::OwnedFd;

/// Most holders for one job of another site, of which one may be ending, and for all jobs of one such site.
const MOST_OF_A_JOB: usize = 2;
const MOST_OF_A_SITE: usize = 64;

impl Commands {
    /// Starts a holder for a job of this site.
    pub(super) fn give_to_holder(
        &mut self,
        context: &mut CommandContext<'_>,
        socket: UnixStream,
        token: Token,
    ) {
        self.give(
            context,
            socket,
            (token, HOLDER.to_owned(), None),
            Commands::start_holder,
        );
    }

    /// Starts a holder for a job of another site.
    pub(super) fn open_holder(
        &mut self,
        context: &mut CommandContext<'_>,
        (pair, site): (PairKey, String),
        id: StreamId,
        token: Token,
    ) -> Result<(), Reason> {
        let most = context
            .config()
            .batch
            .as_ref()
            .and_then(|batch| batch.max_allocations);
        let judged = judge_holder(context, &site, token).and_then(|()| {
            self.may_hold(token, &site, most)?;
            can_record(context.driver)
        });
        if let Err((kind, why)) = judged {
            context.record_refusal((kind, why), &site, token);
            return Err(reason_of(kind));
        }
        self.open_process(
            context,
            pair,
            id,
            (token, site, HOLDER.to_owned()),
            |commands, driver, start, socket| commands.start_holder(driver, start, socket),
        )
    }

    /// Whether one more holder may be started for a job of another site. Holders are not processes of the
    /// job, and are counted separately.
    fn may_hold(&self, token: Token, site: &str, most: Option<u32>) -> Result<(), Refusal> {
        let holders = || { self.under_way() }.filter(|process| process.is_holder() && process.site == site);
        let own = holders().filter(|process| *process.token == token).count();
        let all = holders().count();
        match most {
            Some(most) if all as u64 >= u64::from(most) => Err((
                "max-allocations",
                format!(
                    "its site holds {all} allocations here, as many as max_allocations in [batch] allows"
                ),
            )),
            _ if own >= MOST_OF_A_JOB || all >= MOST_OF_A_SITE => Err((
                "max-processes",
                "its job or its site holds too many allocations here".to_owned(),
            )),
            _ => Ok(()),
        }
    }

    fn start_holder(&mut self, driver: &Driver, start: Start, socket: OwnedFd) -> io::Result<()> {
        let config = &driver.config;
        let (Some(batch), Some(listen)) = (&config.batch, config.lan.first()) else {
            return Err(io::Error::other(
                "this site's gateway uses no batch system: add [batch] to its gateway.toml",
            ));
        };
        let word = |text: String| OsString::from(text);
        let mut arguments: Vec<OsString> = vec!["holder".into(), "--control".into()];
        arguments.push(config.control.clone().into_os_string());
        arguments.extend(asking_arguments(config, batch));
        arguments.push(word(format!("--listen={}", listen.ip())));
        arguments.extend(["--intents".into(), batch.intents.clone().into_os_string()]);
        arguments.extend({ batch.options.iter() }.map(|option| word(format!("--option={option}"))));
        arguments.extend({ batch.allow.iter() }.map(|name| word(format!("--allow={name}"))));
        let bounds = [("max-ranks", batch.max_ranks), ("max-minutes", batch.max_minutes)];
        let bounds = bounds.iter().filter_map(|(name, most)| Some((name, (*most)?)));
        arguments.extend(bounds.map(|(name, most)| word(format!("--{name}={most}"))));
        if start.site != config.site {
            arguments.push(word(format!("--other={}", start.site)));
            arguments.extend(["--spent".into(), batch.spent().into_os_string()]);
            let budget = [
                ("core-hours-a-day", batch.budget.a_day),
                ("core-hours-a-month", batch.budget.a_month),
            ];
            let budget = budget.iter().filter_map(|(name, most)| Some((name, (*most)?)));
            arguments.extend(budget.map(|(name, most)| word(format!("--{name}={most}"))));
        }
        self.begin_start(driver, start, arguments, socket)
    }

    /// A holder has obtained an allocation.
    pub(super) fn on_allocated(
        &mut self,
        context: &mut CommandContext<'_>,
        key: CommandKey,
        id: String,
        nodes: Vec<NodeInfo>,
    ) {
        // The holder is identified by its process number: no command line contains the job's token.
        let peer = { self.connections.get(key) }
            .and_then(|command| getsockopt(&command.socket, PeerCredentials).ok());
        let mut holders = self.starters.iter().filter(|starter| starter.node == HOLDER);
        let holder = holders.find(|starter| peer.is_some_and(|peer| peer.pid() == starter.process.as_raw()));
        let taken = match holder.map(|holder| holder.token) {
            Some(token) => self.take_allocation(context, token, id, nodes),
            None => Err("only a holder that this gateway has started gets allocations".into()),
        };
        let reply = match taken {
            Ok(nodes) => Reply::Allocation { nodes },
            Err(why) => Reply::Error(why.into()),
        };
        self.answer(context, key, reply);
    }

    fn take_allocation(
        &mut self,
        context: &mut CommandContext<'_>,
        token: Token,
        id: String,
        nodes: Vec<NodeInfo>,
    ) -> Result<Vec<NodeInfo>, TextError> {
        let own = context.config().site.clone();
        let told = self.in_grid(context, &nodes);
        let job = context.membership.jobs_mut().get_mut(&token);
        let job = job.filter(|_| is_id(&id) && !nodes.is_empty());
        let job = job.ok_or("the job has ended, or the allocation has no nodes")?;
        job.allocated.insert(own.clone(), nodes);
        job.plan.allocations.insert(own, id);
        Ok(told)
    }
}

/// Whether a job of another site may get an allocation here.
fn judge_holder(context: &CommandContext<'_>, site: &str, token: Token) -> Result<(), Refusal> {
    judge_job(context, site, token, HOLDER)?;
    let batch = context.config().batch.as_ref();
    match batch.is_some_and(|batch| batch.is_open_to(site)) {
        true => Ok(()),
        false => Err((
            "allocation",
            format!("an allocation asked for, but from in [batch] does not name \"{site}\""),
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::commands::command_context;
    use crate::commands::starting::judge_start;
    use crate::commands::starting::tests::gateway;
    use crate::config::batch::Batch;
    use crate::membership::held::held_nodes;

    fn node(name: &str, last: u8) -> NodeInfo {
        NodeInfo {
            name: name.into(),
            address: [127, 9, 200, last].into(),
            slots: 4,
        }
    }

    #[test]
    fn the_nodes_of_an_allocation_are_the_sites_nodes_for_its_job_and_for_no_other() {
        let directory = tempfile::tempdir().unwrap();
        let (token, other) = (Token([1; 16]), Token([2; 16]));
        let mut gateway = gateway(directory.path(), token);
        let judged = |gateway: &mut crate::Gateway, token, node: &str| {
            judge_start(&command_context!(gateway), "nancy", token, node).map_err(|why| why.0)
        };
        assert_eq!(judged(&mut gateway, token, "rennes-1").as_deref(), Ok("rennes-1"));
        let nodes = vec![node("rennes-7", 7), node("rennes-8", 8)];
        let context = &mut command_context!(gateway);
        let take = |commands: &mut Commands, context: &mut CommandContext<'_>, token: Token, id: &str| {
            commands.take_allocation(context, token, id.into(), nodes.clone())
        };
        assert!(take(&mut gateway.commands, context, token, "7").is_ok());
        // There is no such job, and the id is not valid.
        assert!(take(&mut gateway.commands, context, other, "7").is_err());
        assert!(take(&mut gateway.commands, context, token, "7;id").is_err());
        let held = |site: &str, id: &str| held_nodes(context.jobs(), "rennes", site, id);
        assert_eq!(held("nancy", "7"), Some(nodes.clone()));
        assert_eq!(
            (held("lyon", "7"), held("rennes", "7"), held("nancy", "8")),
            (None, None, None)
        );
        for node in ["rennes-7", "127.9.200.8"] {
            assert!(judged(&mut gateway, token, node).is_ok(), "{node}");
        }
        for node in ["rennes-1", "127.9.200.9", "rennes-9"] {
            assert_eq!(judged(&mut gateway, token, node), Err("unknown-node"), "{node}");
        }
    }

    #[test]
    fn only_sites_that_are_named_get_allocations() {
        let directory = tempfile::tempdir().unwrap();
        let token = Token([1; 16]);
        let mut gateway = gateway(directory.path(), token);
        let judged = |gateway: &mut crate::Gateway, site: &str| {
            judge_holder(&command_context!(gateway), site, token).map_err(|why| why.0)
        };
        assert_eq!(judged(&mut gateway, "nancy"), Err("allocation"));
        gateway.driver.config.batch = Some(Batch {
            system: causeway_batch::System::Slurm,
            conf: None,
            options: Vec::new(),
            allow: Vec::new(),
            max_ranks: None,
            max_minutes: None,
            max_allocations: None,
            budget: causeway_batch::budget::Bounds::default(),
            intents: directory.path().to_owned(),
            from: vec!["lyon".into()],
        });
        assert_eq!(judged(&mut gateway, "nancy"), Err("allocation"));
        if let Some(batch) = &mut gateway.driver.config.batch {
            batch.from.push("nancy".into());
        }
        assert_eq!(judged(&mut gateway, "nancy"), Ok(()));
        // The job is another site's.
        assert_eq!(judged(&mut gateway, "lyon"), Err("no-part"));
    }
}
