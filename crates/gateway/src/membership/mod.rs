//! Who takes part: the sites of the grid, what the broker says of them, and the jobs that run.

use broker_session::BrokerSession;
use causeway_control::SiteInfo;
use directory::Directory;
use event::MembershipEvent;
use jobs::Jobs;
use std::collections::{HashMap, VecDeque};

pub(crate) mod addresses;
pub(crate) mod broker_session;
pub(crate) mod claims;
pub(crate) mod consent;
pub(crate) mod directory;
pub(crate) mod event;
pub(crate) mod jobs;
pub(crate) mod members;
pub(crate) mod pair_token;
mod participants;
mod places;
pub(crate) mod register;

/// Sites and jobs, as far as this gateway knows.
pub(crate) struct Membership {
    directory: Directory,
    jobs: Jobs,
    /// Where this gateway is a member of a grid with a broker.
    session: Option<BrokerSession>,
    /// What sites said of themselves that the broker has not recorded, by site, with the part that it has
    /// not.
    unrecorded: HashMap<String, (SiteInfo, String)>,
    /// Reports what happened, for owners below.
    events: VecDeque<MembershipEvent>,
}

impl Membership {
    /// Knows the own site and no job. With a session where this gateway is a member of a grid with a broker.
    pub(crate) fn new(directory: Directory, session: Option<BrokerSession>) -> Membership {
        Membership {
            directory,
            jobs: Jobs::default(),
            session,
            unrecorded: HashMap::new(),
            events: VecDeque::new(),
        }
    }

    /// The sites of the grid.
    pub(crate) fn directory(&self) -> &Directory {
        &self.directory
    }

    pub(crate) fn directory_mut(&mut self) -> &mut Directory {
        &mut self.directory
    }

    pub(crate) fn jobs(&self) -> &Jobs {
        &self.jobs
    }

    pub(crate) fn jobs_mut(&mut self) -> &mut Jobs {
        &mut self.jobs
    }

    pub(crate) fn session(&self) -> Option<&BrokerSession> {
        self.session.as_ref()
    }

    /// The part of what a site said of itself that the broker has not recorded.
    pub(crate) fn unrecorded(&self, site: &str) -> Option<&str> {
        self.unrecorded.get(site).map(|(_, what)| what.as_str())
    }

    /// What has happened that concerns others, in its order.
    pub(crate) fn poll_event(&mut self) -> Option<MembershipEvent> {
        self.events.pop_front()
    }

    /// What sites said of themselves that the broker has not recorded: part of a hand-over.
    pub(crate) fn keep_unrecorded(&self) -> Vec<SiteInfo> {
        let said = self.unrecorded.values().map(|(info, _)| info);
        said.cloned().collect()
    }

    /// Goes on with the jobs of a predecessor, and with what was not recorded.
    pub(crate) fn inherit(&mut self, jobs: Jobs, unrecorded: Vec<SiteInfo>) {
        self.jobs = jobs;
        for info in unrecorded {
            // It is judged again with the next that the broker tells of its site.
            let waits = (info.clone(), "itself".to_owned());
            self.unrecorded.insert(info.name, waits);
        }
    }
}
