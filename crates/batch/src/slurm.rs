//! Slurm, by its commands. Forms of answers: squeue(1), scontrol(1) and srun(1) of 22.05.

use crate::hostlist::expand;
use crate::word::Request;
use crate::{AllocationError, Listed, Node, State};
use causeway_mpis::names::PROCESS_MANAGERS;
use std::collections::HashMap;
use std::ffi::OsString;

pub const CONFIGURATION: &str = "SLURM_CONF";

pub const OWN_ALLOCATION: &str = "SLURM_JOB_ID";

/// The variable with the number of components of a process's heterogeneous allocation.
pub const COMPONENTS: &str = "SLURM_HET_SIZE";

/// Prints times as seconds since 1970: whoever reads them knows neither the site's time zone nor the user's.
pub const ANSWERS: &[(&str, &str)] = &[("SLURM_TIME_FORMAT", "%s"), ("LC_ALL", "C")];

/// The options that a run may choose if its site does not say.
pub const USUAL_CHOICE: [&str; 4] = ["partition", "account", "qos", "constraint"];

/// What no run may choose.
const NEVER_CHOSEN: [&str; 8] = [
    "clusters", "ntasks", "nodes", "time", "wrap", "array", "uid", "gid",
];

/// Variables with these prefixes describe a process, an allocation, or what a user wants of one.
const OF_A_PROCESS: [&str; 9] = [
    "SLURM_",
    "SLURMD_",
    "SRUN_",
    "SBATCH_",
    "SALLOC_",
    "SQUEUE_",
    "SCANCEL_",
    "SCONTROL_",
    "SINFO_",
];

/// Variables of a script, each with the variable of a step that has the same value.
const OF_A_SCRIPT: [(&str, &str); 8] = [
    (CONFIGURATION, CONFIGURATION),
    (OWN_ALLOCATION, OWN_ALLOCATION),
    ("SLURM_JOBID", OWN_ALLOCATION),
    ("SLURM_JOB_NODELIST", "SLURM_JOB_NODELIST"),
    ("SLURM_NODELIST", "SLURM_JOB_NODELIST"),
    ("SLURM_JOB_NUM_NODES", "SLURM_JOB_NUM_NODES"),
    ("SLURM_NNODES", "SLURM_JOB_NUM_NODES"),
    ("SLURM_CLUSTER_NAME", "SLURM_CLUSTER_NAME"),
];

/// The variable with the slots of all of a script's nodes. A step has only its own.
const SLOTS: [&str; 2] = ["SLURM_JOB_CPUS_PER_NODE", "SLURM_TASKS_PER_NODE"];

pub fn is_never_chosen(option: &str) -> Option<&'static str> {
    // Slurm's commands accept any unambiguous prefix of an option's name.
    { NEVER_CHOSEN.iter() }
        .any(|name| name.starts_with(option))
        .then_some("would pass the bounds of an allocation, or ask another cluster")
}

pub fn check_option(option: &str) -> Result<(), String> {
    match option.starts_with("--") {
        true if is_clusters(option) => Err("of another cluster: give that one a gateway".into()),
        true => Ok(()),
        false => Err(format!("{option:?} is not of the form --NAME or --NAME=VALUE")),
    }
}

/// Whether an option is `--clusters`, or an unambiguous prefix of it.
fn is_clusters(option: &str) -> bool {
    let name = option.split_once('=').map_or(option, |(name, _)| name);
    name.len() > "--c".len() && "--clusters".starts_with(name)
}

/// Lists all jobs of this user, and never one by its id: squeue fails for an id that it has forgotten, and
/// that looks like a failure of Slurm. The name is last, because it may hold anything.
pub fn list_words() -> Vec<String> {
    words(&[
        "squeue",
        "--all",
        "--me",
        "--noheader",
        "--states=all",
        "--format=%A|%i|%T|%N|%S|%r|%j",
    ])
}

pub fn listed(answer: &str) -> Vec<Listed> {
    let line = |line: &str| {
        let mut fields = line.trim().splitn(7, '|');
        let mut next = || fields.next().map(str::to_owned);
        let (id, shown) = (next()?, next()?);
        let (word, nodes, start, reason) = (next()?, next()?, next()?, next()?);
        Some(Listed {
            shown: (shown != id).then_some(shown),
            id,
            state: state(&word),
            word,
            nodes,
            start: start.parse().ok(),
            is_refused: is_refused(&reason),
            // For a job that the controller has not considered yet, the reason is "None".
            reason: if reason == "None" { String::new() } else { reason },
            name: next()?,
        })
    };
    answer.lines().filter_map(line).collect()
}

/// States of squeue(1) after which a job does not run again.
const ENDED: [&str; 10] = [
    "BOOT_FAIL",
    "CANCELLED",
    "COMPLETED",
    "COMPLETING",
    "DEADLINE",
    "FAILED",
    "NODE_FAIL",
    "OUT_OF_MEMORY",
    "PREEMPTED",
    "TIMEOUT",
];

