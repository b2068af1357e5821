//! The jobs that run, so that only their processes' connections are carried.

use crate::config::Config;
use crate::keys::CommandKey;
use crate::membership::pair_token;
use crate::tunnels::message::{GatewayToGateway, JobRefusal};
use causeway_broker::clock::Clock;
use causeway_control::{NodeInfo, Plan};
use causeway_wire::preface::{self, NUMBER_BYTES};
use causeway_wire::{TextError, Token};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

/// Most jobs of another site at a time: each is a command that runs there.
const MAX_OF_A_SITE: usize = 4096;

/// Most sites that all jobs of another site together may name: enough for some jobs over a thousand sites.
const MAX_TOLD_OF_A_SITE: usize = 65_536;

/// Longest name of a job: as long as a command's whole request.
const MAX_NAME_BYTES: usize = 64 * 1024;

/// Most bytes that are kept of the name of a job of another site.
const KEPT_NAME_BYTES: usize = 1024;

/// Longest name of a user: more than any system allows.
const MAX_USER_BYTES: usize = 256;

/// Where a job was started.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Origin {
    /// Started here, by the command connection with this key.
    Here(CommandKey),
    /// Started at another site.
    Site(String),
}

pub(crate) struct Job {
    pub(crate) name: String,
    /// Name of its user, as its site reports it.
    pub(crate) user: String,
    /// Its share of a busy tunnel beside other jobs'.
    pub(crate) weight: u32,
    /// Whether its connections are delivered without a preface.
    pub(crate) bare: bool,
    /// Whether its connections outlive it, until both their ends have closed them.
    pub(crate) lingers: bool,
    /// Whether its connections are those that routers hand to gateways; see `transparent`.
    pub(crate) transparent: bool,
    pub(crate) origin: Origin,
    /// The process here that started it and from which its launcher descends; 0 if that cannot be found.
    pub(crate) holder: u32,
    /// Where it is to run; empty if it is a job of another site.
    pub(crate) plan: Plan,
    /// Nodes of its allocations, by site: those of this site by their real addresses, those of others by the
    /// addresses that the grid knows. A job of another site has only those of this site.
    pub(crate) allocated: BTreeMap<String, Vec<NodeInfo>>,
    /// Since when, in seconds since 1970.
    pub(crate) since: u64,
    /// Sites that have not confirmed yet.
    pub(crate) awaited: BTreeSet<String>,
    /// Other sites that take part in the job, and know its token: those that were told from here, or those
    /// that its own site reports, without this one and that one.
    pub(crate) told: BTreeSet<String>,
    /// Sites that take no part in the job.
    pub(crate) refused: BTreeMap<String, JobRefusal>,
    /// Bytes of its streams that have ended.
    pub(crate) sent_bytes: u64,
    pub(crate) received_bytes: u64,
}

impl Job {
    pub(crate) fn new(name: String, weight: u32, origin: Origin, awaited: BTreeSet<String>) -> Job {
        Job {
            name,
            user: String::new(),
            weight,
            bare: false,
            lingers: false,
            transparent: false,
            origin,
            holder: 0,
            plan: Plan::default(),
            allocated: BTreeMap::new(),
            since: Clock::system().now(),
            awaited,
            told: BTreeSet::new(),
            refused: BTreeMap::new(),
            sent_bytes: 0,
            received_bytes: 0,
        }
    }

    /// Whether its user wants it at another site.
    pub(crate) fn wants(&self, site: &str) -> bool {
        self.plan.sites.iter().any(|wanted| wanted == site)
    }

    /// Whether another site takes part in it: only then may it open streams, or may one be opened there.
    pub(crate) fn takes_part(&self, site: &str) -> bool {
        self.told.contains(site) || self.is_from(site)
    }

    /// Whether another site began it.
    pub(crate) fn is_from(&self, site: &str) -> bool {
        matches!(&self.origin, Origin::Site(origin) if origin == site)
    }

    /// Gathers what the next worker needs to know.
    pub(crate) fn keep(&self, token: &Token) -> KeptJob {
        KeptJob {
            token: token.0,
            name: self.name.clone(),
            user: self.user.clone(),
            weight: self.weight,
            bare: self.bare,
            lingers: self.lingers,
            transparent: self.transparent,
            origin: match &self.origin {
                Origin::Here(command) => KeptOrigin::Here(command.0),
                Origin::Site(site) => KeptOrigin::Site(site.clone()),
            },
            holder: self.holder,
            plan: self.plan.clone(),
            allocated: self.allocated.clone(),
            since: self.since,
            awaited: self.awaited.iter().cloned().collect(),
            told: self.told.iter().cloned().collect(),
            refused: { self.refused.iter() }
                .map(|(site, why)| (site.clone(), *why))
                .collect(),
            sent_bytes: self.sent_bytes,
            received_bytes: self.received_bytes,
        }
    }

