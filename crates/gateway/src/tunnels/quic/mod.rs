//! Lanes over QUIC: for paths that lose segments, and for hosts whose kernel has no congestion control that serves.
//!
//! QUIC (RFC 9000; quinn-proto, without sockets or clock) brings the connection, its encryption and its retransmissions. Ours are its pace
//! (`model`), what makes up for losses without a round trip (`causeway_tunnel::parity`), and its place under a lane (`session`). All connections of a
//! gateway share one UDP socket, on the port where it listens for TCP. Who speaks is proved as on every lane (`handshake`).

pub(crate) mod model;
pub(crate) mod session;

use crate::config::Transport;
use crate::gateway::Gateway;
use crate::sys::token::Class;
use crate::tunnels::carrier::Carrier;
use crate::tunnels::tls;
use bytes::BytesMut;
use causeway_broker::reflection;
use causeway_tunnel::parity::Head;
use mio::net::UdpSocket;
use mio::{Interest, Registry, Token};
use quinn_proto::crypto::rustls::{QuicClientConfig, QuicServerConfig};
use quinn_proto::{
    AckFrequencyConfig, ClientConfig, ConnectionEvent, ConnectionHandle, DatagramEvent, Endpoint,
    EndpointConfig, MtuDiscoveryConfig, ServerConfig, TransportConfig, VarInt,
};
use quinn_udp::{RecvMeta, UdpSocketState};
use session::{Parity, Path, Session, Wire};
use std::collections::HashMap;
use std::io::{self, ErrorKind, IoSliceMut};
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::{Arc, Mutex, Weak};
use std::time::{Duration, Instant};

/// First byte of a knock.
pub(crate) const KNOCK: u8 = 0x32;

/// Room for what the kernel gives at once, in as many pieces.
const RECEIVED_BYTES: usize = 64 * 1024;
const PIECES: usize = 8;

/// Rounds of reading before others get their turn.
const ROUNDS: usize = 8;

/// What the kernel may keep for us, where it lets us: 30 ms of 1 Gbit/s.
pub const KERNEL_BYTES: usize = 4 << 20;

/// A first round trip is taken for so long: a network that comes back is asked again soon (a path that takes longer is asked once too often).
const FIRST_ROUND: Duration = Duration::from_millis(100);

/// What may be under way and unread: as much as a lane keeps on the longest paths.
const WINDOW: u32 = 64 << 20;

/// The same until the far side has proved who it is.
const FIRST_WINDOW: u32 = 16 << 10;

/// Later datagrams that arrive before an earlier one is taken for lost: what parity makes up for comes that late.
const REORDERED: u32 = 64;

/// Datagrams that one acknowledgement serves.
const ACKED_TOGETHER: u32 = 16;

/// A NAT or firewall forgets a silent UDP connection after two minutes (RFC 4787, section 4.3), many after half of one.
const KEEP_ALIVE: Duration = Duration::from_secs(15);

/// Connections of strangers that wait to be accepted, and that are accepted in one turn. With so many handshakes under way, an address proves first that it
/// can be answered.
const INCOMING: usize = 64;
const ACCEPTED: usize = 8;
const TRUSTED: usize = 16;

/// The gateway's end of QUIC.
pub(crate) struct Quic {
    endpoint: Endpoint,
    wire: Arc<Wire>,
    server: Arc<ServerConfig>,
    own: tls::Binding,
    /// Which handshake or lane has a connection.
    owners: HashMap<ConnectionHandle, Token>,
    /// What makes up for losses, by the far address.
    paths: HashMap<SocketAddr, Weak<Mutex<Parity>>>,
    space: Vec<u8>,
    /// The kernel may have more.
    pub(crate) unread: bool,
    /// Strangers accepted in this turn.
    accepted: usize,
    is_ipv4: bool,
}

impl Quic {
    /// Opens the UDP socket: at `address`, or at a port of the kernel's choice.
    pub(crate) fn open(
        tls: &tls::Context,
        address: Option<SocketAddr>,
        is_ipv4: bool,
        registry: &Registry,
        token: Token,
    ) -> io::Result<Quic> {
        let any = || match is_ipv4 {
            true => SocketAddr::from((Ipv4Addr::UNSPECIFIED, 0)),
            false => SocketAddr::from((Ipv6Addr::UNSPECIFIED, 0)),
        };
        let address = address.unwrap_or_else(any);
        let mut socket = UdpSocket::bind(address)?;
        registry.register(&mut socket, token, Interest::READABLE | Interest::WRITABLE)?;
        let state = UdpSocketState::new((&socket).into())?;
        // What the kernel grants is enough or costs some packets.
        let _ = state.set_recv_buffer_size((&socket).into(), KERNEL_BYTES);
        let _ = state.set_send_buffer_size((&socket).into(), KERNEL_BYTES);
        let server = server_config(tls)?;
        let endpoint = Endpoint::new(
            Arc::new(EndpointConfig::default()),
            Some(server.clone()),
            !state.may_fragment(),
            None,
        );
        Ok(Quic {
            endpoint,
            wire: Arc::new(Wire {
                socket,
                state,
                events: Mutex::default(),
            }),
            server,
            own: tls.own(),
            owners: HashMap::new(),
            paths: HashMap::new(),
            space: vec![0; RECEIVED_BYTES * PIECES],
            unread: false,
            accepted: 0,
            is_ipv4: address.is_ipv4(),
        })
    }

