//! The room that a batch system has for a job, from what it reports about its nodes. Pure.

use crate::resources::measured::{Known, Measured};
use causeway_batch::offer::{Limit, Offer, OfferedNode, Partition};
use causeway_placement::Class;
use std::collections::{BTreeMap, BTreeSet};

/// The values for what is not known; they meet every demand.
pub const UNKNOWN_BYTES: u64 = 1 << 50;
pub const UNKNOWN_SPEED: u32 = u32::MAX;

/// The demands of a job that every site must meet.
#[derive(Debug, Default)]
pub struct Asked {
    /// Cores of a rank.
    pub cores: u32,
    /// How long the job runs.
    pub seconds: Option<u64>,
    /// The time of this host's clock, in seconds since 1970.
    pub now: u64,
    /// All features that a group demands.
    pub features: BTreeSet<String>,
}

/// The memory and the speed that all these nodes have: a job cannot choose among them.
pub fn least<'a>(nodes: impl Iterator<Item = (Option<u64>, Option<&'a Known>)>) -> (u64, u32) {
    nodes.fold(
        (UNKNOWN_BYTES, UNKNOWN_SPEED),
        |(memory, speed), (told, known)| {
            let own_memory = told.or_else(|| known?.node.memory_bytes);
            let own_speed = known.and_then(|known| known.speed_thousandths);
            (
                memory.min(own_memory.unwrap_or(UNKNOWN_BYTES)),
                speed.min(own_speed.unwrap_or(UNKNOWN_SPEED)),
            )
        },
    )
}

/// Classes of the nodes in the partition in which a job gets its allocation, by their slots. The job cannot
/// choose among the nodes, so each class has only the memory, the speed and the features that all of them
/// have.
///
/// # Errors
/// No job of this duration gets any node; the error continues a sentence that begins with the site's name.
pub fn classes(site: &str, offer: &Offer, measured: &Measured, asked: &Asked) -> Result<Vec<Class>, String> {
    let defaults = offer.partitions.iter().enumerate();
    let mut defaults = defaults.filter(|(_, partition)| partition.is_default);
    let Some((number, partition)) = defaults.next() else {
        return Err("its batch system has no default partition".to_owned());
    };
    let name = &partition.name;
    if !partition.is_up {
        return Err(format!("its partition {name} is down"));
    }
    let limit = limit(offer, name);
    check_time(partition, limit, asked)?;
    let nodes = offer.nodes.iter();
    let usable = nodes.filter(|node| !node.is_down && node.partitions.contains(&number));
    let mut usable: Vec<&OfferedNode> = usable.filter(|node| node.cpus >= asked.cores).collect();
    usable.sort_by_key(|node| std::cmp::Reverse(node.cpus));
    let most = partition
        .max_nodes
        .into_iter()
        .chain(limit.and_then(|limit| limit.max_nodes));
    usable.truncate(most.min().map_or(usize::MAX, |most| most as usize));
    let Some(first) = usable.first() else {
        return Err(format!("no node of its partition {name} can be used"));
    };
    let mut cpus_left = limit.and_then(|limit| limit.max_cpus).unwrap_or(u32::MAX);
    let known = { usable.iter() }.map(|node| (node.memory_bytes, measured.of(site, &node.name)));
    let (memory_bytes, speed) = least(known);
    let mut features: BTreeSet<String> = first.features.iter().cloned().collect();
    features.retain(|feature| usable.iter().all(|node| node.features.contains(feature)));
    let mut counts: BTreeMap<(u32, u64), u32> = BTreeMap::new();
    for node in &usable {
        let cpus = node.cpus.min(cpus_left);
        cpus_left -= cpus;
        let kind = (cpus / asked.cores, starts_after(node, asked.now));
        if kind.0 > 0 {
            *counts.entry(kind).or_default() += 1;
        }
    }
    if counts.is_empty() {
        return Err("its account may have no core of it".to_owned());
    }
    let class = |((slots, start_seconds), nodes)| Class {
        name: format!("nodes of {slots} ranks in partition {name}"),
        nodes,
        slots,
        start_seconds,
        memory_bytes,
        features: features.clone(),
        speed,
        ..Class::default()
    };
    Ok(counts.into_iter().map(class).collect())
}

