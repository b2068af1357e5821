//! Keeps the running jobs, and the gateways that are relays.

use super::{Refusal, State};
use crate::api::{ErrorKind, Job, JobStart, JobsAnswer, JobsRequest, Relay, RelaysAnswer};
use crate::store::{self, Change};
use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

/// Most jobs of one site at a time. A gateway that has more forgets to end them.
const MAX_JOBS: usize = 1000;

/// The most sites that all jobs of one site name together: a thousand jobs over sixteen sites, or sixteen
/// over a thousand. Without this bound, one site could make the broker keep 64 MB and others read them.
const MAX_NAMED: usize = 16_384;

/// Most bytes of others' jobs in one answer, as JSON. A gateway reads eight megabytes.
const ANSWER_BYTES: usize = 4 * 1024 * 1024;

/// How long a relay may be silent before it is no longer offered: for three polls.
const RELAY_SILENCE_SECONDS: u64 = 90;

/// The jobs that run, by number and by the site that began them.
#[derive(Default)]
pub(super) struct Register {
    jobs: BTreeMap<String, Job>,
    by_site: HashMap<String, BTreeSet<String>>,
}

impl Register {
    pub(super) fn new(jobs: impl IntoIterator<Item = (String, Job)>) -> Register {
        let mut register = Register::default();
        jobs.into_iter().for_each(|(_, job)| register.put(job));
        register
    }

    fn put(&mut self, job: Job) {
        let id = job.job.id.clone();
        self.by_site
            .entry(job.from.clone())
            .or_default()
            .insert(id.clone());
        self.jobs.insert(id, job);
    }

    fn remove(&mut self, id: &str) {
        let Some(job) = self.jobs.remove(id) else {
            return;
        };
        if let Some(ids) = self.by_site.get_mut(&job.from) {
            ids.remove(id);
            if ids.is_empty() {
                self.by_site.remove(&job.from);
            }
        }
    }

    fn of(&self, site: &str) -> impl Iterator<Item = &Job> {
        let ids = self.by_site.get(site).into_iter().flatten();
        ids.filter_map(|id| self.jobs.get(id))
    }
}

impl State {
    /// Notes the beginning or end of a job, and returns the jobs that run.
    pub(crate) fn jobs(&mut self, site: &str, asked: JobsRequest) -> Result<JobsAnswer, Refusal> {
        let others = matches!(asked, JobsRequest::List {});
        match asked {
            JobsRequest::Start(job) => self.start_job(site, job)?,
            JobsRequest::End { id } => {
                if self.jobs.of(site).any(|job| job.job.id == id) {
                    self.store.change(Change::default().remove(store::JOBS, &id))?;
                    self.jobs.remove(&id);
                }
            }
            JobsRequest::List {} => {}
        }
        let own = self.jobs.of(site).cloned().collect();
        Ok(if others {
            self.running(own, site)
        } else {
            JobsAnswer {
                jobs: in_order(own),
                left_out: 0,
            }
        })
    }

    /// This site's jobs and, in the order in which they began, as many of the others' as an answer has room
    /// for.
    pub(super) fn running(&self, mut jobs: Vec<Job>, own: &str) -> JobsAnswer {
        let mut others: Vec<&Job> = self.jobs.jobs.values().filter(|job| job.from != own).collect();
        others.sort_by(|a, b| order(a).cmp(&order(b)));
        let mut left = ANSWER_BYTES;
        let fit = others.iter().take_while(|job| {
            let bytes = serde_json::to_vec(job).map_or(usize::MAX, |json| json.len());
            let fits = bytes <= left;
            left = left.saturating_sub(bytes);
            fits
        });
        let fit = fit.count();
        jobs.extend(others[..fit].iter().copied().cloned());
        JobsAnswer {
            jobs: in_order(jobs),
            left_out: others.len() - fit,
        }
    }

    fn start_job(&mut self, site: &str, mut job: JobStart) -> Result<(), Refusal> {
        let Some(member) = self.members.site(site) else {
            let message = "the gateway has not said yet what its site is; its record comes first (/v1/sync)";
            return Err(Refusal::new(ErrorKind::NoSuchSite, message));
        };
        if let Some(other) = self.jobs.jobs.get(&job.id).filter(|known| known.from != site) {
            let message = format!("job {} is of site {}", job.id, other.from);
            return Err(Refusal::new(ErrorKind::NotYours, message));
        }
        // Names that no site has are useless to everybody.
        let mut said = HashSet::new();
        job.sites
            .retain(|name| self.members.site(name).is_some() && said.insert(name.clone()));
        let before = self.jobs.of(site).filter(|known| known.job.id != job.id);
        let (count, named) = before.fold((0, 0), |(count, named), known| {
            (count + 1, named + known.job.sites.len())
        });
        if count >= MAX_JOBS || named + job.sites.len() > MAX_NAMED {
            let message = format!(
                "site {site} has {count} jobs that have not ended, and they name {named} sites; {MAX_JOBS} and {MAX_NAMED} \
                 are allowed"
            );
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
        self.jobs.put(entry);
        Ok(())
    }

    /// The change on disk that removes the jobs of a gateway that has started anew or is gone.
    pub(super) fn without_jobs_of(&self, site: &str, except: Option<&str>) -> Change {
        let over = self.jobs.of(site).filter(|job| is_over(job, except));
        over.fold(Change::default(), |change, job| {
            change.remove(store::JOBS, &job.job.id)
        })
    }

    /// The same in memory.
    pub(super) fn forget_jobs_of(&mut self, site: &str, except: Option<&str>) {
        let over = self.jobs.of(site).filter(|job| is_over(job, except));
        let over: Vec<String> = over.map(|job| job.job.id.clone()).collect();
        over.iter().for_each(|id| self.jobs.remove(id));
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

fn is_over(job: &Job, except: Option<&str>) -> bool {
    except != Some(job.instance.as_str())
}

fn order(job: &Job) -> (u64, &str) {
    (job.since, &job.job.id)
}

fn in_order(mut jobs: Vec<Job>) -> Vec<Job> {
    jobs.sort_by(|a, b| order(a).cmp(&order(b)));
    jobs
}
