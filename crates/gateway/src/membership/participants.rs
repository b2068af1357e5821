//! Decides who takes part in a job: only sites that its user wants and that accept it learn its token.

use crate::config::Config;
use crate::driver::Driver;
use crate::keys::PairKey;
use crate::membership::Membership;
use crate::membership::jobs::{Job, Origin};
use crate::tunnels::Tunnels;
use crate::tunnels::message::{Acceptance, GatewayToGateway, JobRefusal};
use crate::tunnels::pair::Pair;
use causeway_wire::Token;

impl Membership {
    /// Takes in a job that starts here, and tells the sites that must know it. Returns whether some have to
    /// confirm it.
    pub(crate) fn start_job(
        &mut self,
        driver: &mut Driver,
        tunnels: &mut Tunnels,
        token: Token,
        job: Job,
    ) -> bool {
        driver.say(format_args!("job {} starts: {}", token.hint(), job.name));
        self.register_job(driver, &token, &job);
        self.jobs.start(token, job);
        self.announce(driver, tunnels, &token);
        let job = self.jobs.get(&token);
        job.is_some_and(|job| !job.awaited.is_empty())
    }

    /// Forgets a job that is over and, if it began here, tells those that took part.
    pub(crate) fn end_job(
        &mut self,
        driver: &mut Driver,
        tunnels: &mut Tunnels,
        token: &Token,
    ) -> Option<Job> {
        let job = self.jobs.end(token)?;
        // Jobs of other sites end as they start, without a line in the log: a site could fill it with them.
        if matches!(job.origin, Origin::Here(_)) {
            driver.say(format_args!("job {} has ended: {}", token.hint(), job.name));
            self.unregister_job(token, &job);
            let told = job.told.iter().filter_map(|site| tunnels.pairs().key_of(site));
            for pair in told.collect::<Vec<_>>() {
                let token = token.to_hex();
                tunnels
                    .pairs_mut()
                    .tell(driver, pair, GatewayToGateway::JobEnd { token });
            }
        }
        Some(job)
    }

    /// Tells the sites that are to take part about a job that has just started here, and notes which have to
    /// confirm it.
    fn announce(&mut self, driver: &mut Driver, tunnels: &mut Tunnels, token: &Token) {
        let Some(job) = self.jobs.get_mut(token) else {
            return;
        };
        for (_, pair) in tunnels.pairs().iter() {
            take_in(&driver.config, job, pair);
        }
        // A site whose lanes are all down learns about the job when one is back; waiting for that would delay
        // the others.
        let is_up = |site: &&String| tunnels.pairs().of(site).is_some_and(Pair::is_up);
        job.awaited = job.told.iter().filter(is_up).cloned().collect();
        tell(driver, tunnels, token, job, None);
    }

    /// Another site says what it accepts: it then takes part in those jobs of this site that want it.
    pub(in crate::membership) fn on_accepts(
        &mut self,
        driver: &mut Driver,
        tunnels: &mut Tunnels,
        key: PairKey,
        acceptance: Acceptance,
    ) {
        let Some(pair) = tunnels.pair_mut(key) else {
            return;
        };
        let is_first = pair.take_acceptance(acceptance);
        for token in self.jobs.tokens_from_here() {
            let (Some(job), Some(pair)) = (self.jobs.get_mut(&token), tunnels.pairs().get(key)) else {
                continue;
            };
            let was_told = job.told.contains(pair.site());
            take_in(&driver.config, job, pair);
            match job.told.contains(pair.site()) {
                // The other sites have to know that it takes part.
                true if !was_told => tell(driver, tunnels, &token, job, None),
                // On a new tunnel, the other gateway knows nothing of what was said on the last one.
                true if is_first => tell(driver, tunnels, &token, job, Some(key)),
                _ => {}
            }
        }
    }
}

/// Counts a site among those that take part in a job, or notes why it does not.
fn take_in(config: &Config, job: &mut Job, pair: &Pair) {
    if !matches!(job.origin, Origin::Here(_)) || !job.wants(pair.site()) {
        return;
    }
    match why_without(config, pair, job.bare) {
        None => {
            job.refused.remove(pair.site());
            job.told.insert(pair.site().to_owned());
        }
        Some(why) => {
            job.refused.insert(pair.site().to_owned(), why);
        }
    }
}

/// Why a site does not take part in a job of this one; `None` if it does. A participant knows the job's token
/// and connects to its processes here, so the consent of both sites is needed, except for a `causeway
/// connect`, which goes one way.
pub(crate) fn why_without(config: &Config, pair: &Pair, bare: bool) -> Option<JobRefusal> {
    match pair.accepts() {
        Some(Acceptance { connections, .. }) if bare => connections,
        Some(Acceptance { jobs, .. }) => {
            let is_partner = config.accept.is_partner(pair.site());
            jobs.or_else(|| (!is_partner).then_some(JobRefusal::NoPartner))
        }
        None => Some(JobRefusal::Unsaid),
    }
}

/// Tells all sites that take part in a job about it, or one of them.
fn tell(driver: &mut Driver, tunnels: &mut Tunnels, token: &Token, job: &Job, only: Option<PairKey>) {
    let pair_of = |site: &String| tunnels.pairs().key_of(site);
    let pairs: Vec<PairKey> = match only {
        Some(pair) => vec![pair],
        None => job.told.iter().filter_map(pair_of).collect(),
    };
    for pair in pairs {
        tunnels.pairs_mut().tell(driver, pair, job.announcement(token));
    }
}
