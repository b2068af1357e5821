//! Begins connections with other gateways for those that need them: listeners, and `traversal`.

use crate::config::Transport;
use crate::driver::Driver;
use crate::keys::{LaneKey, LaneNumber, PeerIndex};
use crate::tunnels::Tunnels;
use crate::tunnels::origin::Way;
use crate::tunnels::peers::dial::{LAST_BACKOFF, LAST_RELAYED_BACKOFF, LAST_SPARE_BACKOFF};
use crate::tunnels::peers::proxied::{Proxied, Purpose};
use crate::tunnels::relay_visit::RelayVisit;
use mio::net::TcpStream;
use std::io;
use std::net::SocketAddr;
use std::time::{Duration, Instant};

/// Lends what begins connections, and what is known about attempts.
pub(crate) struct Connecting<'a> {
    tunnels: &'a mut Tunnels,
}

impl Tunnels {
    /// Lends what begins connections with other gateways.
    pub(crate) fn connecting(&mut self) -> Connecting<'_> {
        Connecting { tunnels: self }
    }

    /// Notes why there is no tunnel to a peer; returns whether the reason is a new one.
    pub(in crate::tunnels) fn set_why_not_reached(&mut self, index: PeerIndex, why: &str) -> bool {
        let known = &mut self.peers[index].why_not_reached;
        let is_other = known != why;
        why.clone_into(known);
        is_other
    }
}

