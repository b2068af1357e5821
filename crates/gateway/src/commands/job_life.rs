//! The life of a job: it starts once its command has asked for it and every site knows it, and it ends with
//! the command, or with its site.

use crate::base::Bundle;
use crate::commands::command::Command;
use crate::commands::command::Stage;
use crate::commands::local::DEADLINE;
use crate::commands::{CommandContext, Commands};
use crate::keys::CommandKey;
use crate::membership::jobs::Job;
use causeway_control::{JobReply, Reply};
use causeway_wire::Token;
use nix::sys::socket::getsockopt;
use nix::sys::socket::sockopt::PeerCredentials;
use std::collections::BTreeMap;

impl Commands {
    pub(super) fn start_job(&mut self, context: &mut CommandContext<'_>, key: CommandKey, mut job: Job) {
        // By its real addresses, others would not find it, or would find somebody else.
        if context.membership.awaits_addresses(context.driver) {
            let why = "the grid's broker has not given this site virtual addresses yet; 'causeway status' says whether it answers; a broker of \
                       an earlier version never gives any";
            return self.answer(context, key, Reply::Error(why.to_owned()));
        }
        match self.allocated(context, &job) {
            Ok(allocated) => job.allocated = allocated,
            Err(why) => return self.answer(context, key, Reply::Error(why.into())),
        }
        // Processes that cannot read the map would not know which connections they must leave to the gateway.
        let map = context.directory().map_of(&job.plan.sites).text();
        if let (Err(why), false) = (map, job.bare || job.transparent) {
            return self.answer(
                context,
                key,
                Reply::Error(format!("this job cannot start: {why}")),
            );
        }
        let mut bytes = [0; Token::BYTES];
        if let Err(error) = getrandom::fill(&mut bytes) {
            return self.answer(
                context,
                key,
                Reply::Error(format!("no random numbers for a job token: {error}")),
            );
        }
        let token = Token(bytes);
        job.user.clone_from(&context.driver.user);
        if let Some(command) = self.connections.get_mut(key) {
            command.stage = Stage::Starting(token);
            let holder = getsockopt(&command.socket, PeerCredentials).map_or(0, |peer| peer.pid());
            job.holder = u32::try_from(holder).unwrap_or(0);
        }
        let CommandContext {
            driver,
            tunnels,
            membership,
            ..
        } = context;
        if !membership.start_job(driver, tunnels, token, job) {
            self.job_confirmed(context, key);
        }
    }

    /// Every site that has a tunnel knows the job, or has had enough time: the job's processes may start.
    pub(in crate::commands) fn job_confirmed(&mut self, context: &mut CommandContext<'_>, key: CommandKey) {
        let Some(command) = self.connections.get_mut(key) else {
            return;
        };
        let Stage::Starting(token) = command.stage else {
            return;
        };
        command.stage = Stage::Holding(token);
        let Some(job) = context.jobs().get(&token) else {
            return;
        };
        let own = &context.config().site;
        let others = job.plan.sites.iter().filter(|site| *site != own);
        let left_out = others.filter_map(|site| Some((site.clone(), why_not_at(context, job, site)?)));
        let left_out: BTreeMap<String, String> = left_out.collect();
        let is_in = |site: &&String| !left_out.contains_key(*site);
        let participants: Vec<String> = job.plan.sites.iter().filter(is_in).cloned().collect();
        let reply = Reply::Job(JobReply {
            token: token.to_hex(),
            grid: context.directory().map_of(&participants).to_string(),
            left_out,
        });
        self.put_answer(key, &reply);
    }

    pub(super) fn end_job(&mut self, context: &mut CommandContext<'_>, token: &Token) {
        let ended = context.membership.end_job(context.driver, context.tunnels, token);
        let Some(job) = ended else {
            return;
        };
        let (site, mut base) = context.site_and_base();
        site.end_job(&mut base, token, &job);
        self.end_starters(context, token);
        context
            .membership
            .adopt_addresses(context.driver, context.tunnels);
    }

    /// Ends the jobs of a site whose tunnel has ended; jobs of this site need not wait for it.
    pub(crate) fn on_site_gone(&mut self, context: &mut CommandContext<'_>, site: &str, why: &str) {
        for command in context.jobs().losing(site) {
            let holds = |command: &Command| matches!(command.stage, Stage::Holding(_));
            if self.connections.get(command).is_some_and(holds) {
                let text = format!("this job has lost site {site}: {why}");
                self.put_answer(command, &Reply::Lost(text));
            }
        }
        for token in context.jobs().tokens_from(site) {
            self.end_job(context, &token);
        }
        for command in context.membership.jobs_mut().site_is_gone(site) {
            self.job_confirmed(context, command);
        }
    }
}

/// Why a job that started here does not run at another site.
fn why_not_at(context: &CommandContext<'_>, job: &Job, site: &str) -> Option<String> {
    if job.awaited.contains(site) {
        return Some(format!("its gateway did not confirm the job within {DEADLINE:?}"));
    }
    if let Some(why) = job.refused.get(site) {
        return Some(why.for_user(&context.config().site, site));
    }
    if job.told.contains(site) && context.directory().other(site).is_some() {
        return None;
    }
    let mut known = context.view().sites().into_iter();
    let unreachable = known
        .find(|known| known.name == site)
        .map(|known| known.unreachable);
    let unknown = || "this site's gateway knows no such site".to_owned();
    Some(unreachable.map_or_else(unknown, |why| {
        why.unwrap_or_else(|| "it has just gone".to_owned())
    }))
}
