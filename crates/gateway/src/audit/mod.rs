//! Records what other sites did at this one, and what they were refused: see `causeway_control::audit`.
//!
//! The loop opens no file: a thread does (`writer`), and reports the outcome of each line. The start of a
//! process for another site waits for that; nothing else does. Starts are few; refusals may have a limited
//! number of lines a minute and a day, in a file of their own.

use crate::log::Allowance;
use causeway_control::audit::{AuditEntry, AuditEvent, shown};
use mio::{Interest, Registry, Token};
use std::collections::HashMap;
use std::io::{self, Error, ErrorKind};
use std::path::Path;
use std::time::{Duration, Instant};
use writer::{Kind, MANY_WAITING, Writer};

mod file;
mod writer;

pub(crate) use writer::Word;

/// Most origins of refusals, each a site and a kind, whose lines are counted separately: more than refuse
/// anything in any grid.
const MAX_ORIGINS: usize = 4096;

/// Most lines a day for all refusals of one site together: a tenth of what is kept.
const LINES_A_DAY: u32 = 5000;
const DAY: Duration = Duration::from_secs(24 * 3600);

/// A line that takes longer than this is assumed not to be written.
pub(crate) const PATIENCE: Duration = Duration::from_secs(5);

pub(crate) struct Audit {
    writer: Writer,
    grid: String,
    allowances: HashMap<(String, &'static str), Allowance>,
    days: HashMap<String, Day>,
    next: u64,
    /// Since when lines have waited for their outcome, by number.
    waiting: HashMap<u64, Instant>,
    /// Why the last line was not written.
    trouble: Option<String>,
}

/// How many of a day's lines a site has used.
struct Day {
    since: Instant,
    lines: u32,
    untold: u32,
}

impl Audit {
    /// Starts the thread that writes. Call this after the gateway has taken its signals.
    ///
    /// # Errors
    /// Errors of starting the thread.
    pub(crate) fn begin(file: &Path) -> io::Result<Audit> {
        Ok(Audit {
            writer: Writer::begin(file)?,
            grid: String::new(),
            allowances: HashMap::new(),
            days: HashMap::new(),
            next: 0,
            waiting: HashMap::new(),
            trouble: None,
        })
    }

    /// Makes the outcomes reach the loop under this token.
    ///
    /// # Errors
    /// Errors of registering.
    pub(crate) fn register(&mut self, registry: &Registry, token: Token) -> io::Result<()> {
        registry.register(self.writer.bell(), token, Interest::READABLE)
    }

    /// Sets the grid that lines name from now on.
    pub(crate) fn name_grid(&mut self, grid: &str) {
        grid.clone_into(&mut self.grid);
    }

    /// An entry with the present time.
    pub(crate) fn entry(&self, event: AuditEvent) -> AuditEntry {
        let clock = causeway_broker::clock::Clock::system();
        AuditEntry {
            grid: self.grid.clone(),
            ..AuditEntry::new(causeway_broker::clock::timestamp(clock.now()), event)
        }
    }

    /// Queues a line, and returns its number: its outcome comes later.
    ///
    /// # Errors
    /// Too many lines wait.
    pub(crate) fn write(&mut self, entry: AuditEntry) -> io::Result<u64> {
        let kind = match entry.event {
            AuditEvent::Refused => Kind::Refusal,
            AuditEvent::Connect => Kind::Connection,
            _ => Kind::Start,
        };
        if kind != Kind::Start && self.waiting.len() >= MANY_WAITING {
            let why = format!("{MANY_WAITING} lines wait for the disk already");
            return Err(Error::new(ErrorKind::WouldBlock, why));
        }
        let mut line = serde_json::to_vec(&with_plain_texts(entry))?;
        line.push(b'\n');
        self.next += 1;
        self.writer.write(self.next, kind, line)?;
        self.waiting.insert(self.next, Instant::now());
        Ok(self.next)
    }

