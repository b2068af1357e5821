//! A question for crates/placement: what a profile demands, and what the gateway knows about the sites. Pure.

use super::offered::{self, Asked, UNKNOWN_BYTES, UNKNOWN_SPEED, least};
use crate::resources::Offers;
use crate::resources::measured::Measured;
use causeway_control::{NodeInfo, Sites};
use causeway_placement::{Alternative, Between, Class, Group, Job, Link, Network, Resources, Site};
use causeway_profile::{Needs, Profile, Ranks};
use std::collections::{BTreeMap, BTreeSet};

/// How many ranks a batch system is assumed to have room for if it does not say what it has: it refuses what
/// does not fit.
const OF_A_BATCH_SYSTEM: u32 = 1_000_000;

/// See the module.
#[derive(Debug)]
pub struct Question {
    pub resources: Resources,
    pub job: Job,
    /// The sites whose nodes come from their batch systems.
    of_batch_systems: BTreeSet<usize>,
    /// How many cores a rank has.
    pub cores: u32,
    /// What the profile demands although it is not known which nodes have it.
    pub warnings: Vec<String>,
}

impl Question {
    /// Creates the question.
    ///
    /// # Errors
    /// What the profile demands cannot be placed; the error is one sentence.
    pub fn of(
        profile: &Profile,
        sites: &Sites,
        offers: &Offers,
        measured: &Measured,
        now: u64,
    ) -> Result<Question, String> {
        let mut warnings = Vec::new();
        let choices = profile.groups.iter().flat_map(|group| group.choices());
        let asked = Asked {
            cores: check(profile, &mut warnings)?,
            seconds: profile.seconds,
            now,
            features: choices
                .flat_map(|(_, needs)| needs.features.unwrap_or_default())
                .collect(),
        };
        let (resources, of_batch_systems) = resources(sites, offers, measured, &asked, &mut warnings);
        warnings.extend(warning_of_speed(profile, &resources));
        if resources.sites.is_empty() {
            let mut why = warnings;
            why.push(
                "no site can take part; 'causeway status' shows those that are not reachable".to_owned(),
            );
            return Err(why.join("\n"));
        }
        let index = |name: &String| resources.sites.iter().position(|site| site.name == *name);
        let groups = profile.groups.iter().map(|group| {
            let choices = group.choices().into_iter();
            Group {
                name: group.name.clone(),
                alternatives: choices
                    .map(|(ranks, needs)| Alternative {
                        ranks: ranks.unwrap_or_default(),
                        memory_bytes: needs.memory_bytes.unwrap_or_default(),
                        min_speed: min_speed(&needs),
                        features: needs.features.clone().unwrap_or_default().into_iter().collect(),
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
            cores: asked.cores,
            of_batch_systems,
            warnings,
        })
    }
}

impl Question {
    /// Whether a site's nodes come from its batch system.
    pub fn is_of_batch_system(&self, site: usize) -> bool {
        self.of_batch_systems.contains(&site)
    }
}

/// Refuses what cannot be placed; returns how many cores a rank has.
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
            let line = format!("groups.{}: the highest speed is not looked at", group.name);
            if needs.speed.is_some_and(|speed| speed.max.is_some()) && !warnings.contains(&line) {
                warnings.push(line);
            }
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

fn min_speed(needs: &Needs) -> u32 {
    let speed = needs.speed.and_then(|speed| speed.min).unwrap_or_default();
    u32::try_from(speed).unwrap_or(u32::MAX - 1)
}

/// A warning that names the sites of unknown speed, if the job demands one.
fn warning_of_speed(profile: &Profile, resources: &Resources) -> Option<String> {
    let mut needs = profile.groups.iter().flat_map(|group| group.choices());
    needs.find(|(_, needs)| min_speed(needs) > 0)?;
    let is_unknown = |site: &&Site| site.classes.iter().any(|class| class.speed == UNKNOWN_SPEED);
    let unknown = resources
        .sites
        .iter()
        .filter(is_unknown)
        .map(|site| site.name.as_str());
    let unknown: Vec<&str> = unknown.collect();
    (!unknown.is_empty()).then(|| {
        format!(
            "the speed of nodes of {} is not known and counts as enough; 'causeway resources --measure' measures it",
            unknown.join(", ")
        )
    })
}

fn resources(
    sites: &Sites,
    offers: &Offers,
    measured: &Measured,
    asked: &Asked,
    warnings: &mut Vec<String>,
) -> (Resources, BTreeSet<usize>) {
    let mut found = Resources::default();
    let mut batch_sites = BTreeSet::new();
    for status in sites.sites.iter().filter(|site| site.unreachable.is_none()) {
        let Some(info) = &status.info else { continue };
        let name = &info.name;
        let classes = match (offers.get(name), info.nodes.is_empty()) {
            (_, false) => classes(name, &info.nodes, measured, asked),
            (Some(Ok(offer)), true) => match offered::classes(name, offer, measured, asked) {
                Ok(classes) => classes,
                Err(why) => {
                    warnings.push(format!("{name} cannot take part: {why}"));
                    continue;
                }
            },
            (offer, true) => {
                let why = offer.and_then(|offer| offer.as_ref().err());
                let why = why.map_or_else(String::new, |why| format!(" ({why})"));
                warnings.push(format!(
                    "what the batch system of {name} has is not known{why}: it refuses what it has not"
                ));
                vec![unknown(asked)]
            }
        };
        if info.nodes.is_empty() {
            batch_sites.insert(found.sites.len());
        }
        found.sites.push(Site {
            name: name.clone(),
            classes,
        });
    }
    found.links = links(sites, &found.sites);
    (found, batch_sites)
}

/// Classes of listed nodes, by their slots. The job cannot choose among the nodes, so each class has only the
/// memory and the speed that all of them have.
fn classes(site: &str, nodes: &[NodeInfo], measured: &Measured, asked: &Asked) -> Vec<Class> {
    let known = nodes.iter().map(|node| (None, measured.of(site, &node.name)));
    let (memory_bytes, speed) = least(known);
    let mut counts: BTreeMap<u32, u32> = BTreeMap::new();
    for node in nodes {
        *counts.entry(node.slots / asked.cores).or_default() += 1;
    }
    let class = |(slots, nodes): (u32, u32)| Class {
        name: format!("nodes of {slots} ranks"),
        nodes,
        slots,
        memory_bytes,
        features: asked.features.clone(),
        speed,
        ..Class::default()
    };
    { counts.into_iter() }
        .filter(|(slots, _)| *slots > 0)
        .map(class)
        .collect()
}

/// A class that meets every demand.
fn unknown(asked: &Asked) -> Class {
    Class {
        name: "its batch system".to_owned(),
        nodes: 1,
        slots: OF_A_BATCH_SYSTEM,
        memory_bytes: UNKNOWN_BYTES,
        features: asked.features.clone(),
        speed: UNKNOWN_SPEED,
        ..Class::default()
    }
}

/// The links between these sites. If only one end has measured, its figures count; if neither has, the link
/// is assumed to be as bad as possible, though a job can still run over it.
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

/// Describes a site and its room, for people.
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
    use causeway_batch::offer::{Offer, OfferedNode, Partition};
    use causeway_control::{Link as Told, SiteInfo, SiteStatus};

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
        let link = |to: &str, rtt_microseconds, rate_bits_per_second| Told {
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
        let question = Question::of(
            &profile("[groups.a]\nranks = 2\ncores = 2"),
            &sites(),
            &Offers::new(),
            &Measured::default(),
            0,
        )
        .unwrap();
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
        let text = "[groups.a]\nranks = 2\nspeed = { min = 1.5 }";
        let question =
            Question::of(&profile(text), &sites(), &Offers::new(), &Measured::default(), 0).unwrap();
        assert!(
            question
                .warnings
                .iter()
                .any(|line| line.contains("the speed of nodes of rennes, nancy, orsay is")),
            "{:?}",
            question.warnings
        );
        assert_eq!(question.job.groups[0].alternatives[0].min_speed, 1500);
        let known = serde_json::json!({
            "node": {"cores": 2, "memory_bytes": 8, "processor": "p", "load_thousandths": 0},
            "speed_thousandths": 1200, "at": 1,
        });
        let measured = serde_json::from_value(serde_json::json!({"nancy": {"nancy-1": known}})).unwrap();
        let question = Question::of(&profile(text), &sites(), &Offers::new(), &measured, 0).unwrap();
        let nancy = &question.resources.sites[1].classes[0];
        assert_eq!((nancy.speed, nancy.memory_bytes, nancy.nodes), (1200, 8, 2));
        let named = Question::of(
            &profile("[groups.a]\nranks = '0-3'"),
            &sites(),
            &Offers::new(),
            &Measured::default(),
            0,
        );
        let named = named.unwrap_err();
        assert!(named.contains("groups.a: give it a number of ranks"), "{named}");
    }

    #[test]
    fn a_batch_system_has_the_room_that_it_tells_and_takes_no_part_where_it_has_none() {
        let node = OfferedNode {
            name: "n".into(),
            partitions: vec![0],
            cpus: 16,
            free_cpus: 16,
            memory_bytes: Some(32 << 30),
            features: vec!["ib".into()],
            ..OfferedNode::default()
        };
        let partition = Partition {
            name: "fast".into(),
            is_default: true,
            is_up: true,
            max_seconds: Some(3600),
            max_nodes: None,
        };
        let offer = Offer {
            partitions: vec![partition],
            nodes: vec![node],
            ..Offer::default()
        };
        let offers = Offers::from([("orsay".into(), Ok(offer))]);
        let text =
            "time = \"30min\"\n[groups.a]\nranks = 2\ncores = 2\nmemory = \"2GB\"\nfeatures = [\"ib\"]";
        let question = Question::of(&profile(text), &sites(), &offers, &Measured::default(), 0).unwrap();
        let orsay = &question.resources.sites[2].classes[0];
        assert_eq!((orsay.nodes, orsay.slots, orsay.memory_bytes), (1, 8, 32 << 30));
        assert!(question.is_of_batch_system(2) && !question.is_of_batch_system(0));
        assert!(question.warnings.is_empty(), "{:?}", question.warnings);
        let long = Question::of(
            &profile(&text.replace("30min", "2h")),
            &sites(),
            &offers,
            &Measured::default(),
            0,
        )
        .unwrap();
        assert_eq!(long.resources.sites.len(), 2);
        assert!(
            long.warnings[0].contains("orsay cannot take part: 120 min are more"),
            "{:?}",
            long.warnings
        );
    }
}
