//! The rules for a profile in either form: names, references, ranks, alternatives, and what is run.

use crate::MAX_RANKS;
use crate::model::{Alternative, Group, Network, Profile, Ranks};
use crate::notes::Notes;
use crate::toml_walk::UNKNOWN;
use causeway_wire::grid::is_site_name;
use std::collections::{HashMap, HashSet};

const NAME: &str = "has 1 to 63 letters, digits, '-', '_' or '.'";

/// Notes what is wrong, as far as the profile could be read.
pub(crate) fn check(profile: &Profile, notes: &mut Notes) {
    if let Some(name) = profile.name.as_ref().filter(|name| !is_site_name(name)) {
        notes.mistake("name", format!("{name:?}: a job's name {NAME}"));
    }
    for network in &profile.networks {
        check_network(network, profile, notes);
    }
    for group in &profile.groups {
        check_group(group, profile, notes);
    }
    check_references(profile, notes);
    check_ranks(profile, notes);
    check_sites(profile, notes);
    check_programs(profile, notes);
}

fn check_network(network: &Network, profile: &Profile, notes: &mut Notes) {
    let key = format!("network.{}", network.name);
    if !is_site_name(&network.name) {
        notes.mistake(key.clone(), format!("a network's name {NAME}"));
    }
    let bounds = [
        network.min_bits_per_second,
        network.max_latency_ns,
        network.max_loss_ppb,
    ];
    // A bound that is present but wrong has its own mistake.
    let below = format!("{key}.");
    let is_told = notes.mistakes.iter().any(|note| note.key.starts_with(&below));
    if bounds.iter().all(Option::is_none) && !is_told {
        notes.mistake(key.clone(), "has no bandwidth, latency or loss");
    }
    let mut used = profile.groups.iter().flat_map(|group| {
        let others = group.to.iter().map(|(_, network)| network);
        group.within.iter().chain(others)
    });
    if !used.any(|name| *name == network.name) {
        notes.warn(key, "is not used by any group");
    }
}

fn check_group(group: &Group, profile: &Profile, notes: &mut Notes) {
    let key = format!("groups.{}", group.name);
    // The group's name becomes part of a list, and of an info object beside names of sites.
    if !is_site_name(&group.name) {
        notes.mistake(key.clone(), format!("a group's name {NAME}"));
    }
    let below = format!("{key}.");
    // An unknown key may be the missing one, misspelt.
    let is_told = |name: &str| {
        let own = { notes.mistakes.iter() }.filter_map(|note| Some((note.key.strip_prefix(&below)?, note)));
        let mut told = own.filter(|(key, note)| *key == name || note.reason.starts_with(UNKNOWN));
        told.next().is_some()
    };
    if group.ranks.is_none() && !is_told("ranks") {
        if profile.is_whole() || profile.counts_ranks() {
            notes.mistake(key, "has no ranks; say how many");
        } else if group.needs.sites.is_none() && !is_told("sites") {
            notes.mistake(key, "give it ranks = \"0,4-7\" or sites = [\"nancy\"]");
        }
    }
    for (number, other) in (1..).zip(&group.alternatives) {
        check_alternative(group, number, other, notes);
    }
}

fn check_alternative(group: &Group, number: usize, other: &Alternative, notes: &mut Notes) {
    let key = format!("groups.{}.alternatives[{number}]", group.name);
    if other.ranks.is_some() && !matches!(group.ranks, Some(Ranks::Count(_))) {
        let reason = "can only change a number of ranks, and the group has none";
        notes.mistake(format!("{key}.ranks"), reason);
    }
    if notes.mistakes.iter().any(|note| note.key.starts_with(&key)) {
        return;
    }
    let choices = group.choices();
    let same = choices
        .iter()
        .take(number)
        .position(|choice| *choice == choices[number]);
    match same {
        Some(0) => notes.mistake(key, "is the same as the group itself"),
        Some(earlier) => notes.mistake(key, format!("is the same as alternatives[{earlier}]")),
        None => {}
    }
}