    /// Makes the announcement of it for other sites.
    pub(crate) fn announcement(&self, token: &Token) -> GatewayToGateway {
        GatewayToGateway::JobStart {
            token: token.to_hex(),
            name: self.name.clone(),
            weight: self.weight,
            bare: self.bare,
            lingers: self.lingers,
            sites: self.told.iter().cloned().collect(),
            transparent: self.transparent,
            user: self.user.clone(),
            allocations: self.plan.allocations.clone(),
        }
    }

    /// Lists its nodes at a site where it runs in an allocation.
    pub(crate) fn allocated_at(&self, site: &str) -> Option<&[NodeInfo]> {
        self.allocated.get(site).map(Vec::as_slice)
    }

    /// Lists the nodes of this site that it may use, by their real addresses.
    pub(crate) fn nodes<'a>(&'a self, config: &'a Config) -> &'a [NodeInfo] {
        self.allocated_at(&config.site).unwrap_or(&config.nodes)
    }
}

#[derive(Default)]
pub(crate) struct Jobs {
    known: HashMap<Token, Job>,
    /// Their tokens, by the number in the name that a pair of sites has for a job.
    by_number: HashMap<pair_token::Number, Token>,
    /// The same by what their processes call them (`causeway_wire::preface::number`).
    by_claim: HashMap<[u8; NUMBER_BYTES], Token>,
    /// The jobs that may have changed since they were last written down.
    touched: HashSet<Token>,
}

impl Jobs {
    pub(crate) fn inherit(kept: Vec<KeptJob>) -> Jobs {
        let jobs = kept.into_iter().map(|kept| {
            let job = Job {
                name: kept.name,
                user: kept.user,
                weight: kept.weight,
                bare: kept.bare,
                lingers: kept.lingers,
                transparent: kept.transparent,
                origin: match kept.origin {
                    KeptOrigin::Here(command) => Origin::Here(CommandKey(command)),
                    KeptOrigin::Site(site) => Origin::Site(site),
                },
                holder: kept.holder,
                plan: kept.plan,
                allocated: kept.allocated,
                since: kept.since,
                awaited: kept.awaited.into_iter().collect(),
                told: kept.told.into_iter().collect(),
                refused: kept.refused.into_iter().collect(),
                sent_bytes: kept.sent_bytes,
                received_bytes: kept.received_bytes,
            };
            (Token(kept.token), job)
        });
        let known: HashMap<Token, Job> = jobs.collect();
        let by_number = known.keys().map(|token| (pair_token::number(token), *token));
        let by_claim = known.keys().map(|token| (preface::number(token), *token));
        Jobs {
            by_number: by_number.collect(),
            by_claim: by_claim.collect(),
            touched: known.keys().copied().collect(),
            known,
        }
    }

    pub(crate) fn len(&self) -> usize {
        self.known.len()
    }

    pub(crate) fn start(&mut self, token: Token, job: Job) {
        self.touched.insert(token);
        self.by_number.insert(pair_token::number(&token), token);
        self.by_claim.insert(preface::number(&token), token);
        self.known.insert(token, job);
    }

    /// Takes a job that another site says it has started. Every site that takes part knows a job's token, and
    /// none may end or change another site's job by calling it its own.
    pub(crate) fn learn(&mut self, token: Token, mut job: Job) -> Result<(), TextError> {
        let named: usize = { self.known.values() }
            .filter(|known| known.origin == job.origin)
            .map(|known| known.told.len())
            .sum();
        if named + job.told.len() > MAX_TOLD_OF_A_SITE {
            return Err(format!("its jobs name more than {MAX_TOLD_OF_A_SITE} sites together").into());
        }
        if job.name.len() > MAX_NAME_BYTES || job.user.len() > MAX_USER_BYTES {
            return Err(format!(
                "a job's name is longer than {MAX_NAME_BYTES} bytes, or its user's than {MAX_USER_BYTES}"
            )
            .into());
        }
        job.name.truncate(job.name.floor_char_boundary(KEPT_NAME_BYTES));
        job.name.shrink_to_fit();
        match self.known.get(&token) {
            Some(known) if known.origin != job.origin => {
                return Err(format!("job {} is of another site", token.hint()).into());
            }
            Some(_) => {
                if let Some(known) = self.get_mut(&token) {
                    known.told = job.told;
                }
                return Ok(());
            }
            None => {
                let theirs = self.known.values().filter(|known| known.origin == job.origin);
                if theirs.count() >= MAX_OF_A_SITE {
                    return Err(format!("more than {MAX_OF_A_SITE} of its jobs run").into());
                }
            }
        }
        self.start(token, job);
        Ok(())
    }

