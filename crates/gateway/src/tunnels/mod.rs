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
mod leaving;
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
    lanes: Table<LaneKey, Lane>,
    pairs: Table<PairKey, Pair>,
    /// The pair with each site that has a tunnel.
    by_site: HashMap<String, PairKey>,
    /// Known peers. Append-only: a PeerIndex is a position here.
    peers: List<PeerIndex, Peer>,
    handshakes: Slab<Handshake>,
    /// The strangers among `handshakes`.
    strangers: Admission<IpAddr, usize>,
    /// Pairs that may have something to send.
    dirty: Vec<PairKey>,
    /// Lanes whose input was left for a later turn.
    unread: Vec<LaneKey>,
    /// Pairs whose tunnels have events that were left for a later turn.
    eventful: Vec<PairKey>,
    /// Lanes may be steered; see `pacing::remembered_rate`.
    steers: bool,
    /// Encrypts lanes; None where all are in the clear.
    tls: Option<tls::Context>,
    /// The UDP socket of lanes over QUIC; None where there are none.
    quic: Option<Quic>,
    /// Checks peers' certificates; None where lanes show none.
    trust: Option<Trust>,
    /// Reports what happened, for owners below.
    events: VecDeque<TunnelsEvent>,
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
