//! Reads a profile in QCG's XML: Fig. 3 of coti-2011, and what public texts of QCG and GSSIM show of the
//! parts that the figure leaves out (docs/profile.md). The figure names no units; a warning names those that
//! are assumed here.

use crate::model::{Group, Network, Profile, Ranks};
use crate::notes::Notes;
use crate::xml_execution;
use crate::xml_walk::{Known, NOTHING, TEXT, at, child_named, elements, path, required, text};
use crate::xml_writer::{KILOBYTES_PER_SECOND, MEGABYTES, MILLISECONDS, Unit};
use crate::{MAX_CORES, MAX_GROUPS, MAX_NETWORKS, MAX_RANKS};
use causeway_units::{LATENCY, Measure, RATE, SIZE, plain};
use roxmltree::{Document, Node, ParsingOptions};
use std::collections::HashSet;

/// Most elements and texts: each takes some 100 bytes, and a profile of [`MAX_GROUPS`] groups, all of them
/// joined, has some 30 000.
const MAX_NODES: u32 = 100_000;

const ROOT: &str = "grmsJob";

/// Returns what could be read; `None` if the text is not such XML.
pub(crate) fn read(source: &str, notes: &mut Notes) -> Option<Profile> {
    let options = ParsingOptions {
        nodes_limit: MAX_NODES,
        ..ParsingOptions::default()
    };
    let document = match Document::parse_with_options(source, options) {
        Ok(document) => document,
        Err(error) => {
            notes.mistake_at(offset(source, error.pos()), "", format!("is no XML: {error}"));
            return None;
        }
    };
    let root = document.root_element();
    if root.tag_name().name() != ROOT {
        notes.mistake_at(
            at(root),
            path(root),
            format!("is not {ROOT}, with which QCG's profiles begin"),
        );
        return None;
    }
    Some(job(root, notes))
}

/// The byte at which a position is: the position's column counts characters.
fn offset(source: &str, position: roxmltree::TextPos) -> usize {
    let row = usize::try_from(position.row).unwrap_or(1).max(1);
    source.split_inclusive('\n').take(row - 1).map(str::len).sum()
}

fn job(root: Node, notes: &mut Notes) -> Profile {
    let known = Known {
        attributes: &["appId"],
        single: &["resourceTemplates"],
        many: &["task"],
        ..NOTHING
    };
    known.look(root, notes);
    let mut profile = Profile {
        name: root.attribute("appId").map(str::to_owned),
        ..Profile::default()
    };
    notes.place("name", at(root));
    if let Some(templates) = child_named(root, "resourceTemplates") {
        let many = &["networkResourceTemplate"];
        Known { many, ..NOTHING }.look(templates, notes);
        for template in elements(templates, many[0]) {
            network(template, &mut profile, notes);
        }
    }
    let mut tasks = elements(root, "task");
    match tasks.next() {
        Some(first) => task(first, &mut profile, notes),
        None => notes.mistake_at(at(root), path(root), "has no task"),
    }
    for other in tasks {
        notes.mistake_at(at(other), path(other), "is a second task; a profile is one");
    }
    profile
}

fn network(node: Node, profile: &mut Profile, notes: &mut Notes) {
    let known = Known {
        attributes: &["templateId"],
        many: &["networkParameter"],
        ..NOTHING
    };
    known.look(node, notes);
    let Some(name) = required(node, "templateId", notes) else {
        return;
    };
    let key = format!("network.{name}");
    if profile.networks.iter().any(|network| network.name == name) {
        notes.mistake_at(at(node), key, "is there twice");
        return;
    }
    if profile.networks.len() == MAX_NETWORKS {
        notes.mistake_at(
            at(node),
            key,
            format!("is one more than {MAX_NETWORKS}, as many as there may be"),
        );
        return;
    }
    notes.place(&key, at(node));
    let mut network = Network {
        name,
        ..Network::default()
    };
    for parameter in elements(node, "networkParameter") {
        let (name, value, which, measure, unit) = match parameter.attribute("name") {
            Some("bandwidth") => {
                let value = &mut network.min_bits_per_second;
                ("bandwidth", value, "min", &RATE, KILOBYTES_PER_SECOND)
            }
            Some("latency") => (
                "latency",
                &mut network.max_latency_ns,
                "max",
                &LATENCY,
                MILLISECONDS,
            ),
            other => {
                left_out(parameter, other, notes);
                continue;
            }
        };
        let key = format!("{key}.{name}");
        if let Some(text) = bound(parameter, which, &key, notes) {
            assumed(parameter, notes);
            set(value, measure_of(&text, measure, unit), &key, notes);
        }
    }
    profile.networks.push(network);
}

