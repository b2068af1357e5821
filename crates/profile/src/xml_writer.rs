//! Writes a profile in QCG's XML. What that format cannot express is an error that names it, and is never
//! just left out.

use crate::model::{Group, Network, Profile, Ranks};
use crate::xml_walk::trimmed;
use causeway_units::plain;
use std::fmt::{self, Write as _};

/// The unit of a number in QCG's XML, which does not name it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Unit {
    pub name: &'static str,
    /// The unit's size, in the finest unit of its quantity.
    pub factor: u64,
}

const fn unit(name: &'static str, factor: u64) -> Unit {
    Unit { name, factor }
}

/// The unit of bandwidths, from Fig. 3, whose 5120 is a round number of these.
pub(crate) const KILOBYTES_PER_SECOND: Unit = unit("kB/s", 8_000);
/// The unit of latencies, from Fig. 3: 5 seconds would bound nothing, and no network has 5 microseconds.
pub(crate) const MILLISECONDS: Unit = unit("ms", 1_000_000);
/// The unit of memory, as in grid descriptions of that time.
pub(crate) const MEGABYTES: Unit = unit("MB", 1_000_000);
/// The unit of cores.
const ONE: Unit = unit("", 1);
/// The type of an execution, from Fig. 3, whose program `mpirun` starts across all sites.
pub(crate) const COMMAND_TYPE: &str = "open_mpi";
/// The type of an execution whose program each site starts with its own MPI.
pub(crate) const PROGRAM_TYPE: &str = "mpi";
/// The launcher of a program of [`COMMAND_TYPE`].
pub(crate) const LAUNCHER: &str = "mpirun";

/// What XML cannot express, each as `key: reason`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unsaid(pub Vec<String>);

impl fmt::Display for Unsaid {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        to.write_str(&self.0.join("\n"))
    }
}

impl std::error::Error for Unsaid {}

/// Writes a profile as XML.
///
/// # Errors
/// All keys that XML cannot express.
pub fn to_xml(profile: &Profile) -> Result<String, Unsaid> {
    let mut unsaid = Vec::new();
    let execution = execution(profile, &mut unsaid);
    for network in { profile.networks.iter() }.filter(|network| network.max_loss_ppb.is_some()) {
        unsaid.push(format!("network.{}.loss: QCG's XML has no loss", network.name));
    }
    for group in &profile.groups {
        refuse(group, &mut unsaid);
    }
    if !unsaid.is_empty() {
        return Err(Unsaid(unsaid));
    }
    let mut writer = Writer::default();
    write_job(&mut writer, profile, execution);
    Ok(writer.text)
}

/// Notes what a group demands and XML cannot express.
fn refuse(group: &Group, unsaid: &mut Vec<String>) {
    let needs = &group.needs;
    let rows = [
        (
            !matches!(group.ranks, Some(Ranks::Count(_))),
            "ranks: QCG's XML has the number of ranks alone",
        ),
        (needs.speed.is_some(), "speed: QCG's XML has clock rates alone"),
        (needs.features.is_some(), "features: QCG's XML has none"),
        (needs.sites.is_some(), "sites: QCG's XML has none for a group"),
        (
            group.program.is_some(),
            "program: QCG's XML has one for the whole task",
        ),
        (!group.alternatives.is_empty(), "alternatives: QCG's XML has none"),
    ];
    let said = rows.iter().filter(|(is_there, _)| *is_there);
    unsaid.extend(said.map(|(_, reason)| format!("groups.{}.{reason}", group.name)));
}

/// The type of the execution, and the words of the command.
fn execution<'a>(profile: &'a Profile, unsaid: &mut Vec<String>) -> Option<(&'static str, &'a [String])> {
    let (key, kind, words) = match (profile.command.as_deref(), profile.program.as_deref()) {
        (Some([first, rest @ ..]), _)
            if first == LAUNCHER && rest.first().is_some_and(|word| !word.starts_with('-')) =>
        {
            ("command", COMMAND_TYPE, rest)
        }
        (Some(_), _) => {
            let reason =
                format!("QCG's XML has {LAUNCHER} and a program, and no other launcher or option of it");
            unsaid.push(format!("command: {reason}"));
            return None;
        }
        (None, Some(words)) => ("program", PROGRAM_TYPE, words),
        (None, None) => return None,
    };
    // XML readers drop blanks around a text, and XML cannot contain some characters at all.
    let is_plain = |word: &String| !word.is_empty() && trimmed(word) == word && word.chars().all(is_xml);
    if let Some(word) = words.iter().find(|word| !is_plain(word)) {
        let reason = "XML has no empty words, blanks around words, or U+FFFE and U+FFFF";
        unsaid.push(format!("{key}: {word:?}: {reason}"));
    }
    Some((kind, words))
}

/// Whether XML 1.0 may contain a character; no word contains control characters.
fn is_xml(letter: char) -> bool {
    !matches!(letter, '\u{fffe}' | '\u{ffff}')
}

/// Writes elements with their indents.
#[derive(Default)]
struct Writer {
    text: String,
    open: Vec<&'static str>,
}

impl Writer {
    fn begin(&mut self, name: &'static str, attributes: &[(&str, &str)]) {
        self.start(name, attributes);
        self.text.push_str(">\n");
        self.open.push(name);
    }

    fn end(&mut self) {
        if let Some(name) = self.open.pop() {
            let _ = writeln!(self.text, "{:width$}</{name}>", "", width = 2 * self.open.len());
        }
    }

