//! Carries jobs that were submitted to this gateway: `causeway carry --all` starts a process for each, which
//! outlives this gateway, and then ends itself.

use crate::base::Bundle;
use crate::commands::spawner::Program;
use crate::commands::starter::{Helper, Purpose, Start, Waiting};
use crate::commands::{CommandContext, Commands};
use crate::driver::Driver;
use crate::keys::CommandKey;
use crate::sys::timers::CommandsDeadline;
use causeway_control::Reply;
use causeway_wire::{TextError, Token};
use nix::unistd::Pid;
use std::ffi::OsString;
use std::io;
use std::path::Path;
use std::time::Duration;

/// How often jobs that no process carries are looked for.
const LOOKS_EVERY: Duration = Duration::from_secs(60);

/// Most directories of submitted jobs: a user has one, or one for each home directory.
const MOST_PLACES: usize = 4;

impl Commands {
    /// A command has submitted a job.
    pub(super) fn carry(&mut self, context: &mut CommandContext<'_>, key: CommandKey, jobs: &Path) {
        let reply = match self.start_carriers(context, jobs) {
            Ok(()) => {
                if self.submitted.is_empty() {
                    context.set_deadline(LOOKS_EVERY, CommandsDeadline::Submitted);
                }
                if self.submitted.len() < MOST_PLACES {
                    self.submitted.insert(jobs.to_owned());
                }
                Reply::Noted {}
            }
            Err(why) => Reply::Error(why.into()),
        };
        self.answer(context, key, reply);
    }

    /// Looks again for jobs that no process carries, because a process that carries one may have been killed.
    pub(super) fn on_submitted_deadline(&mut self, context: &mut CommandContext<'_>) {
        for jobs in self.submitted.clone() {
            if let Err(why) = self.start_carriers(context, &jobs) {
                context.say(format_args!("{why}"));
            }
        }
        context.set_deadline(LOOKS_EVERY, CommandsDeadline::Submitted);
    }

    fn start_carriers(&mut self, context: &CommandContext<'_>, jobs: &Path) -> Result<(), TextError> {
        if !jobs.is_absolute() {
            return Err(format!("{} is not an absolute path", jobs.display()).into());
        }
        let arguments = vec![
            OsString::from("carry"),
            OsString::from(format!("--all={}", context.config().site)),
            jobs.into(),
        ];
        let failed = |error: io::Error| TextError::from(format!("have the job carried: {error}"));
        // It has nothing to read, and prints nothing.
        let (_, far) = std::os::unix::net::UnixStream::pair().map_err(failed)?;
        let start = Start {
            token: Token([0; Token::BYTES]),
            site: context.config().site.clone(),
            node: String::new(),
            allocation: None,
            waiting: Waiting::Nobody(Purpose::Carry),
        };
        let program = Program {
            path: context.driver.program.clone(),
            arguments,
            socket: far.into(),
        };
        let place = self.starts.vacant_key();
        self.spawner.start(place, program).map_err(failed)?;
        self.starts.insert(start);
        Ok(())
    }

    /// A process that nobody waits for has started, or could not be.
    pub(super) fn on_helper_begun(
        &mut self,
        context: &mut CommandContext<'_>,
        purpose: &Purpose,
        started: io::Result<Pid>,
    ) {
        match (purpose, started) {
            (Purpose::Look(number), started) => self.on_look_begun(context, *number, started),
            (Purpose::Carry, Ok(process)) => self.carriers.push(Helper::of(process)),
            (Purpose::Carry, Err(error)) => context.say(format_args!(
                "have submitted jobs carried: {error}; a gateway that starts tries again"
            )),
        }
    }

    /// Collects processes that nobody waits for.
    pub(super) fn collect_helpers(&mut self, driver: &mut Driver) {
        self.carriers.retain_mut(|helper| !helper.has_ended());
        self.collect_looks(driver);
    }
}
