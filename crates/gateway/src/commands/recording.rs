//! Writes the start of processes to the audit. A process that another site has started receives nothing
//! before that is done.

use crate::audit::{PATIENCE, Word};
use crate::base::Bundle;
use crate::commands::starter::{GRACE, Start, Starter, Waiting, Whose};
use crate::commands::{CommandContext, Commands};
use crate::driver::Driver;
use crate::membership::consent::Refusal;
use crate::membership::jobs::Job;
use crate::sys::timers::CommandsDeadline;
use causeway_control::audit::{AuditEntry, AuditEvent};
use nix::unistd::Pid;
use std::io::{Error, ErrorKind};
use std::time::Instant;

/// A process whose start is being written to the audit. It is killed when this value is dropped.
pub(super) struct Unrecorded {
    starter: Starter,
    waiting: Waiting,
    until: Instant,
}

impl Unrecorded {
    pub(super) fn starter(&self) -> &Starter {
        &self.starter
    }

    /// Names the job and the site that it is for.
    pub(super) fn whose(&self) -> Whose<'_> {
        self.starter.whose()
    }
}

impl Commands {
    /// Takes charge of a process for a job of this site.
    pub(super) fn take_own(&mut self, context: &mut CommandContext<'_>, start: &Start, process: Pid) {
        let job = context.membership.jobs().get(&start.token);
        let (starter, entry) = begin(context.driver, start, process, job);
        note(context.driver, entry);
        self.starters.push(starter);
        self.are_starters_noted = false;
    }

    /// Writes down the start of a process for another site, before the process receives anything.
    pub(super) fn record(&mut self, context: &mut CommandContext<'_>, start: Start, process: Pid) {
        let job = context.membership.jobs().get(&start.token);
        let (starter, entry) = begin(context.driver, &start, process, job);
        match context.driver.audit.write(entry) {
            Ok(number) => {
                let unrecorded = Unrecorded {
                    starter,
                    waiting: start.waiting,
                    until: Instant::now() + PATIENCE,
                };
                self.unrecorded.insert(number, unrecorded);
                self.are_starters_noted = false;
                context.set_deadline(PATIENCE, CommandsDeadline::Records);
            }
            Err(error) => {
                // The process ends with its starter.
                drop(starter);
                self.fail(context, start.waiting, error);
            }
        }
    }

    /// Lines were written, or were not.
    pub(in crate::commands) fn on_words(&mut self, context: &mut CommandContext<'_>) {
        for word in context.driver.audit.words() {
            self.on_word(context, word);
        }
    }

    fn on_word(&mut self, context: &mut CommandContext<'_>, Word { number, written }: Word) {
        let Some(unrecorded) = self.unrecorded.remove(&number) else {
            if let Err(error) = written {
                let driver = &mut *context.driver;
                driver.log.refuse("audit", &driver.config.site, error);
            }
            return;
        };
        match written {
            Ok(()) => {
                self.starters.push(unrecorded.starter);
                self.finish_start(context, unrecorded.waiting, Ok(()));
                // The process may have ended meanwhile; when the kernel reported that, nobody was in charge
                // of it yet.
                self.look_after_starters(context.driver);
            }
            Err(error) => {
                drop(unrecorded.starter);
                self.fail(context, unrecorded.waiting, error);
            }
        }
    }

    /// Ends processes whose start was not written down in time.
    pub(in crate::commands) fn on_records_deadline(&mut self, context: &mut CommandContext<'_>) {
        let now = Instant::now();
        let late = self
            .unrecorded
            .iter()
            .filter(|(_, unrecorded)| unrecorded.until <= now);
        for number in late.map(|(number, _)| *number).collect::<Vec<_>>() {
            let written = Err(Error::new(
                ErrorKind::TimedOut,
                format!("not written within {PATIENCE:?}: the disk with the audit stands still"),
            ));
            self.on_word(context, Word { number, written });
        }
    }

    /// Waits until starts are written down; false if that takes too long.
    pub(super) fn await_records(&mut self, context: &mut CommandContext<'_>, until: Instant) -> bool {
        while !self.unrecorded.is_empty() {
            match context.driver.audit.await_word(until) {
                Some(word) => self.on_word(context, word),
                None => return false,
            }
        }
        true
    }

    fn fail(&mut self, context: &mut CommandContext<'_>, waiting: Waiting, error: Error) {
        let driver = &mut *context.driver;
        driver.log.refuse("audit", &driver.config.site, &error);
        self.finish_start(context, waiting, Err(error));
    }
}

/// Makes the starter of a process that runs, and its line for the audit.
fn begin(driver: &mut Driver, start: &Start, process: Pid, job: Option<&Job>) -> (Starter, AuditEntry) {
    // The process's job may have ended meanwhile.
    let doomed = job.is_none().then(|| Instant::now() + GRACE);
    let starter = Starter::new(process, start, doomed);
    if job.is_none() {
        driver.set_deadline(GRACE, CommandsDeadline::Starters);
    }
    let mut entry = starter.entry(&driver.audit, AuditEvent::Start);
    if let Some(job) = job {
        entry.user.clone_from(&job.user);
        entry.name.clone_from(&job.name);
    }
    (starter, entry)
}

/// Whether the start of one more process can be written down, as far as is known.
pub(super) fn can_record(driver: &Driver) -> Result<(), Refusal> {
    let checked = driver.audit.check();
    checked.map_err(|error| ("audit", format!("its start cannot be written down: {error}")))
}

/// Writes a line that nobody waits for.
pub(super) fn note(driver: &mut Driver, entry: AuditEntry) {
    if let Err(error) = driver.audit.write(entry) {
        driver.log.refuse("audit", &driver.config.site, error);
    }
}
