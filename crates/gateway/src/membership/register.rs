//! The grid's register of jobs: the broker is told which jobs run here, so that `causeway grid list` can show
//! them.
//!
//! The broker is told what a job's user may know anyway, never its token. Nothing waits for it: what begins
//! or ends while it is away is found once it is back, by comparing its list with what runs.

use crate::driver::Driver;
use crate::membership::Membership;
use crate::membership::jobs::{Job, Origin};
use causeway_broker::api::{self, JobStart, MAX_JOB_NAME, MAX_JOB_SITES};
use causeway_broker::clock::Clock;
use causeway_wire::Token;
use sha2::{Digest, Sha256};

/// The name of a job in the register. It stays the same after a hand-over, and the job's token cannot be
/// derived from it.
fn number(token: &Token) -> String {
    let digest = Sha256::new()
        .chain_update(b"causeway job")
        .chain_update(token.0)
        .finalize();
    digest[..8].iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Jobs of MPIs that were started here. A `causeway connect` is not one: it is a single connection.
fn belongs(job: &Job) -> bool {
    matches!(job.origin, Origin::Here(_)) && !job.bare
}

/// Bytes of the names of a job's sites that the broker is told, out of 64 KiB that it reads: enough for a
/// thousand sites with usual names.
const NAMES_BYTES: usize = 48 * 1024;

/// The first of a job's sites, as many as the broker reads.
fn told(mut sites: Vec<String>) -> Vec<String> {
    let mut bytes = 0;
    let fit = sites.iter().take(MAX_JOB_SITES).take_while(|site| {
        // Including its quotes and its comma.
        bytes += site.len() + 3;
        bytes <= NAMES_BYTES
    });
    let fit = fit.count();
    sites.truncate(fit);
    sites
}

impl Membership {
    pub(in crate::membership) fn register_job(&self, driver: &Driver, token: &Token, job: &Job) {
        let Some(grid) = self.session.as_ref().filter(|grid| grid.serves() && belongs(job)) else {
            return;
        };
        let mut sites = job.plan.sites.clone();
        if !sites.contains(&driver.config.site) {
            sites.insert(0, driver.config.site.clone());
        }
        let mut name = job.name.clone();
        name.truncate(name.floor_char_boundary(MAX_JOB_NAME));
        // If the client is busy, the broker is told when it is next found.
        let _ = grid.client.job_started(JobStart {
            id: number(token),
            name,
            sites: told(sites),
            ranks: job.plan.ranks,
            age_seconds: Clock::system().now().saturating_sub(job.since),
        });
    }

    pub(in crate::membership) fn unregister_job(&self, token: &Token, job: &Job) {
        if let Some(grid) = self.session.as_ref().filter(|grid| grid.serves() && belongs(job)) {
            let _ = grid.client.job_ended(&number(token));
        }
    }

    /// Compares with the broker's list, once the broker is found again.
    pub(in crate::membership) fn on_registered(&self, driver: &Driver, registered: &[api::Job]) {
        let Some(grid) = &self.session else {
            return;
        };
        let mine: Vec<&str> = registered
            .iter()
            .filter(|job| job.from == driver.config.site)
            .map(|job| job.job.id.as_str())
            .collect();
        let running: Vec<(String, &Token, &Job)> = self
            .jobs
            .iter()
            .filter(|(_, job)| belongs(job))
            .map(|(token, job)| (number(token), token, job))
            .collect();
        for (id, token, job) in &running {
            if !mine.contains(&id.as_str()) {
                self.register_job(driver, token, job);
            }
        }
        for id in mine {
            if !running.iter().any(|(known, ..)| known == id) {
                let _ = grid.client.job_ended(id);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_jobs_number_is_its_own_and_says_nothing_of_its_token() {
        let one = number(&Token([1; 16]));
        assert_eq!(one, number(&Token([1; 16])));
        assert_ne!(one, number(&Token([2; 16])));
        assert!(
            one.len() == 16 && !Token([1; 16]).to_hex().contains(&one),
            "{one}"
        );
    }

    #[test]
    fn of_a_job_over_more_sites_than_the_broker_reads_it_is_told_those_that_fit() {
        let sites = |count: usize, bytes: usize| {
            let names = (0..count).map(|number| format!("{number:0>bytes$}"));
            told(names.collect()).len()
        };
        assert_eq!((sites(3, 5), sites(1000, 20), sites(2000, 20)), (3, 1000, 1000));
        assert_eq!(sites(1000, 63), NAMES_BYTES / 66);
    }
}
