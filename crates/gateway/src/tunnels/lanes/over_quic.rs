//! Lanes over QUIC in the loop: passes datagrams to their connections, and connections to their handshakes
//! and lanes.

use crate::config::Transport;
use crate::driver::Driver;
use crate::keys::{HandshakeKey, LaneKey};
use crate::sys::source::Class;
use crate::tunnels::Tunnels;
use crate::tunnels::carrier::Carrier;
use crate::tunnels::event::TunnelsEvent;
use crate::tunnels::quic::{KNOCK, PIECES, Quic, RECEIVED_BYTES, session, wire};
use bytes::BytesMut;
use causeway_broker::reflection;
use causeway_tunnel::parity::Head;
use mio::Token;
use quinn_proto::{ConnectionEvent, ConnectionHandle, DatagramEvent};
use quinn_udp::RecvMeta;
use session::Session;
use std::io::{self, ErrorKind, IoSliceMut};
use std::net::SocketAddr;
use std::sync::{Arc, Weak};
use std::time::Instant;

/// Most rounds of reading before other sources get their turn.
const ROUNDS: usize = 8;

const ACCEPTED: usize = 8;

const TRUSTED: usize = 16;

/// Longest datagram that does not belong to QUIC: an answer of the broker has 36 bytes, a knock fewer.
const PLAIN_BYTES: usize = 64;

impl Tunnels {
    /// Whether the UDP socket had more than a turn could read.
    pub(in crate::tunnels) fn has_unread_datagrams(&self) -> bool {
        self.quic.as_ref().is_some_and(|quic| quic.unread)
    }

    /// Opens the UDP socket if lanes may use QUIC.
    pub(in crate::tunnels) fn open_quic(&mut self, driver: &mut Driver) -> io::Result<()> {
        let Some(tls) = self
            .tls
            .as_ref()
            .filter(|_| driver.config.transport != Transport::Tcp)
        else {
            return Ok(());
        };
        let wan = driver.config.wan;
        let far = self.peers.values().filter_map(|peer| peer.address);
        let is_ipv4 = wan.into_iter().chain(far).all(|address| address.is_ipv4());
        let token = Class::Quic.token(0);
        match Quic::open(tls, wan, is_ipv4, driver.registry(), token) {
            Ok(quic) => self.quic = Some(quic),
            Err(error) if driver.config.transport == Transport::Quic => {
                let place = wan.map_or_else(|| "any port".to_owned(), |address| address.to_string());
                return Err(io::Error::new(
                    error.kind(),
                    format!("UDP at {place} for QUIC: {error}"),
                ));
            }
            Err(error) => driver.say(format_args!(
                "no lanes over QUIC, since there is no UDP socket: {error}"
            )),
        }
        Ok(())
    }

    /// Dials a lane over QUIC to the gateway of `site`.
    pub(in crate::tunnels) fn dial_quic(
        &mut self,
        driver: &mut Driver,
        site: &str,
        address: SocketAddr,
    ) -> io::Result<Carrier> {
        let quic = self.quic.as_mut().zip(self.tls.as_ref());
        let none = || io::Error::other("this gateway has no UDP socket (see its log)");
        let (quic, tls) = quic.ok_or_else(none)?;
        let client = tls.client(site)?;
        Ok(Carrier::Quic(Box::new(quic.dial(client, address, driver.now)?)))
    }

    /// The kernel has something for the UDP socket, or accepts more.
    pub(in crate::tunnels) fn on_quic(&mut self, driver: &mut Driver, event: &mio::event::Event) {
        if event.is_writable() {
            self.attend_quic(driver, |session| session.is_waiting());
        }
        if event.is_readable() {
            self.receive_quic(driver);
        }
    }