    /// What makes up for losses on the way to an address.
    fn path(&mut self, address: SocketAddr) -> Path {
        if let Some(path) = self.paths.get(&address).and_then(Weak::upgrade) {
            return path;
        }
        self.paths.retain(|_, path| path.strong_count() > 0);
        let path = Path::new(Mutex::new(Parity::new()));
        self.paths.insert(address, Arc::downgrade(&path));
        path
    }

    fn dial(
        &mut self,
        client: Arc<rustls::ClientConfig>,
        address: SocketAddr,
        now: Instant,
    ) -> io::Result<Session> {
        let address = self.as_sent(address)?;
        let model = session::model();
        let client = QuicClientConfig::try_from(client).map_err(io::Error::other)?;
        let mut config = ClientConfig::new(Arc::new(client));
        config.transport_config(Arc::new(transport(address.is_ipv4(), model.clone())));
        let begun = self.endpoint.connect(now, config, address, "causeway");
        let (handle, connection) = begun.map_err(io::Error::other)?;
        let path = self.path(address);
        Ok(Session::new(
            self.wire.clone(),
            handle,
            connection,
            path,
            model,
            None,
        ))
    }

    /// The form of an address that the UDP socket sends to.
    fn as_sent(&self, address: SocketAddr) -> io::Result<SocketAddr> {
        Ok(match address {
            // A socket of IPv6 takes IPv4 in its own form (RFC 4291, section 2.5.5.2).
            SocketAddr::V4(v4) if !self.is_ipv4 => {
                SocketAddr::new(v4.ip().to_ipv6_mapped().into(), v4.port())
            }
            SocketAddr::V6(_) if self.is_ipv4 => {
                let why = "the UDP socket of this gateway is one of IPv4, as [listen] wan is";
                return Err(io::Error::other(why));
            }
            other => other,
        })
    }

    /// Sends what is none of QUIC's, from the socket of all connections.
    pub(crate) fn say(&self, to: SocketAddr, datagram: &[u8]) -> io::Result<()> {
        self.wire.send_plain(self.as_sent(to)?, datagram);
        Ok(())
    }

    /// Where the socket is bound.
    pub(crate) fn local_address(&self) -> Option<SocketAddr> {
        self.wire.socket.local_addr().ok()
    }

    /// Whose connection this is from now on.
    pub(crate) fn set_owner(&mut self, handle: ConnectionHandle, token: Token) {
        self.owners.insert(handle, token);
    }
}

/// For connections of strangers, each of which gets a transport of its own.
fn server_config(tls: &tls::Context) -> io::Result<Arc<ServerConfig>> {
    let crypto = QuicServerConfig::try_from(tls.server()).map_err(io::Error::other)?;
    let mut server = ServerConfig::with_crypto(Arc::new(crypto));
    server.max_incoming(INCOMING);
    Ok(Arc::new(server))
}

fn transport(is_ipv4: bool, model: model::Shared) -> TransportConfig {
    let mut transport = TransportConfig::default();
    let mut discovery = MtuDiscoveryConfig::default();
    discovery.upper_bound(session::most_mtu(is_ipv4));
    let mut acks = AckFrequencyConfig::default();
    acks.ack_eliciting_threshold(VarInt::from_u32(ACKED_TOGETHER))
        .max_ack_delay(Some(session::ACK_DELAY))
        .reordering_threshold(VarInt::from_u32(REORDERED));
    transport
        .max_concurrent_bidi_streams(VarInt::from_u32(1))
        .max_concurrent_uni_streams(VarInt::from_u32(0))
        .datagram_receive_buffer_size(None)
        .initial_rtt(FIRST_ROUND)
        .keep_alive_interval(Some(KEEP_ALIVE))
        // Handshakes and lanes have time limits of their own.
        .max_idle_timeout(None)
        .stream_receive_window(VarInt::from_u32(WINDOW))
        .receive_window(VarInt::from_u32(FIRST_WINDOW))
        .packet_threshold(REORDERED)
        .mtu_discovery_config(Some(discovery))
        .ack_frequency_config(Some(acks))
        .congestion_controller_factory(Arc::new(model));
    transport
}

