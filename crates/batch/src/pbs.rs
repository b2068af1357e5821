//! OpenPBS, by its commands. Forms of answers: qstat(1), qsub(1) and pbs_attach(8) of 23.06.
//!
//! Answers are read in the form `dsv`: as JSON, qstat of that version lists one job of several.

use crate::clock::{at_date, date};
use crate::word::Request;
use crate::{AllocationError, Listed, Node, Start, State, is_id};
use causeway_mpis::names::PROCESS_MANAGERS;
use std::collections::HashMap;
use std::path::Path;
use std::time::{Duration, SystemTime};

pub const CONFIGURATION: &str = "PBS_CONF_FILE";

pub const OWN_ALLOCATION: &str = "PBS_JOBID";

/// PBS's commands read and write local times without naming the zone, so the zone is fixed here.
pub const ANSWERS: &[(&str, &str)] = &[("TZ", "UTC"), ("LC_ALL", "C")];

/// Variables with this prefix describe a process, or what its user wants for it.
const OF_A_PROCESS: &str = "PBS_";

/// Where PBS's commands look for its configuration.
const USUAL_CONFIGURATION: &str = "/etc/pbs.conf";

/// The options that a run may choose if its site does not say: options of qsub under names of ours, since its
/// own are single letters.
pub const USUAL_CHOICE: [&str; 3] = ["queue", "account", "project"];

/// Options, and qsub's words for them.
const OPTIONS: [(&str, &str); 3] = [("queue", "-q"), ("account", "-A"), ("project", "-P")];

/// Options whose values name resources, for the whole job or for each process: they may be given several
/// times.
const RESOURCE: &str = "resource";
const CHUNK: &str = "chunk";

/// Resources of the whole job that Causeway sets itself.
const OWN_RESOURCES: [&str; 7] = [
    "select", "place", "walltime", "nodes", "ncpus", "mpiprocs", "nodect",
];

/// The beginning of the comment of a job that asks for more than there is.
const REFUSED: &str = "Can Never Run";

/// Makes a command a task of a job. The configuration, the job's id and the command follow it as arguments.
const ATTACH: &str = "export PBS_CONF_FILE=\"$0\"; . \"$0\"; job=$1; shift; \
    exec \"$PBS_EXEC/bin/pbs_attach\" -j \"$job\" /usr/bin/env -u PBS_CONF_FILE \"$@\"";

/// A time in the past.
const LONG_AGO: &str = "200001010000.00";

pub fn is_never_chosen(option: &str) -> Option<&'static str> {
    match USUAL_CHOICE.contains(&option) {
        true => None,
        false => Some("cannot be chosen with PBS, but queue, account and project can"),
    }
}

pub fn check_option(option: &str) -> Result<(), String> {
    let named = option.strip_prefix("--").and_then(|rest| rest.split_once('='));
    let (name, value) = named.ok_or_else(|| format!("{option:?} is not of the form --NAME=VALUE"))?;
    let resource = value.split_once('=').map(|(resource, _)| resource);
    match name {
        RESOURCE | CHUNK => match resource {
            Some(own) if OWN_RESOURCES.contains(&own) => {
                Err(format!("{own} is what Causeway gives: leave it out"))
            }
            Some(_) => Ok(()),
            None => Err(format!("{option:?} is not of the form --{name}=RESOURCE=VALUE")),
        },
        name if USUAL_CHOICE.contains(&name) => Ok(()),
        _ => Err(format!(
            "PBS has no --{name} here, but --queue, --account, --project, --{RESOURCE} and --{CHUNK}"
        )),
    }
}

/// Only this user's jobs: sites keep everybody's for weeks. A list that fails because a job has just ended is
/// requested again.
pub fn list_words() -> Vec<String> {
    let script = "jobs=$(qselect -u \"$(id -un)\") && { [ -z \"$jobs\" ] || exec qstat -f -F dsv $jobs; }";
    words(&["/bin/sh", "-fc", script])
}

