//! Carries out the gateway's commands at one broker.

use super::http::{ANSWER, CallError, Connection};
use super::line::Line;
use super::session::Session;
use super::{Command, Event};
use crate::api::{
    self, Done, ErrorAnswer, ErrorKind, JobsAnswer, JobsRequest, ReachAnswer, ReachRequest, RelaysAnswer,
};
use std::collections::BTreeSet;
use tokio::sync::mpsc;

impl Line {
    /// Carries out commands, one after the other: they are few, and their order matters.
    pub(super) async fn obey(&self, session: &Session, mut commands: mpsc::Receiver<Command>) {
        let mut connection: Option<Connection> = None;
        while let Some(command) = commands.recv().await {
            let what = command.to_string();
            if let Err(error) = self.carry_out(session, &mut connection, &command).await {
                connection = None;
                let reason = error.to_string();
                session.tell(Event::Failed { what, reason });
            }
        }
    }

    async fn carry_out(
        &self,
        session: &Session,
        connection: &mut Option<Connection>,
        command: &Command,
    ) -> Result<(), CallError> {
        let kept = connection.take().filter(Connection::is_open);
        let again = kept.is_some();
        let open = match kept {
            Some(kept) => connection.insert(kept),
            None => connection.insert(self.connect(session).await?),
        };
        match self.ask(session, open, command).await {
            // The broker closes idle connections, and this one may have an old certificate; all commands may
            // be repeated.
            Err(
                CallError::Lost { .. }
                | CallError::Refused(ErrorAnswer {
                    kind: ErrorKind::Expired,
                    ..
                }),
            ) if again => {
                let open = connection.insert(self.connect(session).await?);
                self.ask(session, open, command).await
            }
            other => other,
        }
    }

    async fn ask(
        &self,
        session: &Session,
        open: &mut Connection,
        command: &Command,
    ) -> Result<(), CallError> {
        match command {
            Command::Send(message) => {
                let _: Done = open.post(api::SEND, message, ANSWER).await?;
            }
            Command::Reach(addresses) => {
                let asked = ReachRequest {
                    addresses: addresses.clone(),
                };
                let answer: ReachAnswer = open.post(api::REACH, &asked, ANSWER).await?;
                session.tell(Event::Reached(answer.results));
            }
            Command::JobStarted(job) => drop(jobs(open, &JobsRequest::Start(job.clone())).await?),
            Command::JobEnded(id) => drop(jobs(open, &JobsRequest::End { id: id.clone() }).await?),
            Command::ListJobs => {
                let answer = jobs(open, &JobsRequest::List {}).await?;
                session.tell(Event::Jobs(answer.jobs));
            }
            // The session has already taken them.
            Command::Bring { .. } => {}
            Command::CompareJobs => compare_jobs(session, open).await?,
            Command::Relays => {
                let answer: RelaysAnswer = open.get(api::RELAYS).await?;
                session.tell(Event::Relays(answer.relays));
            }
        }
        Ok(())
    }
}

async fn jobs(open: &mut Connection, asked: &JobsRequest) -> Result<JobsAnswer, CallError> {
    open.post(api::JOBS, asked, ANSWER).await
}

/// Tells a broker that is back which jobs of this site run. The gateway itself tells the first one.
async fn compare_jobs(session: &Session, open: &mut Connection) -> Result<(), CallError> {
    let own = session.membership.borrow().site.clone();
    let listed = jobs(open, &JobsRequest::List {}).await?.jobs;
    let listed = listed.into_iter().filter(|job| job.from == own);
    let listed: BTreeSet<String> = listed.map(|job| job.job.id).collect();
    let running = session.jobs.borrow().clone();
    for (id, job) in &running {
        if !listed.contains(id) {
            jobs(open, &JobsRequest::Start(job.clone())).await?;
        }
    }
    for id in listed {
        if !running.contains_key(&id) {
            jobs(open, &JobsRequest::End { id }).await?;
        }
    }
    Ok(())
}
