//! The two sites' part: whether a relay is needed, which one is asked, and what is done with its answer.
//!
//! Dialling goes on beside this where a peer has an address (`dial`), and a lane that comes up without a relay takes the place of
//! all that go through one (`pair`).

use super::selection::{Candidate, Offer, choose};
use crate::config::Transport;
use crate::gateway::Gateway;
use crate::sys::timers::Deadline;
use crate::tunnels::dial::{LAST_BACKOFF, REDIAL};
use crate::tunnels::handshake::errand::Errand;
use crate::tunnels::message::GatewayToGateway;
use crate::tunnels::origin::Through;
use crate::tunnels::peer::Dial;
use causeway_tunnel::ticket::Ticket;
use causeway_tunnel::tunnel::MAX_LANES;
use mio::net::TcpStream;
use std::collections::HashMap;
use std::net::SocketAddr;
use std::time::{Duration, Instant};

/// How long a pair of sites may be without a lane before a relay is asked for one: the far gateway dials again within a second
/// of being back, and does not have to be found on the other side of a third site then.
pub(crate) const PATIENCE: Duration = Duration::from_secs(3);

/// The same where streams wait because this gateway was handed over: what can be dialled is back within some round trips.
pub(crate) const SOON: Duration = Duration::from_millis(300);

/// A relay answers within its round trip. One that is cut off shall not keep the next from being asked.
const ANSWER: Duration = Duration::from_secs(2);

/// A relay that failed is asked after the others for so long.
const GRUDGE: Duration = Duration::from_secs(60);

/// Connections to relays under way because others asked: as many as one relay lets one site wait for.
const COMING: usize = 64;

/// How looking for a relay to one peer goes.
pub(crate) struct Search {
    /// Why none serves, for those who ask.
    pub(crate) trouble: String,
    dials: [Dial; MAX_LANES],
    /// The number of the last ask for each lane, and which relay has not answered it yet.
    asked: [Option<(u64, usize)>; MAX_LANES],
    /// What the peer said as a relay.
    pub(crate) offer: Option<Offer>,
    /// When each relay failed last.
    failed: HashMap<usize, Instant>,
}

impl Search {
    pub(crate) fn new() -> Search {
        Search {
            trouble: String::new(),
            dials: [Dial::IDLE; MAX_LANES],
            asked: [None; MAX_LANES],
            offer: None,
            failed: HashMap::new(),
        }
    }

    fn take(&mut self, id: u64, relay: usize) -> Option<usize> {
        let lane = self.asked.iter().position(|asked| *asked == Some((id, relay)))?;
        self.asked[lane] = None;
        Some(lane)
    }
}

/// What a relay says where it lets two sites meet.
pub(crate) struct Invitation {
    pub(crate) id: u64,
    pub(crate) ticket: String,
    /// Where it listens, for those who have no address of it.
    pub(crate) address: Option<SocketAddr>,
    pub(crate) beyond_microseconds: u32,
}

impl Gateway {
    /// Of two sites, the one that sorts first asks. Lanes over QUIC are not relayed.
    fn seeks(&self, index: usize) -> bool {
        self.driver.config.transport != Transport::Quic
            && self.driver.config.site < self.tunnels.peers[index].site
            && !self.tunnels.peers[index].is_gone
    }

    /// Looks for a relay for every lane that is not up by then.
    pub(crate) fn seek_all(&mut self, index: usize, pause: Duration) {
        for lane in 0..self.tunnels.lanes_wanted(&mut self.driver, index) {
            self.seek_after(index, lane, pause);
        }
    }

    fn seek_after(&mut self, index: usize, lane: usize, pause: Duration) {
        let wanted = self.seeks(index) && lane < self.tunnels.lanes_wanted(&mut self.driver, index);
        let dial = &mut self.traversal.search_mut(index).dials[lane];
        if wanted && !std::mem::replace(&mut dial.under_way, true) {
            self.driver.timers.set(pause, Deadline::Seek(index, lane));
        }
    }

    /// A lane was lost or has fallen silent: where a relay carried it, one shall again.
    pub(crate) fn seek_again(&mut self, index: usize, lane: usize, through: Option<&Through>) {
        let pause = match through {
            Some(through) => {
                let now = self.driver.now;
                let search = self.traversal.search_mut(index);
                search.failed.insert(through.relay, now);
                let dial = &mut search.dials[lane];
                // One that the far side ends at once, since it has a better lane or believes so, is not brought back at that pace.
                if now.saturating_duration_since(through.since) > PATIENCE {
                    dial.start_anew();
                    REDIAL
                } else {
                    dial.back_off(LAST_BACKOFF)
                }
            }
            None => PATIENCE,
        };
        self.seek_after(index, lane, pause);
    }

