//! OAR's nodes, by oarnodes(1) and oarstat(1) of 2.5.9. Its queues are not read: no command lists them to
//! users. So there is one partition for all of them.

use crate::MAX_NODES;
use crate::oar::{Job, jobs};
use crate::offer::{Offer, OfferError, OfferedNode, Partition};
use serde::Deserialize;
use std::collections::BTreeMap;

/// The queue of jobs that name none, by the usual rules of sites.
const QUEUE: &str = "default";

/// Resources of a node; others are licences or networks.
const OF_A_NODE: &str = "default";

pub fn offer_words() -> Vec<Vec<String>> {
    let words = |words: &[&str]| words.iter().map(|word| (*word).to_owned()).collect();
    vec![
        words(&["oarnodes", "-J"]),
        words(&["oarstat", "-J", "-f", "--sql", "state = 'Running'"]),
    ]
}

/// A resource: usually a processor of a node.
#[derive(Deserialize)]
struct Resource {
    #[serde(rename = "type")]
    kind: String,
    network_address: String,
    state: String,
    /// The time until which a sleeping node can be woken up.
    #[serde(default)]
    available_upto: u64,
    #[serde(default)]
    drain: Option<String>,
    /// Ids of the jobs that the resource is allocated to.
    #[serde(default)]
    jobs: Option<String>,
    /// The site's name for nodes of one kind, if it has any.
    #[serde(default)]
    cluster: Option<String>,
}

/// A time later than any other, as OAR has it for a node that sleeps because nobody needs it.
const ASLEEP: u64 = 2_147_483_646;

impl Resource {
    /// Whether jobs can use the resource: a sleeping node is woken up for them.
    fn is_usable(&self) -> bool {
        let is_there = match self.state.as_str() {
            "Alive" => true,
            "Absent" => self.available_upto == ASLEEP,
            _ => false,
        };
        is_there && self.drain.as_deref() != Some("YES")
    }

    fn is_free(&self) -> bool {
        self.jobs.as_deref().is_none_or(|jobs| jobs.trim().is_empty())
    }
}

pub fn offer(answers: &[String]) -> Result<Offer, OfferError> {
    let [resources, running] = answers else {
        return Err(OfferError("two answers are expected".to_owned()));
    };
    let wrong = |program: &str, why: String| OfferError(format!("{program}: {why}"));
    let resources: BTreeMap<String, Resource> =
        serde_json::from_str(resources).map_err(|error| wrong("oarnodes", error.to_string()))?;
    let running = jobs(running).ok_or_else(|| wrong("oarstat", "it is no list of jobs".to_owned()))?;
    let mut nodes: BTreeMap<&str, Vec<&Resource>> = BTreeMap::new();
    let on_nodes = { resources.values() }
        .filter(|resource| resource.kind == OF_A_NODE && !resource.network_address.is_empty());
    for resource in on_nodes {
        nodes.entry(&resource.network_address).or_default().push(resource);
    }
    if nodes.len() > MAX_NODES {
        return Err(OfferError(format!("more than {MAX_NODES} nodes")));
    }
    let partition = Partition {
        name: QUEUE.to_owned(),
        is_default: true,
        is_up: true,
        ..Partition::default()
    };
    let node = |(name, resources): (&str, Vec<&Resource>)| node(name, &resources, &running);
    Ok(Offer {
        partitions: vec![partition],
        nodes: nodes.into_iter().map(node).collect(),
        limits: Vec::new(),
    })
}

fn node(name: &str, resources: &[&Resource], running: &BTreeMap<String, Job>) -> OfferedNode {
    let usable = || resources.iter().filter(|resource| resource.is_usable());
    let count = |count: usize| u32::try_from(count).unwrap_or(u32::MAX);
    let is_down = usable().next().is_none();
    let jobs = { running.values() }.filter(|job| job.nodes.iter().any(|node| node == name));
    OfferedNode {
        name: name.to_owned(),
        partitions: vec![0],
        is_down,
        cpus: count(if is_down {
            resources.len()
        } else {
            usable().count()
        }),
        free_cpus: count(usable().filter(|resource| resource.is_free()).count()),
        memory_bytes: None,
        features: { resources.first() }
            .and_then(|resource| resource.cluster.clone())
            .into_iter()
            .collect(),
        free_at: jobs.filter_map(Job::ends).max(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    // As OAR 2.5.9 answers; properties that are not read are left out.
    const RESOURCES: &str = r#"{
        "1" : {"type":"default", "network_address":"a-1", "state":"Alive", "drain":"NO", "jobs":"6", "cluster":"a"},
        "2" : {"type":"default", "network_address":"a-1", "state":"Alive", "drain":"NO", "cluster":"a"},
        "3" : {"type":"default", "network_address":"a-2", "state":"Suspected", "drain":"NO"},
        "4" : {"type":"default", "network_address":"a-3", "state":"Absent", "available_upto":2147483646},
        "5" : {"type":"default", "network_address":"a-4", "state":"Absent", "available_upto":0},
        "6" : {"type":"default", "network_address":"a-5", "state":"Alive", "drain":"YES"},
        "7" : {"type":"licence", "network_address":"", "state":"Alive"} }"#;
    const RUNNING: &str = r#"{ "6" : { "state" : "Running", "startTime" : 1795803698, "walltime" : 600,
        "name" : null, "assigned_network_address" : ["a-1"] } }"#;

    fn read(resources: &str, running: &str) -> Result<Offer, OfferError> {
        offer(&[resources.to_owned(), running.to_owned()])
    }

    #[test]
    fn nodes_are_the_resources_of_one_address_and_say_when_they_are_free() {
        let offer = read(RESOURCES, RUNNING).unwrap();
        let shown = offer.nodes.iter().map(|node| {
            let OfferedNode {
                free_at, features, ..
            } = node;
            format!(
                "{} {} {}/{} {free_at:?} {features:?}",
                node.name, node.is_down, node.free_cpus, node.cpus
            )
        });
        assert_eq!(
            shown.collect::<Vec<_>>(),
            [
                "a-1 false 1/2 Some(1795804298) [\"a\"]",
                "a-2 true 0/1 None []",
                "a-3 false 1/1 None []",
                "a-4 true 0/1 None []",
                "a-5 true 0/1 None []"
            ]
        );
        assert!(offer.partitions[0].is_up && offer.partitions[0].is_default);
    }

    #[test]
    fn where_no_job_runs_oarstat_prints_nothing_and_other_answers_are_told() {
        assert_eq!(read(RESOURCES, "\n").unwrap().nodes[0].free_at, None);
        for (resources, running) in [("", ""), ("r-1", ""), (RESOURCES, "a job"), ("{\"1\":{}}", "")] {
            assert!(read(resources, running).is_err(), "{resources} {running}");
        }
        assert!(offer(&[String::new()]).is_err());
    }
}