    /// Checks that lines are being written at present, as far as is known.
    ///
    /// # Errors
    /// The last line was not written, or one has been waiting for longer than [`PATIENCE`].
    pub(crate) fn check(&self) -> io::Result<()> {
        if let Some(trouble) = &self.trouble {
            return Err(Error::other(trouble.clone()));
        }
        let mut waiting = self.waiting.values();
        match waiting.any(|since| since.elapsed() >= PATIENCE) {
            true => Err(Error::new(
                ErrorKind::TimedOut,
                "the disk with the audit stands still",
            )),
            false => Ok(()),
        }
    }

    /// The outcomes of lines since the last call.
    pub(crate) fn words(&mut self) -> Vec<Word> {
        let words = self.writer.words();
        words.iter().for_each(|word| self.hear(word));
        words
    }

    /// The next outcome, if it arrives by `until`.
    pub(crate) fn await_word(&mut self, until: Instant) -> Option<Word> {
        let word = self.writer.await_word(until)?;
        self.hear(&word);
        Some(word)
    }

    /// Waits until every line is written, or for a limited time if that fails; returns how many are not
    /// written.
    pub(crate) fn flush(&mut self) -> usize {
        let until = Instant::now() + Duration::from_secs(1);
        while !self.waiting.is_empty() && self.await_word(until).is_some() {}
        self.waiting.len()
    }

    fn hear(&mut self, word: &Word) {
        self.waiting.remove(&word.number);
        self.trouble = word.written.as_ref().err().map(ToString::to_string);
    }

    /// Queues a refusal, unless its site has used up its lines of this kind for this minute, or all its lines
    /// for this day. Refusals left out are counted.
    ///
    /// # Errors
    /// Those of [`Audit::write`].
    pub(crate) fn refuse(
        &mut self,
        now: Instant,
        kind: &'static str,
        mut entry: AuditEntry,
    ) -> io::Result<()> {
        let origin = (entry.site.clone(), kind);
        if self.allowances.len() >= MAX_ORIGINS && !self.allowances.contains_key(&origin) {
            return Ok(());
        }
        let allowance = self.allowances.entry(origin).or_default();
        let Some(untold) = allowance.take(now) else {
            return Ok(());
        };
        let day = self.days.entry(entry.site.clone());
        let day = day.or_insert(Day {
            since: now,
            lines: 0,
            untold: 0,
        });
        if now.saturating_duration_since(day.since) >= DAY {
            (day.since, day.lines) = (now, 0);
        }
        day.untold = day.untold.saturating_add(untold);
        if day.lines == LINES_A_DAY {
            day.untold = day.untold.saturating_add(1);
            return Ok(());
        }
        day.lines += 1;
        kind.clone_into(&mut entry.kind);
        entry.untold = std::mem::take(&mut day.untold);
        self.write(entry).map(drop)
    }
}

/// Makes texts that others chose fit for a terminal.
fn with_plain_texts(mut entry: AuditEntry) -> AuditEntry {
    for text in [
        &mut entry.site,
        &mut entry.user,
        &mut entry.name,
        &mut entry.node,
        &mut entry.command,
        &mut entry.why,
    ] {
        *text = shown(text);
    }
    entry
}

#[cfg(test)]
mod tests {
    use super::*;
    use causeway_control::audit::{self, refusals};
    use std::path::PathBuf;

    fn read(file: &Path) -> Vec<AuditEntry> {
        let mut entries = Vec::new();
        assert_eq!(audit::read(file, |entry| entries.push(entry)).unwrap(), 0);
        entries
    }

    fn begin(dir: &tempfile::TempDir) -> (Audit, PathBuf) {
        let file = dir.path().join("audit.jsonl");
        (Audit::begin(&file).unwrap(), file)
    }

    fn refusal(audit: &Audit, site: &str) -> AuditEntry {
        AuditEntry {
            site: site.to_owned(),
            ..audit.entry(AuditEvent::Refused)
        }
    }

    /// Writes a refusal, and takes the outcomes, so that there is room for the next.
    fn refuse(audit: &mut Audit, site: &str, at: Instant) {
        let entry = refusal(audit, site);
        audit.refuse(at, "connect", entry).unwrap();
        audit.words();
    }

