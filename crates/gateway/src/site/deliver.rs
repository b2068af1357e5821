//! Connections to processes of this site, made from the source ports by which the shims recognise a delivery.

use crate::site::socket::keep_urgent_data;
use causeway_wire::Reason;
use mio::net::TcpStream;
use socket2::{Domain, Protocol, SockAddr, Socket, Type};
use std::io::{self, ErrorKind};
use std::net::{IpAddr, SocketAddr};
use std::ops::RangeInclusive;
use std::time::Duration;

/// How long a delivery may take to connect. A host of the same site answers within milliseconds; a lost SYN
/// is sent again after 1 s, 3 s, 7 s and 15 s. Giving up too early ends a job.
pub(crate) const CONNECT_DEADLINE: Duration = Duration::from_secs(20);

/// Most ports that are tried for one connection: this takes a millisecond or two. If three of four ports are
/// in use, the chance that all of these are is 10^-60.
const MOST_TRIES: usize = 512;
/// The distance to the next port that is tried: a prime, less one for the port that was just taken. So all
/// ports of a range are tried, unless its length is a multiple of the prime.
const STRIDE: u32 = 4799 - 1;

/// Deals out source ports in turn, so that one is used again as late as possible.
pub(crate) struct DeliveryPorts {
    range: RangeInclusive<u16>,
    next: u16,
}

impl DeliveryPorts {
    pub(crate) fn new(range: RangeInclusive<u16>) -> DeliveryPorts {
        DeliveryPorts {
            next: *range.start(),
            range,
        }
    }

    /// Returns the port of the next delivery.
    pub(crate) fn next(&self) -> u16 {
        self.next
    }

    /// Goes on where a predecessor stopped.
    pub(crate) fn inherit(&mut self, next: u16) {
        if self.range.contains(&next) {
            self.next = next;
        }
    }

    fn skip(&mut self, count: u32) {
        let (start, length) = (u32::from(*self.range.start()), self.range.len().max(1) as u32);
        let at = (u32::from(self.next) - start + count) % length;
        // The sum is within the range.
        self.next = (start + at) as u16;
    }

    fn take(&mut self) -> u16 {
        let port = self.next;
        self.next = if port == *self.range.end() {
            *self.range.start()
        } else {
            port + 1
        };
        port
    }

    /// Starts a connection from the gateway's address in the destination's family.
    pub(crate) fn connect(&mut self, own: &[SocketAddr], destination: SocketAddr) -> io::Result<TcpStream> {
        let source = source(own, destination)?;
        let mut last = ErrorKind::AddrInUse.into();
        // Any of the ports may be in use with this very destination, and then so may thousands of neighbours,
        // because ranks keep their connections. So the next port that is tried is elsewhere in the range. If
        // another user of this host has taken most of them, this stream must not hold up the others.
        for _ in 0..self.range.len().min(MOST_TRIES) {
            match connect_from(SocketAddr::new(source, self.take()), destination, true) {
                Err(error) if matches!(error.kind(), ErrorKind::AddrInUse | ErrorKind::AddrNotAvailable) => {
                    last = error;
                    self.skip(STRIDE);
                }
                result => return result,
            }
        }
        Err(last)
    }
}

/// Starts a connection without a preface. It does not come from a delivery port, because a connection from
/// there always begins with a preface.
pub(crate) fn connect_plainly(own: &[SocketAddr], destination: SocketAddr) -> io::Result<TcpStream> {
    connect_from(SocketAddr::new(source(own, destination)?, 0), destination, false)
}

/// The gateway's own address in the destination's family.
fn source(own: &[SocketAddr], destination: SocketAddr) -> io::Result<IpAddr> {
    let mut own = own.iter();
    let source = own.find(|address| address.is_ipv4() == destination.is_ipv4());
    Ok(source.ok_or(ErrorKind::AddrNotAvailable)?.ip())
}

/// Starts a connection. If something is to be sent at once, the end of the handshake is delayed until then,
/// so that the listener gets the connection together with its first bytes, and not before (tcp(7),
/// TCP_QUICKACK).
fn connect_from(source: SocketAddr, destination: SocketAddr, sends: bool) -> io::Result<TcpStream> {
    let socket = Socket::new(
        Domain::for_address(destination),
        Type::STREAM,
        Some(Protocol::TCP),
    )?;
    socket.set_nonblocking(true)?;
    socket.set_tcp_nodelay(true)?;
    if sends {
        socket.set_tcp_quickack(false)?;
    }
    keep_urgent_data(&socket)?;
    // One source port serves many destinations at a time.
    socket.set_reuse_address(true)?;
    socket.bind(&SockAddr::from(source))?;
    match socket.connect(&SockAddr::from(destination)) {
        Err(error) if error.raw_os_error() != Some(libc::EINPROGRESS) => Err(error),
        _ => Ok(TcpStream::from_std(socket.into())),
    }
}

/// What a failed delivery means for the connecting side.
pub(crate) fn reason(error: &io::Error) -> Reason {
    match error.kind() {
        ErrorKind::ConnectionRefused => Reason::Refused,
        ErrorKind::TimedOut => Reason::TimedOut,
        ErrorKind::HostUnreachable | ErrorKind::NetworkUnreachable => Reason::Unreachable,
        ErrorKind::AddrInUse | ErrorKind::AddrNotAvailable => Reason::Exhausted,
        _ if matches!(error.raw_os_error(), Some(libc::EMFILE | libc::ENFILE)) => Reason::Exhausted,
        _ => Reason::Reset,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::TcpListener;

    #[test]
    fn deliveries_come_from_the_range_and_go_round() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let destination = listener.local_addr().unwrap();
        let mut ports = DeliveryPorts::new(21000..=21002);
        let own = ["127.0.0.1:7000".parse().unwrap()];
        let sockets: Vec<_> = (0..3)
            .map(|_| ports.connect(&own, destination).unwrap())
            .collect();
        for _ in &sockets {
            let (_, peer) = listener.accept().unwrap();
            assert!((21000..=21002).contains(&peer.port()));
        }
        assert!(
            ports.connect(&own, destination).is_err(),
            "every port is in use with this destination"
        );
        let elsewhere = TcpListener::bind("127.0.0.1:0").unwrap();
        ports.connect(&own, elsewhere.local_addr().unwrap()).unwrap();
    }

    #[test]
    fn the_one_free_port_behind_hundreds_of_used_ones_is_found() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let destination = listener.local_addr().unwrap();
        let mut ports = DeliveryPorts::new(21100..=21500);
        let own = ["127.0.0.1:7000".parse().unwrap()];
        // Connecting is enough to use a port; nobody has to accept.
        let _used: Vec<_> = (0..400)
            .map(|_| ports.connect(&own, destination).unwrap())
            .collect();
        ports.next = 21100;
        ports.connect(&own, destination).unwrap();
    }
}
