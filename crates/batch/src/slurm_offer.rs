//! Slurm's partitions and nodes, by sinfo(1) and squeue(1) of 22.05.

use crate::MAX_NODES;
use crate::hostlist::expand;
use crate::offer::{MAX_PARTITIONS, Offer, OfferError, OfferedNode, Partition};
use crate::slurm::{seconds, words};
use std::collections::HashMap;

/// States of a node whose idle processors go to jobs of any user.
const USABLE: [&str; 4] = ["idle", "mixed", "allocated", "completing"];

/// The state of an idle node that the scheduler has promised to a queued job.
const PLANNED: &str = "planned";

/// Asks for a line for each node in each partition that this user may see, and then for a line for each job
/// that has nodes. The features come last, because they may contain anything.
pub fn offer_words() -> Vec<Vec<String>> {
    vec![
        words(&[
            "sinfo",
            "--noheader",
            "--Node",
            "--sort=#P,N",
            "--format=%N|%P|%a|%l|%s|%T|%C|%m|%f",
        ]),
        // A job that is completing has no known end.
        words(&[
            "squeue",
            "--all",
            "--noheader",
            "--states=RUNNING,SUSPENDED",
            "--format=%e|%N",
        ]),
    ]
}

pub fn offer(answers: &[String]) -> Result<Offer, OfferError> {
    let [nodes_told, jobs_told] = answers else {
        return Err(OfferError("two answers are expected".to_owned()));
    };
    let mut offer = Offer::default();
    let mut partitions = HashMap::new();
    let mut nodes = HashMap::new();
    for line in nodes_told.lines().filter(|line| !line.trim().is_empty()) {
        let wrong = || OfferError(format!("sinfo: {:?}", line.chars().take(100).collect::<String>()));
        let (node, partition) = read_line(line).ok_or_else(wrong)?;
        let partition = *partitions.entry(partition.name.clone()).or_insert_with(|| {
            offer.partitions.push(partition);
            offer.partitions.len() - 1
        });
        let number = *nodes.entry(node.name.clone()).or_insert_with(|| {
            offer.nodes.push(node);
            offer.nodes.len() - 1
        });
        let node_partitions = &mut offer.nodes[number].partitions;
        if !node_partitions.contains(&partition) {
            node_partitions.push(partition);
        }
        for (what, count, most) in [
            ("nodes", offer.nodes.len(), MAX_NODES),
            ("partitions", offer.partitions.len(), MAX_PARTITIONS),
        ] {
            if count > most {
                return Err(OfferError(format!("more than {most} {what}")));
            }
        }
    }
    for line in jobs_told.lines() {
        // Without an end or nodes, the line means nothing here.
        let Some((Ok(end), list)) = line
            .trim()
            .split_once('|')
            .map(|(end, list)| (end.parse::<u64>(), list))
        else {
            continue;
        };
        for name in expand(list).into_iter().flatten() {
            if let Some(number) = nodes.get(&name) {
                let free_at = &mut offer.nodes[*number].free_at;
                *free_at = (*free_at).max(Some(end));
            }
        }
    }
    Ok(offer)
}

fn read_line(line: &str) -> Option<(OfferedNode, Partition)> {
    let mut fields = line.trim().splitn(9, '|');
    let mut next = || fields.next();
    let (name, partition, availability, limit, size) = (next()?, next()?, next()?, next()?, next()?);
    let (state, cpus, memory, features) = (next()?, next()?, next()?, next()?);
    let (name_of_it, is_default) = match partition.strip_suffix('*') {
        Some(name) => (name, true),
        None => (partition, false),
    };
    let max_nodes = size.rsplit('-').next()?;
    let partition = Partition {
        name: name_of_it.to_owned(),
        is_default,
        is_up: availability == "up",
        max_seconds: match limit {
            "infinite" | "n/a" => None,
            limit => Some(seconds(limit)?),
        },
        max_nodes: match max_nodes {
            "infinite" => None,
            most => Some(most.parse().ok()?),
        },
    };
    let [_, idle, _, all] = { cpus.split('/').map(|number| number.parse().ok()) }
        .collect::<Option<Vec<u32>>>()?
        .try_into()
        .ok()?;
    // The memory is 1 if slurm.conf has no RealMemory.
    let mebibytes: u64 = memory.parse().ok()?;
    let memory_bytes = (mebibytes > 1).then(|| mebibytes.saturating_mul(1 << 20));
    let features = features
        .split(',')
        .filter(|feature| !feature.is_empty() && *feature != "(null)");
    let is_planned = state == PLANNED;
    let node = OfferedNode {
        name: name.to_owned(),
        is_down: !is_planned && !USABLE.contains(&state),
        cpus: all,
        free_cpus: if is_planned { 0 } else { idle.min(all) },
        memory_bytes,
        features: features.map(str::to_owned).collect(),
        ..OfferedNode::default()
    };
    Some((node, partition))
}

