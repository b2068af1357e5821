//! Looks after processes that run: those of this worker, and those of earlier workers and programs.

use crate::base::Bundle;
use crate::commands::recording::note;
use crate::commands::starter::{GRACE, KeptStarter, Starter};
use crate::commands::{CommandContext, Commands};
use crate::driver::Driver;
use crate::sys::timers::CommandsDeadline;
use causeway_broker::clock::Clock;
use causeway_control::audit::AuditEvent;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use std::time::Instant;

impl Commands {
    /// Takes over the processes that a predecessor had started.
    pub(in crate::commands) fn inherit_starters(
        &mut self,
        context: &mut CommandContext<'_>,
        kept: Vec<KeptStarter>,
    ) {
        let now = Instant::now();
        for kept in kept {
            if let Some(left) = kept.doomed {
                context.set_deadline(left, CommandsDeadline::Starters);
            }
            self.starters.push(Starter::inherit(kept, now));
        }
        self.are_starters_noted = false;
        self.look_after_starters(context.driver);
    }

    /// Looks after a process that the previous worker had started: it has lost its streams, and will end.
    pub(crate) fn follow(&mut self, context: &mut CommandContext<'_>, mut kept: Vec<KeptStarter>) {
        kept.iter_mut().for_each(|starter| starter.doomed = Some(GRACE));
        self.inherit_starters(context, kept);
    }

    /// Collects starters that have ended, and kills those that should have ended.
    pub(in crate::commands) fn look_after_starters(&mut self, driver: &mut Driver) {
        let now = Instant::now();
        self.starters.retain_mut(|starter| {
            // This comes first, because the number of an orphan that has ended may be another process's by
            // now.
            let Some(outcome) = starter.poll_end(|process| driver.end_of_orphan(process)) else {
                if starter.doomed.is_some_and(|doom| doom <= now) {
                    let _ = kill(starter.process, Signal::SIGKILL);
                }
                return true;
            };
            self.are_starters_noted = false;
            let mut entry = starter.entry(&driver.audit, AuditEvent::End);
            entry.seconds = Some(Clock::system().now().saturating_sub(starter.since));
            entry.outcome = outcome;
            note(driver, entry);
            // The process was collected: its number may be another process's by now.
            starter.process = Pid::from_raw(0);
            false
        });
        if let Some(link) = &mut driver.link {
            let known = &self.starters;
            link.orphans
                .keep_only(|process| known.iter().any(|starter| starter.process == process));
        }
        self.collect_helpers(driver);
    }
}
