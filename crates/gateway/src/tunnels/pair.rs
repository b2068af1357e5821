//! A pair of sites: the tunnel between this one and another, the lanes that carry it, and the legs of its
//! streams.
//!
//! When a lane ends, no stream does: what it carried is sent over the others, or waits for the next one. A
//! pair ends if no lane comes back in time, if the far gateway has lost its state (another session), or if it
//! breaks the protocol.

use crate::inherited::InheritError;
use crate::keys::{ByNumber, LaneKey, LegKey, PeerIndex};
use crate::tunnels::message::Acceptance;
use causeway_memory::Arena;
use causeway_tunnel::Snapshot;
use causeway_tunnel::turns::Turns;
use causeway_tunnel::{Settings, StreamId, Tunnel};
use std::collections::HashMap;
use std::net::SocketAddr;
use std::time::{Duration, Instant};

pub(crate) struct Pair {
    /// Name of the other site, and its place among the configured peers.
    pub(in crate::tunnels) site: String,
    pub(in crate::tunnels) peer: PeerIndex,
    pub(in crate::tunnels) peer_session: u64,
    pub(in crate::tunnels) own_session: u64,
    pub(in crate::tunnels) tunnel: Tunnel,
    pub(in crate::tunnels) legs: HashMap<StreamId, LegKey>,
    /// Legs that may have bytes and credit.
    pub(in crate::tunnels) turns: Turns,
    /// Keys of the lanes that are up, by their numbers.
    pub(in crate::tunnels) lanes: ByNumber<Option<LaneKey>>,
    /// Whether the far gateway has said who it is.
    pub(in crate::tunnels) has_introduced_itself: bool,
    /// What its site accepts from this one; `None` before it has said so.
    pub(in crate::tunnels) accepts: Option<Acceptance>,
    /// The last address of the far gateway.
    pub(in crate::tunnels) address: SocketAddr,
    pub(in crate::tunnels) sent_bytes: u64,
    pub(in crate::tunnels) received_bytes: u64,
    pub(in crate::tunnels) lanes_lost: u64,
    pub(in crate::tunnels) down_since: Option<Instant>,
    /// Why the last lane ended.
    pub(in crate::tunnels) last_end: String,
    /// Since when the far gateway's host has refused every connection while no lane was up; and when the
    /// gateway was last asked by other means whether it is alive.
    pub(in crate::tunnels) refused_since: Option<Instant>,
    pub(in crate::tunnels) asked_at: Option<Instant>,
    pub(in crate::tunnels) quiet_until: Instant,
    pub(in crate::tunnels) dirty: bool,
}

impl Pair {
    pub(crate) fn is_up(&self) -> bool {
        self.down_since.is_none()
    }

    /// Its place among the peers.
    pub(crate) fn peer(&self) -> PeerIndex {
        self.peer
    }

    /// Names the other site.
    pub(crate) fn site(&self) -> &str {
        &self.site
    }

    /// Whether the far gateway has said who it is.
    pub(crate) fn has_introduced_itself(&self) -> bool {
        self.has_introduced_itself
    }

    /// Returns what the other site accepts from this one; `None` before it has said so.
    pub(crate) fn accepts(&self) -> Option<Acceptance> {
        self.accepts
    }

    /// Takes what the other site accepts; returns whether it had not said so before.
    pub(crate) fn take_acceptance(&mut self, acceptance: Acceptance) -> bool {
        self.accepts.replace(acceptance).is_none()
    }

    /// Lends the tunnel, to open and reset streams and to exchange their bytes.
    pub(crate) fn tunnel(&mut self) -> &mut Tunnel {
        &mut self.tunnel
    }

    /// Whether the far gateway may be asked for one more stream.
    pub(crate) fn may_open(&self) -> bool {
        self.tunnel.may_open()
    }

    /// Lends the order in which legs are read.
    pub(crate) fn turns(&mut self) -> &mut Turns {
        &mut self.turns
    }

    /// Counts the streams of this site's processes and starters.
    pub(crate) fn leg_count(&self) -> usize {
        self.legs.len()
    }

    pub(crate) fn leg_of(&self, id: StreamId) -> Option<LegKey> {
        self.legs.get(&id).copied()
    }

    pub(crate) fn join_leg(&mut self, id: StreamId, leg: LegKey) {
        self.legs.insert(id, leg);
    }

    pub(crate) fn part_leg(&mut self, id: StreamId) {
        self.legs.remove(&id);
    }

    /// Counts bytes that were read from a leg, which makes its turn end sooner.
    pub(crate) fn count_sent(&mut self, bytes: usize) {
        self.sent_bytes += bytes as u64;
        self.turns.spent(bytes);
    }

    pub(crate) fn count_received(&mut self, bytes: usize) {
        self.received_bytes += bytes as u64;
    }

    pub(crate) fn inherit(
        kept: KeptPair,
        peer: PeerIndex,
        (settings, now): (Settings, Instant),
        (arena, owner): (&Arena, u64),
    ) -> Result<Pair, InheritError> {
        let tunnel = kept.tunnel.into_tunnel((settings, now), (arena, owner));
        Ok(Pair {
            tunnel: tunnel.map_err(|error| InheritError::Tunnel(kept.site.clone(), error))?,
            site: kept.site,
            peer,
            peer_session: kept.peer_session,
            own_session: kept.own_session,
            legs: HashMap::new(),
            turns: Turns::default(),
            lanes: ByNumber::default(),
            has_introduced_itself: kept.has_introduced_itself,
            accepts: kept.accepts,
            address: kept.address,
            sent_bytes: kept.sent_bytes,
            received_bytes: kept.received_bytes,
            lanes_lost: kept.lanes_lost,
            down_since: Some(now.checked_sub(kept.down).unwrap_or(now)),
            last_end: kept.last_end,
            refused_since: None,
            asked_at: None,
            quiet_until: now,
            dirty: false,
        })
    }
}

/// A pair that the next worker goes on with; its legs are kept separately.
pub(crate) struct KeptPair {
    pub(crate) site: String,
    pub(crate) peer_session: u64,
    pub(crate) own_session: u64,
    pub(crate) tunnel: Snapshot,
    pub(crate) has_introduced_itself: bool,
    pub(crate) accepts: Option<Acceptance>,
    pub(crate) address: SocketAddr,
    pub(crate) sent_bytes: u64,
    pub(crate) received_bytes: u64,
    pub(crate) lanes_lost: u64,
    /// How long there has been no lane.
    pub(crate) down: Duration,
    pub(crate) last_end: String,
}
