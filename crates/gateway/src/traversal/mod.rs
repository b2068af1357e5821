//! Paths between gateways of which neither can dial the other: punched holes, and relays.

use crate::base::Base;
use crate::keys::PeerIndex;
use crate::sys::source::TraversalSource;
use crate::sys::timers::TraversalDeadline;
use punch::Meetings;
use relay::client::Search;
use relay::server::{KeptSplice, RelayServer};
use std::os::fd::BorrowedFd;
use std::time::{Duration, Instant};

mod alive;
mod events;
pub(crate) mod punch;
pub(crate) mod relay;
pub(crate) mod written;

/// Carries what this gateway has as a relay through a hand-over.
pub(crate) struct KeptTraversal {
    pub(crate) carried_bytes: u64,
    pub(crate) splices: Vec<(usize, KeptSplice)>,
}

/// What brings lanes up where dialling does not.
#[derive(Default)]
pub(crate) struct Traversal {
    /// Carries connections for other sites.
    relay: RelayServer,
    /// The progress of looking for a relay to each peer.
    searches: Vec<Search>,
    /// The gateways with which a hole is punched; a broker tells each about the other.
    meetings: Meetings,
}

impl Traversal {
    /// Acts on what the kernel reports of a connection.
    pub(crate) fn on_ready(&mut self, base: &mut Base<'_>, source: TraversalSource) {
        match source {
            TraversalSource::Splice(key) => self.on_splice(base, key),
            TraversalSource::Opening(key) => self.on_opening(base, key),
        }
    }

    /// Acts on a deadline that has passed.
    pub(crate) fn on_deadline(&mut self, base: &mut Base<'_>, deadline: TraversalDeadline) {
        match deadline {
            TraversalDeadline::Seek(index, lane) => self.seek(base, index, lane),
            TraversalDeadline::Ask(index, lane, id) => self.on_ask_deadline(base, index, lane, id),
            TraversalDeadline::Splice(key, generation) => self.on_splice_deadline(base, key, generation),
            TraversalDeadline::Offer => self.tell_offer(base),
        }
    }

    /// The progress of looking for a relay to a peer. Peers are only ever added.
    pub(in crate::traversal) fn search_mut(&mut self, peer: PeerIndex) -> &mut Search {
        while self.searches.len() <= peer.0 {
            self.searches.push(Search::new());
        }
        &mut self.searches[peer.0]
    }

    pub(in crate::traversal) fn search(&self, peer: PeerIndex) -> Option<&Search> {
        self.searches.get(peer.0)
    }

    /// A peer has said who it is; `has_lane` says whether a lane of the two gateways' own reaches it.
    pub(in crate::traversal) fn on_introduced(&mut self, peer: PeerIndex, has_lane: bool) {
        self.search_mut(peer).why_no_relay.clear();
        if has_lane {
            self.on_met_well(peer);
        }
    }

    /// Why no relay could be used; empty if none was looked for.
    pub(crate) fn why_no_relay(&self, peer: PeerIndex) -> &str {
        self.search(peer).map_or("", |search| &search.why_no_relay)
    }

    /// Counts the connections carried for other sites, and their bytes so far.
    pub(crate) fn relayed(&self) -> (usize, u64) {
        (self.relay.carrying(), self.relay.carried_bytes)
    }

    /// Returns how long the loop may sleep.
    pub(crate) fn wait(&self) -> Option<Duration> {
        if !self.relay.unread.is_empty() {
            return Some(Duration::ZERO);
        }
        let at = self.meetings_deadline()?;
        Some(at.saturating_duration_since(Instant::now()))
    }

    /// Goes on with what an earlier turn left, and with the meetings that are due.
    pub(crate) fn look_after(&mut self, base: &mut Base<'_>) {
        for splice in std::mem::take(&mut self.relay.unread) {
            self.on_splice(base, splice);
        }
        self.look_after_meetings(base);
    }

    /// Lists the descriptors that the state names by number.
    pub(crate) fn descriptors(&self) -> impl Iterator<Item = BorrowedFd<'_>> {
        self.relay.descriptors()
    }
}
