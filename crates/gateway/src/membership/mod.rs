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
    pub(crate) directory: Directory,
    pub(crate) jobs: Jobs,
    /// Where this gateway is a member of a grid with a broker.
    pub(crate) session: Option<BrokerSession>,
    /// What sites said of themselves that the broker has not recorded, by site, with the part that it has not.
    pub(crate) unrecorded: HashMap<String, (SiteInfo, String)>,
    /// What others have yet to act on.
    pub(crate) events: VecDeque<MembershipEvent>,
}
