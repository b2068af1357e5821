//! Lanes over QUIC: for paths that lose segments, and for hosts whose kernel has no suitable congestion
//! control.
//!
//! QUIC (RFC 9000; quinn-proto, without sockets or clock) provides the connection, its encryption and its
//! retransmissions. We add its pace (`model`), the repair of losses without a round trip
//! (`causeway_tunnel::parity`), and its use under a lane (`session`). All connections of a gateway share one
//! UDP socket, on the port where it listens for TCP. Who speaks is proved as on every lane (`handshake`).

mod model;
pub(crate) mod session;
mod shared;
pub(super) mod wire;

use crate::tunnels::tls;
use mio::net::UdpSocket;
use mio::{Interest, Registry, Token};
use quinn_proto::crypto::rustls::{QuicClientConfig, QuicServerConfig};
use quinn_proto::{
    AckFrequencyConfig, ClientConfig, ConnectionHandle, Endpoint, EndpointConfig, MtuDiscoveryConfig,
    ServerConfig, TransportConfig, VarInt,
};
use quinn_udp::UdpSocketState;
use session::Session;
use std::collections::HashMap;
use std::io::{self};
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::{Arc, Mutex, Weak};
use std::time::{Duration, Instant};
use wire::{Parity, Path, Wire};

/// First byte of a knock.
pub(crate) const KNOCK: u8 = 0x32;

/// Space for what one call to the kernel returns, in as many pieces.
pub(in crate::tunnels) const RECEIVED_BYTES: usize = 64 * 1024;
pub(in crate::tunnels) const PIECES: usize = 8;

/// How much the kernel may buffer for us, if it lets us set that: 30 ms of 1 Gbit/s.
pub const KERNEL_BYTES: usize = 4 << 20;

/// The first round trip is assumed to take this long: a network that comes back is asked again soon (a path
/// that takes longer is asked once too often).
pub(in crate::tunnels) const FIRST_RTT: Duration = Duration::from_millis(100);

/// How much may be in flight and unread: as much as a lane keeps on the longest paths.
pub(in crate::tunnels) const WINDOW: u32 = 64 << 20;

/// The same until the far side has proved who it is.
pub(in crate::tunnels) const FIRST_WINDOW: u32 = 16 << 10;

/// How many later datagrams arrive before an earlier one counts as lost: repairs by parity arrive that late.
pub(in crate::tunnels) const REORDERED: u32 = 64;

/// How many datagrams share one acknowledgement.
pub(in crate::tunnels) const ACKED_TOGETHER: u32 = 16;

/// Pause between keep-alives: a NAT or firewall forgets a silent UDP connection after two minutes (RFC 4787,
/// section 4.3), many after half a minute.
pub(in crate::tunnels) const KEEP_ALIVE: Duration = Duration::from_secs(15);

/// Most connections of strangers that wait to be accepted, and that are accepted in one turn. If that many
/// handshakes are in progress, an address must first prove that answers reach it.
pub(in crate::tunnels) const INCOMING: usize = 64;
/// The gateway's end of QUIC.
pub(crate) struct Quic {
    pub(in crate::tunnels) endpoint: Endpoint,
    pub(in crate::tunnels) wire: Arc<Wire>,
    pub(in crate::tunnels) server: Arc<ServerConfig>,
    pub(in crate::tunnels) own: tls::Binding,
    /// The handshake or lane that each connection belongs to.
    pub(in crate::tunnels) owners: HashMap<ConnectionHandle, Token>,
    /// The repair of losses, by the far address.
    pub(in crate::tunnels) paths: HashMap<SocketAddr, Weak<Mutex<Parity>>>,
    pub(in crate::tunnels) space: Vec<u8>,
    /// Whether the kernel may have more.
    pub(crate) unread: bool,
    /// Whether the kernel had more before this turn began.
    pub(in crate::tunnels) is_left: bool,
    /// Number of strangers accepted in this turn.
    pub(in crate::tunnels) accepted: usize,
    pub(in crate::tunnels) is_ipv4: bool,
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
        // The kernel's limit either suffices or costs some packets.
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
            is_left: false,
            accepted: 0,
            is_ipv4: address.is_ipv4(),
        })
    }

    /// The repair of losses on the path to an address.
    pub(in crate::tunnels) fn path(&mut self, address: SocketAddr) -> Path {
        if let Some(path) = self.paths.get(&address).and_then(Weak::upgrade) {
            return path;
        }
        self.paths.retain(|_, path| path.strong_count() > 0);
        let path = Path::new(Mutex::new(Parity::new()));
        self.paths.insert(address, Arc::downgrade(&path));
        path
    }

    pub(in crate::tunnels) fn dial(
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
    pub(in crate::tunnels) fn as_sent(&self, address: SocketAddr) -> io::Result<SocketAddr> {
        Ok(match address {
            // An IPv6 socket takes IPv4 addresses in a form of its own (RFC 4291, section 2.5.5.2).
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

    /// Sends something that does not belong to QUIC, from the socket of all connections.
    pub(crate) fn say(&self, to: SocketAddr, datagram: &[u8]) -> io::Result<()> {
        self.wire.send_plain(self.as_sent(to)?, datagram);
        Ok(())
    }

    /// Says where the socket is bound.
    pub(crate) fn local_address(&self) -> Option<SocketAddr> {
        self.wire.socket.local_addr().ok()
    }

    /// Sets to which handshake or lane this connection belongs from now on.
    pub(crate) fn set_owner(&mut self, handle: ConnectionHandle, token: Token) {
        self.owners.insert(handle, token);
    }
}

/// Configuration for connections of strangers, each of which gets its own transport.
fn server_config(tls: &tls::Context) -> io::Result<Arc<ServerConfig>> {
    let crypto = QuicServerConfig::try_from(tls.server()).map_err(io::Error::other)?;
    let mut server = ServerConfig::with_crypto(Arc::new(crypto));
    server.max_incoming(INCOMING);
    Ok(Arc::new(server))
}

fn transport(is_ipv4: bool, model: shared::Shared) -> TransportConfig {
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
        .initial_rtt(FIRST_RTT)
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

impl Quic {
    /// Makes new connections use another certificate.
    pub(crate) fn renew(&mut self, tls: &tls::Context) -> io::Result<()> {
        self.server = server_config(tls)?;
        self.endpoint.set_server_config(Some(self.server.clone()));
        self.own = tls.own();
        Ok(())
    }

    pub(in crate::tunnels) fn server(&self, is_ipv4: bool, model: shared::Shared) -> Arc<ServerConfig> {
        let mut server = (*self.server).clone();
        server.transport_config(Arc::new(transport(is_ipv4, model)));
        Arc::new(server)
    }
}
