//! What a profile says to a run that gets its sites and ranks from elsewhere (`causeway run --groups`).

use crate::MAX_VALUE_BYTES;
use crate::model::{Group, Profile, Ranks};
use crate::notes::Notes;
use crate::reading::{Mistakes, Read, Reading};

/// The job that a profile's groups must fit.
#[derive(Debug, Clone, Copy)]
pub struct Job<'a> {
    /// Names of the sites that may take part.
    pub sites: &'a [String],
    /// Its ranks, if they are known.
    pub ranks: Option<u32>,
}

impl Reading {
    /// Which group each rank is in, in the form that mpi/collectives/topology/groups.c reads:
    /// `0=master,4-7=solvers,@nancy=store`. The first entry that fits a rank counts.
    ///
    /// # Errors
    /// All mistakes of the profile, and everything in which it does not fit the job.
    pub fn groups_for(mut self, job: Job) -> Result<Read<String>, Mistakes> {
        check_ranks(&self.profile, job, &mut self.notes);
        check_sites(&self.profile, job, &mut self.notes);
        let value = value(&self.profile);
        if value.len() > MAX_VALUE_BYTES {
            let reason = format!(
                "take {} bytes of the ranks' environment, which has room for",
                value.len()
            );
            self.notes.mistake(
                "groups",
                format!("{reason} {MAX_VALUE_BYTES}; shorten their names"),
            );
        }
        self.answer(value)
    }
}

fn check_ranks(profile: &Profile, job: Job, notes: &mut Notes) {
    let Some(ranks) = job.ranks else { return };
    for group in &profile.groups {
        let Some(Ranks::Named(ranges)) = &group.ranks else {
            continue;
        };
        for (_, last) in ranges.iter().filter(|(_, last)| *last >= ranks) {
            let reason = format!("there is no rank {last}; the job has {ranks}, counted from 0");
            notes.mistake(format!("groups.{}.ranks", group.name), reason);
        }
    }
    let counts = profile.groups.iter().filter_map(|group| group.ranks.as_ref());
    let sum = counts.fold(0, |sum: u32, ranks| sum.saturating_add(ranks.count()));
    let has_all = profile.counts_ranks() || profile.is_whole();
    if let Some(first) = profile.groups.first().filter(|_| has_all && sum != ranks) {
        let at = notes.at(&format!("groups.{}.ranks", first.name));
        notes.mistake_at(
            at,
            "groups",
            format!("have {sum} ranks together; the job has {ranks}"),
        );
    }
}

fn check_sites(profile: &Profile, job: Job, notes: &mut Notes) {
    let is_known = |site: &String| job.sites.contains(site);
    let known = job.sites.join(", ");
    for group in &profile.groups {
        let Some(sites) = &group.needs.sites else { continue };
        let key = format!("groups.{}.sites", group.name);
        if profile.sites_stand_for_ranks() {
            for site in sites.iter().filter(|site| !is_known(site)) {
                let reason = format!("no rank is at a site {site:?}; this job's are {known}");
                notes.mistake(key.clone(), reason);
            }
        } else if !sites.iter().any(is_known) {
            notes.mistake(
                key,
                format!("none of them takes part in this job; its sites are {known}"),
            );
        }
    }
}

/// Ranks before sites: a rank that is named counts, no matter at which site it is.
fn value(profile: &Profile) -> String {
    let mut next = 0_u32;
    let mut ranks = Vec::new();
    for Group { name, ranks: own, .. } in &profile.groups {
        let ranges = match own {
            None => Vec::new(),
            Some(Ranks::Named(ranges)) => ranges.clone(),
            Some(Ranks::Count(count)) => {
                let first = next;
                next = next.saturating_add(*count);
                vec![(first, next.saturating_sub(1))]
            }
        };
        ranks.extend(ranges.into_iter().map(|(first, last)| match last - first {
            0 => format!("{first}={name}"),
            _ => format!("{first}-{last}={name}"),
        }));
    }
    if profile.sites_stand_for_ranks() {
        for group in &profile.groups {
            let sites = group.needs.sites.iter().flatten();
            ranks.extend(sites.map(|site| format!("@{site}={}", group.name)));
        }
    }
    ranks.join(",")
}
