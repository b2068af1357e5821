//! Which jobs run, and who carries streams of others.

use super::{Refusal, State};
use crate::api::{ErrorKind, Job, JobStart, JobsAnswer, JobsRequest, Relay, RelaysAnswer};
use crate::store::{self, Change};

/// Jobs of one site at a time. More is a gateway that forgets to end them.
const MAX_JOBS: usize = 1000;

/// A relay that has been silent for three questions is not offered.
const RELAY_SILENCE_SECONDS: u64 = 90;

impl State {
    /// Notes a job's beginning or end, and tells which run.
    pub(crate) fn jobs(&mut self, site: &str, asked: JobsRequest) -> Result<JobsAnswer, Refusal> {
        match asked {
            JobsRequest::Start(job) => self.start_job(site, job)?,
            JobsRequest::End { id } => {
                if self.jobs.get(&id).is_some_and(|job| job.from == site) {
                    self.store.change(Change::default().remove(store::JOBS, &id))?;
                    self.jobs.remove(&id);
                }
            }
            JobsRequest::List {} => {}
        }
        let jobs = self.running();
        Ok(JobsAnswer { jobs })
    }

    /// In the order of their beginning.
    pub(super) fn running(&self) -> Vec<Job> {
        let mut jobs: Vec<Job> = self.jobs.values().cloned().collect();
        jobs.sort_by(|a, b| (a.since, &a.job.id).cmp(&(b.since, &b.job.id)));
        jobs
    }

    fn start_job(&mut self, site: &str, mut job: JobStart) -> Result<(), Refusal> {
        let Some(member) = self.members.site(site) else {
            let message = "the gateway has not said yet what its site is; its record comes first (/v1/sync)";
            return Err(Refusal::new(ErrorKind::NoSuchSite, message));
        };
        if let Some(other) = self.jobs.get(&job.id).filter(|known| known.from != site) {
            let message = format!("job {} is of site {}", job.id, other.from);
            return Err(Refusal::new(ErrorKind::NotYours, message));
        }
        if self.jobs.values().filter(|job| job.from == site).count() >= MAX_JOBS {
            let message = format!("site {site} has {MAX_JOBS} jobs that have not ended");
            return Err(Refusal::new(ErrorKind::Busy, message));
        }
        let age = std::mem::take(&mut job.age_seconds);
        let entry = Job {
            from: site.to_owned(),
            instance: member.record.instance.clone(),
            since: self.now().saturating_sub(age),
            job,
        };
        self.store
            .change(Change::default().put(store::JOBS, &entry.job.id, &entry))?;
        self.jobs.insert(entry.job.id.clone(), entry);
        Ok(())
    }

    /// A gateway that began anew, or is gone, has taken its jobs along: what that changes on the disk.
    pub(super) fn without_jobs_of(&self, site: &str, except: Option<&str>) -> Change {
        let over = self.jobs.iter().filter(|(_, job)| is_over(job, site, except));
        over.fold(Change::default(), |change, (id, _)| {
            change.remove(store::JOBS, id)
        })
    }

    /// The same in memory.
    pub(super) fn forget_jobs_of(&mut self, site: &str, except: Option<&str>) {
        self.jobs.retain(|_, job| !is_over(job, site, except));
    }

    /// Gateways that carry streams of others, the least busy first.
    pub(crate) fn relays(&self) -> RelaysAnswer {
        let now = self.now();
        let willing = self.members.iter().filter(|member| {
            member.record.reach.relay_willing
                && !member.record.reach.public.is_empty()
                && member.last_seen.saturating_add(RELAY_SILENCE_SECONDS) >= now
        });
        let mut relays: Vec<Relay> = willing
            .map(|member| Relay {
                site: member.site.clone(),
                addresses: member.record.reach.public.clone(),
                load: self
                    .presence
                    .get(&member.site)
                    .map_or(0, |presence| presence.load),
            })
            .collect();
        relays.sort_by(|a, b| (a.load, &a.site).cmp(&(b.load, &b.site)));
        RelaysAnswer { relays }
    }
}

fn is_over(job: &Job, site: &str, except: Option<&str>) -> bool {
    job.from == site && except != Some(job.instance.as_str())
}
