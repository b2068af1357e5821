//! PBS's queues and nodes, by pbsnodes(8B) and qstat(1B) of 23.06. This does not read when a node will be
//! free again: at many sites, PBS tells users nothing about others' jobs.

use crate::MAX_NODES;
use crate::offer::{MAX_PARTITIONS, Offer, OfferError, OfferedNode, Partition};
use crate::pbs::{fields, words};
use std::collections::HashMap;

/// States of a node on which jobs run or could run; a node may have several.
const USABLE: [&str; 3] = ["free", "job-busy", "job-exclusive"];

/// The state of a node that one job occupies as a whole.
const EXCLUSIVE: &str = "job-exclusive";

/// Units of memory.
const UNITS: [(&str, u64); 4] = [("kb", 1 << 10), ("mb", 1 << 20), ("gb", 1 << 30), ("tb", 1 << 40)];

pub fn offer_words() -> Vec<Vec<String>> {
    vec![
        words(&["pbsnodes", "-a", "-F", "dsv"]),
        words(&["qstat", "-Q", "-f", "-F", "dsv"]),
        words(&["qstat", "-B", "-f", "-F", "dsv"]),
    ]
}

pub fn offer(answers: &[String]) -> Result<Offer, OfferError> {
    let [nodes, queues, server] = answers else {
        return Err(OfferError("three answers are expected".to_owned()));
    };
    let server = fields(server);
    let default = server.get("default_queue");
    let mut offer = Offer::default();
    for line in lines(queues, MAX_PARTITIONS, "queues")? {
        let attributes = fields(line);
        // A routing queue passes jobs on to others.
        if attributes
            .get("queue_type")
            .is_some_and(|kind| kind != "Execution")
        {
            continue;
        }
        offer
            .partitions
            .push(partition(&attributes, default).ok_or_else(|| wrong("qstat -Q", line))?);
    }
    for line in lines(nodes, MAX_NODES, "nodes")? {
        let read = node(&fields(line), &offer.partitions);
        offer.nodes.push(read.ok_or_else(|| wrong("pbsnodes", line))?);
    }
    Ok(offer)
}

fn lines<'a>(answer: &'a str, most: usize, what: &str) -> Result<Vec<&'a str>, OfferError> {
    let lines: Vec<&str> = { answer.lines() }
        .filter(|line| !line.trim().is_empty())
        .take(most + 1)
        .collect();
    match lines.len() > most {
        true => Err(OfferError(format!("more than {most} {what}"))),
        false => Ok(lines),
    }
}

fn wrong(program: &str, line: &str) -> OfferError {
    let shown: String = line.chars().take(100).collect();
    OfferError(format!("{program}: {shown:?}"))
}

fn partition(fields: &HashMap<String, String>, default: Option<&String>) -> Option<Partition> {
    let name = fields.get("Queue")?;
    let is = |key: &str| fields.get(key).is_some_and(|value| value == "True");
    let time = fields.get("resources_max.walltime");
    Some(Partition {
        name: name.clone(),
        is_default: Some(name) == default,
        is_up: is("enabled") && is("started"),
        max_seconds: time.map(|time| seconds(time).ok_or(())).transpose().ok()?,
        // The limit is on chunks, and one node can hold several.
        max_nodes: None,
    })
}

fn node(fields: &HashMap<String, String>, partitions: &[Partition]) -> Option<OfferedNode> {
    let number = |key: &str| match fields.get(key) {
        Some(text) => text.parse::<u32>().ok(),
        None => Some(0),
    };
    let states: Vec<&str> = fields.get("state")?.split(',').collect();
    let cpus = number("resources_available.ncpus")?;
    let free = cpus.saturating_sub(number("resources_assigned.ncpus")?);
    let own_queue = fields.get("queue");
    let numbered = partitions.iter().enumerate();
    let own = numbered.filter(|(_, partition)| own_queue.is_none_or(|queue| *queue == partition.name));
    Some(OfferedNode {
        name: fields.get("Name")?.clone(),
        partitions: own.map(|(number, _)| number).collect(),
        is_down: states.iter().any(|state| !USABLE.contains(state)),
        cpus,
        free_cpus: if states.contains(&EXCLUSIVE) { 0 } else { free },
        memory_bytes: fields.get("resources_available.mem").and_then(|text| bytes(text)),
        ..OfferedNode::default()
    })
}