    pub(crate) fn end(&mut self, token: &Token) -> Option<Job> {
        self.touched.insert(*token);
        self.by_number.remove(&pair_token::number(token));
        self.by_claim.remove(&preface::number(token));
        self.known.remove(token)
    }

    pub(crate) fn knows(&self, token: &Token) -> bool {
        self.known.contains_key(token)
    }

    /// Returns a job's weight; 1 for streams that belong to none.
    pub(crate) fn weight(&self, token: &Token) -> u32 {
        self.known.get(token).map_or(1, |job| job.weight)
    }

    pub(crate) fn get(&self, token: &Token) -> Option<&Job> {
        self.known.get(token)
    }

    /// Whether streams of a job go on when it has ended.
    pub(crate) fn lingers(&self, token: &Token) -> bool {
        self.known.get(token).is_some_and(|job| job.lingers)
    }

    pub(crate) fn is_bare(&self, token: &Token) -> bool {
        self.known.get(token).is_some_and(|job| job.bare)
    }

    pub(crate) fn is_transparent(&self, token: &Token) -> bool {
        self.known.get(token).is_some_and(|job| job.transparent)
    }

    /// Finds the job to which the connections belong that routers hand over for a site: one in which that
    /// site takes part, if possible one of this site's own. It stays the same as long as it runs, even if
    /// others with greater tokens come and go.
    pub(crate) fn transparent(&self, site: &str) -> Option<Token> {
        let mut known = self.known.iter();
        let transparent = known
            .by_ref()
            .filter(|(_, job)| job.transparent && job.takes_part(site));
        let is_foreign = |job: &Job| !matches!(job.origin, Origin::Here(_));
        let found = transparent.min_by_key(|(token, job)| (is_foreign(job), token.0));
        found.map(|(token, _)| *token)
    }

    /// Takes the jobs that have changed or ended since this was last called.
    pub(in crate::membership) fn take_touched(&mut self) -> HashSet<Token> {
        std::mem::take(&mut self.touched)
    }

    pub(crate) fn get_mut(&mut self, token: &Token) -> Option<&mut Job> {
        self.touched.insert(*token);
        self.known.get_mut(token)
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = (&Token, &Job)> {
        self.known.iter()
    }

    /// Tokens of the jobs that were started here.
    pub(crate) fn tokens_from_here(&self) -> Vec<Token> {
        let here = self.known.iter();
        let here = here.filter(|(_, job)| matches!(job.origin, Origin::Here(_)));
        here.map(|(token, _)| *token).collect()
    }

    /// Finds the token of the job that a process names; the process has yet to prove that it knows the token.
    pub(crate) fn numbered(&self, number: &[u8; NUMBER_BYTES]) -> Option<Token> {
        self.by_claim.get(number).copied()
    }

    /// Finds the token of the job that another site names by the name that it shares with this site.
    pub(crate) fn named(&self, shared: &Token, here: &str, there: &str) -> Option<Token> {
        let token = self.by_number.get(&pair_token::number_in(shared))?;
        pair_token::token_for_pair(token, here, there)
            .matches(shared)
            .then_some(*token)
    }

    /// Whether a job was started at a site.
    pub(crate) fn is_of(&self, token: &Token, site: &str) -> bool {
        self.known.get(token).is_some_and(|job| job.is_from(site))
    }

    /// Tokens of the jobs started at a site.
    pub(crate) fn tokens_from(&self, site: &str) -> Vec<Token> {
        let theirs = self
            .known
            .iter()
            .filter(|(_, job)| matches!(&job.origin, Origin::Site(name) if name == site));
        theirs.map(|(token, _)| *token).collect()
    }

    /// Commands that want to know that their job has lost a site.
    pub(crate) fn losing(&self, site: &str) -> Vec<CommandKey> {
        let losing = self.known.values().filter_map(|job| match job.origin {
            Origin::Here(command) if !job.bare && job.wants(site) => Some(command),
            _ => None,
        });
        losing.collect()
    }

    /// Notes that a site has confirmed a job, or is gone and never will. Returns the command to answer if it
    /// was the last one awaited.
    pub(crate) fn confirmed(&mut self, token: &Token, site: &str) -> Option<CommandKey> {
        let job = self.get_mut(token)?;
        let was_awaited = job.awaited.remove(site);
        match job.origin {
            Origin::Here(command) if was_awaited && job.awaited.is_empty() => Some(command),
            _ => None,
        }
    }

    /// Notes that a site takes no part in a job that was started here. Returns the command to answer if it
    /// was the last one awaited.
    pub(crate) fn refused(&mut self, token: &Token, site: &str, why: JobRefusal) -> Option<CommandKey> {
        let job = self.get_mut(token)?;
        if matches!(job.origin, Origin::Here(_)) {
            job.refused.insert(site.to_owned(), why);
        }
        self.confirmed(token, site)
    }

    /// Commands to answer now that a site is gone.
    pub(crate) fn site_is_gone(&mut self, site: &str) -> Vec<CommandKey> {
        self.touched.extend(self.known.keys());
        for job in self.known.values_mut() {
            // When the site loses its tunnel, it forgets the job.
            job.told.remove(site);
        }
        let tokens: Vec<Token> = self.known.keys().copied().collect();
        tokens
            .iter()
            .filter_map(|token| self.confirmed(token, site))
            .collect()
    }
}

#[derive(Serialize, Deserialize)]
pub(crate) struct KeptJob {
    pub(crate) token: [u8; 16],
    pub(crate) name: String,
    pub(crate) user: String,
    pub(crate) weight: u32,
    pub(crate) bare: bool,
    pub(crate) lingers: bool,
    pub(crate) transparent: bool,
    pub(crate) origin: KeptOrigin,
    pub(crate) holder: u32,
    pub(crate) plan: Plan,
    pub(crate) allocated: BTreeMap<String, Vec<NodeInfo>>,
    pub(crate) since: u64,
    pub(crate) awaited: Vec<String>,
    pub(crate) told: Vec<String>,
    pub(crate) refused: Vec<(String, JobRefusal)>,
    pub(crate) sent_bytes: u64,
    pub(crate) received_bytes: u64,
}

#[derive(Serialize, Deserialize)]
pub(crate) enum KeptOrigin {
    Here(usize),
    Site(String),
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_job_is_confirmed_when_the_last_site_has_answered_or_gone() {
        let mut jobs = Jobs::default();
        let token = Token([1; 16]);
        let awaited = ["nancy".to_owned(), "bordeaux".to_owned()].into();
        jobs.start(
            token,
            Job::new("mpirun".into(), 1, Origin::Here(CommandKey(7)), awaited),
        );
        assert_eq!(jobs.confirmed(&token, "nancy"), None);
        assert_eq!(jobs.confirmed(&token, "nancy"), None);
        assert_eq!(jobs.site_is_gone("bordeaux"), [CommandKey(7)]);
        assert!(jobs.site_is_gone("bordeaux").is_empty());
        assert!(jobs.knows(&token) && jobs.end(&token).is_some() && !jobs.knows(&token));
    }

