//! OAR, by its commands. Forms of answers: oarsub(1), oarstat(1), oarresume(1) and oarsh(1) of 2.5.9.
//!
//! Lists are read as JSON. A job that is to begin later is submitted with `--hold`, and released by
//! `oarresume` when its time has come: OAR's own reservations of a time cannot begin earlier.

use crate::word::Request;
use crate::{AllocationError, Listed, Node, Start, State, is_id};
use causeway_mpis::names::PROCESS_MANAGERS;
use serde::Deserialize;
use serde_json::Value;
use std::collections::BTreeMap;

pub const OWN_ALLOCATION: &str = "OAR_JOB_ID";

pub const ANSWERS: &[(&str, &str)] = &[("LC_ALL", "C")];

/// Variables with these prefixes describe a process or a job, or are for OAR's own programs.
const OF_A_PROCESS: [&str; 6] = [
    "OAR_",
    "OARDO_",
    "OARUSER",
    "OARDIR",
    "OARCONFFILE",
    "OARXAUTHLOCATION",
];

/// The options that a run may choose if its site does not say.
pub const USUAL_CHOICE: [&str; 2] = ["queue", "project"];

/// Options, and oarsub's words for them.
const OPTIONS: [(&str, &str); 2] = [("queue", "--queue"), ("project", "--project")];

/// An option that says which resources may be given, in SQL; and one that may be given several times.
const PROPERTY: &str = "property";
const TYPE: &str = "type";

/// Types of jobs whose nodes take no processes of their own, or take other jobs, too.
const NO_TYPES: [&str; 5] = ["deploy", "noop", "cosystem", "container", "desktop_computing"];

/// This user's jobs, except those that ended long ago. OAR itself lists no job that has ended, and so gives
/// no reason for its end.
const LIST: &str = "user=$(id -un) && exec oarstat -J -f --sql \
    \"job_user = '$user' AND (state NOT IN ('Terminated', 'Error') OR stop_time > $(($(date +%s) - 600)))\"";

/// oarsub reads no script, but takes a command that it shows to everybody. So the script, which holds a
/// secret, becomes a file in the home directory, which the nodes share, and removes itself when it begins.
/// The name is `$0`. The last line that oarsub prints does not say what was wrong.
const SUBMIT: &str = "umask 077; place=${HOME:?}/.cache/causeway/oar
    mkdir -p \"$place\" && find \"$place\" -type f -mtime +30 -delete &&
    { echo 'rm -f -- \"$0\"'; cat; } >\"$place/$0\" || exit
    said=$(oarsub \"$@\" \"/bin/sh \\\"\\$HOME/.cache/causeway/oar/$0\\\"\" 2>&1) && exec printf '%s\\n' \"$said\"
    rm -f \"$place/$0\"
    printf '%s\\n' \"$said\" | grep -v '^OAR_JOB_ID=\\|^.ERROR. Oarsub failed' |
        sed 's/^/oarsub: /' >&2
    exit 1";

/// Removes the file of a script that never ran.
const FORGET: &str = "rm -f \"${HOME:?}/.cache/causeway/oar/$0\"";

pub fn is_never_chosen(option: &str) -> Option<&'static str> {
    match USUAL_CHOICE.contains(&option) {
        true => None,
        false => Some("cannot be chosen with OAR, but queue and project can"),
    }
}

pub fn check_option(option: &str) -> Result<(), String> {
    let named = option.strip_prefix("--").and_then(|rest| rest.split_once('='));
    let (name, value) = named.ok_or_else(|| format!("{option:?} is not of the form --NAME=VALUE"))?;
    let kind = value.split_once('=').map_or(value, |(kind, _)| kind);
    match name {
        TYPE if NO_TYPES.contains(&kind) => Err(format!("processes cannot start in a job of type {kind}")),
        TYPE | PROPERTY => Ok(()),
        name if USUAL_CHOICE.contains(&name) => Ok(()),
        _ => Err(format!(
            "OAR has no --{name} here, but --queue, --project, --{PROPERTY} and --{TYPE}"
        )),
    }
}

pub fn list_words() -> Vec<String> {
    words(&["/bin/sh", "-c", LIST])
}

/// A job, with the fields that are read. Numbers may be strings in other versions.
#[derive(Deserialize)]
pub(crate) struct Job {
    #[serde(default)]
    name: Value,
    state: String,
    #[serde(default)]
    message: Value,
    #[serde(default, rename = "startTime")]
    start: Value,
    #[serde(default, rename = "scheduledStart")]
    expected: Value,
    #[serde(default)]
    walltime: Value,
    #[serde(default, rename = "assigned_network_address")]
    pub(crate) nodes: Vec<String>,
}

impl Job {
    /// When it ends at the latest.
    pub(crate) fn ends(&self) -> Option<u64> {
        number(&self.start)?.checked_add(number(&self.walltime)?)
    }
}

/// Reads jobs by their ids; `None` if it does not understand the answer. An empty text means that there is no
/// job.
pub(crate) fn jobs(answer: &str) -> Option<BTreeMap<String, Job>> {
    match answer.trim() {
        "" => Some(BTreeMap::new()),
        answer => serde_json::from_str(answer).ok(),
    }
}

pub fn listed(answer: &str) -> Vec<Listed> {
    let jobs = jobs(answer).unwrap_or_default().into_iter();
    jobs.map(|(id, job)| job.listed(id)).collect()
}

impl Job {
    fn listed(self, id: String) -> Listed {
        let state = state(&self.state);
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let start = [&self.start, &self.expected];
        let start = start.into_iter().find_map(|at| number(at).filter(|at| *at > 0));
        Listed {
            id,
            shown: None,
            state,
            nodes: match state {
                State::Active => self.nodes.join(","),
                _ => String::new(),
            },
            start,
            reason: reason(&self.state, start.is_some(), &text(&self.message)),
            is_refused: false,
            name: text(&self.name),
            word: self.state,
        }
    }
}

