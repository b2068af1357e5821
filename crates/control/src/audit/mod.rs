//! The audit: a gateway's record of what other sites did at its own. Each line is one JSON object, in a file
//! that only this user can read; refusals have another file beside it. A file that has grown is put aside
//! under the same name with a number; the highest number is the oldest.

pub mod line;

use causeway_wire::shown::Line;
use serde::{Deserialize, Serialize};
use std::fs::File;
use std::io::{self, BufRead, BufReader, ErrorKind, Read as _};
use std::path::{Path, PathBuf};

/// Size at which a new file is begun: some 20 000 lines.
pub const MAX_FILE_BYTES: u64 = 8 * 1024 * 1024;

/// How many files are kept beside the present one.
pub const KEPT_FILES: usize = 8;

/// Longest text of a field: names and commands are recognisable, but not kept in full.
pub const MAX_TEXT: usize = 200;

/// Longest line that is read: every field at its longest.
const MAX_LINE_BYTES: u64 = 64 * 1024;

/// What happened.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum AuditEvent {
    /// A process that logs in to a node was started on this host; `pid` is its number here.
    Start,
    /// The node has reported what it runs, under `node_pid` there, for the process `pid` of this host.
    Command,
    /// The process `pid` of this host has ended, and with it everything that it had started on the node.
    End,
    /// A connection of `causeway connect` was accepted.
    Connect,
    /// Something was refused; `kind` and `why` give the details.
    Refused,
}

/// One line of the audit.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AuditEntry {
    /// The time in the form of RFC 3339, in UTC, to the second.
    pub time: String,
    /// See [`AuditEvent`].
    pub event: AuditEvent,
    /// The grid's name; empty in a grid without a broker.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub grid: String,
    /// The site that asked.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub site: String,
    /// The user at that site, as the site reports it.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub user: String,
    /// The beginning of the job's token, by which its lines are found.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub job: String,
    /// The name of the job, as its site reports it.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub name: String,
    /// The node, or the address, that was asked for.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub node: String,
    /// What the node runs, as the node reports it.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub command: String,
    /// A process of this host.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pid: Option<u32>,
    /// A process of the node.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub node_pid: Option<u32>,
    /// How long it had run, if something has ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub seconds: Option<u64>,
    /// How it ended: "status 0", "signal 9".
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub outcome: String,
    /// The kind of a refusal; the gateway counts refusals under the same word.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub kind: String,
    /// Why it was refused.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub why: String,
    /// How many refusals of this kind and site before this one have no line, because there were too many.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub untold: u32,
}

fn is_zero(number: &u32) -> bool {
    *number == 0
}

impl AuditEntry {
    /// An entry with only the time and the event.
    pub fn new(time: String, event: AuditEvent) -> AuditEntry {
        AuditEntry {
            time,
            event,
            grid: String::new(),
            site: String::new(),
            user: String::new(),
            job: String::new(),
            name: String::new(),
            node: String::new(),
            command: String::new(),
            pid: None,
            node_pid: None,
            seconds: None,
            outcome: String::new(),
            kind: String::new(),
            why: String::new(),
            untold: 0,
        }
    }
}

/// A text that somebody else chose, without anything that would act on a terminal, cut to [`MAX_TEXT`].
pub fn shown(text: &str) -> String {
    const MORE: &str = "...";
    let plain = Line(&text[..text.floor_char_boundary(MAX_TEXT)]).to_string();
    if plain.len() <= MAX_TEXT && text.len() <= MAX_TEXT {
        return plain;
    }
    let cut = &plain[..plain.floor_char_boundary(MAX_TEXT - MORE.len())];
    format!("{cut}{MORE}")
}

/// The file of refusals that belongs to a file of the audit.
pub fn refusals(file: &Path) -> PathBuf {
    beside(file, ".refused")
}

/// The file of connections of `causeway connect` that belongs to a file of the audit.
pub fn connections(file: &Path) -> PathBuf {
    beside(file, ".connected")
}

fn beside(file: &Path, end: &str) -> PathBuf {
    let mut name = file.as_os_str().to_owned();
    name.push(end);
    name.into()
}

