//! Reads a profile in TOML: what each key means. The keys themselves are listed in `keys`.

use crate::keys::{ALTERNATIVE, GROUP, MAX, MIN, MIN_MAX, NETWORK, ROOT};
use crate::model::{Alternative, Group, Needs, Network, Profile, Ranks, Speed};
use crate::notes::Notes;
use crate::toml_walk::{Table, count, measure, text, words};
use crate::{MAX_ALTERNATIVES, MAX_CORES, MAX_GROUPS, MAX_NAMES, MAX_NETWORKS, MAX_RANGES, MAX_RANKS};
use causeway_units::{LATENCY, LOSS, Measure, RATE, SIZE, SPEED, TIME};
use causeway_wire::TextError;
use causeway_wire::grid::is_site_name;
use std::collections::BTreeMap;
use toml::de::{DeTable, DeValue};

/// What could be read; `None` if the text is not TOML.
pub(crate) fn read(source: &str, notes: &mut Notes) -> Option<Profile> {
    let (root, errors) = DeTable::parse_recoverable(source);
    for error in &errors {
        let at = error.span().map_or(0, |span| span.start);
        notes.mistake_at(at, "", error.message());
    }
    if !errors.is_empty() {
        return None;
    }
    let root = Table {
        path: String::new(),
        entries: root.get_ref(),
    };
    root.refuse_others(ROOT, notes);
    let mut profile = Profile {
        name: root.read("name", notes, |value| text(value).map(str::to_owned)),
        seconds: root.read("time", notes, |value| measure(value, &TIME)),
        command: root.read("command", notes, words),
        program: root.read("program", notes, words),
        ..Profile::default()
    };
    if let Some(networks) = root.table("network", notes) {
        let tables = networks.named("network", MAX_NETWORKS, notes);
        profile.networks = { tables.into_iter() }
            .map(|(name, table)| network(name, &table, notes))
            .collect();
    }
    if !root.entries.contains_key("groups") {
        notes.mistake(
            "groups",
            "is missing: a profile has a table [groups.NAME] for each group",
        );
    }
    if let Some(groups) = root.table("groups", notes) {
        let mut ranges = Ranges::default();
        for (name, table) in groups.named("group", MAX_GROUPS, notes) {
            profile.groups.push(group(name, &table, &mut ranges, notes));
        }
        if profile.groups.is_empty() && groups.entries.is_empty() {
            notes.mistake("groups", "names no group");
        }
    }
    Some(profile)
}

fn network(name: &str, table: &Table, notes: &mut Notes) -> Network {
    table.refuse_others(NETWORK, notes);
    Network {
        name: name.to_owned(),
        min_bits_per_second: bound(table, "bandwidth", "min", &RATE, notes),
        max_latency_ns: bound(table, "latency", "max", &LATENCY, notes),
        max_loss_ppb: bound(table, "loss", "max", &LOSS, notes),
    }
}

/// The bound of a table that has only one.
fn bound(table: &Table, name: &str, which: &str, of: &Measure, notes: &mut Notes) -> Option<u64> {
    let table = table.table(name, notes)?;
    table.refuse_others(if which == "min" { MIN } else { MAX }, notes);
    if !table.entries.contains_key(which) {
        notes.mistake(table.path.clone(), format!("has no {which}"));
    }
    table.read(which, notes, |value| measure(value, of))
}

fn group(name: &str, table: &Table, ranges: &mut Ranges, notes: &mut Notes) -> Group {
    table.refuse_others(GROUP, notes);
    let mut group = Group {
        name: name.to_owned(),
        ranks: ranks(name, table, ranges, notes),
        needs: needs(table, notes),
        program: table.read("program", notes, words),
        within: table.read("within", notes, |value| text(value).map(str::to_owned)),
        ..Group::default()
    };
    if let Some(to) = table.table("to", notes) {
        if to.entries.len() > MAX_GROUPS {
            notes.mistake(to.path.clone(), format!("has more than {MAX_GROUPS}"));
        }
        for (other, at, _) in to.in_order().into_iter().take(MAX_GROUPS) {
            let network = to.read(other, notes, |value| text(value).map(str::to_owned));
            notes.place(&to.key(other), at);
            group
                .to
                .extend(network.map(|network| (other.to_owned(), network)));
        }
    }
    group.alternatives = alternatives(table, notes);
    group
}

fn needs(table: &Table, notes: &mut Notes) -> Needs {
    Needs {
        cores: table.read("cores", notes, |value| count(value, MAX_CORES)),
        memory_bytes: table.read("memory", notes, |value| measure(value, &SIZE)),
        speed: speed(table, notes),
        features: names(table, "features", notes),
        sites: names(table, "sites", notes),
    }
}