impl Connecting<'_> {
    /// Opens the UDP socket if lanes may use QUIC, and prepares for a proxy if there is one.
    ///
    /// # Errors
    /// Those of the kernel.
    pub(crate) fn open(&mut self, driver: &mut Driver) -> io::Result<()> {
        if driver.config.proxy.is_some() {
            self.tunnels.proxied = Some(Proxied::new(driver.registry())?);
        }
        self.tunnels.open_quic(driver)
    }

    /// Accepts a TCP connection that a gateway has made, or that has come about without a dialler; the far
    /// gateway speaks first.
    pub(crate) fn accept(&mut self, driver: &mut Driver, socket: TcpStream, address: SocketAddr) {
        // Without a certificate of its own, there would be no gateway.
        if let Ok(carrier) = self.tunnels.tcp_carrier(driver, socket, None) {
            self.tunnels.on_gateway_connection(driver, carrier, address);
        }
    }

    /// Dials every lane of a peer that this gateway dials at all.
    pub(crate) fn dial_all(&mut self, driver: &mut Driver, index: PeerIndex, pause: Duration) {
        self.tunnels.dial_all(driver, index, pause);
    }

    /// Dials again a lane that did not come up, and that nobody else brings up.
    pub(crate) fn dial_later(&mut self, driver: &mut Driver, index: PeerIndex, lane: LaneNumber, why: &str) {
        if lane == LaneNumber::QUIC {
            return self.spare_failed(driver, index, why);
        }
        let most = match self.tunnels.ways().is_relayed(&self.tunnels.peers[index].site) {
            true => LAST_RELAYED_BACKOFF,
            false => LAST_BACKOFF,
        };
        let peer = &mut self.tunnels.peers[index];
        if peer.why_not_reached != why {
            why.clone_into(&mut peer.why_not_reached);
            let text = format!("no lane to {}: {why}; trying again", peer.site);
            self.tunnels.say_of(driver, index, text);
        }
        let peer = &mut self.tunnels.peers[index];
        // The peer's next address, if it has several.
        if let Some(tried) = peer.address
            && let Some(at) = peer.addresses.iter().position(|address| *address == tried)
        {
            let next = (at + 1) % peer.addresses.len();
            peer.address = peer.addresses.get(next).copied();
        }
        let dial = &mut peer.dials[lane];
        let pause = dial.back_off(most);
        dial.under_way = false;
        self.tunnels.dial_after(driver, index, lane, pause);
    }

    /// Dials again the lane over QUIC, beside those over TCP, which did not come up.
    fn spare_failed(&mut self, driver: &mut Driver, index: PeerIndex, why: &str) {
        let peer = &mut self.tunnels.peers[index];
        if peer.why_no_quic != why {
            why.clone_into(&mut peer.why_no_quic);
            let text = format!(
                "no lane over QUIC to {}, which would be better because the path loses segments: {why}; using TCP meanwhile",
                peer.site
            );
            self.tunnels.say_of(driver, index, text);
        }
        let dial = &mut self.tunnels.peers[index].dials[LaneNumber::QUIC];
        let pause = dial.back_off(LAST_SPARE_BACKOFF);
        dial.under_way = false;
        self.tunnels.dial_after(driver, index, LaneNumber::QUIC, pause);
    }

    /// Begins a lane over a TCP connection that has come about without a dialler.
    pub(crate) fn begin_over_tcp(
        &mut self,
        driver: &mut Driver,
        socket: TcpStream,
        address: SocketAddr,
        (index, lane): (PeerIndex, LaneNumber),
    ) {
        let site = self.tunnels.peers[index].site.clone();
        match self.tunnels.tcp_carrier(driver, socket, Some(&site)) {
            Ok(carrier) => self
                .tunnels
                .begin_handshake(driver, carrier, address, Some((index, lane)), None),
            Err(error) => self.tunnels.dial_failed(index, lane, &error.to_string()),
        }
    }

    /// Dials a lane over QUIC.
    pub(crate) fn dial_over_udp(&mut self, driver: &mut Driver, index: PeerIndex, address: SocketAddr) {
        let lane = match driver.config.transport {
            Transport::Quic => LaneNumber(0),
            _ => LaneNumber::QUIC,
        };
        let site = self.tunnels.peers[index].site.clone();
        match self.tunnels.dial_quic(driver, &site, address) {
            Ok(carrier) => self
                .tunnels
                .begin_handshake(driver, carrier, address, Some((index, lane)), None),
            Err(error) => {
                let why = format!("connect to {address}: {error}");
                self.tunnels.dial_failed(index, lane, &why);
            }
        }
    }

    /// Dials a relay to show a ticket there: for this lane, or for the one that the far gateway asked for.
    ///
    /// # Errors
    /// Those of the kernel, from connecting.
    pub(crate) fn visit(
        &mut self,
        driver: &mut Driver,
        address: SocketAddr,
        visit: RelayVisit,
        lane: Option<LaneNumber>,
    ) -> io::Result<()> {
        if driver.config.proxy.is_some() {
            let purpose = Purpose::Visit(visit, lane);
            return self.tunnels.begin_through_proxy(driver, address, purpose);
        }
        let far = self.tunnels.peers[visit.peer].site.clone();
        let far = lane.is_some().then_some(far.as_str());
        let socket = TcpStream::connect(address)?;
        let carrier = self.tunnels.tcp_carrier(driver, socket, far)?;
        let dialled = lane.map(|lane| (visit.peer, lane));
        self.tunnels
            .begin_handshake(driver, carrier, address, dialled, Some(visit));
        Ok(())
    }

    /// Ends a visit to a relay that says that the meeting with this number cannot take place.
    pub(crate) fn end_relay_visit(&mut self, driver: &mut Driver, relay: &str, id: u64, why: &str) {
        let waiting = self.tunnels.handshakes.iter().find(|(_, handshake)| {
            let is_it =
                |visit: &RelayVisit| visit.id == id && visit.through.site == relay && !visit.has_met();
            handshake.dialled().is_some() && handshake.visit().is_some_and(is_it)
        });
        if let Some(key) = waiting.map(|(key, _)| key) {
            self.tunnels.end_handshake(driver, key, "handshake", why);
        }
    }

    /// Counts the connections to relays that are in progress because other sites asked.
    pub(crate) fn visits_for_others(&self) -> usize {
        let others = { self.tunnels.handshakes.iter() }.filter(|(_, other)| other.visit().is_some());
        others.filter(|(_, other)| other.dialled().is_none()).count()
    }

    /// Whether a peer may have this gateway dial something now; see
    /// [`Rate`](crate::tunnels::peers::rate::Rate).
    pub(crate) fn may_ask(&mut self, index: PeerIndex, now: Instant) -> bool {
        self.tunnels.peers[index].asked.take(now)
    }

    /// Whether a peer may send something long now.
    pub(crate) fn may_say_at_length(&mut self, index: PeerIndex, now: Instant) -> bool {
        self.tunnels.peers[index].long_messages.take(now)
    }

    /// Notes why there is no tunnel to a peer; returns whether the reason is a new one.
    pub(crate) fn set_why_not_reached(&mut self, index: PeerIndex, why: &str) -> bool {
        self.tunnels.set_why_not_reached(index, why)
    }

    /// Notes how a lane's path was opened; `None` if the lane was dialled.
    pub(crate) fn mark_punched(&mut self, lane: LaneKey, way: Option<Way>) {
        if let Some(lane) = self.tunnels.lanes.get_mut(lane) {
            lane.punched = way;
        }
    }

    /// Sends a datagram that does not belong to QUIC from the UDP socket, if there is one.
    pub(crate) fn say_datagram(&self, to: SocketAddr, datagram: &[u8]) -> io::Result<()> {
        let quic = self.tunnels.quic.as_ref();
        quic.map_or(Ok(()), |quic| quic.say(to, datagram))
    }
}
