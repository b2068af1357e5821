//! Dials the gateways of other sites: every lane on its own, and again whenever one is lost.

use crate::config::Transport;
use crate::driver::Driver;
use crate::keys::{LaneNumber, PeerIndex};
use crate::sys::timers::TunnelsDeadline;
use crate::tunnels::Tunnels;
use crate::tunnels::carrier::Carrier;
use crate::tunnels::event::TunnelsEvent;
use crate::tunnels::pair::Pair;
use crate::tunnels::peers::peer::{Dial, FIRST_BACKOFF};
use crate::tunnels::peers::proxied::Purpose;
use mio::net::TcpStream;
use std::io;
use std::net::SocketAddr;
use std::time::Duration;

/// A far gateway that is down answers at once, and streams wait for it: dialling it once a second costs
/// little.
pub(crate) const LAST_BACKOFF: Duration = Duration::from_secs(1);

/// A path that lets no UDP through, as many do not, will not do so soon, and TCP serves meanwhile.
pub(in crate::tunnels) const LAST_SPARE_BACKOFF: Duration = Duration::from_secs(60);

/// A relay serves meanwhile, so a better path is looked for without haste.
pub(in crate::tunnels) const LAST_RELAYED_BACKOFF: Duration = Duration::from_secs(30);

/// Pause before a lost lane is dialled again, so that a network that resets every connection at once is not
/// flooded with new ones.
pub(crate) const REDIAL: Duration = Duration::from_millis(20);

impl Tunnels {
    /// Dials every lane of a peer that this gateway dials at all.
    pub(in crate::tunnels) fn dial_all(&mut self, driver: &mut Driver, index: PeerIndex, pause: Duration) {
        for lane in LaneNumber::all() {
            if self.wants_lane(driver, index, lane) {
                self.dial_after(driver, index, lane, pause);
            }
        }
        self.events.push_back(TunnelsEvent::Wanted { peer: index, pause });
    }

    /// A lane of a peer was lost, or must get a rival: the one that gets through takes its place.
    pub(in crate::tunnels) fn redial(&mut self, driver: &mut Driver, index: PeerIndex, lane: LaneNumber) {
        if self.wants_lane(driver, index, lane) {
            let known = self.pairs.of(&self.peers[index].site);
            // A gateway that closes the connection before it says who it is would be dialled at that pace for
            // ever.
            let pause = match known.is_some_and(|pair| pair.has_introduced_itself) {
                true => REDIAL,
                false => self.peers[index].dials[lane].back_off(LAST_BACKOFF),
            };
            self.dial_after(driver, index, lane, pause);
        }
    }

    pub(in crate::tunnels) fn dial_after(
        &mut self,
        driver: &mut Driver,
        index: PeerIndex,
        lane: LaneNumber,
        pause: Duration,
    ) {
        let dials = self.peers[index].address.is_some();
        if dials && !std::mem::replace(&mut self.peers[index].dials[lane].under_way, true) {
            driver.set_deadline(pause, TunnelsDeadline::Dial(index, lane));
        }
    }

    /// Dials a lane unless it is up and not silent.
    pub(in crate::tunnels) fn dial(&mut self, driver: &mut Driver, index: PeerIndex, lane: LaneNumber) {
        let peer = &self.peers[index];
        let Some(address) = peer.address else {
            // The peer's site has left the grid since this was planned; it may come back.
            self.peers[index].dials[lane].under_way = false;
            return;
        };
        let is_well = |pair: &Pair| {
            let known = pair.lanes[lane].and_then(|key| self.lanes.get(key));
            // A lane through a relay is to be replaced.
            known.is_some_and(|known| known.through.is_none()) && !pair.tunnel.is_silent(lane.0)
        };
        if self.pairs.of(&peer.site).is_some_and(is_well) {
            self.peers[index].dials[lane] = Dial::IDLE;
            return;
        }
        let site = peer.site.clone();
        let is_quic = driver.config.transport == Transport::Quic || lane == LaneNumber::QUIC;
        if driver.config.proxy.is_some() && !is_quic {
            if let Err(error) = self.begin_through_proxy(driver, address, Purpose::Lane(index, lane)) {
                self.dial_failed(index, lane, &format!("connect to {address}: {error}"));
            }
            return;
        }
        match self.begin_connection(driver, &site, address, lane) {
            Ok(carrier) => self.begin_handshake(driver, carrier, address, Some((index, lane)), None),
            Err(error) => {
                if lane != LaneNumber::QUIC {
                    let was_refused = error.kind() == io::ErrorKind::ConnectionRefused;
                    self.on_unanswered_dial(driver, index, was_refused);
                }
                self.dial_failed(index, lane, &format!("connect to {address}: {error}"));
            }
        }
    }

    fn begin_connection(
        &mut self,
        driver: &mut Driver,
        site: &str,
        address: SocketAddr,
        lane: LaneNumber,
    ) -> io::Result<Carrier> {
        if driver.config.transport == Transport::Quic || lane == LaneNumber::QUIC {
            return self.dial_quic(driver, site, address);
        }
        let socket = TcpStream::connect(address)?;
        self.tcp_carrier(driver, socket, Some(site))
    }

    pub(in crate::tunnels) fn dial_failed(&mut self, index: PeerIndex, lane: LaneNumber, why: &str) {
        self.events.push_back(TunnelsEvent::DialFailed {
            peer: index,
            number: lane,
            why: why.to_owned(),
        });
    }

    /// The handshake of a lane that this gateway dialled has succeeded.
    pub(in crate::tunnels) fn dial_ended(&mut self, index: PeerIndex, lane: LaneNumber) {
        self.peers[index].dials[lane].under_way = false;
        self.events.push_back(TunnelsEvent::Met { peer: index });
    }

    /// The far gateway has introduced itself on the tunnel to which the lanes belong: it wants them.
    pub(in crate::tunnels) fn dial_succeeded(&mut self, index: PeerIndex) {
        let has_lane = self.ways().has_lane(index);
        let peer = &mut self.peers[index];
        // If the lane used a relay, the reason why there is no better path still holds.
        if has_lane {
            peer.why_not_reached.clear();
        }
        for dial in peer.dials.values_mut() {
            dial.backoff = FIRST_BACKOFF;
        }
        self.events.push_back(TunnelsEvent::Introduced {
            peer: index,
            has_lane,
        });
    }
}
