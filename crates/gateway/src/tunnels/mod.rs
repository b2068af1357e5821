//! Tunnels to other sites: pairs, their lanes, what brings lanes up and keeps them supplied.

use crate::keys::{LaneKey, List, PairKey, PeerIndex, Table};
use causeway_admission::Admission;
use causeway_broker::tls::Trust;
use event::TunnelsEvent;
use handshake::Handshake;
use lane::Lane;
use pair::Pair;
use peer::Peer;
use quic::Quic;
use slab::Slab;
use std::collections::{HashMap, VecDeque};
use std::net::IpAddr;

pub mod capacity;
pub(crate) mod carrier;
pub(crate) mod dial;
pub(crate) mod dial_rate;
pub(crate) mod event;
pub(crate) mod handshake;
mod handshakes;
pub(crate) mod lane;
pub(crate) mod links;
pub(crate) mod message;
pub(crate) mod pacing;
pub(crate) mod pair;
pub(crate) mod peer;
mod probing;
pub(crate) mod pump;
pub mod quic;
mod quic_lanes;
mod steering;
pub(crate) mod tls;
pub(crate) mod totals;
mod training;

/// The tunnels of this gateway, and the connections under them.
pub(crate) struct Tunnels {
    pub(crate) lanes: Table<LaneKey, Lane>,
    pub(crate) pairs: Table<PairKey, Pair>,
    /// Key of the pair with each site that has a tunnel.
    pub(crate) by_site: HashMap<String, PairKey>,
    /// Of every other site that is known: only ever added to, since others know them by their places.
    pub(crate) peers: List<PeerIndex, Peer>,
    pub(crate) handshakes: Slab<Handshake>,
    /// The strangers among `handshakes`.
    pub(crate) strangers: Admission<IpAddr, usize>,
    /// Pairs that may have something to send.
    pub(crate) dirty: Vec<PairKey>,
    /// Lanes whose input was left for a later turn.
    pub(crate) unread: Vec<LaneKey>,
    /// Pairs whose tunnels have something to tell that was left for a later turn.
    pub(crate) eventful: Vec<PairKey>,
    /// Lanes may be steered; see `pacing::remembered_rate`.
    pub(crate) steers: bool,
    /// Where lanes may be encrypted.
    pub(crate) tls: Option<tls::Context>,
    /// Where lanes may go over QUIC.
    pub(crate) quic: Option<Quic>,
    /// Whom certificates are to be of, where lanes show them.
    pub(crate) trust: Option<Trust>,
    /// What others have yet to act on.
    pub(crate) events: VecDeque<TunnelsEvent>,
}

impl Tunnels {
    pub(crate) fn new(
        peers: Vec<Peer>,
        tls: Option<tls::Context>,
        trust: Option<Trust>,
        steers: bool,
    ) -> Tunnels {
        Tunnels {
            lanes: Table::new(),
            pairs: Table::new(),
            by_site: HashMap::new(),
            peers: peers.into(),
            handshakes: Slab::new(),
            strangers: handshake::admission(),
            dirty: Vec::new(),
            unread: Vec::new(),
            eventful: Vec::new(),
            steers,
            tls,
            quic: None,
            trust,
            events: VecDeque::new(),
        }
    }
}
pub(crate) mod known;
pub(crate) mod lane_count;
pub(crate) mod lane_status;
pub(crate) mod origin;
pub(crate) mod pairs;
pub(crate) mod reach;
pub(crate) mod receive;