impl Gateway {
    /// Opens the UDP socket where lanes may go over QUIC.
    pub(crate) fn open_quic(&mut self) -> io::Result<()> {
        let Some(tls) = self
            .tunnels
            .tls
            .as_ref()
            .filter(|_| self.driver.config.transport != Transport::Tcp)
        else {
            return Ok(());
        };
        let wan = self.driver.config.wan;
        let far = self.tunnels.peers.iter().filter_map(|peer| peer.address);
        let is_ipv4 = wan.into_iter().chain(far).all(|address| address.is_ipv4());
        let token = Class::Quic.token(0);
        match Quic::open(tls, wan, is_ipv4, self.driver.registry(), token) {
            Ok(quic) => self.tunnels.quic = Some(quic),
            Err(error) if self.driver.config.transport == Transport::Quic => {
                let place = wan.map_or_else(|| "any port".to_owned(), |address| address.to_string());
                return Err(io::Error::new(
                    error.kind(),
                    format!("UDP at {place} for QUIC: {error}"),
                ));
            }
            Err(error) => self.driver.log.say(format_args!(
                "no lanes over QUIC, since there is no UDP socket: {error}"
            )),
        }
        Ok(())
    }

    /// Dials a lane over QUIC to the gateway of `site`.
    pub(crate) fn dial_quic(&mut self, site: &str, address: SocketAddr) -> io::Result<Carrier> {
        let quic = self.tunnels.quic.as_mut().zip(self.tunnels.tls.as_ref());
        let none = || io::Error::other("this gateway has no UDP socket (see its log)");
        let (quic, tls) = quic.ok_or_else(none)?;
        let client = tls.client(site)?;
        Ok(Carrier::Quic(Box::new(quic.dial(
            client,
            address,
            self.driver.now,
        )?)))
    }

    /// The kernel has something for the UDP socket, or takes more.
    pub(crate) fn on_quic(&mut self, event: &mio::event::Event) {
        if event.is_writable() {
            self.attend_quic(|session| session.is_waiting());
        }
        if event.is_readable() {
            self.receive_quic();
        }
    }