    #[test]
    fn refusals_of_a_site_have_some_lines_a_minute_and_then_their_number() {
        let dir = tempfile::tempdir().unwrap();
        let (mut audit, file) = begin(&dir);
        let began = Instant::now();
        (0..1000).for_each(|_| refuse(&mut audit, "nancy", began));
        refuse(&mut audit, "lyon", began);
        refuse(&mut audit, "nancy", began + Duration::from_secs(60));
        audit.flush();
        let entries = read(&refusals(&file));
        let lines = entries.iter().filter(|entry| entry.site == "nancy").count();
        assert!(lines < 100, "{lines}");
        let untold = entries.last().unwrap().untold as usize;
        assert_eq!(untold + lines - 1, 1000);
        assert!(entries.iter().any(|entry| entry.site == "lyon"));
        assert!(!file.exists(), "what others did has a file of its own");
    }

    #[test]
    fn a_member_that_is_refused_all_day_takes_neither_the_place_of_deeds_nor_that_of_others() {
        let dir = tempfile::tempdir().unwrap();
        let (mut audit, file) = begin(&dir);
        let began = Instant::now();
        let start = audit.entry(AuditEvent::Start);
        audit.write(start).unwrap();
        let minutes = 24 * 60;
        for minute in 0..minutes {
            let at = began + Duration::from_secs(60 * minute);
            for _ in 0..30 {
                let mut entry = refusal(&audit, "nancy");
                (entry.name, entry.why) = ("n".repeat(14_000), "w".repeat(14_000));
                audit.refuse(at, "connect", entry).unwrap();
            }
            audit.flush();
        }
        refuse(&mut audit, "lyon", began);
        refuse(&mut audit, "nancy", began + DAY + Duration::from_secs(60));
        audit.flush();
        assert_eq!(read(&file).len(), 1);
        let entries = read(&refusals(&file));
        assert_eq!(entries.len(), LINES_A_DAY as usize + 2);
        let told: u64 = entries.iter().map(|entry| u64::from(entry.untold)).sum();
        assert_eq!(told + u64::from(LINES_A_DAY) + 2, 30 * minutes + 2);
        let bytes = std::fs::metadata(refusals(&file)).unwrap().len();
        assert!(bytes < causeway_control::audit::MAX_FILE_BYTES, "{bytes}");
    }

    #[test]
    fn a_disk_that_stands_still_is_known_and_takes_a_bounded_number_of_lines() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("audit.jsonl");
        // Whoever opens a pipe for writing waits until somebody reads it.
        nix::unistd::mkfifo(&file, nix::sys::stat::Mode::from_bits_truncate(0o600)).unwrap();
        let mut audit = Audit::begin(&file).unwrap();
        let mut taken = 0;
        while audit.write(audit.entry(AuditEvent::End)).is_ok() {
            taken += 1;
            assert!(taken < 10_000);
        }
        assert!(audit.words().is_empty());
        audit.check().unwrap();
        let mut waiting = audit.waiting.values_mut();
        *waiting.next().unwrap() -= PATIENCE;
        let said = audit.check().unwrap_err().to_string();
        assert!(said.contains("stands still"), "{said}");
    }

    #[test]
    fn what_cannot_be_written_is_told_and_what_can_be_again_is_no_trouble_any_more() {
        let dir = tempfile::tempdir().unwrap();
        let (mut audit, file) = begin(&dir);
        std::fs::create_dir(&file).unwrap();
        let number = audit.write(audit.entry(AuditEvent::Start)).unwrap();
        let soon = || Instant::now() + Duration::from_secs(20);
        let word = audit.await_word(soon()).unwrap();
        assert!(word.number == number && word.written.is_err() && audit.check().is_err());
        std::fs::remove_dir(&file).unwrap();
        audit.write(audit.entry(AuditEvent::Start)).unwrap();
        assert!(audit.await_word(soon()).unwrap().written.is_ok() && audit.check().is_ok());
    }
}
