//! What the gateway reports about itself: see [`Status`].

use crate::config::batch::Batch;
use crate::driver::Driver;
use crate::keys::PeerIndex;
use crate::link::ends::{End, Ends};
use crate::membership::broker_session::BrokerSession;
use crate::telemetry::View;
use crate::tunnels::pair::Pair;
use causeway_batch::budget::{DAY, MONTH, MOST_BYTES, Spent};
use causeway_control::{BudgetStatus, JobStatus, SiteStatus, Status, WorkerEnd};
use causeway_wire::Token;
use std::collections::HashMap;
use std::fs::File;
use std::io::Read;
use std::time::{SystemTime, UNIX_EPOCH};

impl View<'_> {
    /// Why there is no lane, neither without a relay nor through one.
    fn why_not(&self, peer: PeerIndex) -> String {
        let why_not_reached = self.tunnels.peers()[peer].why_not_reached();
        match self.traversal.why_no_relay(peer) {
            "" => why_not_reached.to_owned(),
            relayed => format!("{why_not_reached}; {relayed}"),
        }
    }

    /// Lists every site of the grid, this one first.
    pub(crate) fn sites(&self) -> Vec<SiteStatus> {
        let own = self.membership.directory().own().clone();
        let own = SiteStatus {
            name: own.name.clone(),
            info: Some(own),
            unreachable: None,
        };
        let others = self.tunnels.peers().iter().map(|(index, peer)| {
            let up = self.tunnels.pairs().of(peer.site()).is_some_and(Pair::is_up);
            let info = self.membership.directory().other(peer.site()).cloned();
            let unreachable = match (up, &info) {
                (false, _) => Some(self.why_not(index)),
                (true, None) => Some(match self.membership.directory().unrecorded(peer.site()) {
                    Some(what) => {
                        format!("it announces {what}, which the broker has not recorded of it")
                    }
                    None => "its gateway has not introduced itself yet".to_owned(),
                }),
                (true, Some(_)) => None,
            };
            SiteStatus {
                name: peer.site().to_owned(),
                info,
                unreachable,
            }
        });
        std::iter::once(own).chain(others).collect()
    }

    fn job_statuses(&self) -> Vec<JobStatus> {
        let mut jobs: HashMap<Token, JobStatus> = self
            .membership
            .jobs()
            .iter()
            .map(|(token, job)| {
                let status = JobStatus {
                    name: job.name.clone(),
                    weight: job.weight,
                    streams: 0,
                    sent_bytes: job.sent_bytes,
                    received_bytes: job.received_bytes,
                };
                (*token, status)
            })
            .collect();
        for (_, leg) in self.site.legs().iter() {
            if let Some(job) = jobs.get_mut(&leg.token) {
                job.streams += 1;
                job.sent_bytes += leg.sent_bytes;
                job.received_bytes += leg.received_bytes;
            }
        }
        let mut jobs: Vec<JobStatus> = jobs.into_values().collect();
        jobs.sort_by(|one, other| one.name.cmp(&other.name));
        jobs
    }

    /// Reports the present state.
    pub(crate) fn status(&self, driver: &Driver) -> Status {
        let (relayed, relayed_bytes) = self.traversal.relayed();
        let ends = driver
            .link
            .as_ref()
            .map_or_else(Ends::default, |link| link.kept().ends);
        Status {
            site: driver.config.site.clone(),
            version: env!("CARGO_PKG_VERSION").to_owned(),
            pid: driver.process(),
            worker: std::process::id(),
            worker_ends: ends.count,
            last_worker_end: ends.last.map(worker_end),
            handed_over: self.handed_over,
            clear_text: driver.config.is_clear(),
            grid: self.membership.session().map(BrokerSession::status),
            resident_bytes: resident_bytes(),
            processor_microseconds: processor_microseconds(),
            streams: self.site.legs().len(),
            streams_peak: self.site.legs().peak(),
            streams_opened: self.site.legs().opened(),
            relayed,
            relayed_bytes,
            refused: driver.log.refused().clone(),
            jobs: self.job_statuses(),
            budgets: driver.config.batch.as_ref().map(budgets).unwrap_or_default(),
            sites: self.sites(),
            tunnels: self.tunnels.ways().statuses(&driver.config.site),
        }
    }
}

/// What other sites have taken, as their holders have noted it.
fn budgets(batch: &Batch) -> Vec<BudgetStatus> {
    let kept = File::open(batch.spent()).and_then(|file| {
        let mut bytes = Vec::new();
        file.take(MOST_BYTES).read_to_end(&mut bytes)?;
        Ok(bytes)
    });
    let spent = kept
        .ok()
        .and_then(|bytes| serde_json::from_slice::<Spent>(&bytes).ok());
    let spent = spent.unwrap_or_default();
    let now = SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .unwrap_or_default()
        .as_secs();
    let budget = |site: &str| BudgetStatus {
        site: site.to_owned(),
        minutes_in_a_day: spent.within(site, DAY, now),
        hours_a_day: batch.budget.a_day,
        minutes_in_a_month: spent.within(site, MONTH, now),
        hours_a_month: batch.budget.a_month,
    };
    spent.sites().map(budget).collect()
}

fn worker_end(end: End) -> WorkerEnd {
    WorkerEnd {
        at: end.at,
        how: end.ended().to_string(),
    }
}

/// Processor time of this process (getrusage(2)); it goes on after a hand-over.
fn processor_microseconds() -> u64 {
    let usage = nix::sys::resource::getrusage(nix::sys::resource::UsageWho::RUSAGE_SELF);
    let as_microseconds = |time: nix::sys::time::TimeVal| {
        let microseconds = time.tv_sec() * 1_000_000 + time.tv_usec();
        u64::try_from(microseconds).unwrap_or(0)
    };
    usage.map_or(0, |usage| {
        as_microseconds(usage.user_time()) + as_microseconds(usage.system_time())
    })
}

/// Resident set of this process (proc(5), statm, second field, in pages); 0 if it cannot be read.
fn resident_bytes() -> u64 {
    let pages = std::fs::read_to_string("/proc/self/statm").ok();
    let pages = pages.and_then(|text| text.split_whitespace().nth(1)?.parse::<u64>().ok());
    let page = nix::unistd::sysconf(nix::unistd::SysconfVar::PAGE_SIZE)
        .ok()
        .flatten()
        .unwrap_or(4096);
    pages.unwrap_or(0) * page as u64
}