    #[test]
    fn no_site_takes_anothers_job_for_its_own_nor_starts_jobs_without_bound() {
        let mut jobs = Jobs::default();
        let token = |number: u32| {
            let mut bytes = [0; Token::BYTES];
            bytes[..4].copy_from_slice(&number.to_be_bytes());
            Token(bytes)
        };
        let job = |site: &str| Job::new("mpirun".into(), 1, Origin::Site(site.into()), BTreeSet::new());
        let own = Job::new("mpirun".into(), 1, Origin::Here(CommandKey(7)), BTreeSet::new());
        jobs.start(token(0), own);
        jobs.learn(token(1), job("nancy")).unwrap();
        for number in [0, 1] {
            let why = jobs.learn(token(number), job("bordeaux")).unwrap_err();
            assert!(why.contains("is of another site"), "{why}");
        }
        assert!(jobs.tokens_from("bordeaux").is_empty());
        jobs.learn(token(1), job("nancy")).unwrap();
        for number in 2..=MAX_OF_A_SITE as u32 {
            jobs.learn(token(number), job("nancy")).unwrap();
        }
        assert!(jobs.learn(token(u32::MAX), job("nancy")).is_err());
        jobs.learn(token(u32::MAX), job("bordeaux")).unwrap();
        let mut long = job("bordeaux");
        long.name = "x".repeat(MAX_NAME_BYTES + 1);
        assert!(jobs.learn(token(u32::MAX - 1), long).is_err());
    }

    #[test]
    fn who_said_where_its_job_runs_hears_of_the_loss_of_these_sites() {
        let mut jobs = Jobs::default();
        let plans = [vec![], vec!["nancy"], vec!["lyon"], vec!["lyon", "nancy"]];
        for (number, sites) in plans.into_iter().enumerate() {
            let mut job = Job::new(
                "mpirun".into(),
                1,
                Origin::Here(CommandKey(number)),
                BTreeSet::new(),
            );
            job.plan = Plan {
                sites: sites.into_iter().map(str::to_owned).collect(),
                ranks: 2,
                ..Plan::default()
            };
            jobs.start(Token([number as u8; 16]), job);
        }
        let mut losing = jobs.losing("nancy");
        losing.sort_unstable();
        assert_eq!(losing, [1, 3].map(CommandKey));
    }
}
