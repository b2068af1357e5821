//! Changes what is known about other sites: what the broker reports, and what their gateways say about
//! themselves.

use crate::driver::Driver;
use crate::keys::{ByNumber, LaneKey, PairKey, PeerIndex};
use crate::tunnels::Tunnels;
use crate::tunnels::lanes::lane::LaneEnd;
use crate::tunnels::peers::peer::Peer;
use crate::tunnels::tls;
use causeway_control::{LINKED_SITES, Link};
use std::io;
use std::net::SocketAddr;
use std::time::Duration;

/// Lends what changes the known sites.
pub(crate) struct Roster<'a> {
    tunnels: &'a mut Tunnels,
}

/// What a far gateway says that concerns its tunnel.
pub(crate) enum Word {
    /// The gateway has said who it is.
    Introduced,
    /// The links of the gateway's site.
    Links(Vec<Link>),
    /// The path loses what the gateway sends.
    Lossy,
    /// The gateway stops.
    Leaving,
}

impl Tunnels {
    /// Lends what changes the known sites.
    pub(crate) fn roster(&mut self) -> Roster<'_> {
        Roster { tunnels: self }
    }
}

impl Roster<'_> {
    /// Takes in where the broker says that a site's gateway can be dialled. Returns its place, and whether it
    /// is new or was gone until now; `None` if there were too many sites before it.
    pub(crate) fn learn(
        &mut self,
        driver: &mut Driver,
        site: String,
        addresses: Vec<SocketAddr>,
    ) -> Option<(PeerIndex, bool)> {
        let known = self.tunnels.peers.of(&site);
        let index = match known {
            Some(index) => index,
            None => {
                let peer = Peer::new(site, None, driver.config.rate);
                self.tunnels.peers.add(peer)?
            }
        };
        let was_gone = self.learn_addresses(driver, index, addresses);
        Some((index, known.is_none() || was_gone))
    }

    /// Takes in where a peer can be dialled; returns whether it had left the grid until now.
    fn learn_addresses(&mut self, driver: &mut Driver, index: PeerIndex, addresses: Vec<SocketAddr>) -> bool {
        let peer = &mut self.tunnels.peers[index];
        let was_gone = std::mem::take(&mut peer.is_gone);
        if was_gone {
            "it has joined the grid again, but there is no lane yet".clone_into(&mut peer.why_not_reached);
        }
        if peer.addresses != addresses {
            peer.address = addresses.first().copied();
            peer.addresses = addresses;
            if peer.addresses.is_empty() {
                "its gateway has not dialled in".clone_into(&mut peer.why_not_reached);
            }
            self.tunnels.dial_all(driver, index, Duration::ZERO);
        }
        was_gone
    }

    /// Forgets a peer that has left the grid: it is no longer dialled, and its tunnel ends.
    pub(crate) fn forget(&mut self, driver: &mut Driver, index: PeerIndex, end: &LaneEnd, why: &str) {
        let peer = &mut self.tunnels.peers[index];
        peer.address = None;
        peer.addresses.clear();
        peer.is_gone = true;
        if let Some(pair) = self.tunnels.pairs.key_of(&peer.site) {
            self.tunnels.end_pair(driver, pair, end, true);
        }
        self.tunnels.set_why_not_reached(index, why);
    }

    /// Acts on what a far gateway says that concerns its tunnel.
    pub(crate) fn hear(&mut self, driver: &mut Driver, pair: PairKey, word: Word) {
        match word {
            Word::Introduced => self.on_introduced(pair),
            Word::Links(links) => self.learn_links(driver, pair, links),
            Word::Lossy => self.tunnels.on_lossy(driver, pair),
            // If the same process comes back after all, it must not find a tunnel to resume.
            Word::Leaving => self.tunnels.end_pair(driver, pair, &LaneEnd::Left, true),
        }
    }

    /// Notes that a gateway has said through the broker that it is alive.
    pub(crate) fn is_alive(&mut self, index: PeerIndex) {
        self.tunnels.on_sign_of_life(index);
    }

    /// Notes that the far gateway has said who it is.
    fn on_introduced(&mut self, key: PairKey) {
        if let Some(pair) = self.tunnels.pairs.get_mut(key) {
            pair.has_introduced_itself = true;
            let peer = pair.peer;
            self.tunnels.dial_succeeded(peer);
        }
    }

    /// Keeps what a site reports about its own links. Names of sites that are not in the grid are left out,
    /// because they would reach the processes of jobs.
    fn learn_links(&mut self, driver: &mut Driver, pair: PairKey, mut links: Vec<Link>) {
        links.truncate(LINKED_SITES);
        let is_known = |site: &str| site == driver.config.site || self.tunnels.peers.of(site).is_some();
        links.retain(|link| link.rtt_microseconds > 0 && is_known(&link.to));
        if let Some(peer) = self.tunnels.pairs.get(pair).map(|pair| pair.peer) {
            self.tunnels.peers[peer].links = links;
        }
    }

    /// Makes new lanes show a renewed certificate.
    ///
    /// # Errors
    /// It cannot be used; then the old one stays in use.
    pub(crate) fn renew(&mut self, context: tls::Context) -> io::Result<()> {
        if let Some(quic) = &mut self.tunnels.quic {
            quic.renew(&context)?;
        }
        self.tunnels.tls = Some(context);
        Ok(())
    }

    /// Ends a pair whose far gateway is refused.
    pub(crate) fn refuse(&mut self, driver: &mut Driver, pair: PairKey, why: String) {
        self.tunnels.end_pair(driver, pair, &LaneEnd::Refused(why), true);
    }

    /// The broker answers this site as a member.
    pub(crate) fn is_member(&mut self) {
        self.tunnels.put_out = None;
    }

    /// Ends all pairs, because this site was put out of the grid: no gateway accepts a lane from it any more,
    /// and its jobs need not wait for one. Until it is a member again, it neither dials nor lets itself be
    /// dialled: a gateway that has not heard of it yet would close the lane, and seem to have been killed.
    pub(crate) fn end_all(&mut self, driver: &mut Driver, why: &str) {
        self.tunnels.put_out = Some(why.to_owned());
        for pair in self.tunnels.pairs.keys() {
            self.tunnels
                .end_pair(driver, pair, &LaneEnd::Refused(why.to_owned()), true);
        }
    }

    /// Ends the lanes that depend on void certificates, and pairs that have no others. A lane whose
    /// certificate has expired since is as good as before: it survives that, and the revocation of other
    /// certificates.
    pub(crate) fn end_revoked(&mut self, driver: &mut Driver) {
        let Some(trust) = &self.tunnels.trust else {
            return;
        };
        let void = self.tunnels.lanes.iter().filter_map(|(key, lane)| {
            let why = trust.voided(&lane.carrier.shown())?;
            Some((key, lane.pair, why))
        });
        let void: Vec<(LaneKey, PairKey, String)> = void.collect();
        for (key, pair, why) in void {
            let lanes = self.tunnels.pairs.get(pair).map(|pair| pair.lanes);
            let mut lanes = lanes.into_iter().flat_map(ByNumber::into_values).flatten();
            let end = LaneEnd::Refused(why);
            if lanes.any(|lane| lane != key) {
                self.tunnels.close_lane(driver, key, &end);
            } else {
                self.tunnels.end_pair(driver, pair, &end, true);
            }
        }
    }
}