fn bytes(text: &str) -> Option<u64> {
    let (number, unit) = UNITS
        .iter()
        .find_map(|(name, unit)| Some((text.strip_suffix(name)?, *unit)))?;
    number.parse::<u64>().ok()?.checked_mul(unit)
}

/// The seconds of `02:00:00`, or of a number.
fn seconds(text: &str) -> Option<u64> {
    let mut seconds = 0_u64;
    for part in text.split(':') {
        seconds = seconds.checked_mul(60)?.checked_add(part.parse().ok()?)?;
    }
    Some(seconds)
}

#[cfg(test)]
mod tests {
    use super::*;

    // As OpenPBS 23.06.06 answers; attributes that are not read are left out.
    const NODES: &str = "\
Name=rennes-1|Mom=rennes-1|Port=15002|ntype=PBS|state=job-busy|pcpus=2|resources_available.host=rennes-1|\
resources_available.mem=24684092kb|resources_available.ncpus=4|resources_assigned.ncpus=4|resv_enable=True
Name=rennes-2|Mom=rennes-2|Port=15002|ntype=PBS|state=offline|pcpus=2|resources_available.host=rennes-2|\
resources_available.mem=24684092kb|resources_available.ncpus=4|resources_assigned.ncpus=0|resv_enable=True
";
    const QUEUES: &str = "\
Queue: workq|queue_type=Execution|total_jobs=0|state_count=Transit:0 Queued:0 |resources_max.walltime=02:00:00|\
enabled=True|started=True
Queue: small|queue_type=Execution|total_jobs=0|resources_max.nodect=1|enabled=True
Queue: way|queue_type=Route|total_jobs=0|enabled=True|started=True
";
    const SERVER: &str = "Server: rennes-head|server_state=Active|default_queue=workq|log_events=511\n";

    fn read(nodes: &str, queues: &str) -> Result<Offer, OfferError> {
        offer(&[nodes.to_owned(), queues.to_owned(), SERVER.to_owned()])
    }

    #[test]
    fn queues_have_limits_and_nodes_say_what_is_free() {
        let offer = read(NODES, QUEUES).unwrap();
        let shown = offer.partitions.iter().map(|partition| {
            let Partition {
                name,
                is_default,
                is_up,
                max_seconds,
                ..
            } = partition;
            format!("{name} {is_default} {is_up} {max_seconds:?}")
        });
        assert_eq!(
            shown.collect::<Vec<_>>(),
            ["workq true true Some(7200)", "small false false None"]
        );
        let shown = offer.nodes.iter().map(|node| {
            let memory = node.memory_bytes;
            format!(
                "{} {} {}/{} {memory:?} {:?}",
                node.name, node.is_down, node.free_cpus, node.cpus, node.partitions
            )
        });
        assert_eq!(
            shown.collect::<Vec<_>>(),
            [
                "rennes-1 false 0/4 Some(25276510208) [0, 1]",
                "rennes-2 true 4/4 Some(25276510208) [0, 1]"
            ]
        );
    }

    #[test]
    fn a_node_of_a_queue_is_that_ones_alone_and_states_are_many() {
        let node = |line: &str| read(line, QUEUES).unwrap().nodes.remove(0);
        let own = node("Name=a|state=free|resources_available.ncpus=4|queue=small");
        assert_eq!((own.partitions, own.is_down, own.free_cpus), (vec![1], false, 4));
        assert!(node("Name=a|state=job-busy,offline|resources_available.ncpus=4").is_down);
        let whole = node("Name=a|state=job-exclusive|resources_available.ncpus=4|resources_assigned.ncpus=1");
        assert_eq!((whole.is_down, whole.free_cpus), (false, 0));
    }

    #[test]
    fn an_answer_of_another_form_is_told() {
        for (nodes, queues) in [
            ("rennes-1", QUEUES),
            ("Name=a|state=free|resources_available.ncpus=many", QUEUES),
            (NODES, "workq"),
            (NODES, "Queue: workq|resources_max.walltime=long"),
        ] {
            assert!(read(nodes, queues).is_err(), "{nodes} {queues}");
        }
        let many = "Queue: workq\n".repeat(MAX_PARTITIONS + 1);
        assert_eq!(read(NODES, &many).unwrap_err().0, "more than 1000 queues");
        assert!(offer(&[String::new()]).is_err());
    }
}