    /// Takes in what has arrived.
    pub(in crate::tunnels) fn receive_quic(&mut self, driver: &mut Driver) {
        let mut made = Vec::new();
        let mut touched: Vec<ConnectionHandle> = Vec::new();
        if let Some(quic) = &mut self.quic {
            quic.accepted = 0;
        }
        for _ in 0..ROUNDS {
            let Some(quic) = &mut self.quic else {
                return;
            };
            quic.unread = false;
            let mut metas = [RecvMeta::default(); PIECES];
            let mut pieces = quic.space.chunks_mut(RECEIVED_BYTES).map(IoSliceMut::new);
            let mut pieces: [IoSliceMut<'_>; PIECES] =
                std::array::from_fn(|_| pieces.next().unwrap_or_else(|| IoSliceMut::new(&mut [])));
            let received = quic
                .wire
                .state
                .recv((&quic.wire.socket).into(), &mut pieces, &mut metas);
            let count = match received {
                Ok(count) => count,
                Err(error) if error.kind() == ErrorKind::WouldBlock => {
                    return self.attend_connections(driver, &touched);
                }
                Err(error) if error.kind() == ErrorKind::Interrupted => continue,
                // For example, a far host has refused a datagram (ECONNREFUSED): that concerns only this
                // datagram.
                Err(_) => {
                    quic.unread = true;
                    continue;
                }
            };
            // Read after they have arrived: a round trip must not look shorter than it is.
            let now = Instant::now();
            let space = std::mem::take(&mut quic.space);
            for (meta, piece) in metas[..count].iter().zip(space.chunks(RECEIVED_BYTES)) {
                for datagram in piece[..meta.len].chunks(meta.stride.max(1)) {
                    self.on_wire_datagram(driver, now, meta, datagram, &mut made, &mut touched);
                }
            }
            if let Some(quic) = &mut self.quic {
                quic.space = space;
                quic.unread = true;
            }
        }
        self.attend_connections(driver, &touched);
    }

    fn on_wire_datagram(
        &mut self,
        driver: &mut Driver,
        now: Instant,
        meta: &RecvMeta,
        datagram: &[u8],
        made: &mut Vec<u8>,
        touched: &mut Vec<ConnectionHandle>,
    ) {
        match datagram.first() {
            Some(&(reflection::ANSWER | KNOCK)) if datagram.len() <= PLAIN_BYTES => {
                let (bytes, from) = (datagram.to_vec(), meta.addr);
                return self.events.push_back(TunnelsEvent::Datagram { bytes, from });
            }
            _ => {}
        }
        let Some(quic) = &mut self.quic else {
            return;
        };
        let Some((head, body)) = Head::split(datagram) else {
            return;
        };
        made.clear();
        if let Some(path) = quic.paths.get(&meta.addr).and_then(Weak::upgrade) {
            wire::lock(&path).take(head, body, now, made);
        }
        if head.carries() {
            self.on_quic_datagram(driver, now, meta, body, touched);
        }
        if !made.is_empty() {
            self.on_quic_datagram(driver, now, meta, made, touched);
        }
    }

    fn on_quic_datagram(
        &mut self,
        driver: &mut Driver,
        now: Instant,
        meta: &RecvMeta,
        datagram: &[u8],
        touched: &mut Vec<ConnectionHandle>,
    ) {
        let Some(quic) = &mut self.quic else {
            return;
        };
        let mut answer = Vec::new();
        let bytes = BytesMut::from(datagram);
        let event = quic
            .endpoint
            .handle(now, meta.addr, None, None, bytes, &mut answer);
        match event {
            Some(DatagramEvent::ConnectionEvent(handle, event)) => {
                self.on_connection_event(handle, event);
                if touched.last() != Some(&handle) && !touched.contains(&handle) {
                    touched.push(handle);
                }
            }
            Some(DatagramEvent::NewConnection(incoming)) => {
                self.on_quic_stranger(driver, incoming, meta.addr);
            }
            Some(DatagramEvent::Response(_)) => quic.wire.send_stray(meta.addr, &answer),
            None => {}
        }
    }

    fn on_quic_stranger(
        &mut self,
        driver: &mut Driver,
        incoming: quinn_proto::Incoming,
        address: SocketAddr,
    ) {
        let handshakes = self.handshakes.len();
        let (now, Some(quic)) = (driver.now, &mut self.quic) else {
            return;
        };
        let mut answer = Vec::new();
        if handshakes >= TRUSTED && !incoming.remote_address_validated() && incoming.may_retry() {
            if quic.endpoint.retry(incoming, &mut answer).is_ok() {
                quic.wire.send_stray(address, &answer);
            }
            return;
        }
        if quic.accepted >= ACCEPTED {
            return quic.endpoint.ignore(incoming);
        }
        quic.accepted += 1;
        let model = session::model();
        let server = quic.server(address.is_ipv4(), model.clone());
        match quic.endpoint.accept(incoming, now, &mut answer, Some(server)) {
            Ok((handle, connection)) => {
                let path = quic.path(address);
                let session =
                    Session::new(quic.wire.clone(), handle, connection, path, model, Some(quic.own));
                self.on_gateway_connection(driver, Carrier::Quic(Box::new(session)), address);
            }
            Err(error) => {
                if error.response.is_some() {
                    quic.wire.send_stray(address, &answer);
                }
            }
        }
    }

    fn session(&mut self, handle: ConnectionHandle) -> Option<(Token, &mut Session)> {
        let token = *self.quic.as_ref()?.owners.get(&handle)?;
        let (class, key) = Class::of(token);
        let carrier = match class {
            Class::Handshake => self.handshakes.get_mut(HandshakeKey(key))?.carrier(),
            Class::Lane => &mut self.lanes.get_mut(LaneKey(key))?.carrier,
            _ => return None,
        };
        let session = carrier.quic()?;
        (session.handle() == handle).then_some((token, session))
    }

    fn on_connection_event(&mut self, handle: ConnectionHandle, event: ConnectionEvent) {
        if let Some((_, session)) = self.session(handle) {
            session.on_event(event);
        }
    }

    /// Something has happened in these connections: their handshakes and lanes go on.
    pub(in crate::tunnels) fn attend_connections(
        &mut self,
        driver: &mut Driver,
        handles: &[ConnectionHandle],
    ) {
        let now = driver.now;
        for handle in handles {
            let Some((token, session)) = self.session(*handle) else {
                continue;
            };
            session.attend(now);
            let moved = session.remote();
            let writes = session.may_write(now);
            self.follow_address(*handle, moved);
            match Class::of(token) {
                (Class::Handshake, _) if driver.leaving => {}
                (Class::Handshake, key) => self.on_handshake(driver, HandshakeKey(key)),
                (_, key) => {
                    let key = LaneKey(key);
                    if let Some(lane) = self.lanes.get_mut(key) {
                        lane.writable |= writes;
                        let pair = lane.pair;
                        self.pairs.touch(pair);
                        if !driver.leaving {
                            self.unread.push(key);
                        }
                    }
                }
            }
        }
        self.drive_quic(driver);
    }

    /// The far side's address may have changed under the connection (RFC 9000, section 9).
    fn follow_address(&mut self, handle: ConnectionHandle, address: SocketAddr) {
        let Some(quic) = &mut self.quic else {
            return;
        };
        let path = quic.path(address);
        if let Some((_, session)) = self.session(handle)
            && !Arc::ptr_eq(&session.path, &path)
        {
            session.path = path;
        }
    }

    /// Passes events from connections to the endpoint, and back.
    pub(in crate::tunnels) fn drive_quic(&mut self, driver: &mut Driver) {
        let Some(wire) = self.quic.as_ref().map(|quic| quic.wire.clone()) else {
            return;
        };
        for (handle, event) in wire.take_events() {
            let Some(quic) = &mut self.quic else {
                return;
            };
            if event.is_drained() {
                quic.owners.remove(&handle);
            }
            if let Some(event) = quic.endpoint.handle_event(handle, event) {
                self.on_connection_event(handle, event);
                let now = driver.now;
                if let Some((_, session)) = self.session(handle) {
                    session.attend(now);
                }
            }
        }
    }

    /// When the next connection is due.
    pub(in crate::tunnels) fn quic_deadline(&mut self) -> Option<Instant> {
        let handles: Vec<ConnectionHandle> = self.quic.as_ref()?.owners.keys().copied().collect();
        let deadlines = handles
            .into_iter()
            .filter_map(|handle| self.session(handle)?.1.deadline());
        deadlines.min()
    }

    /// Runs the connections that are due.
    pub(in crate::tunnels) fn look_after_quic(&mut self, driver: &mut Driver) {
        let now = driver.now;
        self.attend_quic(driver, |session| {
            let due = session.deadline().is_some_and(|at| at <= now);
            if due {
                session.on_time(now);
            }
            due
        });
    }

    fn attend_quic(&mut self, driver: &mut Driver, mut concerns: impl FnMut(&mut Session) -> bool) {
        let Some(quic) = &self.quic else { return };
        let mut handles: Vec<ConnectionHandle> = quic.owners.keys().copied().collect();
        handles.retain(|handle| {
            self.session(*handle)
                .is_some_and(|(_, session)| concerns(session))
        });
        self.attend_connections(driver, &handles);
    }
}
