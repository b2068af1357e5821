//! Who takes part: the sites of the grid, what the broker reports about them, and the jobs that run.

use broker_session::BrokerSession;
#[cfg(test)]
use causeway_control::SiteInfo;
use directory::Directory;
use event::MembershipEvent;
use jobs::Jobs;
use std::collections::VecDeque;

mod addresses;
mod allocated;
pub(crate) mod broker_session;
mod claims;
pub(crate) mod consent;
pub(crate) mod directory;
pub(crate) mod event;
pub(crate) mod held;
mod index;
pub(crate) mod jobs;
pub(crate) mod kept;
mod map;
mod members;
pub(crate) mod pair_token;
pub(crate) mod participants;
mod records;
mod register;
pub(crate) mod written;

/// Sites and jobs, as far as this gateway knows.
pub(crate) struct Membership {
    directory: Directory,
    jobs: Jobs,
    /// The session with the broker, if this gateway is a member of a grid with one.
    session: Option<BrokerSession>,
    /// Reports what has happened, for other owners.
    events: VecDeque<MembershipEvent>,
}

impl Membership {
    /// Knows only this site, and no job. `session` is given if this gateway is a member of a grid with a
    /// broker.
    pub(crate) fn new(directory: Directory, session: Option<BrokerSession>) -> Membership {
        Membership {
            directory,
            jobs: Jobs::default(),
            session,
            events: VecDeque::new(),
        }
    }

    /// Lends the sites of the grid.
    pub(crate) fn directory(&self) -> &Directory {
        &self.directory
    }

    /// Pretends that a site has said this about itself.
    #[cfg(test)]
    pub(crate) fn pretend(&mut self, info: SiteInfo) {
        self.directory.learn(&info.name.clone(), info).unwrap();
    }

    /// Lends the jobs that run.
    pub(crate) fn jobs(&self) -> &Jobs {
        &self.jobs
    }

    /// Lends the jobs that run, for changing them.
    pub(crate) fn jobs_mut(&mut self) -> &mut Jobs {
        &mut self.jobs
    }

    /// Lends the session with the broker, if there is one.
    pub(crate) fn session(&self) -> Option<&BrokerSession> {
        self.session.as_ref()
    }

    /// Takes the next event for other owners.
    pub(crate) fn poll_event(&mut self) -> Option<MembershipEvent> {
        self.events.pop_front()
    }
}
