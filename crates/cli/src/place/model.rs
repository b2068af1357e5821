//! A question for crates/placement: what a profile asks for, and what the gateway knows of the sites. Pure.

use causeway_control::{NodeInfo, Sites};
use causeway_placement::{Alternative, Between, Class, Group, Job, Link, Network, Resources, Site};
use causeway_profile::{Needs, Profile, Ranks};
use std::collections::{BTreeMap, BTreeSet};

/// Stands for what is not known, and so meets every need.
const UNKNOWN_BYTES: u64 = 1 << 50;
const UNKNOWN_SPEED: u32 = u32::MAX;

/// Ranks for which a batch system is taken to have room: it says itself what it has not.
const OF_A_BATCH_SYSTEM: u32 = 1_000_000;

/// See the module.
#[derive(Debug)]
pub struct Question {
    pub resources: Resources,
    pub job: Job,
    /// What the profile asks for that nobody knows of the nodes.
    pub warnings: Vec<String>,
}

impl Question {
    /// Puts the question.
    ///
    /// # Errors
    /// What a profile says that cannot be placed, in a sentence.
    pub fn of(profile: &Profile, sites: &Sites) -> Result<Question, String> {
        let mut warnings = Vec::new();
        let cores = check(profile, &mut warnings)?;
        let resources = resources(sites, cores, &mut warnings);
        if resources.sites.is_empty() {
            return Err("no site can take part; 'causeway status' says why".to_owned());
        }
        let index = |name: &String| resources.sites.iter().position(|site| site.name == *name);
        let groups = profile.groups.iter().map(|group| {
            let choices = group.choices().into_iter();
            Group {
                name: group.name.clone(),
                alternatives: choices
                    .map(|(ranks, needs)| Alternative {
                        ranks: ranks.unwrap_or_default(),
                        sites: { needs.sites }.map(|sites| sites.iter().filter_map(index).collect()),
                        ..Alternative::default()
                    })
                    .collect(),
                within: group.within.as_ref().map(|name| network(profile, name)),
            }
        });
        let job = Job {
            groups: groups.collect(),
            between: between(profile),
            ..Job::default()
        };
        Ok(Question {
            resources,
            job,
            warnings,
        })
    }
}

impl Question {
    /// Whether a site's nodes are those of its batch system.
    pub fn is_of_batch_system(&self, site: usize) -> bool {
        let mut classes = self.resources.sites[site].classes.iter();
        classes.any(|class| class.slots == OF_A_BATCH_SYSTEM)
    }
}

/// Refuses what cannot be placed; the cores of a rank.
fn check(profile: &Profile, warnings: &mut Vec<String>) -> Result<u32, String> {
    let mut cores = BTreeSet::new();
    for group in &profile.groups {
        match group.ranks {
            Some(Ranks::Count(_)) => {}
            _ => {
                return Err(format!(
                    "groups.{}: give it a number of ranks, ranks = 4: the placement numbers the ranks",
                    group.name
                ));
            }
        }
        if group.program.is_some() {
            return Err(format!(
                "groups.{}: one program is run, that of the profile",
                group.name
            ));
        }
        for (_, needs) in group.choices() {
            cores.insert(needs.cores.unwrap_or(1).max(1));
            warn_of_unknown(&group.name, &needs, warnings);
        }
    }
    let most = cores.last().copied().unwrap_or(1);
    if cores.len() > 1 {
        warnings.push(format!(
            "groups differ in the cores of a rank: each rank is given {most}"
        ));
    }
    Ok(most)
}

fn warn_of_unknown(group: &str, needs: &Needs, warnings: &mut Vec<String>) {
    let asked = [
        (needs.memory_bytes.is_some(), "memory"),
        (needs.speed.is_some(), "speed"),
        (needs.features.is_some(), "features"),
    ];
    let asked: Vec<&str> = asked
        .iter()
        .filter(|(is, _)| *is)
        .map(|(_, what)| *what)
        .collect();
    if !asked.is_empty() {
        let line = format!(
            "groups.{group}: the {} of nodes is not known and not checked",
            asked.join(", ")
        );
        if !warnings.contains(&line) {
            warnings.push(line);
        }
    }
}

fn resources(sites: &Sites, cores: u32, warnings: &mut Vec<String>) -> Resources {
    let mut found = Resources::default();
    for status in sites.sites.iter().filter(|site| site.unreachable.is_none()) {
        let Some(info) = &status.info else { continue };
        let classes = match info.nodes.is_empty() {
            true => vec![of_batch_system()],
            false => classes(&info.nodes, cores),
        };
        if info.nodes.is_empty() {
            let name = &info.name;
            warnings.push(format!(
                "how many nodes the batch system of {name} has is not known: it refuses what it has not"
            ));
        }
        found.sites.push(Site {
            name: info.name.clone(),
            classes,
        });
    }
    found.links = links(sites, &found.sites);
    found
}

/// Listed nodes by their slots.
fn classes(nodes: &[NodeInfo], cores: u32) -> Vec<Class> {
    let mut counts: BTreeMap<u32, u32> = BTreeMap::new();
    for node in nodes {
        *counts.entry(node.slots / cores).or_default() += 1;
    }
    let class = |(slots, nodes): (u32, u32)| Class {
        name: format!("nodes of {slots} ranks"),
        nodes,
        slots,
        memory_bytes: UNKNOWN_BYTES,
        speed: UNKNOWN_SPEED,
        ..Class::default()
    };
    { counts.into_iter() }
        .filter(|(slots, _)| *slots > 0)
        .map(class)
        .collect()
}

