//! What is known of the gateway of each other site.

use crate::keys::ByNumber;
use crate::log::Allowance;
use crate::tunnels::dial_rate::DialRate;
use crate::tunnels::totals::Totals;
use causeway_control::Link;
use serde::{Deserialize, Serialize};
use std::net::SocketAddr;
use std::time::Duration;

pub(crate) const FIRST_BACKOFF: Duration = Duration::from_millis(100);

/// The gateway of another site: where it is, what this gateway calls itself to it, and how dialling it goes.
pub(crate) struct Peer {
    pub(crate) site: String,
    /// Where it is dialled now, if it is at all.
    pub(crate) address: Option<SocketAddr>,
    /// What is reserved on the way to it, in bits per second.
    pub(crate) reserved: Option<u64>,
    /// This gateway's half of the tunnel's identity; see `causeway_tunnel::hello`.
    pub(crate) session: u64,
    /// Why there is no tunnel, for those who ask.
    pub(crate) trouble: String,
    /// Lanes that its path needs; see `tunnels::capacity`.
    pub(crate) lanes: usize,
    /// Where it may be dialled, as the grid's broker tells; the one that was tried last stands first among
    /// the peers.
    pub(crate) addresses: Vec<SocketAddr>,
    /// How often it had this gateway dial something.
    pub(crate) asked: DialRate,
    /// It has left the grid.
    pub(crate) is_gone: bool,
    /// Its path loses segments: a lane over QUIC serves better, where one gets through.
    pub(crate) is_lossy: bool,
    /// What its path was last seen to carry, in bytes per second; 0 while unknown.
    pub(crate) seen_rate: u64,
    /// What may still be said of its tunnel.
    pub(crate) allowance: Allowance,
    /// What it said last of its own links.
    pub(crate) links: Vec<Link>,
    /// Why there is no lane over QUIC beside those over TCP.
    pub(crate) spare_trouble: String,
    /// What is over with it.
    pub(crate) totals: Totals,
    pub(crate) dials: ByNumber<Dial>,
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

    /// What failed before is long ago.
    pub(crate) fn start_anew(&mut self) {
        self.backoff = FIRST_BACKOFF;
    }

    /// How long to wait now; longer the next time.
    pub(crate) fn back_off(&mut self, most: Duration) -> Duration {
        let pause = self.backoff;
        self.backoff = (pause * 2).min(most);
        pause
    }
}

impl Peer {
    pub(crate) fn new(site: String, address: Option<SocketAddr>, reserved: Option<u64>) -> Peer {
        let mut peer = Peer {
            trouble: if address.is_some() {
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
            asked: DialRate::default(),
            is_gone: false,
            is_lossy: false,
            seen_rate: 0,
            allowance: Allowance::default(),
            links: Vec::new(),
            spare_trouble: String::new(),
            totals: Totals::default(),
            dials: ByNumber::default(),
        };
        peer.new_session();
        peer
    }

    /// What travels of it.
    pub(crate) fn keep(&self) -> KeptContact {
        KeptContact {
            site: self.site.clone(),
            session: self.session,
            trouble: self.trouble.clone(),
            lanes: self.lanes,
            totals: self.totals.clone(),
        }
    }

    /// The tunnel's state is given up: the far side shall see that by another number.
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

/// Of each peer, by its site.
#[derive(Serialize, Deserialize)]
pub(crate) struct KeptContact {
    pub(crate) site: String,
    pub(crate) session: u64,
    pub(crate) trouble: String,
    pub(crate) lanes: usize,
    pub(crate) totals: Totals,
}
