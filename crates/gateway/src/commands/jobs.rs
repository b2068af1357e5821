//! The life of a job: it starts when its command asks for it and every site knows it, and ends with the command, or with its site.

use crate::base::base;
use crate::commands::command::Command;
use crate::commands::command::Stage;
use crate::commands::local::DEADLINE;
use crate::gateway::Gateway;
use crate::membership::jobs::{Job, Origin};
use crate::telemetry::view;
use crate::tunnels::message::GatewayToGateway;
use causeway_control::{JobReply, Reply};
use causeway_wire::Token;

impl Gateway {
    pub(super) fn start_job(&mut self, key: usize, mut job: Job) {
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

    pub(super) fn end_job(&mut self, token: &Token) {
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
