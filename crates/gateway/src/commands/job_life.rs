//! The life of a job: it starts when its command asks for it and every site knows it, and ends with the
//! command, or with its site.

use crate::commands::command::Command;
use crate::commands::command::Stage;
use crate::commands::local::DEADLINE;
use crate::commands::{CommandContext, Commands};
use crate::keys::CommandKey;
use crate::membership::jobs::Job;
use causeway_control::{JobReply, Reply};
use causeway_wire::Token;

impl Commands {
    pub(super) fn start_job(&mut self, context: &mut CommandContext<'_>, key: CommandKey, mut job: Job) {
        // By its real addresses others would not find it, or somebody else.
        if context.membership.awaits_addresses(context.driver) {
            let why = "the grid's broker has not given this site virtual addresses yet: 'causeway status' says whether it answers; one of \
                       an earlier version never will";
            return self.answer(context, key, Reply::Error(why.to_owned()));
        }
        // Processes that cannot read the map would not know which connections are not theirs to make.
        let map = context.directory().grid().text();
        if let (Err(why), false) = (map, job.plain || job.transparent) {
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

    /// Every site that has a tunnel knows the job, or has had its time: the job's processes may start.
    pub(in crate::commands) fn job_confirmed(&mut self, context: &mut CommandContext<'_>, key: CommandKey) {
        let Some(command) = self.connections.get_mut(key) else {
            return;
        };
        let Stage::Starting(token) = command.stage else {
            return;
        };
        command.stage = Stage::Holding(token);
        let mut sites = context.view().sites();
        if let Some(job) = context.jobs().get(&token) {
            let own = &context.config().site;
            for site in sites.iter_mut().filter(|site| site.unreachable.is_none()) {
                site.unreachable = why_not_at(job, own, &site.name);
            }
        }
        let reply = Reply::Job(JobReply {
            token: token.to_hex(),
            grid: context.directory().grid().to_string(),
            site: context.config().site.clone(),
            sites,
            links: context.tunnels.ways().links(context.driver),
            mpi: context.config().mpi.clone(),
        });
        self.put_answer(context, key, &reply);
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
            .settle_addresses(context.driver, context.tunnels);
    }

    /// Ends the jobs of a site whose tunnel has ended; ours need not wait for it.
    pub(crate) fn on_site_gone(&mut self, context: &mut CommandContext<'_>, site: &str, why: &str) {
        for command in context.jobs().losing(site) {
            let holds = |command: &Command| matches!(command.stage, Stage::Holding(_));
            if self.connections.get(command).is_some_and(holds) {
                let text = format!("this job has lost site {site}: {why}");
                self.put_answer(context, command, &Reply::Lost(text));
            }
        }
        for token in context.jobs().of_site(site) {
            self.end_job(context, &token);
        }
        for command in context.membership.jobs_mut().site_is_gone(site) {
            self.job_confirmed(context, command);
        }
    }
}

/// Why a job that started here, at site `own`, does not run at another site that can be reached.
fn why_not_at(job: &Job, own: &str, site: &str) -> Option<String> {
    if job.awaited.contains(site) {
        return Some(format!("its gateway did not confirm the job within {DEADLINE:?}"));
    }
    job.refused.get(site).map(|why| why.for_user(own, site))
}