/// The file that was put aside with this number, from 1.
pub fn put_aside(file: &Path, number: usize) -> PathBuf {
    let mut name = file.as_os_str().to_owned();
    name.push(format!(".{number}"));
    name.into()
}

/// Hands every entry to `take`, the oldest first; returns how many lines were not entries.
///
/// # Errors
/// A file exists but cannot be read.
pub fn read(file: &Path, mut take: impl FnMut(AuditEntry)) -> io::Result<usize> {
    let mut damaged = 0;
    for number in (0..=KEPT_FILES).rev() {
        let path = match number {
            0 => file.to_owned(),
            _ => put_aside(file, number),
        };
        let lines = match File::open(&path) {
            Ok(file) => BufReader::new(file),
            Err(error) if error.kind() == ErrorKind::NotFound => continue,
            Err(error) => {
                return Err(io::Error::new(
                    error.kind(),
                    format!("{}: {error}", path.display()),
                ));
            }
        };
        damaged += read_lines(lines, &mut take)?;
    }
    Ok(damaged)
}

/// Hands every entry of one file to `take`; returns how many lines were not entries.
///
/// # Errors
/// Errors of reading.
pub fn read_lines(mut lines: impl BufRead, mut take: impl FnMut(AuditEntry)) -> io::Result<usize> {
    let mut damaged = 0;
    let mut line = Vec::new();
    loop {
        line.clear();
        if lines.by_ref().take(MAX_LINE_BYTES).read_until(b'\n', &mut line)? == 0 {
            return Ok(damaged);
        }
        // Whatever follows the bound belongs to the same line.
        let is_cut = line.len() as u64 == MAX_LINE_BYTES && !line.ends_with(b"\n");
        match serde_json::from_slice(&line) {
            Ok(entry) if !is_cut => take(entry),
            _ => damaged += 1,
        }
        if is_cut {
            lines.skip_until(b'\n')?;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_another_site_calls_itself_does_nothing_to_a_terminal() {
        assert_eq!(shown("mpirun -n 4 \"./a b\""), "mpirun -n 4 \"./a b\"");
        assert_eq!(
            shown("a\x1b[2J\nb\u{202e}c\u{9b}"),
            "a\\u001b[2J\\u000ab\\u202ec\\u009b"
        );
        let long = shown(&"ü".repeat(MAX_TEXT));
        assert!(long.len() <= MAX_TEXT && long.ends_with("..."));
        let odd = shown(&"\x1b".repeat(MAX_TEXT));
        assert!(odd.len() <= MAX_TEXT && odd.ends_with("..."), "{odd}");
    }

    #[test]
    fn entries_are_read_with_those_put_aside_first_and_damaged_lines_counted() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("audit.jsonl");
        let line = |pid| {
            let entry = AuditEntry {
                pid: Some(pid),
                ..AuditEntry::new("2026-11-24T23:05:01Z".into(), AuditEvent::Start)
            };
            serde_json::to_string(&entry).unwrap() + "\n"
        };
        assert_eq!(
            line(7),
            "{\"time\":\"2026-11-24T23:05:01Z\",\"event\":\"start\",\"pid\":7}\n"
        );
        std::fs::write(&file, line(3)).unwrap();
        std::fs::write(put_aside(&file, 2), line(1)).unwrap();
        std::fs::write(put_aside(&file, 1), line(2) + "half a li").unwrap();
        let mut pids = Vec::new();
        assert_eq!(read(&file, |entry| pids.extend(entry.pid)).unwrap(), 1);
        assert_eq!(pids, [1, 2, 3]);
    }

    #[test]
    fn what_is_behind_the_bound_of_a_line_is_no_line_of_its_own() {
        let entry = serde_json::to_string(&AuditEntry::new("2026".into(), AuditEvent::End)).unwrap();
        let text = format!("{}{entry}\n{entry}\n", " ".repeat(MAX_LINE_BYTES as usize));
        let mut entries = Vec::new();
        assert_eq!(
            read_lines(text.as_bytes(), |entry| entries.push(entry)).unwrap(),
            1
        );
        assert_eq!(entries.len(), 1);
    }
}
