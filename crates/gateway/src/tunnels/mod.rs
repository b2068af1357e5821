//! Tunnels to other sites. A pair (`pair`, `pairing`) is a tunnel with its lanes (`lanes/`), which begin as
//! handshakes (`handshake/`) with peers (`peers/`) and learn how fast they may send (`pacing/`). A lane is
//! carried by TCP, TLS (`tls/`) or QUIC (`quic/`): see `carrier`.

use crate::driver::Driver;
use crate::keys::{HandshakeKey, LaneKey, PairKey, Table};
use crate::sys::source::TunnelsSource;
use crate::sys::timers::TunnelsDeadline;
use causeway_broker::tls::Trust;
use causeway_service::Admission;
use event::TunnelsEvent;
use handshake::Handshake;
use lanes::lane::Lane;
use pair::Pair;
use pairs::Pairs;
use peers::Peers;
use peers::peer::Peer;
use peers::proxied::Proxied;
use quic::Quic;
use std::collections::VecDeque;
use std::net::IpAddr;

pub mod capacity;
pub(crate) mod carrier;
mod chores;
mod connecting;
mod dead;
pub(crate) mod departure;
pub(crate) mod event;
mod handshake;
pub(crate) mod lanes;
pub(crate) mod message;
pub(crate) mod origin;
mod pacing;
pub(crate) mod pair;
mod pairing;
mod pairs;
pub(crate) mod peers;
pub mod quic;
pub(crate) mod relay_visit;
pub(crate) mod roster;
pub(crate) mod tls;
mod ways;
pub(crate) mod written;

/// The tunnels of this gateway, and the connections under them.
pub(crate) struct Tunnels {
    lanes: Table<LaneKey, Lane>,
    pairs: Pairs,
    peers: Peers,
    handshakes: Table<HandshakeKey, Handshake>,
    /// The strangers among `handshakes`.
    strangers: Admission<IpAddr, HandshakeKey>,
    /// Their share of this gateway's time.
    share: handshake::Share,
    /// Lanes whose input was left for a later turn.
    unread: Vec<LaneKey>,
    /// Pairs whose tunnels have events that were left for a later turn.
    eventful: Vec<PairKey>,
    /// Whether lanes may be steered; see `pacing::remembered_rate`.
    steers: bool,
    /// Encrypts lanes; `None` if all are in the clear.
    tls: Option<tls::Context>,
    /// The UDP socket of lanes over QUIC; `None` if there are none.
    quic: Option<Quic>,
    /// Makes connections through a proxy; `None` if there is none.
    proxied: Option<Proxied>,
    /// Checks peers' certificates; `None` if lanes show none.
    trust: Option<Trust>,
    /// Why this site was put out of the grid, if it was: then no gateway keeps a lane with it.
    put_out: Option<String>,
    /// The pairs that were last written down.
    written: Vec<PairKey>,
    /// Reports what has happened, for other owners.
    events: VecDeque<TunnelsEvent>,
}

impl Tunnels {
    /// Lends the other sites' gateways.
    pub(crate) fn peers(&self) -> &Peers {
        &self.peers
    }

    /// Lends the pairs that have a tunnel.
    pub(crate) fn pairs(&self) -> &Pairs {
        &self.pairs
    }

    /// Lends a pair to its streams.
    pub(crate) fn pair_mut(&mut self, key: PairKey) -> Option<&mut Pair> {
        self.pairs.get_mut(key)
    }

    /// Lends the pairs, for sending messages and for noting that one has something to send.
    pub(crate) fn pairs_mut(&mut self) -> &mut Pairs {
        &mut self.pairs
    }

    /// Takes the next event for other owners.
    pub(crate) fn poll_event(&mut self) -> Option<TunnelsEvent> {
        self.events.pop_front()
    }

    /// Acts on what the kernel reports of a handshake or of the UDP socket.
    pub(crate) fn on_ready(&mut self, driver: &mut Driver, source: TunnelsSource, event: &mio::event::Event) {
        match source {
            TunnelsSource::Handshake(key) => self.on_handshake(driver, key),
            TunnelsSource::Quic => self.on_quic(driver, event),
            TunnelsSource::Proxied => self.on_proxied(driver),
        }
    }

    /// Acts on a deadline that has passed.
    pub(crate) fn on_deadline(&mut self, driver: &mut Driver, deadline: TunnelsDeadline) {
        match deadline {
            TunnelsDeadline::Connect(key, generation) => self.on_connect_deadline(driver, key, generation),
            TunnelsDeadline::Handshake(key, generation) => {
                self.on_handshake_deadline(driver, key, generation)
            }
            TunnelsDeadline::Strangers => self.on_strangers_turn(driver),
            TunnelsDeadline::Dial(index, lane) => self.dial(driver, index, lane),
            TunnelsDeadline::TailProbe(lane) => self.on_tail_probe(driver, lane),
            TunnelsDeadline::TrainingTurn(lane) => self.on_training_turn(driver, lane),
        }
    }

    pub(crate) fn new(
        peers: Vec<Peer>,
        tls: Option<tls::Context>,
        trust: Option<Trust>,
        steers: bool,
    ) -> Tunnels {
        Tunnels {
            lanes: Table::new(),
            pairs: Pairs::default(),
            peers: Peers::new(peers),
            handshakes: Table::new(),
            strangers: handshake::admission(),
            share: handshake::Share::default(),
            unread: Vec::new(),
            eventful: Vec::new(),
            steers,
            tls,
            quic: None,
            proxied: None,
            trust,
            put_out: None,
            written: Vec::new(),
            events: VecDeque::new(),
        }
    }
}