pub fn listed(answer: &str) -> Vec<Listed> {
    answer.lines().filter_map(job).collect()
}

fn job(line: &str) -> Option<Listed> {
    let fields = fields(line);
    let text = |key: &str| fields.get(key).cloned().unwrap_or_default();
    let (state, word) = state(fields.get("job_state")?);
    let comment = text("comment");
    let start = ["stime", "Execution_Time", "estimated.start_time"];
    let reason = match word {
        "waiting" => "the time at which it may begin",
        _ => comment.strip_prefix("Not Running: ").unwrap_or(&comment),
    };
    Some(Listed {
        id: fields.get("Job Id")?.clone(),
        shown: None,
        state,
        word: word.to_owned(),
        nodes: text("exec_host"),
        start: start.iter().find_map(|key| at_date(fields.get(*key)?)),
        reason: reason.to_owned(),
        is_refused: comment.starts_with(REFUSED),
        name: fields.get("Job_Name")?.clone(),
    })
}

/// `Job Id: 6.head|Job_Name=waits|...`. A bar inside a value is escaped with a backslash.
pub(crate) fn fields(line: &str) -> HashMap<String, String> {
    let (mut parts, mut part) = (Vec::new(), String::new());
    let mut characters = line.trim().chars().peekable();
    while let Some(character) = characters.next() {
        match character {
            '\\' if characters.next_if_eq(&'|').is_some() => part.push('|'),
            '|' => parts.push(std::mem::take(&mut part)),
            character => part.push(character),
        }
    }
    parts.push(part);
    let named = |part: &String| {
        let (name, value) = part.split_once('=').or_else(|| part.split_once(": "))?;
        Some((name.to_owned(), value.to_owned()))
    };
    parts.iter().filter_map(named).collect()
}

/// What a letter of qstat(1) means, and the manual's word for it. A suspended job no longer has its nodes.
fn state(letter: &str) -> (State, &'static str) {
    match letter {
        "R" => (State::Active, "running"),
        "E" => (State::Ended, "exiting"),
        "F" | "X" => (State::Ended, "finished"),
        "H" => (State::Queued, "held"),
        "S" | "U" => (State::Queued, "suspended"),
        "T" | "M" => (State::Queued, "in transit"),
        "W" => (State::Queued, "waiting"),
        _ => (State::Queued, "queued"),
    }
}

/// If an option is given twice, the last one counts.
pub fn submit_words(
    name: &str,
    request: &Request,
    (after_seconds, now): (u64, SystemTime),
    options: &[String],
) -> Vec<String> {
    let all = { options.iter().chain(&request.options) }
        .filter_map(|option| option.strip_prefix("--")?.split_once('='));
    let all: Vec<(&str, &str)> = all.collect();
    let mut submit = words(&[
        "qsub",
        "-S",
        "/bin/sh",
        "-r",
        "n",
        "-o",
        "/dev/null",
        "-e",
        "/dev/null",
    ]);
    for (name, word) in OPTIONS {
        if let Some((_, value)) = all.iter().rfind(|(given, _)| *given == name) {
            submit.extend(words(&[word, value]));
        }
    }
    let mut select = format!("select={}:ncpus=1:mpiprocs=1", request.ranks);
    for (name, value) in all {
        match name {
            RESOURCE => submit.extend(words(&["-l", value])),
            CHUNK => select.extend([":", value]),
            _ => {}
        }
    }
    let time = format!("walltime={}:{:02}:00", request.minutes / 60, request.minutes % 60);
    submit.extend(words(&[
        "-l",
        &select,
        "-l",
        "place=free",
        "-l",
        &time,
        "-N",
        name,
    ]));
    if after_seconds > 0 {
        let begin = now.checked_add(Duration::from_secs(after_seconds)).unwrap_or(now);
        submit.extend(words(&["-a", &date(begin)]));
    }
    submit
}