    /// Asks a relay for a lane unless there is one, or a better one.
    pub(crate) fn seek(&mut self, index: usize, lane: usize) {
        let site = self.tunnels.peers[index].site.clone();
        let key = self.tunnels.by_site.get(&site).copied();
        let is_well = key
            .and_then(|key| self.tunnels.pairs.get(key))
            .is_some_and(|pair| pair.lanes[lane].is_some() && !pair.tunnel.is_silent(lane));
        if is_well || key.is_some_and(|key| self.tunnels.has_direct_lane(key)) {
            self.traversal.search_mut(index).dials[lane] = Dial::IDLE;
            return;
        }
        let Some((relay, tunnel)) = self.best_relay(index, lane) else {
            let why =
                "no site that this one has a tunnel with carries connections of others (relay in [grid])";
            return self.seek_failed(index, lane, None, why);
        };
        let id = self.driver.birth();
        self.traversal.search_mut(index).asked[lane] = Some((id, relay));
        self.driver.timers.set(ANSWER, Deadline::Ask(index, lane, id));
        self.tunnels.tell(
            &mut self.driver,
            tunnel,
            GatewayToGateway::RelayAsk { to: site, id },
        );
    }

    /// The one to ask for this lane: its place among the peers, and the pair with it.
    fn best_relay(&self, index: usize, lane: usize) -> Option<(usize, usize)> {
        let failed = |relay: usize| {
            let search = self.traversal.search(index)?;
            let at = search.failed.get(&relay);
            at.filter(|at| self.driver.now.saturating_duration_since(**at) < GRUDGE)
                .copied()
        };
        let willing = self.tunnels.peers.iter().enumerate().filter_map(|(relay, peer)| {
            let key = self.tunnels.by_site.get(&peer.site).copied()?;
            let is_willing = self
                .membership
                .directory
                .other(&peer.site)
                .is_some_and(|info| info.relays);
            (relay != index && is_willing && self.tunnels.has_direct_lane(key)).then(|| Candidate {
                relay,
                pair: key,
                site: &peer.site,
                near_microseconds: self.tunnels.least_rtt(key).unwrap_or(u32::MAX),
                offer: self
                    .traversal
                    .search(relay)
                    .and_then(|relay| relay.offer.as_ref()),
                failed: failed(relay),
            })
        });
        let willing: Vec<_> = willing.collect();
        let between = (
            self.driver.config.site.as_str(),
            self.tunnels.peers[index].site.as_str(),
        );
        choose(&willing, between, lane).map(|one| (one.relay, one.pair))
    }

    /// No lane this time.
    fn seek_failed(&mut self, index: usize, lane: usize, relay: Option<usize>, why: &str) {
        let now = self.driver.now;
        let peer = &self.tunnels.peers[index];
        let search = self.traversal.search_mut(index);
        if let Some(relay) = relay {
            search.failed.insert(relay, now);
        }
        // A peer that is dialled, and a grid without relays: its users look elsewhere.
        let concerns = relay.is_some() || peer.address.is_none();
        if concerns && search.trouble != why {
            let site = &peer.site;
            self.driver
                .log
                .say(format_args!("no relay to {site}: {why}; trying again"));
            search.trouble = why.to_owned();
        }
        search.asked[lane] = None;
        let dial = &mut search.dials[lane];
        let pause = dial.back_off(LAST_BACKOFF);
        dial.under_way = false;
        self.seek_after(index, lane, pause);
    }

    /// A lane through a relay is up, as far as this gateway knows.
    pub(crate) fn seek_succeeded(&mut self, index: usize, lane: usize) {
        let search = self.traversal.search_mut(index);
        search.trouble.clear();
        search.dials[lane].under_way = false;
    }

    pub(crate) fn on_ask_deadline(&mut self, index: usize, lane: usize, id: u64) {
        let asked = self.traversal.search_mut(index).asked[lane].filter(|asked| asked.0 == id);
        if let Some((_, relay)) = asked {
            let site = &self.tunnels.peers[relay].site;
            let why = format!("relay {site} did not answer within {ANSWER:?}");
            self.seek_failed(index, lane, Some(relay), &why);
        }
    }

    /// No lane to a site is left: it is no relay for anybody now.
    pub(crate) fn lose_relay(&mut self, relay: usize) {
        self.traversal.search_mut(relay).offer = None;
        self.relay_is_gone(relay);
        self.tell_offer_soon();
    }

    /// The last lane to a site is gone: what it was asked as a relay is asked of others.
    fn relay_is_gone(&mut self, relay: usize) {
        for index in 0..self.tunnels.peers.len() {
            for lane in 0..MAX_LANES {
                if self.traversal.search_mut(index).asked[lane].is_some_and(|asked| asked.1 == relay) {
                    let why = format!("relay {} was lost", self.tunnels.peers[relay].site);
                    self.seek_failed(index, lane, Some(relay), &why);
                }
            }
        }
    }

    /// A relay lets the two sites meet.
    pub(crate) fn on_relay_go(&mut self, from: &str, invitation: &Invitation) {
        let Some((relay, index, lane)) = self.find_ask(from, invitation.id) else {
            return;
        };
        if let Err(why) = self.go(relay, index, Some(lane), invitation) {
            self.seek_failed(index, lane, Some(relay), &why);
        }
    }