fn check_references(profile: &Profile, notes: &mut Notes) {
    let networks: HashSet<&str> = profile
        .networks
        .iter()
        .map(|network| network.name.as_str())
        .collect();
    let groups: HashSet<&str> = profile.groups.iter().map(|group| group.name.as_str()).collect();
    // What a pair of groups needs, by the two names, and where that is specified.
    let mut pairs: HashMap<[&str; 2], (&str, String)> = HashMap::new();
    for group in &profile.groups {
        let key = format!("groups.{}", group.name);
        let within = group
            .within
            .iter()
            .map(|network| (format!("{key}.within"), network));
        let to = { group.to.iter() }.map(|(other, network)| (format!("{key}.to.{other}"), network));
        for (key, network) in within.chain(to) {
            if !networks.contains(network.as_str()) {
                notes.mistake(key, format!("there is no [network.{network}]"));
            }
        }
        for (other, network) in &group.to {
            let key = format!("{key}.to.{other}");
            if *other == group.name {
                notes.mistake(key, "is the group itself; use within");
                continue;
            }
            if !groups.contains(other.as_str()) {
                notes.mistake(key, format!("there is no [groups.{other}]"));
                continue;
            }
            let mut pair = [group.name.as_str(), other.as_str()];
            pair.sort_unstable();
            let (earlier, place) = pairs.entry(pair).or_insert((network.as_str(), key.clone()));
            if *earlier != network {
                notes.mistake(key, format!("is {network}, but {place} is {earlier}"));
            }
        }
    }
}

fn check_ranks(profile: &Profile, notes: &mut Notes) {
    let key = |group: &Group| format!("groups.{}.ranks", group.name);
    let counted = { profile.groups.iter() }.find(|group| matches!(group.ranks, Some(Ranks::Count(_))));
    let mut sum = 0_u32;
    let mut ranges = Vec::new();
    for group in &profile.groups {
        sum = sum.saturating_add(group.ranks.as_ref().map_or(0, Ranks::count));
        if let Some(Ranks::Named(own)) = &group.ranks {
            ranges.extend(own.iter().copied());
            if let Some(counted) = counted {
                let reason = format!("names ranks, but group {} has a number of them", counted.name);
                notes.mistake(key(group), format!("{reason}; use one form in all groups"));
            }
        }
    }
    if sum > MAX_RANKS {
        notes.mistake(
            "groups",
            format!("have {sum} ranks together; a job has {MAX_RANKS} at most"),
        );
    }
    let is_told = notes.mistakes.iter().any(|note| note.key.ends_with(".ranks"));
    if !profile.is_whole() || counted.is_some() || is_told {
        return;
    }
    ranges.sort_unstable();
    let mut next = 0;
    for (first, last) in ranges {
        if first > next {
            notes.mistake(
                "groups",
                format!("rank {next} is in none; a whole job has each rank in a group"),
            );
            return;
        }
        next = last + 1;
    }
}

/// Checks that sites that represent their ranks are in only one group, and that a list of places names each
/// once.
fn check_sites(profile: &Profile, notes: &mut Notes) {
    let mut known: HashMap<&str, &str> = HashMap::new();
    for group in &profile.groups {
        let key = format!("groups.{}.sites", group.name);
        if !profile.sites_stand_for_ranks() {
            note_twice(group.needs.sites.as_deref(), key, notes);
            continue;
        }
        for site in group.needs.sites.iter().flatten() {
            match known.get(site.as_str()) {
                Some(other) => {
                    let reason = format!("site {site} is in group {other} already; leave it out of one");
                    notes.mistake(key.clone(), reason);
                }
                None => {
                    known.insert(site, &group.name);
                }
            }
        }
    }
    for group in &profile.groups {
        let key = format!("groups.{}", group.name);
        note_twice(group.needs.features.as_deref(), format!("{key}.features"), notes);
        for (number, other) in (1..).zip(&group.alternatives) {
            let key = format!("{key}.alternatives[{number}]");
            note_twice(other.needs.sites.as_deref(), format!("{key}.sites"), notes);
            note_twice(other.needs.features.as_deref(), format!("{key}.features"), notes);
        }
    }
}

fn note_twice(names: Option<&[String]>, key: String, notes: &mut Notes) {
    let mut seen = HashSet::new();
    if let Some(twice) = names.iter().copied().flatten().find(|name| !seen.insert(*name)) {
        notes.mistake(key, format!("names {twice} twice"));
    }
}

fn check_programs(profile: &Profile, notes: &mut Notes) {
    if profile.command.is_some() && profile.program.is_some() {
        notes.mistake(
            "program",
            "stands beside a command, which starts all ranks; leave out one",
        );
    }
    let own = profile
        .groups
        .iter()
        .filter(|group| group.program.is_some())
        .count();
    for group in &profile.groups {
        let key = format!("groups.{}.program", group.name);
        if group.program.is_some() && profile.command.is_some() {
            notes.mistake(
                key,
                "stands beside a command, which starts all ranks; leave out one",
            );
        } else if group.program.is_none() && own > 0 && profile.program.is_none() && profile.command.is_none()
        {
            notes.mistake(
                key,
                "is missing: other groups have programs, and the job has none",
            );
        }
    }
}