fn speed(table: &Table, notes: &mut Notes) -> Option<Speed> {
    let table = table.table("speed", notes)?;
    table.refuse_others(MIN_MAX, notes);
    if table.entries.is_empty() {
        notes.mistake(table.path.clone(), "has neither min nor max");
    }
    let speed = Speed {
        min: table.read("min", notes, |value| measure(value, &SPEED)),
        max: table.read("max", notes, |value| measure(value, &SPEED)),
    };
    if speed.min.zip(speed.max).is_some_and(|(min, max)| min > max) {
        notes.mistake(table.path.clone(), "has a min above its max");
    }
    Some(speed)
}

/// A list of names without repetitions.
fn names(table: &Table, name: &str, notes: &mut Notes) -> Option<Vec<String>> {
    let (key, value) = table.value(name, notes)?;
    let DeValue::Array(items) = value else {
        notes.mistake(key, "is not a list of names");
        return None;
    };
    if items.is_empty() || items.len() > MAX_NAMES {
        notes.mistake(key, format!("is not a list of 1 to {MAX_NAMES} names"));
        return None;
    }
    let mut names: Vec<String> = Vec::new();
    for item in items {
        match item.get_ref().as_str() {
            Some(text) if !is_site_name(text) => {
                let reason = "is not a name of 1 to 63 letters, digits, '-', '_' or '.'";
                notes.mistake(key.clone(), format!("{text:?} {reason}"));
            }
            // If sites represent ranks, `check` reports this, too, as it does for two groups.
            Some(text) => names.push(text.to_owned()),
            None => notes.mistake(key.clone(), "holds something that is not a text"),
        }
    }
    (!names.is_empty()).then_some(names)
}

/// Ranges of ranks of all groups: for the first rank of each, its last rank and its group.
#[derive(Default)]
struct Ranges(BTreeMap<u32, (u32, String)>);

fn ranks(group: &str, table: &Table, ranges: &mut Ranges, notes: &mut Notes) -> Option<Ranks> {
    let (key, value) = table.value("ranks", notes)?;
    let DeValue::String(text) = value else {
        let count = count(value, MAX_RANKS);
        let count = count.map_err(|reason| format!("{}, nor a text such as \"0,4-7\"", &*reason));
        return count
            .map_err(|reason| notes.mistake(key, reason))
            .ok()
            .map(Ranks::Count);
    };
    let mut own = Vec::new();
    for piece in text.split(',').map(str::trim) {
        if ranges.0.len() >= MAX_RANGES {
            notes.mistake(
                key.clone(),
                format!("all groups have {MAX_RANGES} ranges of ranks at most"),
            );
            break;
        }
        match ranges.add(group, piece) {
            Ok(range) => own.push(range),
            Err(reason) => notes.mistake(key.clone(), &*reason),
        }
    }
    Some(Ranks::Named(own))
}

impl Ranges {
    fn add(&mut self, group: &str, text: &str) -> Result<(u32, u32), TextError> {
        let (first, last) = text.split_once('-').unwrap_or((text, text));
        let (Ok(first), Ok(last)) = (first.trim().parse::<u32>(), last.trim().parse::<u32>()) else {
            return Err(format!("{text:?} is neither a rank nor a range such as 4-7").into());
        };
        if first > last {
            return Err(format!("{text:?} ends before it begins; write {last}-{first}").into());
        }
        if last >= MAX_RANKS {
            return Err(format!(
                "rank {last} is beyond the last that a job may have, {}",
                MAX_RANKS - 1
            )
            .into());
        }
        // Ranges do not overlap, so only the nearest one that begins before this one's end can reach into it.
        if let Some((from, (to, other))) = self.0.range(..=last).next_back()
            && *to >= first
        {
            let twice = first.max(*from);
            return Err(format!("rank {twice} is in group {other} already; leave it out of one").into());
        }
        self.0.insert(first, (last, group.to_owned()));
        Ok((first, last))
    }
}

fn alternatives(table: &Table, notes: &mut Notes) -> Vec<Alternative> {
    let Some((key, value)) = table.value("alternatives", notes) else {
        return Vec::new();
    };
    let DeValue::Array(items) = value else {
        notes.mistake(key, "is not a list of tables");
        return Vec::new();
    };
    if items.is_empty() || items.len() > MAX_ALTERNATIVES {
        notes.mistake(
            key.clone(),
            format!("is not a list of 1 to {MAX_ALTERNATIVES} tables"),
        );
    }
    let mut alternatives = Vec::new();
    for (number, item) in (1..).zip(items.iter().take(MAX_ALTERNATIVES)) {
        let path = format!("{key}[{number}]");
        notes.place(&path, item.span().start);
        let DeValue::Table(entries) = item.get_ref() else {
            notes.mistake(path, "is not a table");
            continue;
        };
        let table = Table { path, entries };
        table.refuse_others(ALTERNATIVE, notes);
        alternatives.push(Alternative {
            ranks: table.read("ranks", notes, |value| count(value, MAX_RANKS)),
            needs: needs(&table, notes),
        });
    }
    alternatives
}
