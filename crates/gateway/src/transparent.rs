//! Connections that the site's router hands over (TPROXY): of processes that no shim can be in, such as statically linked ones.
//! `nft` has the router's rules, docs/transparent.md the user's view.
//!
//! ```text
//! node -- SYN to nancy-1 --> this host: nft hands it to our listener; its local address is nancy-1's, its peer the node
//! far gateway: binds the node's address and port, connects to nancy-1, whose answers the far router's rules bring back
//! ```
//! There is no preface, so no token: a connection is carried under a job begun for such connections
//! (`causeway run --transparent`), whichever runs. Neither end's process sees anything but the true addresses.

use crate::directory::Whereabouts;
use crate::gateway::{Class, Gateway, GatewayError};
use crate::leg::{Socket, Stage};
use causeway_tunnel::{OpenRequest, Target};
use causeway_wire::Token;
use mio::Interest;
use mio::net::{TcpListener, TcpStream};
use socket2::{Domain, Protocol, SockAddr, SockRef, Type};
use std::io;
use std::net::SocketAddr;
use std::time::Duration;

/// Connections that the far site has not opened yet. More wait in the kernel's queue, as those without a preface do.
const AT_MOST: usize = 4096;

/// As the standard library's listeners.
const BACKLOG: i32 = 1024;

