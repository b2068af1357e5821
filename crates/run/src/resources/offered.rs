//! What the batch system of the own site has: its partitions and nodes, and how much of them is free.

use super::measured::Measured;
use crate::batch::commands::Batch;
use causeway_batch::System;
use causeway_batch::offer::Offer;
use causeway_control::BatchAccess;
use causeway_resources::{Class, Described, Limit, Node, Partition, Site, classes_of};
use std::collections::{BTreeSet, HashSet};

/// Asks the batch system of the own site.
///
/// # Errors
/// The batch system is not known, its commands fail, or their answers are not understood; the error is one
/// sentence.
pub fn ask(access: &BatchAccess) -> Result<Offer, String> {
    let system: System = access.system.parse()?;
    let batch = Batch {
        system,
        conf: access.conf.clone(),
        subnets: Vec::new(),
    };
    batch.offer()
}

/// Adds the offer to the site. A node that the site's gateway also lists occurs only once, as the batch
/// system describes it; what the batch system does not say comes from measurements.
pub fn add(site: &mut Site, offer: Offer, measured: &Measured) {
    let known = |name: &str| measured.of(&site.name, name);
    site.limits = offer.limits.into_iter().map(limit).collect();
    let partition_name = |number: &usize| offer.partitions.get(*number).map(|one| one.name.clone());
    let nodes = offer.nodes.iter().map(|node| Described {
        node: Node {
            name: node.name.clone(),
            address: None,
            is_down: node.is_down,
            free_slots: Some(node.free_cpus),
            free_at: node.free_at,
        },
        slots: node.cpus,
        cores: known(&node.name).map(|known| known.node.cores),
        memory_bytes: node.memory_bytes.or_else(|| known(&node.name)?.node.memory_bytes),
        speed_thousandths: known(&node.name).and_then(|known| known.speed_thousandths),
        features: node.features.iter().cloned().collect(),
        partitions: node.partitions.iter().filter_map(partition_name).collect(),
    });
    let nodes: Vec<Described> = nodes.collect();
    let offered: HashSet<&str> = nodes.iter().map(|node| node.node.name.as_str()).collect();
    for class in &mut site.classes {
        class.nodes.retain(|node| !offered.contains(node.name.as_str()));
    }
    site.classes.retain(|class| !class.nodes.is_empty());
    let taken = site.classes.iter().map(|class| class.name.clone()).collect();
    let classes = classes_of(nodes, &taken);
    let classes_in = |name: &str, classes: &[(Class, BTreeSet<String>)]| -> Vec<String> {
        let own = classes.iter().filter(|(_, partitions)| partitions.contains(name));
        own.map(|(class, _)| class.name.clone()).collect()
    };
    site.partitions = { offer.partitions.into_iter() }
        .map(|partition| Partition {
            classes: classes_in(&partition.name, &classes),
            name: partition.name,
            is_default: partition.is_default,
            is_up: partition.is_up,
            max_seconds: partition.max_seconds,
            max_nodes: partition.max_nodes,
        })
        .collect();
    site.classes.extend(classes.into_iter().map(|(class, _)| class));
}

fn limit(limit: causeway_batch::offer::Limit) -> Limit {
    Limit {
        account: limit.account,
        partition: limit.partition,
        qos: limit.qos,
        is_default: limit.is_default,
        max_jobs: limit.max_jobs,
        max_nodes: limit.max_nodes,
        max_slots: limit.max_cpus,
        max_seconds: limit.max_seconds,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use causeway_resources::Graph;

    #[test]
    fn nodes_of_the_same_partitions_are_a_class_and_those_of_the_gateway_stay_once() {
        let answer = "\
a-1|fast*|up|2:00:00|1-infinite|mixed|1/3/0/4|1|(null)
a-2|fast*|up|2:00:00|1-infinite|idle|0/4/0/4|1|(null)
a-2|long|up|infinite|1-infinite|idle|0/4/0/4|1|(null)
";
        let offer = System::Slurm.offer(&[answer.into(), "50|a-1\n".into()]).unwrap();
        let listed = ["a-1", "b-1"].map(|name| Node {
            name: name.into(),
            ..Node::default()
        });
        let mut site = Site {
            name: "a".into(),
            classes: vec![Class {
                name: "4-slots".into(),
                slots: 4,
                nodes: listed.to_vec(),
                ..Class::default()
            }],
            ..Site::default()
        };
        add(&mut site, offer, &Measured::default());
        let classes = site.classes.iter().map(|class| {
            let names: Vec<&str> = class.nodes.iter().map(|node| node.name.as_str()).collect();
            format!("{} {}", class.name, names.join(","))
        });
        assert_eq!(
            classes.collect::<Vec<_>>(),
            ["4-slots b-1", "4-slots-2 a-1", "4-slots-3 a-2"]
        );
        assert_eq!(site.partitions[0].classes, ["4-slots-2", "4-slots-3"]);
        assert_eq!(site.partitions[1].classes, ["4-slots-3"]);
        let node = &site.classes[1].nodes[0];
        assert_eq!((node.free_slots, node.free_at), (Some(3), Some(50)));
        // Whatever a batch system has passes through JGF unchanged.
        let graph = Graph {
            name: "g".into(),
            sites: vec![site],
            links: vec![],
        };
        let text = causeway_resources::to_jgf(&graph);
        assert_eq!(causeway_resources::read_jgf(&text).unwrap().graph, graph);
    }
}
