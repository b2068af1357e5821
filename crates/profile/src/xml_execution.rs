//! Reads what a job in QCG's XML runs, and for how long.

use crate::model::Profile;
use crate::notes::Notes;
use crate::toml_walk::check_words;
use crate::xml_walk::{Known, NOTHING, TEXT, at, child_named, elements, path, text};
use crate::xml_writer::{COMMAND_TYPE, LAUNCHER, PROGRAM_TYPE};
use roxmltree::Node;

/// Reads the program and its words.
pub(crate) fn read(node: Node, profile: &mut Profile, notes: &mut Notes) {
    let known = Known {
        attributes: &["type"],
        single: &["executable", "arguments"],
        ..NOTHING
    };
    known.look(node, notes);
    let executable = child_named(node, "executable").and_then(|executable| {
        let single = &["execFile"];
        Known { single, ..NOTHING }.look(executable, notes);
        let file = child_named(executable, single[0])?;
        let single = &["url"];
        Known { single, ..NOTHING }.look(file, notes);
        let url = child_named(file, single[0])?;
        TEXT.look(url, notes);
        text(url)
    });
    let Some(executable) = executable else {
        notes.mistake_at(
            at(node),
            path(node),
            "has no executable with an execFile with a url",
        );
        return;
    };
    let mut words = vec![executable];
    if let Some(arguments) = child_named(node, "arguments") {
        let many = &["value"];
        Known { many, ..NOTHING }.look(arguments, notes);
        for value in elements(arguments, "value") {
            TEXT.look(value, notes);
            match text(value) {
                Some(word) => words.push(word),
                None => notes.mistake_at(at(value), path(value), "is empty"),
            }
        }
    }
    let kind = node.attribute("type");
    if kind == Some(COMMAND_TYPE) {
        words.insert(0, LAUNCHER.to_owned());
    }
    if let Err(reason) = check_words(&words) {
        notes.mistake_at(at(node), path(node), &*reason);
        return;
    }
    let key = if kind == Some(COMMAND_TYPE) {
        "command"
    } else {
        "program"
    };
    notes.place(key, at(node));
    match kind {
        Some(COMMAND_TYPE) => profile.command = Some(words),
        Some(PROGRAM_TYPE) => profile.program = Some(words),
        _ => {
            let reason = format!("has no type that is known: {COMMAND_TYPE}, {PROGRAM_TYPE}");
            notes.mistake_at(at(node), path(node), reason);
        }
    }
}

/// Reads how long the job may take.
pub(crate) fn read_time(node: Node, profile: &mut Profile, notes: &mut Notes) {
    let single = &["executionDuration"];
    Known { single, ..NOTHING }.look(node, notes);
    let Some(duration) = child_named(node, single[0]) else {
        notes.mistake_at(at(node), path(node), "has no executionDuration");
        return;
    };
    TEXT.look(duration, notes);
    notes.place("time", at(duration));
    match text(duration).as_deref().and_then(seconds) {
        Some(seconds) if seconds <= crate::MAX_SECONDS => profile.seconds = Some(seconds),
        _ => notes.mistake("time", "is not a duration such as PT1H30M, of 1 s to 365 days"),
    }
}

/// The seconds of a duration (ISO 8601) without years and months, whose lengths vary; `None` if the text is
/// not a duration.
fn seconds(text: &str) -> Option<u64> {
    let text = text.strip_prefix('P')?;
    let (date, time) = text.split_once('T').unwrap_or((text, "T0S"));
    let time = if time == "T0S" { "0S" } else { time };
    let mut sum = 0_u64;
    for (mut rest, units) in [
        (date, [('Y', None), ('M', None), ('D', Some(86_400))]),
        (time, [('H', Some(3600)), ('M', Some(60)), ('S', Some(1))]),
    ] {
        for (letter, factor) in units {
            let Some((number, after)) = rest.split_once(letter) else {
                continue;
            };
            let number: u64 = number.parse().ok()?;
            rest = after;
            match factor {
                Some(factor) => sum = sum.checked_add(number.checked_mul(factor)?)?,
                None if number == 0 => {}
                None => return None,
            }
        }
        if !rest.is_empty() {
            return None;
        }
    }
    (sum > 0).then_some(sum)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_are_read_as_iso_8601_has_them() {
        let known = [
            ("PT1H", Some(3600)),
            ("P0Y0M0DT2H30M", Some(9000)),
            ("P1DT1S", Some(86_401)),
            ("P2D", Some(172_800)),
            ("PT90M", Some(5400)),
        ];
        for (text, value) in known {
            assert_eq!(seconds(text), value, "{text}");
        }
        for text in [
            "",
            "P",
            "PT",
            "1H",
            "PT1",
            "P1Y",
            "P1M",
            "PT-1H",
            "PT1S1H",
            "PT1H ",
            "PT99999999999999999999H",
        ] {
            assert_eq!(seconds(text), None, "{text}");
        }
    }
}
