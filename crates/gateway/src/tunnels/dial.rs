//! Dialling the gateways of other sites: every lane on its own, again whenever one is lost.

use crate::config::Transport;
use crate::gateway::Gateway;
use crate::log::Allowance;
use crate::sys::timers::Deadline;
use crate::traversal::relay::client::Search;
use crate::traversal::relay::selection::Offer;
use crate::tunnels::capacity::QUIC_LANE;
use crate::tunnels::carrier::Carrier;
use crate::tunnels::pair::Pair;
use causeway_control::Link;
use causeway_tunnel::tunnel::MAX_LANES;
use mio::net::TcpStream;
use std::io;
use std::net::SocketAddr;
use std::time::Duration;

const FIRST_BACKOFF: Duration = Duration::from_millis(100);
/// A far gateway that is down answers at once, and streams wait for it: asking it once a second costs nobody anything.
pub(crate) const LAST_BACKOFF: Duration = Duration::from_secs(1);

/// A path that lets no UDP through, as many do not, will not soon: TCP serves meanwhile.
const LAST_SPARE_BACKOFF: Duration = Duration::from_secs(60);

/// A relay serves meanwhile: a better way is looked for without haste.
const LAST_RELAYED_BACKOFF: Duration = Duration::from_secs(30);

/// Before a lost lane is dialled again: a network that resets every connection at once is not flooded with new ones.
pub(crate) const REDIAL: Duration = Duration::from_millis(20);

/// A configured peer: what this gateway calls itself to it, and how dialling it goes.
pub(crate) struct Contact {
    /// This gateway's half of the tunnel's identity; see `causeway_tunnel::hello`.
    pub(crate) session: u64,
    /// Why there is no tunnel, for those who ask.
    pub(crate) trouble: String,
    /// Lanes that its path needs; see `lanes`.
    pub(crate) lanes: usize,
    /// Where it may be dialled, as the grid's broker tells; the one that was tried last stands first among the peers.
    pub(crate) addresses: Vec<SocketAddr>,
    /// It has left the grid.
    pub(crate) is_gone: bool,
    /// Its path loses segments: a lane over QUIC serves better, where one gets through.
    pub(crate) is_lossy: bool,
    /// What its path was last seen to carry, in bytes per second; 0 while unknown.
    pub(crate) rate: u64,
    /// Where neither site reaches the other.
    pub(crate) search: Search,
    /// What may still be said of its tunnel.
    pub(crate) allowance: Allowance,
    /// What it said as a relay.
    pub(crate) offer: Option<Offer>,
    /// What it said last of its own links.
    pub(crate) links: Vec<Link>,
    /// Why there is no lane over QUIC beside those over TCP.
    pub(crate) spare_trouble: String,
    dials: [Dial; MAX_LANES],
}

#[derive(Clone, Copy)]
pub(crate) struct Dial {
    backoff: Duration,
    /// Connecting, shaking hands, or waiting for the next attempt.
    pub(crate) under_way: bool,
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

impl Contact {
    pub(crate) fn new(dials: bool) -> Contact {
        let mut contact = Contact {
            session: 0,
            trouble: if dials {
                "not reached yet"
            } else {
                "its gateway has not dialled in"
            }
            .to_owned(),
            lanes: 1,
            addresses: Vec::new(),
            is_gone: false,
            is_lossy: false,
            rate: 0,
            search: Search::new(),
            allowance: Allowance::default(),
            offer: None,
            links: Vec::new(),
            spare_trouble: String::new(),
            dials: [Dial::IDLE; MAX_LANES],
        };
        contact.new_session();
        contact
    }

    /// Why there is no lane, neither without a relay nor through one.
    pub(crate) fn why_not(&self) -> String {
        match self.search.trouble.as_str() {
            "" => self.trouble.clone(),
            relayed => format!("{}; {relayed}", self.trouble),
        }
    }

    /// The tunnel's state is given up: the far side shall see that by another number.
    pub(crate) fn new_session(&mut self) {
        let mut bytes = [0; 8];
        // Without random numbers every handshake fails, and says so; till then a session that differs is enough.
        self.session = match getrandom::fill(&mut bytes) {
            Ok(()) => u64::from_be_bytes(bytes),
            Err(_) => self.session.wrapping_add(1),
        };
    }
}

impl Gateway {
    /// Dials every lane of a peer that this gateway dials at all.
    pub(crate) fn dial_all(&mut self, index: usize, pause: Duration) {
        for lane in 0..MAX_LANES {
            if self.wants_lane(index, lane) {
                self.dial_after(index, lane, pause);
            }
        }
        self.meet_again(index, pause.is_zero());
    }