fn state(word: &str) -> State {
    match word {
        "RUNNING" => State::Active,
        word if ENDED.contains(&word) => State::Ended,
        _ => State::Queued,
    }
}

/// Prefixes of the reasons in squeue(1) for which a job waits in vain: it asks for more than a limit allows,
/// or for something wrong.
const REFUSED: [&str; 6] = [
    "InvalidAccount",
    "InvalidQOS",
    "BadConstraints",
    "PartitionNodeLimit",
    "PartitionTimeLimit",
    "PartitionConfig",
];

fn is_refused(reason: &str) -> bool {
    // Other limits of accounts and qualities of service no longer apply once other jobs end.
    let is_limit = reason.starts_with("Assoc") || reason.starts_with("QOS");
    is_limit && reason.contains("PerJob") || REFUSED.iter().any(|beginning| reason.starts_with(beginning))
}

/// If an option is given twice, the last one counts, so those that bound the allocation come last.
fn request_words(request: &Request, options: &[String]) -> Vec<String> {
    let mut all = words(&["sbatch"]);
    all.extend(options.iter().chain(&request.options).cloned());
    all.extend(words(&["--no-requeue", "--output=/dev/null", "--chdir=/"]));
    all.push(format!("--ntasks={}", request.ranks));
    all.push(format!("--time={}", request.minutes));
    all
}

pub fn estimate_words(request: &Request, options: &[String]) -> Vec<String> {
    let mut all = request_words(request, options);
    all.push("--test-only".to_owned());
    all
}

/// "sbatch: Job 2 to start at 1795761600 using 2 processors on nodes a-[1-2] in partition all".
pub fn estimate(answer: &str) -> Option<u64> {
    let (_, after) = answer.split_once(" to start at ")?;
    after.split_whitespace().next()?.parse().ok()
}

/// Whether an estimate was refused for lack of nodes. The message is the same whether the cluster is too
/// small, or nodes are down or drained: only sbatch(1) without --test-only queues in the latter case.
pub fn lacks_nodes(why: &str) -> bool {
    let all = [
        "Requested node configuration is not available",
        "Required node not available",
        "Requested nodes are busy",
    ];
    all.iter().any(|words| why.contains(words))
}

/// Prints a line for each reason why nodes are down or drained.
pub fn unavailable_words() -> Vec<String> {
    words(&["sinfo", "--noheader", "--list-reasons", "--format=%N %E"])
}

pub fn submit_words(name: &str, request: &Request, after_seconds: u64, options: &[String]) -> Vec<String> {
    let mut all = request_words(request, options);
    all.extend(words(&["--parsable", "--job-name"]));
    all.push(name.to_owned());
    if after_seconds > 0 {
        all.push(format!("--begin=now+{after_seconds}"));
    }
    all
}

/// "12", or "12;cluster".
pub fn submitted(answer: &str) -> Option<String> {
    let id = answer.trim().split(';').next()?;
    crate::is_id(id).then(|| id.to_owned())
}

pub fn hasten_words(id: &str) -> Vec<String> {
    let mut all = words(&["scontrol", "update", "StartTime=now"]);
    all.push(format!("JobId={id}"));
    all
}

pub fn cancel_words(ids: &[String]) -> Vec<String> {
    let mut all = words(&["scancel"]);
    all.extend(ids.iter().cloned());
    all
}

pub fn describe_words(id: &str, nodes: &str) -> Vec<Vec<String>> {
    vec![
        words(&["scontrol", "--all", "--details", "--oneliner", "show", "job", id]),
        words(&["scontrol", "--all", "--oneliner", "show", "node", nodes]),
    ]
}