fn of_batch_system() -> Class {
    Class {
        name: "its batch system".to_owned(),
        nodes: 1,
        slots: OF_A_BATCH_SYSTEM,
        memory_bytes: UNKNOWN_BYTES,
        speed: UNKNOWN_SPEED,
        ..Class::default()
    }
}

/// The links between these sites: where only one end has measured, as that one says; where nobody has, one
/// that is as bad as can be, over which a job can run all the same.
fn links(sites: &Sites, used: &[Site]) -> Vec<Link> {
    let measured = |from: &str, to: &str| {
        let links = sites.links.get(from)?;
        links.iter().find(|link| link.to == to)
    };
    let mut found = Vec::new();
    for (one, from) in used.iter().enumerate() {
        for (other, to) in used.iter().enumerate().skip(one + 1) {
            let ends = [measured(&from.name, &to.name), measured(&to.name, &from.name)];
            let ends: Vec<_> = ends.into_iter().flatten().collect();
            let latency = ends.iter().map(|link| u64::from(link.rtt_microseconds) / 2).max();
            let rate = ends.iter().map(|link| link.rate_bits_per_second / 8).min();
            found.push(Link {
                sites: (one, other),
                latency_us: latency.unwrap_or(u64::MAX / 4),
                bytes_per_second: rate.unwrap_or(0),
                loss_ppm: 0,
            });
        }
    }
    found
}

fn between(profile: &Profile) -> Vec<Between> {
    let index = |name: &str| profile.groups.iter().position(|group| group.name == name);
    let mut found = Vec::new();
    for (one, group) in profile.groups.iter().enumerate() {
        for (other, name) in &group.to {
            if let Some(other) = index(other) {
                found.push(Between {
                    groups: (one, other),
                    network: network(profile, name),
                });
            }
        }
    }
    found
}

fn network(profile: &Profile, name: &str) -> Network {
    let found = profile.networks.iter().find(|network| network.name == name);
    found.map_or_else(Network::default, |network| Network {
        max_latency_us: network.max_latency_ns.map(|latency| latency / 1000),
        min_bytes_per_second: network.min_bits_per_second.map(|rate| rate.div_ceil(8)),
        max_loss_ppm: network
            .max_loss_ppb
            .map(|loss| u32::try_from(loss / 1000).unwrap_or(u32::MAX)),
    })
}

/// A site with its room, for people.
pub fn shown(site: &Site) -> String {
    let room = site.classes.iter().map(|class| match class.slots {
        OF_A_BATCH_SYSTEM => class.name.clone(),
        slots => format!("{} x {slots}", class.nodes),
    });
    format!("{} ({})", site.name, room.collect::<Vec<_>>().join(", "))
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use causeway_control::{Link as Measured, SiteInfo, SiteStatus};

    /// Three sites: rennes and nancy with two nodes of four slots, orsay with a batch system.
    pub fn sites() -> Sites {
        let site = |name: &str, nodes: usize| {
            let info: SiteInfo = serde_json::from_value(serde_json::json!({
                "name": name, "subnets": ["10.1.0.0/24"], "gateways": [], "delivery_ports": "20000-20001",
                "nodes": (0..nodes).map(|node| serde_json::json!({
                    "name": format!("{name}-{node}"), "address": "10.1.0.1", "slots": 4,
                })).collect::<Vec<_>>(),
            }))
            .unwrap();
            SiteStatus {
                name: name.into(),
                info: Some(info),
                unreachable: None,
            }
        };
        let link = |to: &str, rtt_microseconds, rate_bits_per_second| Measured {
            to: to.into(),
            rtt_microseconds,
            rate_bits_per_second,
        };
        Sites {
            site: "rennes".into(),
            sites: vec![site("rennes", 2), site("nancy", 2), site("orsay", 0)],
            links: BTreeMap::from([
                ("rennes".into(), vec![link("nancy", 11_600, 1_000_000_000)]),
                ("nancy".into(), vec![link("rennes", 12_000, 800_000_000)]),
            ]),
            mpi: Default::default(),
            allocated_by: None,
            batch: None,
            start: Default::default(),
        }
    }

    pub fn profile(text: &str) -> Profile {
        causeway_profile::read(text, "job.toml").finish().unwrap().value
    }

    #[test]
    fn nodes_are_classes_and_the_worse_end_of_a_link_counts() {
        let question = Question::of(&profile("[groups.a]\nranks = 2\ncores = 2"), &sites()).unwrap();
        let rennes = &question.resources.sites[0];
        assert_eq!((rennes.classes[0].nodes, rennes.classes[0].slots), (2, 2));
        let link = question.resources.links[0];
        assert_eq!(
            (link.sites, link.latency_us, link.bytes_per_second),
            ((0, 1), 6000, 100_000_000)
        );
        // Nobody has measured the other two.
        assert_eq!(question.resources.links[1].bytes_per_second, 0);
        assert!(
            question.warnings[0].contains("the batch system of orsay"),
            "{:?}",
            question.warnings
        );
    }

    #[test]
    fn needs_of_which_nothing_is_known_are_told_and_what_cannot_be_placed_is_refused() {
        let question = Question::of(&profile("[groups.a]\nranks = 2\nmemory = '2GB'"), &sites()).unwrap();
        assert!(question.warnings[0].contains("groups.a: the memory of nodes is not known"));
        let named = Question::of(&profile("[groups.a]\nranks = '0-3'"), &sites()).unwrap_err();
        assert!(named.contains("groups.a: give it a number of ranks"), "{named}");
    }
}
