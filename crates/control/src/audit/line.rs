//! One entry of the audit as a line for people. Pure.

use super::{AuditEntry, AuditEvent, MAX_TEXT};
use causeway_wire::shown::Line;
use std::fmt::Write as _;

/// Widths of the columns that all lines have, and how much of a long text is shown.
pub struct Columns {
    site: usize,
    user: usize,
    most: usize,
}

impl Columns {
    /// Makes columns that fit all of these entries; `wide` shows long texts in full.
    pub fn of(entries: &[AuditEntry], wide: bool) -> Columns {
        // A longer text, which no gateway writes, shifts only the rest of its own line.
        let widest = |of: fn(&AuditEntry) -> &str| {
            let widths = entries.iter().map(|entry| width(of(entry)));
            widths.max().unwrap_or(0).min(MAX_TEXT)
        };
        Columns {
            site: widest(|entry| &entry.site),
            user: widest(|entry| &entry.user),
            most: if wide { usize::MAX } else { MOST_SHOWN },
        }
    }
}

/// How many characters of a command are shown: with what precedes it, these fill two lines of a terminal.
const MOST_SHOWN: usize = 60;

fn width(text: &str) -> usize {
    Line(text).to_string().chars().count()
}

/// Writes an entry as one line for people.
pub fn readable(entry: &AuditEntry, columns: &Columns) -> String {
    let event = match entry.event {
        AuditEvent::Start => "start",
        AuditEvent::Command => "command",
        AuditEvent::End => "end",
        AuditEvent::Connect => "connect",
        AuditEvent::Refused => "refused",
    };
    // The file belongs to this user, but its contents came from elsewhere.
    let padded = |text: &str, wide: usize| format!("{:<wide$}", Line(text).to_string());
    let site = padded(&entry.site, columns.site);
    let mut line = format!("{}  {event:<7}  site {site}", Line(&entry.time));
    if columns.user > 0 {
        let _ = write!(line, "  user {}", padded(&entry.user, columns.user));
    }
    let number = |number: Option<u32>| number.map_or_else(String::new, |number| number.to_string());
    let seconds = entry
        .seconds
        .map_or_else(String::new, |seconds| format!("{seconds} s"));
    let untold = match entry.untold {
        0 => String::new(),
        count => format!("{count} more before"),
    };
    for (name, value) in [
        ("job", &entry.job),
        ("node", &entry.node),
        ("pid", &number(entry.pid)),
        ("pid there", &number(entry.node_pid)),
        ("after", &seconds),
        ("", &entry.outcome),
        ("runs", &entry.command),
        ("for", &entry.name),
        ("", &entry.kind),
        ("because", &entry.why),
        ("", &untold),
    ] {
        if value.is_empty() {
            continue;
        }
        let blank = if name.is_empty() { "" } else { " " };
        let shown = Line(value).to_string();
        let begin: String = shown.chars().take(columns.most).collect();
        let more = if begin.len() < shown.len() { "..." } else { "" };
        let _ = write!(line, "  {name}{blank}{begin}{more}");
    }
    line.trim_end().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_says_who_did_what_where() {
        let mut entry = AuditEntry::new("2026-11-24T23:05:01Z".into(), AuditEvent::Start);
        (entry.site, entry.user, entry.job) = ("nancy".into(), "ada".into(), "1a2b".into());
        (entry.node, entry.pid, entry.name) = ("rennes-1".into(), Some(47), "mpirun -n 4 ./app".into());
        let alone = Columns::of(std::slice::from_ref(&entry), false);
        assert_eq!(
            readable(&entry, &alone),
            "2026-11-24T23:05:01Z  start    site nancy  user ada  job 1a2b  node rennes-1  pid 47  for mpirun -n 4 ./app"
        );
        // Beside a longer name, and with a longer command.
        let columns = Columns {
            site: 8,
            user: 5,
            most: 10,
        };
        assert_eq!(
            readable(&entry, &columns),
            "2026-11-24T23:05:01Z  start    site nancy     user ada    job 1a2b  node rennes-1  pid 47  for mpirun -n ..."
        );
    }
    #[test]
    fn a_text_that_no_gateway_writes_makes_no_column_of_its_width() {
        let mut entries = ["lyon", "nancy"].map(|site| {
            let mut entry = AuditEntry::new("2026-11-24T23:05:01Z".into(), AuditEvent::Connect);
            (entry.site, entry.name) = (site.into(), "ssh".into());
            entry
        });
        // Six characters each, which is wider than a format can pad to.
        entries[1].site = "\u{7f}".repeat(12_000);
        let columns = Columns::of(&entries, false);
        assert_eq!(readable(&entries[0], &columns).len(), 45 + MAX_TEXT);
        assert!(readable(&entries[1], &columns).ends_with("\\u007f  for ssh"));
    }
}
