//! Random instances, by a seed. docs/decisions/0021-placement.md is about these.

use causeway_placement::{Alternative, Between, Class, Group, Job, Link, Network, Resources, Site, Traffic};
use fastrand::Rng;
use std::collections::BTreeSet;

/// How large an instance is.
#[derive(Debug, Clone, Copy)]
pub struct Size {
    pub sites: usize,
    pub nodes: u32,
    pub groups: usize,
}

fn words(words: &[&str]) -> BTreeSet<String> {
    words.iter().map(|word| (*word).to_owned()).collect()
}

/// Clusters with two classes on average, and links like those between cities of a country.
fn resources(size: Size, random: &mut Rng) -> Resources {
    let sites = (0..size.sites).map(|site| {
        let classes = 1 + random.usize(0..3);
        let nodes = size.nodes / size.sites as u32;
        let classes = (0..classes).map(|class| {
            let slots = [16, 24, 32, 64][random.usize(0..4)];
            Class {
                name: format!("class{class}"),
                nodes: (nodes / classes as u32).max(1),
                slots,
                memory_bytes: u64::from(slots) * ([2, 4, 8][random.usize(0..3)] << 30),
                features: words(&["avx2", "avx512", "gpu"][..1 + random.usize(0..3)]),
                speed: random.u32(8..20) * 100,
                start_seconds: [0, 0, 60, 300, 900, 3600][random.usize(0..6)],
                cost: random.u64(1..10),
            }
        });
        Site {
            name: format!("site{site}"),
            classes: classes.collect(),
        }
    });
    let sites = sites.collect();
    let mut links = Vec::new();
    for one in 0..size.sites {
        for other in 0..one {
            if random.u32(0..100) < 3 {
                continue;
            }
            links.push(Link {
                sites: (one, other),
                latency_us: random.u64(1..20) * 500,
                bytes_per_second: [125_000_000, 250_000_000, 1_250_000_000][random.usize(0..3)],
                loss_ppm: [0, 0, 10, 1000][random.usize(0..4)],
            });
        }
    }
    Resources { sites, links }
}

/// Groups that together take 10 to 60 % of all slots.
fn job(size: Size, resources: &Resources, random: &mut Rng) -> Job {
    let classes = resources.sites.iter().flat_map(|site| &site.classes);
    let slots: u64 = classes
        .map(|class| u64::from(class.nodes) * u64::from(class.slots))
        .sum();
    let part = random.u64(10..61);
    let shares: Vec<u64> = (0..size.groups).map(|_| random.u64(1..10)).collect();
    let total: u64 = shares.iter().sum();
    let groups = shares.iter().enumerate().map(|(group, share)| Group {
        name: format!("group{group}"),
        alternatives: vec![Alternative {
            ranks: u32::try_from((slots * part * share / total / 100).max(1)).expect("fewer than 2^32"),
            memory_bytes: [1, 1, 2, 3][random.usize(0..4)] << 30,
            features: words(&["avx2", "avx512"][..random.usize(0..3)]),
            min_speed: [0, 0, 900][random.usize(0..3)],
            sites: None,
            work_us: 60_000_000,
        }],
        within: (random.u32(0..100) < 30).then(|| network(random)),
    });
    let groups = groups.collect();
    let mut between = Vec::new();
    let mut traffic = Vec::new();
    for group in 1..size.groups {
        let groups = (random.usize(0..group), group);
        if random.u32(0..100) < 30 {
            let network = network(random);
            between.push(Between { groups, network });
        }
        traffic.push(Traffic {
            groups,
            round_trips: random.u64(0..2000),
            bytes: random.u64(0..20) * 100_000_000,
        });
    }
    Job {
        groups,
        between,
        traffic,
        latest_start_seconds: None,
    }
}

fn network(random: &mut Rng) -> Network {
    match random.u32(0..3) {
        0 => Network {
            max_latency_us: Some(7000),
            ..Network::default()
        },
        1 => Network {
            min_bytes_per_second: Some(200_000_000),
            ..Network::default()
        },
        _ => Network {
            max_loss_ppm: Some(100),
            ..Network::default()
        },
    }
}

pub fn instance(size: Size, seed: u64) -> (Resources, Job) {
    let mut random = Rng::with_seed(seed);
    let resources = resources(size, &mut random);
    let job = job(size, &resources, &mut random);
    (resources, job)
}