/// Why a connection is turned away: kind and text for the log.
type Refusal = (&'static str, String);

/// Listens for connections to addresses that are not this host's.
pub(crate) fn listen(address: SocketAddr) -> Result<TcpListener, GatewayError> {
    let bound = || -> io::Result<TcpListener> {
        let listener = transparent_socket(address)?;
        listener.bind(&SockAddr::from(address))?;
        listener.listen(BACKLOG)?;
        Ok(TcpListener::from_std(listener.into()))
    };
    bound().map_err(|source| match source.kind() {
        io::ErrorKind::PermissionDenied => GatewayError::Transparent { address, source },
        _ => GatewayError::Listen {
            address: address.to_string(),
            source,
        },
    })
}

/// Starts a connection that comes from another host's address, as far as the destination can see.
pub(crate) fn connect(source: SocketAddr, destination: SocketAddr) -> io::Result<TcpStream> {
    let socket = transparent_socket(destination)?;
    socket.set_tcp_nodelay(true)?;
    socket.bind(&SockAddr::from(source))?;
    match socket.connect(&SockAddr::from(destination)) {
        Err(error) if error.raw_os_error() != Some(libc::EINPROGRESS) => Err(error),
        _ => Ok(TcpStream::from_std(socket.into())),
    }
}

fn transparent_socket(address: SocketAddr) -> io::Result<socket2::Socket> {
    let socket = socket2::Socket::new(Domain::for_address(address), Type::STREAM, Some(Protocol::TCP))?;
    socket.set_nonblocking(true)?;
    socket.set_reuse_address(true)?;
    socket.set_ip_transparent_v4(true)?;
    Ok(socket)
}

impl Gateway {
    pub(crate) fn has_room_for_handed(&self) -> bool {
        self.handed.len() < AT_MOST
    }

    /// The router has handed over a connection; `peer` is its source.
    pub(crate) fn on_handed_connection(&mut self, mut socket: TcpStream, peer: SocketAddr) {
        let _ = socket.set_nodelay(true);
        let judged = socket
            .local_addr()
            .map_err(|error| ("handed-over", error.to_string()))
            .and_then(|destination| Ok((destination, self.judge_handed(peer, destination)?)));
        let (destination, (pair, token)) = match judged {
            Ok(judged) => judged,
            Err(refusal) => return self.turn_back(&socket, peer, refusal),
        };
        // open_stream takes sockets that the loop cares for already; this is the number it gives them.
        let number = Class::Leg.token(self.legs.vacant_key());
        let interest = Interest::READABLE | Interest::WRITABLE;
        if let Err(error) = self.poll.registry().register(&mut socket, number, interest) {
            return self.turn_back(&socket, peer, ("register", error.to_string()));
        }
        let target = Target::Connection {
            source: peer,
            destination,
        };
        let request = OpenRequest { token, target };
        match self.open_stream(pair, &request, Socket::Tcp(socket), Stage::Open) {
            Ok(leg) => drop(self.handed.insert(leg)),
            Err(reason) => {
                let why = format!("stream to {destination}: {}", reason.text());
                self.report.refuse("exhausted", peer.ip(), why);
            }
        }
    }

    fn turn_back(&mut self, socket: &TcpStream, peer: SocketAddr, (kind, why): Refusal) {
        self.report.refuse(kind, peer.ip(), why);
        // The kernel has accepted already: only a reset still says no.
        let _ = SockRef::from(socket).set_linger(Some(Duration::ZERO));
    }

    /// The pair with the destination's site, and the job under which the connection is carried.
    fn judge_handed(&self, source: SocketAddr, destination: SocketAddr) -> Result<(usize, Token), Refusal> {
        if !self.directory.is_own_address(source.ip()) {
            let why = format!("connection to {destination} handed over, but its source is not in this site");
            return Err(("foreign-source", why));
        }
        let site = match self.directory.site_of(destination.ip()) {
            Whereabouts::At(site) => site,
            Whereabouts::Here => {
                let why = format!("connection to {destination} handed over, which is in this site");
                return Err(("own-site", why));
            }
            Whereabouts::Nowhere => {
                let why = format!("connection to {destination} handed over, which is in no site of the grid");
                return Err(("unknown-destination", why));
            }
        };
        let Some(token) = self.jobs.transparent() else {
            let why = format!(
                "connection to {destination} handed over while no job runs that has such ones: begin it with \
                 'causeway run --transparent'"
            );
            return Err(("no-transparent-job", why));
        };
        if !self.directory.other(&site).is_some_and(|info| info.transparent) {
            let why = format!(
                "connection to {destination} handed over, but the gateway of {site} delivers none: it has no 'transparent' in \
                 [listen]"
            );
            return Err(("not-transparent", why));
        }
        let pair = self.tunnels.get(&site);
        let no_tunnel = || {
            (
                "no-tunnel",
                format!("connection to {destination}: no tunnel to site {site}"),
            )
        };
        Ok((*pair.ok_or_else(no_tunnel)?, token))
    }

    /// Why a stream of a transparent job from this site is not delivered as coming from `source`. Another site speaks for its own
    /// addresses alone: with this one's, its processes could pass for neighbours.
    pub(crate) fn why_not_from(
        &self,
        site: &str,
        source: SocketAddr,
        destination: SocketAddr,
    ) -> Option<Refusal> {
        if self.config.transparent.is_none() {
            let why = format!(
                "stream from {source} to {destination}, whose process is not under the shim: set 'transparent' in [listen] here"
            );
            return Some(("not-transparent", why));
        }
        if self.directory.site_of(source.ip()) != Whereabouts::At(site.to_owned()) {
            let why = format!("stream to {destination} claims to come from {source}, which is not there");
            return Some(("false-source", why));
        }
        // It would be taken for a shim there, one with another site's address.
        let own = self.config.lan.contains(&destination);
        own.then(|| {
            (
                "own-listener",
                format!("stream from {source} to this gateway, at {destination}"),
            )
        })
    }

    /// A job for handed-over connections is over. Nothing tells which of several jobs such a connection belongs to, so they go
    /// on while another such job runs; those of the last one are left to end with it.
    pub(crate) fn leave_transparent_streams(&mut self, token: &Token) {
        let Some(other) = self.jobs.transparent() else {
            return;
        };
        let weight = self.jobs.weight(&other);
        for (_, leg) in &mut self.legs {
            // The other ones are starters' and agents', which are the job's own.
            if leg.token == *token && matches!(leg.socket, Socket::Tcp(_)) {
                (leg.token, leg.weight) = (other, weight);
            }
        }
    }
}
