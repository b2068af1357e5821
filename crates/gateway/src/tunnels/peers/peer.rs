//! Keeps what is known about the gateway of each other site.

use crate::keys::ByNumber;
use crate::log::Allowance;
use crate::tunnels::peers::paths::Paths;
use crate::tunnels::peers::rate::Rate;
use crate::tunnels::peers::totals::Totals;
use causeway_control::Link;
use serde::{Deserialize, Serialize};
use std::net::SocketAddr;
use std::time::Duration;

pub(crate) const FIRST_BACKOFF: Duration = Duration::from_millis(100);

/// The gateway of another site: where it is, by which session this gateway identifies itself to it, and the
/// progress of dialling it.
pub(crate) struct Peer {
    pub(in crate::tunnels) site: String,
    /// The address at which it is dialled now, if it is dialled at all.
    pub(in crate::tunnels) address: Option<SocketAddr>,
    /// Rate that is reserved on the path to it, in bits per second.
    pub(in crate::tunnels) reserved: Option<u64>,
    /// This gateway's half of the tunnel's identity; see `causeway_tunnel::hello`.
    pub(in crate::tunnels) session: u64,
    /// Why there is no tunnel, for those that ask.
    pub(in crate::tunnels) why_not_reached: String,
    /// Lanes that its path needs; see `tunnels::capacity`.
    pub(in crate::tunnels) lanes: usize,
    /// Addresses at which it may be dialled, as the grid's broker reports them.
    pub(in crate::tunnels) addresses: Vec<SocketAddr>,
    /// How often it has made this gateway dial something.
    pub(in crate::tunnels) asked: Rate,
    /// How often it may send long messages.
    pub(in crate::tunnels) long_messages: Rate,
    /// Whether it has left the grid.
    pub(in crate::tunnels) is_gone: bool,
    /// Whether its path loses segments: then a lane over QUIC serves better, if one gets through.
    pub(in crate::tunnels) is_lossy: bool,
    /// What was found out about the paths to it.
    pub(in crate::tunnels) paths: Paths,
    /// How much may still be logged about its tunnel.
    pub(in crate::tunnels) allowance: Allowance,
    /// What it last reported about its own links.
    pub(in crate::tunnels) links: Vec<Link>,
    /// Why there is no lane over QUIC beside those over TCP.
    pub(in crate::tunnels) why_no_quic: String,
    /// Counts of its ended lanes and pairs.
    pub(in crate::tunnels) totals: Totals,
    pub(in crate::tunnels) dials: ByNumber<Dial>,
}

#[derive(Clone, Copy)]
pub(crate) struct Dial {
    pub(crate) backoff: Duration,
    /// Whether it is connecting, in a handshake, or waiting for the next attempt.
    pub(crate) under_way: bool,
}

impl Default for Dial {
    fn default() -> Dial {
        Dial::IDLE
    }
}

impl Dial {
    pub(crate) const IDLE: Dial = Dial {
        backoff: FIRST_BACKOFF,
        under_way: false,
    };

    /// Starts anew: earlier failures no longer count.
    pub(crate) fn start_anew(&mut self) {
        self.backoff = FIRST_BACKOFF;
    }

    /// Returns how long to wait now; the next time it is longer.
    pub(crate) fn back_off(&mut self, most: Duration) -> Duration {
        let pause = self.backoff;
        self.backoff = (pause * 2).min(most);
        pause
    }
}

impl Peer {
    pub(crate) fn new(site: String, address: Option<SocketAddr>, reserved: Option<u64>) -> Peer {
        let mut peer = Peer {
            why_not_reached: if address.is_some() {
                "not reached yet"
            } else {
                "its gateway has not dialled in"
            }
            .to_owned(),
            site,
            address,
            reserved,
            session: 0,
            lanes: 1,
            addresses: Vec::new(),
            asked: Rate::for_dials(),
            long_messages: Rate::for_long_messages(),
            is_gone: false,
            is_lossy: false,
            paths: Paths::default(),
            allowance: Allowance::default(),
            links: Vec::new(),
            why_no_quic: String::new(),
            totals: Totals::default(),
            dials: ByNumber::default(),
        };
        peer.new_session();
        peer
    }

    pub(crate) fn site(&self) -> &str {
        &self.site
    }

    /// Returns the address at which it is dialled now, if it is dialled at all.
    pub(crate) fn address(&self) -> Option<SocketAddr> {
        self.address
    }

    /// Whether the broker knows an address at which it can be dialled.
    pub(crate) fn is_public(&self) -> bool {
        !self.addresses.is_empty()
    }

    /// Whether it has left the grid.
    pub(crate) fn is_gone(&self) -> bool {
        self.is_gone
    }

    /// Says why there is no tunnel.
    pub(crate) fn why_not_reached(&self) -> &str {
        &self.why_not_reached
    }

    pub(crate) fn totals(&self) -> &Totals {
        &self.totals
    }

    /// Gathers what is handed over of it.
    pub(crate) fn keep(&self) -> KeptPeer {
        KeptPeer {
            site: self.site.clone(),
            session: self.session,
            why_not_reached: self.why_not_reached.clone(),
            lanes: self.lanes,
            is_lossy: self.is_lossy,
            paths: self.paths.clone(),
            totals: self.totals.clone(),
        }
    }

    /// Goes on with what a predecessor knew about it.
    pub(in crate::tunnels) fn inherit(&mut self, kept: KeptPeer) {
        self.session = kept.session;
        self.why_not_reached = kept.why_not_reached;
        self.lanes = kept.lanes;
        self.is_lossy = kept.is_lossy;
        self.paths = kept.paths;
        self.totals = kept.totals;
    }

    /// Gives up the tunnel's state: the far side recognises that by another number.
    pub(crate) fn new_session(&mut self) {
        let mut bytes = [0; 8];
        // Without random numbers every handshake fails, and reports that; until then, any different session
        // is enough.
        self.session = match getrandom::fill(&mut bytes) {
            Ok(()) => u64::from_be_bytes(bytes),
            Err(_) => self.session.wrapping_add(1),
        };
    }
}

/// Carries a peer's part of a hand-over, by its site.
#[derive(Serialize, Deserialize)]
pub(crate) struct KeptPeer {
    pub(crate) site: String,
    pub(crate) session: u64,
    pub(crate) why_not_reached: String,
    pub(crate) lanes: usize,
    pub(crate) is_lossy: bool,
    pub(crate) paths: Paths,
    pub(crate) totals: Totals,
}