/// Reports a parameter that no key of a profile represents.
fn left_out(parameter: Node, name: Option<&str>, notes: &mut Notes) {
    let reason = match name {
        Some("cpuspeed") => "is a clock rate, and speed is relative here; it is left out".to_owned(),
        Some(name) => format!("{name:?} is not understood and left out"),
        None => "has no name and is left out".to_owned(),
    };
    notes.warn_at(at(parameter), path(parameter), reason);
}

/// The text of the one bound that a parameter may have.
fn bound(parameter: Node, which: &'static str, key: &str, notes: &mut Notes) -> Option<String> {
    notes.place(key, at(parameter));
    let known = Known {
        attributes: &["name"],
        single: if which == "min" { &["min"] } else { &["max"] },
        ..NOTHING
    };
    known.look(parameter, notes);
    let bound = child_named(parameter, which);
    if let Some(bound) = bound {
        TEXT.look(bound, notes);
    }
    let text = bound.and_then(text);
    if text.is_none() {
        notes.mistake(key, format!("has no {which} with a number"));
    }
    text
}

fn measure_of(text: &str, measure: &Measure, unit: Unit) -> Result<u64, String> {
    measure.read_plain(text, unit.factor).map_err(|_| {
        let shown = |value: &u64| plain(*value, unit.factor).unwrap_or_default();
        let (least, most) = (shown(measure.range.start()), shown(measure.range.end()));
        format!(
            "{text:?} is not a number from {least} to {most}, in {}",
            unit.name
        )
    })
}

fn whole(text: &str, most: u32) -> Result<u32, String> {
    let number = text.parse().ok().filter(|number| (1..=most).contains(number));
    number.ok_or_else(|| format!("{text:?} is not a whole number from 1 to {most}"))
}

/// Keeps what has been read; a second value of the same kind is a mistake.
fn set<T>(to: &mut Option<T>, read: Result<T, String>, key: &str, notes: &mut Notes) {
    match read {
        Ok(_) if to.is_some() => notes.mistake(key, "is there twice"),
        Ok(value) => *to = Some(value),
        Err(reason) => notes.mistake(key, reason),
    }
}

/// Notes once which units are assumed.
fn assumed(node: Node, notes: &mut Notes) {
    const KEY: &str = "units";
    if !notes.warnings.iter().any(|note| note.key == KEY) {
        let reason =
            "QCG's XML names none; bandwidth is taken for kB/s, latency for ms, memory for MB of each rank";
        notes.warn_at(at(node), KEY, reason);
    }
}

fn task(node: Node, profile: &mut Profile, notes: &mut Notes) {
    // The attribute distinguishes the tasks of one job, of which only one is supported.
    let known = Known {
        attributes: &["taskId"],
        single: &[
            "resourcesDescription",
            "requirements",
            "execution",
            "executionTime",
        ],
        ..NOTHING
    };
    known.look(node, notes);
    // The figure uses one name, and QCG's own stylesheets use the other.
    let names = ["resourcesDescription", "requirements"];
    let both: Vec<Node> = names.iter().filter_map(|name| child_named(node, name)).collect();
    match both.as_slice() {
        [] => notes.mistake_at(at(node), path(node), "has no resourcesDescription"),
        [first, others @ ..] => {
            topology(*first, profile, notes);
            for other in others {
                notes.mistake_at(at(*other), path(*other), "is there twice, under two names");
            }
        }
    }
    if let Some(execution) = child_named(node, "execution") {
        xml_execution::read(execution, profile, notes);
    }
    if let Some(time) = child_named(node, "executionTime") {
        xml_execution::read_time(time, profile, notes);
    }
}

fn topology(node: Node, profile: &mut Profile, notes: &mut Notes) {
    let single = &["topology"];
    Known { single, ..NOTHING }.look(node, notes);
    let Some(topology) = child_named(node, "topology") else {
        notes.mistake_at(at(node), path(node), "has no topology");
        return;
    };
    let many = &["group"];
    Known { many, ..NOTHING }.look(topology, notes);
    let mut names = HashSet::new();
    for node in elements(topology, "group") {
        let Some(name) = required(node, "groupId", notes) else {
            continue;
        };
        let key = format!("groups.{name}");
        if !names.insert(name.clone()) {
            notes.mistake_at(at(node), key, "is there twice");
        } else if names.len() > MAX_GROUPS {
            notes.mistake_at(
                at(node),
                key,
                format!("is one more than {MAX_GROUPS}, as many as there may be"),
            );
            break;
        } else {
            notes.place(&key, at(node));
            profile.groups.push(group(node, name, notes));
        }
    }
    if names.is_empty() {
        notes.mistake_at(at(topology), path(topology), "names no group");
    }
}