    /// A relay says that the sites cannot meet there.
    pub(crate) fn on_relay_no(&mut self, from: &str, id: u64, why: &str) {
        let why = format!("relay {from}: {why}");
        if let Some((relay, index, lane)) = self.find_ask(from, id) {
            return self.seek_failed(index, lane, Some(relay), &why);
        }
        let waiting = self.tunnels.handshakes.iter().find(|(_, handshake)| {
            let errand = handshake.errand();
            handshake.dialled().is_some()
                && errand
                    .is_some_and(|errand| errand.id == id && errand.through.site == from && !errand.has_met())
        });
        if let Some(key) = waiting.map(|(key, _)| key) {
            self.tunnels
                .end_handshake(&mut self.driver, key, "handshake", &why);
        }
    }

    /// What was asked, of whom and for which lane.
    fn find_ask(&mut self, from: &str, id: u64) -> Option<(usize, usize, usize)> {
        let relay = self.tunnels.peers.iter().position(|peer| peer.site == from)?;
        let mut searches = self.traversal.searches.iter_mut().enumerate();
        searches.find_map(|(index, search)| Some((relay, index, search.take(id, relay)?)))
    }

    /// Another site has asked a relay for this one.
    pub(crate) fn on_relay_come(&mut self, pair: usize, relay: &str, from: &str, invitation: &Invitation) {
        if let Err(why) = self.come(relay, from, invitation) {
            let text = format!("cannot meet it at {relay}: {why}");
            self.driver
                .log
                .refuse("relay-come", format_args!("site {from} through {relay}"), text);
            let meeting = invitation.id;
            self.tunnels.tell(
                &mut self.driver,
                pair,
                GatewayToGateway::RelayCannot { meeting, why },
            );
        }
    }

    fn come(&mut self, relay: &str, from: &str, invitation: &Invitation) -> Result<(), String> {
        if self.driver.config.transport == Transport::Quic {
            return Err(
                "lanes over QUIC, which alone are wanted here (transport in [grid]), are not relayed"
                    .to_owned(),
            );
        }
        let place = |site: &str| self.tunnels.peers.iter().position(|peer| peer.site == site);
        let index = place(from).ok_or_else(|| format!("site {from} is not a [[peer]] of this gateway"))?;
        let Some(relay) = place(relay).filter(|relay| *relay != index) else {
            return Err("a site cannot be its own relay".to_owned());
        };
        let coming = self.tunnels.handshakes.iter();
        let coming = coming.filter(|(_, other)| other.errand().is_some() && other.dialled().is_none());
        if coming.count() >= COMING {
            return Err("too many meetings at a time".to_owned());
        }
        self.go(relay, index, None, invitation)
    }

    /// Dials a relay to show a ticket there: for this lane, or for whichever the far gateway asked for.
    fn go(
        &mut self,
        relay: usize,
        index: usize,
        lane: Option<usize>,
        invitation: &Invitation,
    ) -> Result<(), String> {
        let ticket = Ticket::from_hex(&invitation.ticket).map_err(|error| error.to_string())?;
        let peer = &self.tunnels.peers[relay];
        let (site, address) = (peer.site.clone(), peer.address);
        let address = address.or(invitation.address).ok_or_else(|| {
            format!(
                "relay {site} cannot be dialled: this gateway has no address for it ([[peer]] address), and it tells none ([listen] \
                 wan there, unless it is a wildcard)"
            )
        })?;
        let far = self.tunnels.peers[index].site.clone();
        let far = lane.is_some().then_some(far.as_str());
        let carrier = TcpStream::connect(address)
            .and_then(|socket| self.tunnels.tcp_carrier(&mut self.driver, socket, far));
        let carrier = carrier.map_err(|error| format!("connect to relay {site} at {address}: {error}"))?;
        let through = Through {
            relay,
            site,
            beyond_microseconds: invitation.beyond_microseconds,
            since: self.driver.now,
        };
        let errand = Errand::new(through, index, invitation.id, ticket);
        let dialled = lane.map(|lane| (index, lane));
        self.tunnels
            .begin_handshake(&mut self.driver, carrier, address, dialled, Some(errand));
        Ok(())
    }

    /// A connection to a relay has come to nothing.
    pub(crate) fn errand_failed(&mut self, errand: &Errand, dialled: Option<(usize, usize)>, why: &str) {
        let relay = errand.through.relay;
        if let Some((index, lane)) = dialled {
            return self.seek_failed(index, lane, Some(relay), why);
        }
        let (site, from) = (&errand.through.site, &self.tunnels.peers[errand.peer].site);
        let text = format!("cannot meet it at {site}: {why}");
        self.driver
            .log
            .refuse("relay-come", format_args!("site {from} through {site}"), text);
        if let Some(pair) = self
            .tunnels
            .by_site
            .get(site)
            .copied()
            .filter(|_| !errand.has_met())
        {
            let (meeting, why) = (errand.id, why.to_owned());
            self.tunnels.tell(
                &mut self.driver,
                pair,
                GatewayToGateway::RelayCannot { meeting, why },
            );
        }
    }
}