/// A suspended job no longer has its nodes; the nodes of one that is being launched are not ready yet.
fn state(word: &str) -> State {
    match word {
        "Running" => State::Active,
        "Finishing" | "Terminated" | "toError" | "Error" => State::Ended,
        _ => State::Queued,
    }
}

/// Why a job waits. OAR's own message only repeats the request unless something is wrong:
/// `R=6,W=0:10:0,J=B,N=name (Karma=0.000,quota_ok)`.
fn reason(state: &str, is_planned: bool, message: &str) -> String {
    match state {
        "Hold" => "it is held back",
        "toLaunch" | "Launching" => "it is being launched",
        _ if !message.starts_with("R=") => message,
        _ if is_planned => "its time is planned",
        _ => "",
    }
    .to_owned()
}

fn number(value: &Value) -> Option<u64> {
    value.as_u64().or_else(|| value.as_str()?.parse().ok())
}

/// If an option is given twice, the last one counts, but all properties must hold.
pub fn submit_words(name: &str, request: &Request, after_seconds: u64, options: &[String]) -> Vec<String> {
    let all = { options.iter().chain(&request.options) }
        .filter_map(|option| option.strip_prefix("--")?.split_once('='));
    let all: Vec<(&str, &str)> = all.collect();
    let named = |name: &'static str| { all.iter() }.filter(move |(given, _)| *given == name);
    let mut submit = words(&["/bin/sh", "-c", SUBMIT, name, "--name", name]);
    submit.extend(words(&[
        "--directory",
        "/",
        "--stdout",
        "/dev/null",
        "--stderr",
        "/dev/null",
    ]));
    for (name, word) in OPTIONS {
        if let Some((_, value)) = named(name).next_back() {
            submit.extend(words(&[word, value]));
        }
    }
    let properties: Vec<String> = named(PROPERTY).map(|(_, value)| format!("({value})")).collect();
    if !properties.is_empty() {
        submit.extend(["--property".to_owned(), properties.join(" AND ")]);
    }
    for (_, value) in named(TYPE) {
        submit.extend(words(&["--type", value]));
    }
    if after_seconds > 0 {
        submit.push("--hold".to_owned());
    }
    let (hours, minutes) = (request.minutes / 60, request.minutes % 60);
    submit.push("--resource".to_owned());
    submit.push(format!(
        "/resource_id={},walltime={hours}:{minutes:02}:00",
        request.ranks
    ));
    submit
}

/// `OAR_JOB_ID=12`, after lines of the site's rules. A negative number means that there is no id.
pub fn submitted(answer: &str) -> Option<String> {
    let id = { answer.lines() }.find_map(|line| line.trim().strip_prefix("OAR_JOB_ID="))?;
    is_id(id).then(|| id.to_owned())
}

pub fn hasten_words(id: &str) -> Vec<String> {
    words(&["oarresume", id])
}

pub fn cancel_words(ids: &[String]) -> Vec<String> {
    let mut all = words(&["oardel"]);
    all.extend(ids.iter().cloned());
    all
}

pub fn forget_words(name: &str) -> Vec<String> {
    words(&["/bin/sh", "-c", FORGET, name])
}

/// Asks for one line for each of its resources.
pub fn describe_words(id: &str) -> Vec<Vec<String>> {
    vec![words(&["oarstat", "-p", "-j", id])]
}

/// The allocation's nodes, in the order of OAR_NODEFILE, which also has one line for each resource.
pub fn nodes(id: &str, list: &str, answers: &[String]) -> Result<Vec<Node>, AllocationError> {
    let wrong = |what: &str| AllocationError::Answer(id.to_owned(), what.to_owned());
    let mut names: Vec<&str> = list.split(',').collect();
    names.sort_unstable();
    let lines = answers.first().map(String::as_str).unwrap_or_default().lines();
    let resources: Vec<&str> = lines.filter_map(network_address).collect();
    let node = |name: &str| {
        let slots = resources.iter().filter(|address| **address == name).count();
        let slots = u32::try_from(slots).ok().filter(|slots| *slots > 0);
        Ok(Node {
            name: name.to_owned(),
            address: name.to_owned(),
            slots: slots.ok_or_else(|| wrong(&format!("no resource of node {name} is listed")))?,
        })
    };
    names.into_iter().map(node).collect()
}

/// The node of ` type = 'default' , network_address = 'a-1' , cpuset = '0' `; not every resource has one.
fn network_address(line: &str) -> Option<&str> {
    let (_, after) = line.split_once(" network_address = '")?;
    after.split('\'').next()
}

/// oarsh can also start a process in a job from outside, given the job's number. A key of another job would
/// take precedence.
pub fn start(id: &str) -> Start {
    let mut start = words(&["env", "-u", "OAR_JOB_KEY_FILE", "-u", "DISPLAY"]);
    start.push(format!("{OWN_ALLOCATION}={id}"));
    start.extend(words(&["oarsh", "{node}"]));
    Start {
        words: start,
        task: Vec::new(),
    }
}

pub fn is_of_a_process(name: &str) -> bool {
    let mut beginnings = OF_A_PROCESS.into_iter().chain(PROCESS_MANAGERS);
    beginnings.any(|beginning| name.starts_with(beginning))
}

fn words(words: &[&str]) -> Vec<String> {
    words.iter().map(|word| (*word).to_owned()).collect()
}

#[cfg(test)]
#[path = "oar_tests.rs"]
mod tests;