    /// A lane of a peer was lost, or is to have a rival: the one that gets through takes its place.
    pub(crate) fn redial(&mut self, index: usize, lane: usize) {
        if self.meets(index) {
            let known = self.pair_of(&self.config.peers[index].site);
            let introduced = known.is_some_and(|pair| pair.introduced);
            return self.meet_again(index, introduced);
        }
        if self.wants_lane(index, lane) {
            let known = self.pair_of(&self.config.peers[index].site);
            // A gateway that closes before it says who it is would be dialled at that pace for ever.
            let pause = match known.is_some_and(|pair| pair.introduced) {
                true => REDIAL,
                false => self.contacts[index].dials[lane].back_off(LAST_BACKOFF),
            };
            self.dial_after(index, lane, pause);
        }
    }

    pub(crate) fn dial_after(&mut self, index: usize, lane: usize, pause: Duration) {
        let dials = self.config.peers[index].address.is_some();
        if dials && !std::mem::replace(&mut self.contacts[index].dials[lane].under_way, true) {
            self.timers.set(pause, Deadline::Dial(index, lane));
        }
    }

    /// Dials a lane unless it is up and well.
    pub(crate) fn dial(&mut self, index: usize, lane: usize) {
        let peer = &self.config.peers[index];
        let Some(address) = peer.address else { return };
        let is_well = |pair: &Pair| {
            let known = pair.lanes[lane].and_then(|key| self.lanes.get(key));
            // One that goes through a relay is to be replaced.
            known.is_some_and(|known| known.through.is_none()) && !pair.tunnel.is_silent(lane)
        };
        if self.pair_of(&peer.site).is_some_and(is_well) {
            self.contacts[index].dials[lane] = Dial::IDLE;
            return;
        }
        let site = peer.site.clone();
        match self.begin_connection(&site, address, lane) {
            Ok(carrier) => self.begin_handshake(carrier, address, Some((index, lane)), None),
            Err(error) => self.dial_failed(index, lane, &format!("connect to {address}: {error}")),
        }
    }

    fn begin_connection(&mut self, site: &str, address: SocketAddr, lane: usize) -> io::Result<Carrier> {
        if self.config.transport == Transport::Quic || lane == QUIC_LANE {
            return self.dial_quic(site, address);
        }
        let socket = TcpStream::connect(address)?;
        self.tcp_carrier(socket, Some(site))
    }

    pub(crate) fn dial_failed(&mut self, index: usize, lane: usize, why: &str) {
        if self.punch_failed(index, lane, why) {
            return;
        }
        if lane == QUIC_LANE {
            return self.spare_failed(index, why);
        }
        let site = &self.config.peers[index].site;
        let most = match self.is_relayed(site) {
            true => LAST_RELAYED_BACKOFF,
            false => LAST_BACKOFF,
        };
        let contact = &mut self.contacts[index];
        if contact.trouble != why {
            self.report
                .say(format_args!("no lane to {site}: {why}; trying again"));
            contact.trouble = why.to_owned();
        }
        // The next one, where it has several.
        if let Some(tried) = self.config.peers[index].address
            && let Some(at) = contact.addresses.iter().position(|address| *address == tried)
        {
            let next = (at + 1) % contact.addresses.len();
            self.config.peers[index].address = contact.addresses.get(next).copied();
        }
        let dial = &mut contact.dials[lane];
        let pause = dial.back_off(most);
        dial.under_way = false;
        self.dial_after(index, lane, pause);
    }

    /// No lane over QUIC beside those over TCP.
    fn spare_failed(&mut self, index: usize, why: &str) {
        let site = &self.config.peers[index].site;
        let contact = &mut self.contacts[index];
        if contact.spare_trouble != why {
            self.report.say(format_args!(
                "no lane over QUIC to {site}, which would serve better since the path loses segments: {why}; TCP serves meanwhile"
            ));
            contact.spare_trouble = why.to_owned();
        }
        let dial = &mut contact.dials[QUIC_LANE];
        let pause = dial.back_off(LAST_SPARE_BACKOFF);
        dial.under_way = false;
        self.dial_after(index, QUIC_LANE, pause);
    }

    /// A lane that this gateway dialled is through its handshake.
    pub(crate) fn dial_ended(&mut self, index: usize, lane: usize) {
        self.contacts[index].dials[lane].under_way = false;
        self.on_met(index);
    }

    /// The far gateway has introduced itself on the tunnel that lanes come up for: it wants them.
    pub(crate) fn dial_succeeded(&mut self, index: usize) {
        let has_lane = self.has_lane(index);
        let contact = &mut self.contacts[index];
        // Through a relay: why there is no better way is still to be said.
        if has_lane {
            contact.trouble.clear();
        }
        contact.search.trouble.clear();
        for dial in &mut contact.dials {
            dial.backoff = FIRST_BACKOFF;
        }
        if has_lane {
            self.on_met_well(index);
        }
    }
}
