//! `causeway resources --measure`: runs a job that inspects each node, and measures one node of each kind.

use super::measured::Measured;
use super::node::Seen;
use crate::batch::allocations::{self, Allocations};
use causeway_control::questions::job as own_job;
use causeway_control::{self as control, Plan, Sites};
use causeway_host::failure::Failure;
use causeway_host::{quoted, say};
use causeway_remote::ask::{ask, on_each};
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

/// How long the cores of a node compute.
const SECONDS: u64 = 5;

/// How long a node may take to answer. ssh needs ten seconds to give up on one that is switched off.
const WITHIN: Duration = Duration::from_secs(20);

/// Most nodes of a site that are named if they do not answer.
const NAMED: usize = 5;

/// The load per core, in thousandths, above which a node is too busy to be measured.
const BUSY: u32 = 250;

/// A node to inspect.
struct Target {
    site: String,
    name: String,
    /// The node's address: nodes of two sites may have the same name.
    address: String,
}

/// Inspects the nodes that the sites list, and those of the allocations that `alloc` names, and adds what it
/// finds. `now` is in seconds since 1970.
///
/// # Errors
/// There is no node to inspect, or none that answers.
pub fn measure(
    measured: &mut Measured,
    sites: &mut Sites,
    alloc: &[String],
    now: u64,
) -> Result<(), Failure> {
    let mut allocations = allocations::parse(alloc).map_err(Failure::usage)?;
    if let Some(id) = allocations::own(sites) {
        allocations.entry(sites.site.clone()).or_insert(id);
    }
    allocations::apply(&allocations, sites).map_err(Failure::usage)?;
    let targets = targets(sites);
    if targets.is_empty() {
        return Err(Failure::usage(
            "no site that can be reached lists nodes; those of a batch system can be measured in an allocation, \
             as with --alloc rennes:1234",
        ));
    }
    let command = std::env::current_exe().map_err(|error| Failure::new(format_args!("causeway: {error}")))?;
    let command = format!("{} look-at-node", quoted(&command));
    let (token, _connection) = job(&targets, &allocations)?;
    let look = |target: &Target| Seen::read(&ask(&token, &target.address, &command, WITHIN)?);
    let answers = on_each(&targets, look);
    let mut seen = seen_at(&targets, answers);
    if seen.is_empty() {
        return Err(Failure::new("no node has answered"));
    }
    let kinds = kinds(&targets, &seen);
    for kind in &kinds {
        say::error(format_args!("causeway resources: {}", kind.describe()));
    }
    add_speeds(&token, &command, &targets, &kinds, &mut seen);
    let mut by_site: BTreeMap<&str, Vec<(String, Seen)>> = BTreeMap::new();
    for (number, seen) in seen {
        let target = &targets[number];
        let seen_at_site = by_site.entry(&target.site).or_default();
        seen_at_site.push((target.name.clone(), seen));
    }
    let listed: BTreeSet<(&str, &str)> = targets
        .iter()
        .map(|target| (target.site.as_str(), target.name.as_str()))
        .collect();
    for (site, seen) in by_site {
        // A site has more nodes than those of an allocation, and one that does not answer now may have been
        // inspected before.
        let has = |name: &str| allocations.contains_key(site) || listed.contains(&(site, name));
        measured.add(site, seen, has, now);
    }
    Ok(())
}

/// Measures one node of each kind, all at the same time. Reports failures.
fn add_speeds(
    token: &str,
    command: &str,
    targets: &[Target],
    kinds: &[Kind],
    seen: &mut BTreeMap<usize, Seen>,
) {
    let command = format!("{command} --speed {SECONDS}");
    let within = WITHIN + Duration::from_secs(SECONDS);
    let speeds = on_each(kinds, |kind| {
        Seen::read(&ask(token, &targets[kind.first].address, &command, within)?)
    });
    for (kind, speed) in kinds.iter().zip(speeds) {
        match speed.unwrap_or_else(|| Err("it could not be asked".to_owned())) {
            Ok(speed) => {
                for number in &kind.nodes {
                    if let Some(one) = seen.get_mut(number) {
                        one.speed_thousandths = speed.speed_thousandths;
                    }
                }
            }
            Err(why) => say::error(format_args!(
                "causeway resources: the speed of {} was not measured: {why}",
                kind.name
            )),
        }
    }
}

fn targets(sites: &Sites) -> Vec<Target> {
    let reachable = sites.sites.iter().filter(|site| site.unreachable.is_none());
    let infos = reachable.filter_map(|site| site.info.as_ref());
    let nodes = infos.flat_map(|info| info.nodes.iter().map(move |node| (info, node)));
    nodes
        .map(|(info, node)| Target {
            site: info.name.clone(),
            name: node.name.clone(),
            address: node.address.to_string(),
        })
        .collect()
}

