//! Keeps what is known of the gateway of each other site.

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

/// The gateway of another site: where it is, what this gateway calls itself to it, and how dialling it goes.
pub(crate) struct Peer {
    pub(in crate::tunnels) site: String,
    /// Where it is dialled now, if it is at all.
    pub(in crate::tunnels) address: Option<SocketAddr>,
    /// Rate that is reserved on the way to it, in bits per second.
    pub(in crate::tunnels) reserved: Option<u64>,
    /// This gateway's half of the tunnel's identity; see `causeway_tunnel::hello`.
    pub(in crate::tunnels) session: u64,
    /// Why there is no tunnel, for those who ask.
    pub(in crate::tunnels) why_not_reached: String,
    /// Lanes that its path needs; see `tunnels::capacity`.
    pub(in crate::tunnels) lanes: usize,
    /// Where it may be dialled, as the grid's broker tells; the one that was tried last stands first among
    /// the peers.
    pub(in crate::tunnels) addresses: Vec<SocketAddr>,
    /// How often it had this gateway dial something.
    pub(in crate::tunnels) asked: Rate,
    /// Long messages of it.
    pub(in crate::tunnels) long_messages: Rate,
    /// It has left the grid.
    pub(in crate::tunnels) is_gone: bool,
    /// Its path loses segments: a lane over QUIC serves better, where one gets through.
    pub(in crate::tunnels) is_lossy: bool,
    /// What was found out of the ways to it.
    pub(in crate::tunnels) paths: Paths,
    /// What may still be said of its tunnel.
    pub(in crate::tunnels) allowance: Allowance,
    /// What it said last of its own links.
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
    /// Connecting, shaking hands, or waiting for the next attempt.
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

    /// Starts anew: what failed before is long ago.
    pub(crate) fn start_anew(&mut self) {
        self.backoff = FIRST_BACKOFF;
    }

    /// Returns how long to wait now; longer the next time.
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

    /// Says where it is dialled now, if it is at all.
    pub(crate) fn address(&self) -> Option<SocketAddr> {
        self.address
    }

    /// Whether the broker knows an address at which it may be dialled.
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

    /// Gathers what travels of it.
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

    /// Goes on with what a predecessor knew of it.
    pub(in crate::tunnels) fn inherit(&mut self, kept: KeptPeer) {
        self.session = kept.session;
        self.why_not_reached = kept.why_not_reached;
        self.lanes = kept.lanes;
        self.is_lossy = kept.is_lossy;
        self.paths = kept.paths;
        self.totals = kept.totals;
    }

    /// Gives the tunnel's state up: the far side shall see that by another number.
    pub(crate) fn new_session(&mut self) {
        let mut bytes = [0; 8];
        // Without random numbers every handshake fails, and says so; till then a session that differs is
        // enough.
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
