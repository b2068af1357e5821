//! A gateway's state on its way to the next worker: put together by `takeup`, acted on by `follow`.
//!
//! Lanes are not in it, because the tunnels get new ones. Neither is what its owner tries again by itself:
//! handshakes, scrapes.

use crate::commands::command::KeptCommand;
use crate::commands::starter::KeptStarter;
use crate::inherited::StateError;
use crate::membership::jobs::{KeptJob, KeptOrigin};
use crate::site::intake::KeptIntake;
use crate::site::leg::KeptLeg;
use crate::traversal::relay::server::KeptSplice;
use crate::tunnels::pair::KeptPair;
use crate::tunnels::peers::peer::KeptPeer;
use causeway_control::SiteInfo;
use causeway_tunnel::tunnel::MAX_LANES;
use std::collections::BTreeMap;

/// Largest key of a gateway: no process may have that many files.
const MAX_KEYS: usize = 1 << 24;

/// A gateway's state, as the previous worker left it.
pub(crate) struct State {
    /// How many programs had this gateway before this one.
    pub(crate) handed_over: u64,
    pub(crate) generations: u64,
    pub(crate) streams_opened: u64,
    pub(crate) streams_peak: usize,
    pub(crate) next_delivery_port: u16,
    pub(crate) refused: BTreeMap<String, u64>,
    /// Bytes carried for other sites.
    pub(crate) carried_bytes: u64,
    /// Ranges by which the grid knows this site, if these are not its real ones.
    pub(crate) virtual_subnets: Vec<String>,
    /// What the other sites said about themselves.
    pub(crate) others: Vec<SiteInfo>,
    /// What sites said about themselves that the broker has not recorded yet.
    pub(crate) unrecorded: Vec<SiteInfo>,
    pub(crate) peers: Vec<KeptPeer>,
    pub(crate) jobs: Vec<KeptJob>,
    pub(crate) starters: Vec<KeptStarter>,
    // The following have the keys by which others know them.
    pub(crate) pairs: Vec<(usize, KeptPair)>,
    pub(crate) legs: Vec<(usize, KeptLeg)>,
    pub(crate) intakes: Vec<KeptIntake>,
    pub(crate) commands: Vec<(usize, KeptCommand)>,
    pub(crate) splices: Vec<(usize, KeptSplice)>,
}

impl State {
    /// Whether every key refers to something, and nothing that will be acted on does harm.
    pub(crate) fn check(&self) -> Result<(), StateError> {
        if self.peers.iter().any(|peer| peer.lanes > MAX_LANES) {
            return Err(StateError::Contradiction("a peer has too many lanes"));
        }
        let keys = self.pairs.iter().map(|(key, _)| key);
        let keys = keys.chain(self.legs.iter().map(|(key, _)| key));
        let keys = keys.chain(self.commands.iter().map(|(key, _)| key));
        let mut keys = keys.chain(self.splices.iter().map(|(key, _)| key));
        if keys.any(|key| *key > MAX_KEYS) {
            return Err(StateError::Contradiction("a key is too large"));
        }
        // kill(2) takes 0 and negative numbers for many processes at once, and 1 is nobody's child.
        if self.starters.iter().any(|starter| starter.process <= 1) {
            return Err(StateError::Contradiction("a starter is no child"));
        }
        let has_pair = |leg: &KeptLeg| self.pairs.iter().any(|(key, _)| *key == leg.pair);
        if !self.legs.iter().all(|(_, leg)| has_pair(leg)) {
            return Err(StateError::Contradiction("a stream has no tunnel"));
        }
        let has_command = |job: &KeptJob| match job.origin {
            KeptOrigin::Here(command) => self.commands.iter().any(|(key, _)| *key == command),
            KeptOrigin::Site(_) => true,
        };
        if !self.jobs.iter().all(has_command) {
            return Err(StateError::Contradiction("nobody holds a job"));
        }
        Ok(())
    }
}
