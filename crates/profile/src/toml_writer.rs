//! Writes a profile in TOML. Comments of a text that was read are not kept.

use crate::model::{Group, Needs, Network, Profile, Ranks, Speed};
use causeway_units::{LATENCY, LOSS, RATE, SIZE, SPEED, TIME};
use std::fmt::Write as _;

/// The text of a profile. It contains everything that a profile can say.
pub fn to_toml(profile: &Profile) -> String {
    let mut text = String::new();
    let mut line = |key: &str, value: Option<String>| {
        if let Some(value) = value {
            let _ = writeln!(text, "{key} = {value}");
        }
    };
    line("name", profile.name.as_deref().map(quoted));
    line("time", profile.seconds.map(|seconds| quoted(&TIME.show(seconds))));
    line("command", profile.command.as_deref().map(words));
    line("program", profile.program.as_deref().map(words));
    for network in &profile.networks {
        let _ = write!(text, "\n[network.{}]\n{}", key(&network.name), bounds(network));
    }
    for group in &profile.groups {
        let _ = write!(text, "\n[groups.{}]\n{}", key(&group.name), entries(group));
    }
    text.trim_start().to_owned()
}

fn bounds(network: &Network) -> String {
    let shown = [
        ("bandwidth", "min", network.min_bits_per_second, &RATE),
        ("latency", "max", network.max_latency_ns, &LATENCY),
        ("loss", "max", network.max_loss_ppb, &LOSS),
    ];
    let lines = shown.into_iter().filter_map(|(key, which, value, measure)| {
        let value = quoted(&measure.show(value?));
        Some(format!("{key} = {{ {which} = {value} }}\n"))
    });
    lines.collect()
}

fn entries(group: &Group) -> String {
    let mut lines = Vec::new();
    lines.extend(
        group
            .ranks
            .as_ref()
            .map(|ranks| ("ranks".to_owned(), self::ranks(ranks))),
    );
    lines.extend(needs(&group.needs));
    lines.extend({ group.program.as_deref() }.map(|program| ("program".to_owned(), words(program))));
    lines.extend({ group.within.as_deref() }.map(|within| ("within".to_owned(), quoted(within))));
    let to = group.to.iter();
    lines.extend(to.map(|(other, network)| (format!("to.{}", key(other)), quoted(network))));
    let mut text: String = lines
        .iter()
        .map(|(key, value)| format!("{key} = {value}\n"))
        .collect();
    if !group.alternatives.is_empty() {
        text.push_str("alternatives = [\n");
        for other in &group.alternatives {
            let count = other.ranks.map(|ranks| ("ranks".to_owned(), ranks.to_string()));
            let all = count.into_iter().chain(needs(&other.needs));
            let all: Vec<String> = all.map(|(key, value)| format!("{key} = {value}")).collect();
            let _ = writeln!(text, "    {{ {} }},", all.join(", "));
        }
        text.push_str("]\n");
    }
    text
}

fn ranks(ranks: &Ranks) -> String {
    match ranks {
        Ranks::Count(count) => count.to_string(),
        Ranks::Named(ranges) => {
            let ranges = ranges.iter().map(|(first, last)| match last - first {
                0 => first.to_string(),
                _ => format!("{first}-{last}"),
            });
            quoted(&ranges.collect::<Vec<_>>().join(","))
        }
    }
}

fn needs(needs: &Needs) -> Vec<(String, String)> {
    let names = |names: &Vec<String>| {
        let names: Vec<String> = names.iter().map(|name| quoted(name)).collect();
        format!("[{}]", names.join(", "))
    };
    let all = [
        ("cores", needs.cores.map(|cores| cores.to_string())),
        (
            "memory",
            needs.memory_bytes.map(|bytes| quoted(&SIZE.show(bytes))),
        ),
        ("speed", needs.speed.map(speed)),
        ("features", needs.features.as_ref().map(names)),
        ("sites", needs.sites.as_ref().map(names)),
    ];
    { all.into_iter() }
        .filter_map(|(key, value)| Some((key.to_owned(), value?)))
        .collect()
}

fn speed(speed: Speed) -> String {
    let bounds = [("min", speed.min), ("max", speed.max)];
    let bounds = bounds.into_iter().filter_map(|(key, value)| {
        let value = SPEED.show(value?);
        Some(format!("{key} = {value}"))
    });
    format!("{{ {} }}", bounds.collect::<Vec<_>>().join(", "))
}

/// A text if splitting it at blanks gives the same words, otherwise a list.
fn words(words: &[String]) -> String {
    let is_plain =
        |word: &String| !word.is_empty() && !word.contains(|letter: char| letter.is_ascii_whitespace());
    if words.iter().all(is_plain) {
        quoted(&words.join(" "))
    } else {
        let words: Vec<String> = words.iter().map(|word| quoted(word)).collect();
        format!("[{}]", words.join(", "))
    }
}

/// A name as a key: one with a dot needs quotes.
fn key(name: &str) -> String {
    let is_bare = |byte: u8| byte.is_ascii_alphanumeric() || b"-_".contains(&byte);
    if name.bytes().all(is_bare) {
        name.to_owned()
    } else {
        quoted(name)
    }
}

fn quoted(text: &str) -> String {
    toml::Value::String(text.to_owned()).to_string()
}