/// Refuses a job that runs longer than its partition or its account allows.
fn check_time(partition: &Partition, limit: Option<&Limit>, asked: &Asked) -> Result<(), String> {
    let account_limit = |limit: &Limit| {
        let whose = format!("account {} with QOS {}", limit.account, limit.qos);
        (limit.max_seconds, whose)
    };
    let partition_limit = (partition.max_seconds, format!("partition {}", partition.name));
    for (most, whose) in [Some(partition_limit), limit.map(account_limit)]
        .into_iter()
        .flatten()
    {
        if let (Some(most), Some(seconds)) = (most, asked.seconds)
            && seconds > most
        {
            let (seconds, most) = (seconds.div_ceil(60), most / 60);
            return Err(format!(
                "{seconds} min are more than its {whose} allows, {most} min"
            ));
        }
    }
    Ok(())
}

/// The limit for a job in this partition that names no account: one for this partition precedes one for any.
fn limit<'a>(offer: &'a Offer, partition: &str) -> Option<&'a Limit> {
    let own = offer.limits.iter().filter(|limit| limit.is_default);
    let own = own.filter(|limit| limit.partition.as_ref().is_none_or(|name| name == partition));
    own.max_by_key(|limit| limit.partition.is_some())
}

/// When a busy node becomes free, if nobody knows: after all times that are known.
const SOME_TIME: u64 = 1 << 30;