fn group(node: Node, name: String, notes: &mut Notes) -> Group {
    let known = Known {
        attributes: &["groupId"],
        single: &["processes", "processesConnection"],
        ..NOTHING
    };
    known.look(node, notes);
    let mut group = Group {
        name,
        ..Group::default()
    };
    match child_named(node, "processes") {
        Some(node) => processes(node, &mut group, notes),
        None => {
            let key = format!("groups.{}.ranks", group.name);
            notes.mistake_at(at(node), key, "has no processes, which say how many ranks");
        }
    }
    if let Some(connection) = child_named(node, "processesConnection") {
        let known = Known {
            single: &["networkResource"],
            many: &["groupConnection"],
            ..NOTHING
        };
        known.look(connection, notes);
        let key = format!("groups.{}.within", group.name);
        if let Some(resource) = child_named(connection, "networkResource") {
            notes.place(&key, at(resource));
            group.within = reference(resource, notes);
        }
        for other in elements(connection, "groupConnection") {
            to_group(other, &mut group, notes);
        }
    }
    group
}

fn to_group(node: Node, group: &mut Group, notes: &mut Notes) {
    let known = Known {
        attributes: &["endpointGroupId"],
        single: &["networkResource"],
        ..NOTHING
    };
    known.look(node, notes);
    let Some(other) = required(node, "endpointGroupId", notes) else {
        return;
    };
    let key = format!("groups.{}.to.{other}", group.name);
    if group.to.len() == MAX_GROUPS || group.to.iter().any(|(known, _)| *known == other) {
        notes.mistake_at(
            at(node),
            key,
            format!("is there twice, or one more than {MAX_GROUPS}"),
        );
        return;
    }
    notes.place(&key, at(node));
    match child_named(node, "networkResource") {
        Some(resource) => {
            let network = reference(resource, notes);
            group.to.extend(network.map(|network| (other, network)));
        }
        None => notes.mistake_at(at(node), key, "has no networkResource"),
    }
}

/// The name of a network: an attribute in the figure, a text in QCG's own stylesheets.
fn reference(resource: Node, notes: &mut Notes) -> Option<String> {
    let single = &["templateIdReference"];
    Known { single, ..NOTHING }.look(resource, notes);
    let Some(node) = child_named(resource, "templateIdReference") else {
        notes.mistake_at(at(resource), path(resource), "has no templateIdReference");
        return None;
    };
    let known = Known {
        attributes: &["templateId"],
        ..TEXT
    };
    known.look(node, notes);
    let named = node.attribute("templateId").map(str::to_owned);
    match (named, text(node)) {
        (Some(one), Some(other)) if one != other => {
            notes.mistake_at(at(node), path(node), format!("names both {one:?} and {other:?}"));
            None
        }
        (None, None) => {
            notes.mistake_at(at(node), path(node), "names no template");
            None
        }
        (named, text) => named.or(text),
    }
}

fn processes(node: Node, group: &mut Group, notes: &mut Notes) {
    let single = &["processesCount", "resourceRequirements"];
    Known { single, ..NOTHING }.look(node, notes);
    let key = format!("groups.{}.ranks", group.name);
    notes.place(&key, at(node));
    let count = child_named(node, "processesCount");
    let value = count.and_then(|count| {
        let single = &["value"];
        Known { single, ..NOTHING }.look(count, notes);
        let value = child_named(count, "value")?;
        TEXT.look(value, notes);
        text(value)
    });
    match value.map(|text| whole(&text, MAX_RANKS)) {
        Some(Ok(ranks)) => group.ranks = Some(Ranks::Count(ranks)),
        Some(Err(reason)) => notes.mistake(key, reason),
        None => notes.mistake(key, "there is no processesCount with a value"),
    }
    let Some(requirements) = child_named(node, "resourceRequirements") else {
        return;
    };
    let single = &["computingResource"];
    Known { single, ..NOTHING }.look(requirements, notes);
    let Some(resource) = child_named(requirements, "computingResource") else {
        return;
    };
    let many = &["hostParameter"];
    Known { many, ..NOTHING }.look(resource, notes);
    for parameter in elements(resource, "hostParameter") {
        host_parameter(parameter, group, notes);
    }
}

fn host_parameter(node: Node, group: &mut Group, notes: &mut Notes) {
    let key = format!("groups.{}", group.name);
    match node.attribute("name") {
        Some("cpucount") => {
            let key = format!("{key}.cores");
            if let Some(text) = bound(node, "min", &key, notes) {
                set(&mut group.needs.cores, whole(&text, MAX_CORES), &key, notes);
            }
        }
        Some("memory") => {
            let key = format!("{key}.memory");
            if let Some(text) = bound(node, "min", &key, notes) {
                assumed(node, notes);
                let bytes = measure_of(&text, &SIZE, MEGABYTES);
                set(&mut group.needs.memory_bytes, bytes, &key, notes);
            }
        }
        other => left_out(node, other, notes),
    }
}