/// `12.head`.
pub fn submitted(answer: &str) -> Option<String> {
    let id = answer.trim();
    is_id(id).then(|| id.to_owned())
}

pub fn hasten_words(id: &str) -> Vec<String> {
    words(&["qalter", "-a", LONG_AGO, id])
}

pub fn cancel_words(ids: &[String]) -> Vec<String> {
    let mut all = words(&["qdel"]);
    all.extend(ids.iter().cloned());
    all
}

pub fn describe_words(id: &str) -> Vec<Vec<String>> {
    vec![words(&["qstat", "-f", "-F", "dsv", id])]
}

/// The hosts of `exec_host`, each with the number of processes of its chunks.
pub fn nodes(id: &str, list: &str, answers: &[String]) -> Result<Vec<Node>, AllocationError> {
    let wrong = |what: &str| AllocationError::Answer(id.to_owned(), what.to_owned());
    let fields = answers.first().map(|answer| fields(answer)).unwrap_or_default();
    let chunks: Vec<&str> = list.split('+').collect();
    let select = fields.get("schedselect").ok_or_else(|| wrong("schedselect"))?;
    let processes = processes(select, chunks.len()).ok_or_else(|| wrong("schedselect"))?;
    let mut nodes: Vec<Node> = Vec::new();
    for (chunk, slots) in chunks.into_iter().zip(processes) {
        let (host, _) = chunk.split_once('/').ok_or_else(|| wrong("its list of nodes"))?;
        match nodes.iter_mut().find(|node| node.name == host) {
            Some(node) => node.slots = node.slots.saturating_add(slots),
            None => nodes.push(Node {
                name: host.to_owned(),
                address: host.to_owned(),
                slots,
            }),
        }
    }
    nodes.iter_mut().for_each(|node| node.slots = node.slots.max(1));
    Ok(nodes)
}

/// The number of chunks, and of processes that each has room for, of `2:ncpus=4:mpiprocs=2+1:ncpus=8`. PBS
/// itself counts one process for a chunk that does not say.
fn processes(select: &str, chunks: usize) -> Option<Vec<u32>> {
    let mut all = Vec::new();
    for part in select.split('+') {
        let mut resources = part.split(':');
        let count = resources.next()?.parse::<usize>().ok()?;
        let named = |name: &str| {
            let mut pairs = part.split(':').filter_map(|resource| resource.split_once('='));
            pairs
                .find(|(key, _)| *key == name)
                .map(|(_, value)| value.parse::<u32>())
        };
        let processes = match (named("mpiprocs"), named("ncpus")) {
            (Some(processes), _) => processes.ok()?,
            (None, Some(Ok(0))) => 0,
            _ => 1,
        };
        let room = chunks.checked_sub(all.len())?;
        all.extend(std::iter::repeat_n(processes, (count <= room).then_some(count)?));
    }
    (all.len() == chunks).then_some(all)
}

/// PBS starts processes on other nodes only from within a job. From outside, the site's own way leads to the
/// node, and pbs_attach there makes a session a task of the job. PBS ends a job's sessions at once, so
/// node-exec, which ends what a command leaves in other sessions, must be in none of them.
pub fn start(id: &str, remote_shell: &[String], conf: Option<&Path>) -> Start {
    let conf = conf.unwrap_or(Path::new(USUAL_CONFIGURATION));
    let mut task = words(&["/bin/sh", "-c", ATTACH]);
    task.extend([conf.display().to_string(), id.to_owned()]);
    Start {
        words: remote_shell.to_vec(),
        task,
    }
}

pub fn is_of_a_process(name: &str) -> bool {
    let mut beginnings = [OF_A_PROCESS].into_iter().chain(PROCESS_MANAGERS);
    beginnings.any(|beginning| name.starts_with(beginning))
}

pub(crate) fn words(words: &[&str]) -> Vec<String> {
    words.iter().map(|word| (*word).to_owned()).collect()
}

#[cfg(test)]
#[path = "pbs_tests.rs"]
mod tests;