/// Starts a job that lasts as long as its connection. Sites that do not take part are reported; so are their
/// nodes, which do not answer.
fn job(
    targets: &[Target],
    allocations: &Allocations,
) -> Result<(String, std::os::unix::net::UnixStream), Failure> {
    let mut sites: Vec<String> = targets.iter().map(|target| target.site.clone()).collect();
    sites.dedup();
    let plan = Plan {
        sites,
        allocations: allocations.clone(),
        ..Plan::default()
    };
    let started = own_job(&control::socket(), "causeway resources --measure", plan);
    let (job, connection) = started.map_err(Failure::new)?;
    for (site, why) in &job.left_out {
        say::error(format_args!("causeway resources: {site} takes no part: {why}"));
    }
    Ok((job.token, connection))
}

/// The nodes that have answered, by their numbers. Reports which have not.
fn seen_at(targets: &[Target], answers: Vec<Option<Result<Seen, String>>>) -> BTreeMap<usize, Seen> {
    let mut seen = BTreeMap::new();
    let mut silent: BTreeMap<&str, usize> = BTreeMap::new();
    for (number, answer) in answers.into_iter().enumerate() {
        let target = &targets[number];
        match answer.unwrap_or_else(|| Err("it could not be asked".to_owned())) {
            Ok(one) => drop(seen.insert(number, one)),
            Err(why) => {
                let count = silent.entry(&target.site).or_default();
                *count += 1;
                if *count <= NAMED {
                    say::error(format_args!(
                        "causeway resources: {} of {}: {why}",
                        target.name, target.site
                    ));
                }
            }
        }
    }
    for (site, count) in silent.into_iter().filter(|(_, count)| *count > NAMED) {
        say::error(format_args!(
            "causeway resources: {} more nodes of {site} did not answer",
            count - NAMED
        ));
    }
    seen
}

/// Nodes of a site that are of the same kind.
#[derive(Debug)]
struct Kind {
    /// The numbers of the nodes.
    nodes: Vec<usize>,
    /// The number of the node that is measured: the least busy one.
    first: usize,
    /// What that node has.
    seen: Seen,
    /// The name by which people find the node.
    name: String,
}

fn kinds(targets: &[Target], seen: &BTreeMap<usize, Seen>) -> Vec<Kind> {
    let mut kinds: BTreeMap<_, Kind> = BTreeMap::new();
    for (number, seen) in seen {
        let (target, node) = (&targets[*number], &seen.node);
        let key = (&target.site, &node.processor, node.cores, node.memory_bytes);
        let new_kind = || Kind {
            nodes: Vec::new(),
            first: *number,
            seen: seen.clone(),
            name: format!("{} of {}", target.name, target.site),
        };
        let kind = kinds.entry(key).or_insert_with(new_kind);
        if node.load_thousandths < kind.seen.node.load_thousandths {
            *kind = Kind {
                nodes: std::mem::take(&mut kind.nodes),
                ..new_kind()
            };
        }
        kind.nodes.push(*number);
    }
    kinds.into_values().collect()
}

impl Kind {
    /// Describes what is measured now.
    fn describe(&self) -> String {
        let node = &self.seen.node;
        let others = match self.nodes.len() - 1 {
            0 => String::new(),
            1 => ", and another node like it".to_owned(),
            count => format!(", and {count} nodes like it"),
        };
        let busy = match node.load_thousandths > BUSY.saturating_mul(node.cores) {
            true => format!(
                "; it is busy (load {:.1}), so measure again when it is not",
                f64::from(node.load_thousandths) / 1000.0
            ),
            false => String::new(),
        };
        let cores = if node.cores == 1 { "core" } else { "cores" };
        format!(
            "measuring {} for {SECONDS} s: {} {cores}, {}{others}{busy}",
            self.name, node.cores, node.processor
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use causeway_bench::node::Node;

    #[test]
    fn equal_nodes_of_a_site_are_a_kind_of_which_the_least_busy_is_measured() {
        let target = |site: &str, name: &str| Target {
            site: site.into(),
            name: name.into(),
            address: String::new(),
        };
        let seen = |cores, load_thousandths| Seen {
            node: Node {
                cores,
                memory_bytes: Some(1 << 30),
                processor: "Some CPU".into(),
                load_thousandths,
            },
            speed_thousandths: None,
        };
        let targets = [
            target("rennes", "r-1"),
            target("rennes", "r-2"),
            target("rennes", "r-3"),
            target("nancy", "n-1"),
        ];
        let all = BTreeMap::from([
            (0, seen(4, 3000)),
            (1, seen(4, 100)),
            (2, seen(8, 0)),
            (3, seen(4, 1500)),
        ]);
        let kinds = kinds(&targets, &all);
        let shown = kinds.iter().map(|kind| (kind.first, kind.nodes.clone()));
        assert_eq!(
            shown.collect::<Vec<_>>(),
            [(3, vec![3]), (1, vec![0, 1]), (2, vec![2])]
        );
        assert_eq!(
            kinds[0].describe(),
            "measuring n-1 of nancy for 5 s: 4 cores, Some CPU; it is busy (load 1.5), so measure again when it \
             is not"
        );
        assert_eq!(
            kinds[1].describe(),
            "measuring r-2 of rennes for 5 s: 4 cores, Some CPU, and another node like it"
        );
    }
}
