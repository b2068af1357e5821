//! Dials through a web proxy. A thread for each connection speaks with the proxy, because names have to be
//! resolved and answers awaited; the loop gets the finished connection.

use crate::driver::Driver;
use crate::keys::{LaneNumber, PeerIndex};
use crate::sys::source::Class;
use crate::tunnels::Tunnels;
use crate::tunnels::relay_visit::RelayVisit;
use causeway_service::Proxy;
use mio::net::{TcpStream, UnixStream};
use mio::{Interest, Registry};
use std::io::{self, ErrorKind, Read, Write};
use std::net::SocketAddr;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::Duration;

/// How long a proxy may take: it answers when the far gateway has answered.
const WITHIN: Duration = Duration::from_secs(10);

/// Most connections in progress at a time: all lanes to a few sites.
const AT_MOST: usize = 64;

/// What a connection is for.
pub(in crate::tunnels) enum Purpose {
    Lane(PeerIndex, LaneNumber),
    /// To show a ticket at a relay, for a lane that was dialled or for one that the far gateway asked for.
    Visit(RelayVisit, Option<LaneNumber>),
}

struct Outcome {
    purpose: Purpose,
    address: SocketAddr,
    made: io::Result<std::net::TcpStream>,
}

/// Connections through the proxy that are in progress.
pub(in crate::tunnels) struct Proxied {
    under_way: usize,
    outcome: Sender<Outcome>,
    outcomes: Receiver<Outcome>,
    /// Receives a byte with each outcome, which wakes the loop.
    bell: UnixStream,
    ring: std::os::unix::net::UnixStream,
}

impl Proxied {
    /// # Errors
    /// Those of socketpair and of registering.
    pub(in crate::tunnels) fn new(registry: &Registry) -> io::Result<Proxied> {
        let (near, ring) = std::os::unix::net::UnixStream::pair()?;
        near.set_nonblocking(true)?;
        // If the socket is full, the loop is woken anyway.
        ring.set_nonblocking(true)?;
        let mut bell = UnixStream::from_std(near);
        registry.register(&mut bell, Class::Proxied.token(0), Interest::READABLE)?;
        let (outcome, outcomes) = channel();
        Ok(Proxied {
            under_way: 0,
            outcome,
            outcomes,
            bell,
            ring,
        })
    }

    fn begin(&mut self, proxy: &Proxy, address: SocketAddr, purpose: Purpose) -> io::Result<()> {
        if self.under_way == AT_MOST {
            let why = format!("{AT_MOST} connections through the proxy are being made already");
            return Err(io::Error::new(ErrorKind::WouldBlock, why));
        }
        let mut ring = self.ring.try_clone()?;
        let (proxy, outcome) = (proxy.clone(), self.outcome.clone());
        let thread = std::thread::Builder::new().name("proxy".to_owned());
        thread.spawn(move || {
            let made = proxy.connect(&address.to_string(), WITHIN);
            // A gateway that stops meanwhile does not receive it.
            let _ = outcome.send(Outcome {
                purpose,
                address,
                made,
            });
            let _ = ring.write(&[0]);
        })?;
        self.under_way += 1;
        Ok(())
    }

    fn outcomes(&mut self) -> Vec<Outcome> {
        let mut bytes = [0; 64];
        while matches!(self.bell.read(&mut bytes), Ok(1..)) {}
        let outcomes: Vec<Outcome> = self.outcomes.try_iter().collect();
        self.under_way -= outcomes.len();
        outcomes
    }
}

impl Tunnels {
    /// Begins a connection through the proxy, if there is one.
    ///
    /// # Errors
    /// The connection cannot be begun.
    pub(in crate::tunnels) fn begin_through_proxy(
        &mut self,
        driver: &Driver,
        address: SocketAddr,
        purpose: Purpose,
    ) -> io::Result<()> {
        match (&mut self.proxied, &driver.config.proxy) {
            (Some(proxied), Some(proxy)) => proxied.begin(proxy, address, purpose),
            _ => Err(ErrorKind::NotConnected.into()),
        }
    }

    /// Connections have been made, or could not be.
    pub(in crate::tunnels) fn on_proxied(&mut self, driver: &mut Driver) {
        let outcomes = self.proxied.as_mut().map_or_else(Vec::new, Proxied::outcomes);
        for Outcome {
            purpose,
            address,
            made,
        } in outcomes
        {
            let socket = made.and_then(|made| {
                made.set_nonblocking(true)?;
                Ok(TcpStream::from_std(made))
            });
            match purpose {
                Purpose::Lane(index, lane) => self.on_proxied_lane(driver, (index, lane), address, socket),
                Purpose::Visit(visit, lane) => self.on_proxied_visit(driver, (visit, lane), address, socket),
            }
        }
    }

    fn on_proxied_lane(
        &mut self,
        driver: &mut Driver,
        (index, lane): (PeerIndex, LaneNumber),
        address: SocketAddr,
        socket: io::Result<TcpStream>,
    ) {
        let site = self.peers[index].site.clone();
        match socket.and_then(|socket| self.tcp_carrier(driver, socket, Some(&site))) {
            Ok(carrier) => self.begin_handshake(driver, carrier, address, Some((index, lane)), None),
            Err(error) => {
                self.on_unanswered_dial(driver, index, false);
                self.dial_failed(index, lane, &format!("connect to {address}: {error}"));
            }
        }
    }

    fn on_proxied_visit(
        &mut self,
        driver: &mut Driver,
        (visit, lane): (RelayVisit, Option<LaneNumber>),
        address: SocketAddr,
        socket: io::Result<TcpStream>,
    ) {
        let dialled = lane.map(|lane| (visit.peer, lane));
        let far = lane.map(|_| self.peers[visit.peer].site.clone());
        match socket.and_then(|socket| self.tcp_carrier(driver, socket, far.as_deref())) {
            Ok(carrier) => self.begin_handshake(driver, carrier, address, dialled, Some(visit)),
            Err(error) => self.relay_visit_ended(visit, dialled, format!("connect to {address}: {error}")),
        }
    }
}