    /// Writes an element with a text, or an empty one.
    fn leaf(&mut self, name: &'static str, attributes: &[(&str, &str)], text: Option<&str>) {
        self.start(name, attributes);
        let _ = match text {
            Some(text) => writeln!(self.text, ">{}</{name}>", escaped(text)),
            None => writeln!(self.text, "/>"),
        };
    }

    fn start(&mut self, name: &str, attributes: &[(&str, &str)]) {
        let _ = write!(self.text, "{:width$}<{name}", "", width = 2 * self.open.len());
        for (key, value) in attributes {
            let _ = write!(self.text, " {key}=\"{}\"", escaped(value));
        }
    }
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('>', "&gt;")
        .replace('"', "&quot;")
}

fn write_job(to: &mut Writer, profile: &Profile, execution: Option<(&str, &[String])>) {
    to.text.push_str("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n");
    to.text
        .push_str("<!-- bandwidth in kB/s, latency in ms, memory in MB of each process -->\n");
    let name = { profile.name.as_deref() }.map(|name| [("appId", name)]);
    to.begin("grmsJob", name.as_ref().map_or(&[], |name| name));
    if !profile.networks.is_empty() {
        to.begin("resourceTemplates", &[]);
        for network in &profile.networks {
            write_network(to, network);
        }
        to.end();
    }
    let task = { profile.name.as_deref() }.map_or("task1".to_owned(), |name| format!("{name}-task1"));
    to.begin("task", &[("taskId", &task)]);
    to.begin("resourcesDescription", &[]);
    to.begin("topology", &[]);
    for group in &profile.groups {
        write_group(to, group);
    }
    to.end();
    to.end();
    if let Some((kind, words)) = execution {
        write_execution(to, kind, words);
    }
    if let Some(seconds) = profile.seconds {
        to.begin("executionTime", &[]);
        to.leaf("executionDuration", &[], Some(&duration(seconds)));
        to.end();
    }
    to.end();
    to.end();
}

fn write_network(to: &mut Writer, network: &Network) {
    to.begin("networkResourceTemplate", &[("templateId", &network.name)]);
    let bounds = [
        (
            "bandwidth",
            "min",
            network.min_bits_per_second,
            KILOBYTES_PER_SECOND,
        ),
        ("latency", "max", network.max_latency_ns, MILLISECONDS),
    ];
    for (name, which, value, unit) in bounds {
        write_bound(to, "networkParameter", name, which, value, unit);
    }
    to.end();
}

/// Writes a parameter with a bound, if there is one. Six decimal places suffice for the finest unit of each
/// quantity.
fn write_bound(
    to: &mut Writer,
    element: &'static str,
    name: &str,
    which: &'static str,
    value: Option<u64>,
    unit: Unit,
) {
    if let Some(text) = value.and_then(|value| plain(value, unit.factor)) {
        to.begin(element, &[("name", name)]);
        to.leaf(which, &[], Some(&text));
        to.end();
    }
}

fn write_group(to: &mut Writer, group: &Group) {
    to.begin("group", &[("groupId", &group.name)]);
    to.begin("processes", &[]);
    if let Some(ranks) = &group.ranks {
        to.begin("processesCount", &[]);
        to.leaf("value", &[], Some(&ranks.count().to_string()));
        to.end();
    }
    let needs = &group.needs;
    if needs.cores.is_some() || needs.memory_bytes.is_some() {
        to.begin("resourceRequirements", &[]);
        to.begin("computingResource", &[]);
        write_bound(
            to,
            "hostParameter",
            "cpucount",
            "min",
            needs.cores.map(u64::from),
            ONE,
        );
        write_bound(
            to,
            "hostParameter",
            "memory",
            "min",
            needs.memory_bytes,
            MEGABYTES,
        );
        to.end();
        to.end();
    }
    to.end();
    if group.within.is_some() || !group.to.is_empty() {
        to.begin("processesConnection", &[]);
        if let Some(network) = &group.within {
            write_reference(to, network);
        }
        for (other, network) in &group.to {
            to.begin("groupConnection", &[("endpointGroupId", other)]);
            write_reference(to, network);
            to.end();
        }
        to.end();
    }
    to.end();
}

fn write_reference(to: &mut Writer, network: &str) {
    to.begin("networkResource", &[]);
    to.leaf("templateIdReference", &[("templateId", network)], None);
    to.end();
}

fn write_execution(to: &mut Writer, kind: &str, words: &[String]) {
    to.begin("execution", &[("type", kind)]);
    if let [program, arguments @ ..] = words {
        to.begin("executable", &[]);
        to.begin("execFile", &[]);
        to.leaf("url", &[], Some(program));
        to.end();
        to.end();
        if !arguments.is_empty() {
            to.begin("arguments", &[]);
            for word in arguments {
                to.leaf("value", &[], Some(word));
            }
            to.end();
        }
    }
    to.end();
}

/// Formats a duration in ISO 8601, without days.
fn duration(seconds: u64) -> String {
    let parts = [
        (seconds / 3600, 'H'),
        (seconds / 60 % 60, 'M'),
        (seconds % 60, 'S'),
    ];
    let parts = parts.iter().filter(|(number, _)| *number > 0);
    let parts: String = parts
        .map(|(number, letter)| format!("{number}{letter}"))
        .collect();
    format!("PT{parts}")
}