    /// Takes in what has arrived.
    pub(crate) fn receive_quic(&mut self) {
        let mut made = Vec::new();
        let mut touched: Vec<ConnectionHandle> = Vec::new();
        for _ in 0..ROUNDS {
            let Some(quic) = &mut self.tunnels.quic else {
                return;
            };
            quic.unread = false;
            quic.accepted = 0;
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
                    return self.attend_connections(&touched);
                }
                Err(error) if error.kind() == ErrorKind::Interrupted => continue,
                // Such as a refusal by a far host (ECONNREFUSED): it concerns one datagram that was sent.
                Err(_) => {
                    quic.unread = true;
                    continue;
                }
            };
            // Not before they arrived: a round trip must not look shorter than it is.
            let now = Instant::now();
            let space = std::mem::take(&mut quic.space);
            for (meta, piece) in metas[..count].iter().zip(space.chunks(RECEIVED_BYTES)) {
                for datagram in piece[..meta.len].chunks(meta.stride.max(1)) {
                    self.on_datagram(now, meta, datagram, &mut made, &mut touched);
                }
            }
            if let Some(quic) = &mut self.tunnels.quic {
                quic.space = space;
                quic.unread = true;
            }
        }
        self.attend_connections(&touched);
    }

    fn on_datagram(
        &mut self,
        now: Instant,
        meta: &RecvMeta,
        datagram: &[u8],
        made: &mut Vec<u8>,
        touched: &mut Vec<ConnectionHandle>,
    ) {
        match datagram.first() {
            Some(&reflection::ANSWER) => return self.on_reflection(datagram),
            Some(&KNOCK) => return self.on_knock(datagram, meta.addr),
            _ => {}
        }
        let Some(quic) = &mut self.tunnels.quic else {
            return;
        };
        let Some((head, body)) = Head::split(datagram) else {
            return;
        };
        made.clear();
        if let Some(path) = quic.paths.get(&meta.addr).and_then(Weak::upgrade) {
            session::lock(&path).take(head, body, now, made);
        }
        if head.carries() {
            self.on_quic_datagram(now, meta, body, touched);
        }
        if !made.is_empty() {
            self.on_quic_datagram(now, meta, made, touched);
        }
    }

    fn on_quic_datagram(
        &mut self,
        now: Instant,
        meta: &RecvMeta,
        datagram: &[u8],
        touched: &mut Vec<ConnectionHandle>,
    ) {
        let Some(quic) = &mut self.tunnels.quic else {
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
                self.on_quic_stranger(incoming, meta.addr);
            }
            Some(DatagramEvent::Response(_)) => quic.wire.send_stray(meta.addr, &answer),
            None => {}
        }
    }

    fn on_quic_stranger(&mut self, incoming: quinn_proto::Incoming, address: SocketAddr) {
        let crowd = self.tunnels.handshakes.len();
        let (now, Some(quic)) = (self.driver.now, &mut self.tunnels.quic) else {
            return;
        };
        let mut answer = Vec::new();
        if crowd >= TRUSTED && !incoming.remote_address_validated() && incoming.may_retry() {
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
                self.on_gateway_connection(Carrier::Quic(Box::new(session)), address);
            }
            Err(error) => {
                if error.response.is_some() {
                    quic.wire.send_stray(address, &answer);
                }
            }
        }
    }

    fn session(&mut self, handle: ConnectionHandle) -> Option<(Token, &mut Session)> {
        let token = *self.tunnels.quic.as_ref()?.owners.get(&handle)?;
        let (class, key) = Class::of(token);
        let carrier = match class {
            Class::Handshake => self.tunnels.handshakes.get_mut(key)?.carrier(),
            Class::Lane => &mut self.tunnels.lanes.get_mut(key)?.carrier,
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
    pub(crate) fn attend_connections(&mut self, handles: &[ConnectionHandle]) {
        let now = self.driver.now;
        for handle in handles {
            let Some((token, session)) = self.session(*handle) else {
                continue;
            };
            session.attend(now);
            let moved = session.remote();
            let writes = session.may_write(now);
            self.follow_address(*handle, moved);
            match Class::of(token) {
                (Class::Handshake, _) if self.driver.leaving => {}
                (Class::Handshake, key) => self.on_handshake(key),
                (_, key) => {
                    if let Some(lane) = self.tunnels.lanes.get_mut(key) {
                        lane.writable |= writes;
                        let pair = lane.pair;
                        self.touch(pair);
                        if !self.driver.leaving {
                            self.receive(key);
                        }
                    }
                }
            }
        }
        self.settle_quic();
    }

    /// The far side's address may have changed under the connection (RFC 9000, section 9).
    fn follow_address(&mut self, handle: ConnectionHandle, address: SocketAddr) {
        let Some(quic) = &mut self.tunnels.quic else {
            return;
        };
        let path = quic.path(address);
        if let Some((_, session)) = self.session(handle)
            && !Arc::ptr_eq(&session.path, &path)
        {
            session.path = path;
        }
    }

    /// What connections have for the endpoint, and it for them.
    pub(crate) fn settle_quic(&mut self) {
        let Some(wire) = self.tunnels.quic.as_ref().map(|quic| quic.wire.clone()) else {
            return;
        };
        for (handle, event) in wire.take_events() {
            let Some(quic) = &mut self.tunnels.quic else {
                return;
            };
            if event.is_drained() {
                quic.owners.remove(&handle);
            }
            if let Some(event) = quic.endpoint.handle_event(handle, event) {
                self.on_connection_event(handle, event);
                let now = self.driver.now;
                if let Some((_, session)) = self.session(handle) {
                    session.attend(now);
                }
            }
        }
    }

    /// When a connection wants to be looked at next.
    pub(crate) fn quic_deadline(&mut self) -> Option<Instant> {
        let handles: Vec<ConnectionHandle> = self.tunnels.quic.as_ref()?.owners.keys().copied().collect();
        let deadlines = handles
            .into_iter()
            .filter_map(|handle| self.session(handle)?.1.deadline());
        deadlines.min()
    }

    /// Lets time pass for the connections that wait for it.
    pub(crate) fn look_after_quic(&mut self) {
        let now = self.driver.now;
        self.attend_quic(|session| {
            let due = session.deadline().is_some_and(|at| at <= now);
            if due {
                session.on_time(now);
            }
            due
        });
    }

    fn attend_quic(&mut self, mut concerns: impl FnMut(&mut Session) -> bool) {
        let Some(quic) = &self.tunnels.quic else { return };
        let mut handles: Vec<ConnectionHandle> = quic.owners.keys().copied().collect();
        handles.retain(|handle| {
            self.session(*handle)
                .is_some_and(|(_, session)| concerns(session))
        });
        self.attend_connections(&handles);
    }
}

impl Quic {
    /// New connections use another certificate.
    pub(crate) fn renew(&mut self, tls: &tls::Context) -> io::Result<()> {
        self.server = server_config(tls)?;
        self.endpoint.set_server_config(Some(self.server.clone()));
        self.own = tls.own();
        Ok(())
    }

    fn server(&self, is_ipv4: bool, model: model::Shared) -> Arc<ServerConfig> {
        let mut server = (*self.server).clone();
        server.transport_config(Arc::new(transport(is_ipv4, model)));
        Arc::new(server)
    }
}
