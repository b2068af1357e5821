//! The room that a batch system has for a job, by what it says of its nodes. Pure.

use causeway_batch::offer::{Offer, OfferedNode};
use causeway_placement::Class;
use std::collections::{BTreeMap, BTreeSet};

/// Stands for what is not known, and so meets every need.
pub const UNKNOWN_BYTES: u64 = 1 << 50;
pub const UNKNOWN_SPEED: u32 = u32::MAX;

/// The needs of a job that every site must meet.
#[derive(Debug, Default)]
pub struct Asked {
    /// Cores of a rank.
    pub cores: u32,
    /// How long the job takes.
    pub seconds: Option<u64>,
    /// This host's clock, in seconds since 1970.
    pub now: u64,
    /// All features that a group asks for.
    pub features: BTreeSet<String>,
}

/// The nodes of the partition in which a job gets its allocation, by their slots. The job cannot choose among
/// them, so each class has the memory and the features that all of them have.
///
/// # Errors
/// Why no job of this time gets any; in a sentence that the site's name begins.
pub fn classes(offer: &Offer, asked: &Asked) -> Result<Vec<Class>, String> {
    let defaults = offer.partitions.iter().enumerate();
    let mut defaults = defaults.filter(|(_, partition)| partition.is_default);
    let Some((number, partition)) = defaults.next() else {
        return Err("its batch system has no default partition".to_owned());
    };
    let name = &partition.name;
    if !partition.is_up {
        return Err(format!("its partition {name} is down"));
    }
    if let (Some(most), Some(seconds)) = (partition.max_seconds, asked.seconds)
        && seconds > most
    {
        let (seconds, most) = (seconds.div_ceil(60), most / 60);
        return Err(format!(
            "{seconds} min are more than its partition {name} allows, {most} min"
        ));
    }
    let nodes = offer.nodes.iter();
    let usable = nodes.filter(|node| !node.is_down && node.partitions.contains(&number));
    let mut usable: Vec<&OfferedNode> = usable.filter(|node| node.cpus >= asked.cores).collect();
    if usable.is_empty() {
        return Err(format!("no node of its partition {name} can be used"));
    }
    usable.sort_by_key(|node| std::cmp::Reverse(node.cpus));
    let most = partition.max_nodes.map_or(usize::MAX, |most| most as usize);
    usable.truncate(most);
    let memory = usable
        .iter()
        .map(|node| node.memory_bytes.unwrap_or(UNKNOWN_BYTES))
        .min();
    let mut features: BTreeSet<String> = usable[0].features.iter().cloned().collect();
    features.retain(|feature| usable.iter().all(|node| node.features.contains(feature)));
    let mut counts: BTreeMap<(u32, u64), u32> = BTreeMap::new();
    for node in &usable {
        let kind = (node.cpus / asked.cores, starts_after(node, asked.now));
        *counts.entry(kind).or_default() += 1;
    }
    let class = |((slots, start_seconds), nodes)| Class {
        name: format!("nodes of {slots} ranks in partition {name}"),
        nodes,
        slots,
        start_seconds,
        memory_bytes: memory.unwrap_or(UNKNOWN_BYTES),
        features: features.clone(),
        speed: UNKNOWN_SPEED,
        ..Class::default()
    };
    Ok(counts.into_iter().map(class).collect())
}

/// When a node that is not free now is free, where nobody says: after everything that is known.
const SOME_TIME: u64 = 1 << 30;

/// In how many seconds a node is free: 0, or about so many, so that nodes make few classes.
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
    use causeway_batch::offer::Partition;

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
    fn nodes_that_are_free_now_come_before_those_that_will_be() {
        let mut busy = offer();
        busy.nodes[0].free_cpus = 3;
        busy.nodes[0].free_at = Some(1000 + 600);
        busy.nodes[1].free_cpus = 0;
        let asked = Asked {
            now: 1000,
            ..asked(1, 60)
        };
        let found = classes(&busy, &asked).unwrap();
        let starts: Vec<(u32, u64)> = found
            .iter()
            .map(|class| (class.slots, class.start_seconds))
            .collect();
        assert_eq!(starts, [(8, 0), (16, 1024), (16, SOME_TIME)]);
    }

    #[test]
    fn a_partition_that_gives_such_a_job_nothing_says_why() {
        let why = |offer: &Offer, asked: &Asked| classes(offer, asked).unwrap_err();
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