#[cfg(test)]
mod tests {
    use super::*;

    // The answer of Slurm 22.05.8.
    const NODES: &str = "\
rennes-1|all*|up|2:00:00|1-infinite|mixed|1/3/0/4|1|ib,gpu=2
rennes-2|all*|up|2:00:00|1-infinite|draining|1/0/3/4|1|(null)
rennes-2|extra|down|infinite|1|draining|1/0/3/4|1|(null)
";
    const JOBS: &str = "1795783690|rennes-1\n1795785070|rennes-[1-2]\n1795783000|rennes-1\n";

    fn node(state: &str, cpus: &str) -> OfferedNode {
        let line = format!("n|p|up|1-00:00:00|2-4|{state}|{cpus}|32000|");
        offer(&[line, String::new()]).unwrap().nodes.remove(0)
    }

    #[test]
    fn partitions_have_limits_and_nodes_say_what_is_free_and_when_all_will_be() {
        let offer = offer(&[NODES.into(), JOBS.into()]).unwrap();
        let partition = |name: &str, is_default, is_up, max_seconds, max_nodes| Partition {
            name: name.into(),
            is_default,
            is_up,
            max_seconds,
            max_nodes,
        };
        assert_eq!(
            offer.partitions,
            [
                partition("all", true, true, Some(7200), None),
                partition("extra", false, false, None, Some(1))
            ]
        );
        assert_eq!(
            offer.nodes,
            [
                OfferedNode {
                    name: "rennes-1".into(),
                    partitions: vec![0],
                    cpus: 4,
                    free_cpus: 3,
                    features: vec!["ib".into(), "gpu=2".into()],
                    free_at: Some(1_795_785_070),
                    ..OfferedNode::default()
                },
                OfferedNode {
                    name: "rennes-2".into(),
                    partitions: vec![0, 1],
                    is_down: true,
                    cpus: 4,
                    free_at: Some(1_795_785_070),
                    ..OfferedNode::default()
                }
            ]
        );
    }

    #[test]
    fn a_node_is_down_in_any_state_that_is_not_known_to_give_it_to_jobs() {
        for (state, is_down, free) in [
            ("idle", false, 4),
            ("completing", false, 4),
            ("planned", false, 0),
            ("idle*", true, 4),
            ("down*", true, 4),
            ("reserved", true, 4),
            ("future", true, 4),
        ] {
            let node = node(state, "0/4/0/4");
            assert_eq!((node.is_down, node.free_cpus), (is_down, free), "{state}");
        }
        assert_eq!(node("idle", "0/4/0/4").memory_bytes, Some(32_000 << 20));
        assert_eq!(seconds("1-12:00:30"), Some(129_630));
        assert_eq!(seconds("30:00"), Some(1800));
    }

    #[test]
    fn an_answer_of_another_form_is_told_and_a_job_without_an_end_says_nothing() {
        for line in [
            "rennes-1",
            "n|p|up|2:00|1-infinite|idle|0/4/0|1|",
            "n|p|up|long|1-infinite|idle|0/4/0/4|1|",
            "n|p|up|2:00|1-infinite|idle|0/4/0/4|lots|",
        ] {
            let told = offer(&[line.into(), String::new()]).unwrap_err().to_string();
            assert!(
                told.starts_with("the answer about its nodes is not understood: sinfo: "),
                "{told}"
            );
        }
        let jobs = "N/A|rennes-1\nUnknown|x\n5|other\n5|a-[\n";
        assert!(
            offer(&[NODES.into(), jobs.into()])
                .unwrap()
                .nodes
                .iter()
                .all(|node| node.free_at.is_none())
        );
        let many: String = (0..=MAX_PARTITIONS)
            .map(|number| format!("n|p{number}|up|1:00|1|idle|0/4/0/4|1|\n"))
            .collect();
        assert_eq!(
            offer(&[many, String::new()]).unwrap_err().0,
            "more than 1000 partitions"
        );
    }
}