pub fn nodes(id: &str, list: &str, answers: &[String]) -> Result<Vec<Node>, AllocationError> {
    let wrong = |what: &str| AllocationError::Answer(id.to_owned(), what.to_owned());
    let [job, described] = answers else {
        return Err(wrong("two answers are expected"));
    };
    // For an array or a heterogeneous allocation, scontrol shows all parts when given the number of the
    // first.
    let own = { job.lines() }.find(|line| line.split_whitespace().next() == Some(&format!("JobId={id}")));
    let job = own.or_else(|| job.lines().next()).unwrap_or_default();
    let fields = || job.split_whitespace().filter_map(|word| word.split_once('='));
    // A job's name comes before these, and may contain blanks and anything else: the last occurrences are
    // Slurm's own.
    let last = |key: &str| fields().rfind(|(name, _)| *name == key);
    let per_task = last("CPUs/Task").and_then(|(_, text)| text.parse::<u32>().ok());
    let per_task = per_task.unwrap_or(1).max(1);
    let (mut slots, mut group) = (HashMap::new(), Vec::new());
    for (key, value) in fields() {
        match key {
            "Nodes" => group = expand(value).ok_or_else(|| wrong("its list of nodes"))?,
            "CPU_IDs" => {
                let cpus = count(value).ok_or_else(|| wrong("CPU_IDs"))?;
                slots.extend(
                    std::mem::take(&mut group)
                        .into_iter()
                        .map(|name| (name, (cpus / per_task).max(1))),
                );
            }
            _ => {}
        }
    }
    let addresses: HashMap<&str, &str> = described.lines().filter_map(name_and_address).collect();
    let names = expand(list).ok_or_else(|| wrong("its list of nodes"))?;
    let node = |name: String| {
        let lacks = |what: &str| wrong(&format!("there is no {what} of node {name}"));
        let address = addresses.get(name.as_str()).ok_or_else(|| lacks("address"))?;
        Ok(Node {
            slots: slots.get(&name).copied().ok_or_else(|| lacks("CPU_IDs"))?,
            address: (*address).to_owned(),
            name,
        })
    };
    names.into_iter().map(node).collect()
}

fn name_and_address(line: &str) -> Option<(&str, &str)> {
    let value = |key: &str| {
        let mut fields = line.split_whitespace().filter_map(|word| word.split_once('='));
        fields.find(|(name, _)| *name == key).map(|(_, value)| value)
    };
    Some((value("NodeName")?, value("NodeAddr")?))
}

/// How many processors `0-3,8` stands for.
fn count(ids: &str) -> Option<u32> {
    let mut count: u32 = 0;
    for range in ids.split(',') {
        let (first, last) = range.split_once('-').unwrap_or((range, range));
        let (first, last): (u32, u32) = (first.parse().ok()?, last.parse().ok()?);
        count = count.checked_add(last.checked_sub(first)?.checked_add(1)?)?;
    }
    Some(count)
}

/// `--overlap`: what already runs there, and what the user starts besides, keeps its processors.
/// `--mpi=none`: the processes are a launcher's daemons, not srun's ranks.
pub fn start_words(id: &str) -> Vec<String> {
    let mut all = match (id.split_once('+'), id.contains('_')) {
        (Some((allocation, component)), _) => {
            let component_options = [
                format!("--jobid={allocation}"),
                format!("--het-group={component}"),
            ];
            [words(&["srun"]), component_options.into()].concat()
        }
        // An element of a job array has two numbers: srun wants the other one.
        (None, true) => {
            let line =
                format!("j=$(squeue --noheader --format=%A --jobs={id}) && exec srun --jobid=\"$j\" \"$@\"");
            words(&["/bin/sh", "-c", &line, "srun"])
        }
        (None, false) => vec!["srun".to_owned(), format!("--jobid={id}")],
    };
    all.extend(words(&[
        "--overlap",
        "--nodes=1",
        "--ntasks=1",
        "--nodelist={node}",
        "--mpi=none",
        "--unbuffered",
        "--quiet",
        "--export=ALL",
        "/bin/sh",
        "-c",
    ]));
    all
}

pub fn is_of_a_process(name: &str) -> bool {
    let mut beginnings = OF_A_PROCESS.iter().chain(&PROCESS_MANAGERS);
    beginnings.any(|beginning| name.starts_with(beginning))
}

pub fn script_variables(
    slots: &[u32],
    present: impl Fn(&str) -> Option<OsString>,
) -> Vec<(&'static str, OsString)> {
    let set = OF_A_SCRIPT
        .iter()
        .map(|(name, from)| Some((*name, present(from)?)));
    let counts = SLOTS.map(|name| (name, counts(slots).into()));
    set.flatten()
        .chain(counts.into_iter().filter(|_| !slots.is_empty()))
        .collect()
}

/// `4(x2),1`: two nodes with four, and one with one.
fn counts(slots: &[u32]) -> String {
    let runs = slots.chunk_by(|one, next| one == next);
    let shown = runs.map(|run| match run {
        [one] => one.to_string(),
        _ => format!("{}(x{})", run[0], run.len()),
    });
    shown.collect::<Vec<_>>().join(",")
}

pub(crate) fn words(words: &[&str]) -> Vec<String> {
    words.iter().map(|word| (*word).to_owned()).collect()
}

/// The seconds of `2:00:00`, `30:00` or `1-12:00:00`.
pub fn seconds(text: &str) -> Option<u64> {
    let (days, clock) = text.split_once('-').unwrap_or(("0", text));
    let days: u64 = days.parse().ok()?;
    let mut seconds = 0_u64;
    for part in clock.split(':') {
        seconds = seconds.checked_mul(60)?.checked_add(part.parse().ok()?)?;
    }
    days.checked_mul(86_400)?.checked_add(seconds)
}

#[cfg(test)]
#[path = "slurm_tests.rs"]
mod tests;