/// After how many seconds a node becomes free: 0, or rounded up to a power of two, so that the nodes form few
/// classes.
fn starts_after(node: &OfferedNode, now: u64) -> u64 {
    match node.free_at {
        _ if node.free_cpus >= node.cpus => 0,
        Some(at) => at.saturating_sub(now).max(60).next_power_of_two().min(SOME_TIME),
        None => SOME_TIME,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn offer() -> Offer {
        let partition = |name: &str, is_default| Partition {
            name: name.to_owned(),
            is_default,
            is_up: true,
            max_seconds: Some(7200),
            max_nodes: None,
        };
        let node = |name: &str, cpus, memory: u64, features: &[&str]| OfferedNode {
            name: name.to_owned(),
            partitions: vec![1],
            cpus,
            free_cpus: cpus,
            memory_bytes: Some(memory),
            features: features.iter().map(|feature| (*feature).to_owned()).collect(),
            ..OfferedNode::default()
        };
        Offer {
            partitions: vec![partition("long", false), partition("fast", true)],
            nodes: vec![
                node("n1", 16, 64, &["ib", "gpu"]),
                node("n2", 16, 32, &["ib"]),
                node("n3", 8, 64, &["ib"]),
                OfferedNode {
                    is_down: true,
                    ..node("n4", 99, 1, &[])
                },
                OfferedNode {
                    partitions: vec![0],
                    ..node("n5", 99, 1, &[])
                },
            ],
            ..Offer::default()
        }
    }

    fn asked(cores: u32, seconds: u64) -> Asked {
        Asked {
            cores,
            seconds: Some(seconds),
            ..Asked::default()
        }
    }

    #[test]
    fn a_job_gets_what_all_usable_nodes_of_the_default_partition_have() {
        let classes = |offer: &Offer, asked: &Asked| classes("s", offer, &Measured::default(), asked);
        let found = classes(&offer(), &asked(2, 3600)).unwrap();
        let shown: Vec<(u32, u32, u64)> = { found.iter() }
            .map(|class| (class.nodes, class.slots, class.memory_bytes))
            .collect();
        assert_eq!(shown, [(1, 4, 32), (2, 8, 32)]);
        assert_eq!(found[0].features, BTreeSet::from(["ib".to_owned()]));
        let mut few = offer();
        few.partitions[1].max_nodes = Some(1);
        let found = classes(&few, &asked(1, 60)).unwrap();
        assert_eq!((found.len(), found[0].nodes, found[0].slots), (1, 1, 16));
        assert!(found[0].features.contains("gpu"));
    }

    #[test]
    fn the_slowest_usable_node_counts_and_what_was_measured_fills_in_for_what_nobody_tells() {
        let known = |speed: u32, memory: u64| {
            serde_json::json!({
                "node": {"cores": 8, "memory_bytes": memory, "processor": "p", "load_thousandths": 0},
                "speed_thousandths": speed, "at": 1,
            })
        };
        let all = serde_json::json!({"s": {"n1": known(1800, 1), "n3": known(1200, 20), "n4": known(9, 1)}});
        let measured: Measured = serde_json::from_value(all).unwrap();
        let mut offer = offer();
        offer.nodes[2].memory_bytes = None;
        let found = classes("s", &offer, &measured, &asked(1, 60)).unwrap();
        assert!(
            found
                .iter()
                .all(|class| (class.speed, class.memory_bytes) == (1200, 20))
        );
    }

    #[test]
    fn a_job_gets_no_more_than_its_account_may_have() {
        let limit = |account: &str, is_default| Limit {
            account: account.into(),
            qos: "normal".into(),
            is_default,
            ..Limit::default()
        };
        let mut offer = offer();
        offer.limits = vec![
            limit("p7", true),
            Limit {
                partition: Some("fast".into()),
                max_cpus: Some(21),
                max_seconds: Some(600),
                ..limit("p7", true)
            },
            Limit {
                max_nodes: Some(0),
                ..limit("p8", false)
            },
        ];
        let classes = |offer: &Offer, seconds| classes("s", offer, &Measured::default(), &asked(1, seconds));
        let found = classes(&offer, 600).unwrap();
        let shown: Vec<(u32, u32)> = found.iter().map(|class| (class.nodes, class.slots)).collect();
        assert_eq!(shown, [(1, 5), (1, 16)]);
        let why = classes(&offer, 601).unwrap_err();
        assert!(
            why.contains("11 min are more than its account p7 with QOS normal allows, 10 min"),
            "{why}"
        );
        offer.limits[1].max_cpus = Some(0);
        assert!(classes(&offer, 60).unwrap_err().contains("may have no core"));
        offer.limits[1].max_nodes = Some(0);
        assert!(classes(&offer, 60).is_err());
    }

    #[test]
    fn nodes_that_are_free_now_come_before_those_that_will_be() {
        let mut busy = offer();
        busy.nodes[0].free_cpus = 3;
        busy.nodes[0].free_at = Some(1000 + 600);
        busy.nodes[1].free_cpus = 0;
        let asked = Asked {
            now: 1000,
            ..asked(1, 60)
        };
        let found = classes("s", &busy, &Measured::default(), &asked).unwrap();
        let starts: Vec<(u32, u64)> = found
            .iter()
            .map(|class| (class.slots, class.start_seconds))
            .collect();
        assert_eq!(starts, [(8, 0), (16, 1024), (16, SOME_TIME)]);
    }

    #[test]
    fn a_partition_that_gives_such_a_job_nothing_says_why() {
        let why =
            |offer: &Offer, asked: &Asked| classes("s", offer, &Measured::default(), asked).unwrap_err();
        assert!(
            why(&offer(), &asked(1, 7201))
                .contains("121 min are more than its partition fast allows, 120 min")
        );
        assert!(why(&offer(), &asked(17, 60)).contains("no node of its partition fast"));
        let mut down = offer();
        down.partitions[1].is_up = false;
        assert!(why(&down, &asked(1, 60)).contains("is down"));
        down.partitions.truncate(1);
        assert!(why(&down, &asked(1, 60)).contains("no default partition"));
    }
}
