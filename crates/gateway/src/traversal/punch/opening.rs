//! TCP simultaneous open (RFC 9293, section 3.5): both gateways connect, each from the port that the other
//! connects to. This opens both firewalls, and the two connections become one.
//!
//! A round uses one port: the broker is asked from it, so that a NAT maps it, and then all connections go out
//! from it. Each round has another port, so that nothing left of an earlier one is in its way. A socket that
//! listens at the port reserves it and receives nothing: what arrives before this side's own connection goes
//! out is dropped, where the kernel would otherwise refuse it, and is sent again or met by ours. So nobody
//! gets in through that port, and two gateways without any firewall between them meet, too.
//!
//! If two first segments cross, Linux measures half of the true round trip, and remembers that for five
//! minutes. So only one site, the one that sorts first, really connects: its sockets discard first segments,
//! and the other site's answer its own. The first segments that the other site sends only open the path for
//! that.

use super::message::MAX_ADDRESSES;
use crate::tunnels::carrier;
use causeway_broker::reflection::{self, Id};
use mio::net::TcpStream;
use mio::{Interest, Registry, Token};
use socket2::{Domain, Protocol, SockFilter, SockRef, Socket, Type};
use std::io::{self, ErrorKind, Read, Write};
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr};

/// Sockets that report to the loop: the one to the broker, and one for each address.
pub(crate) const SLOTS: usize = 1 + MAX_ADDRESSES;

/// Slot of the connection to the broker.
pub(crate) const BROKER: usize = 0;

/// Accepts no byte of any packet (socket(7), SO_ATTACH_FILTER): the instruction "return 0" of linux/filter.h.
const NOTHING: SockFilter = SockFilter::new((libc::BPF_RET | libc::BPF_K) as u16, 0, 0, 0);

/// Flags of a TCP header, and their position (RFC 9293, section 3.1).
const FLAGS_AT: u32 = 13;
const SYN: u32 = 0x02;
const ACK: u32 = 0x10;

/// Accepts everything except a first segment, which has SYN and no ACK; what a socket's filter sees begins
/// with the TCP header.
const NO_FIRST: [SockFilter; 5] = [
    SockFilter::new(
        (libc::BPF_LD | libc::BPF_B | libc::BPF_ABS) as u16,
        0,
        0,
        FLAGS_AT,
    ),
    SockFilter::new(
        (libc::BPF_ALU | libc::BPF_AND | libc::BPF_K) as u16,
        0,
        0,
        SYN | ACK,
    ),
    SockFilter::new((libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K) as u16, 0, 1, SYN),
    NOTHING,
    SockFilter::new((libc::BPF_RET | libc::BPF_K) as u16, 0, 0, u32::MAX),
];

/// The connections that go out from one local port.
pub(crate) struct Opening {
    deaf: Socket,
    /// Whether this site really connects; see the module.
    dials: bool,
    broker: TcpStream,
    id: Id,
    has_asked: bool,
    received: Vec<u8>,
    /// The address at which the broker sees the port.
    pub(crate) mapped: Option<SocketAddr>,
    attempts: Vec<Attempt>,
}

struct Attempt {
    to: SocketAddr,
    /// `None` while it is refused, and once it is up.
    socket: Option<TcpStream>,
    is_up: bool,
}

impl Opening {
    /// Reserves a port, and connects to the broker from it. `token` gives the token of each slot.
    pub(crate) fn begin(
        broker: SocketAddr,
        dials: bool,
        registry: &Registry,
        token: impl Fn(usize) -> Token,
    ) -> io::Result<Opening> {
        let deaf = bound(broker, 0)?;
        deaf.attach_filter(&[NOTHING])?;
        deaf.listen(1)?;
        let mut id = Id::default();
        getrandom::fill(&mut id).map_err(io::Error::other)?;
        let mut opening = Opening {
            broker: connect(broker, port_of(&deaf)?, &[])?,
            deaf,
            dials,
            id,
            has_asked: false,
            received: Vec::new(),
            mapped: None,
            attempts: Vec::new(),
        };
        let interest = Interest::READABLE | Interest::WRITABLE;
        registry.register(&mut opening.broker, token(BROKER), interest)?;
        Ok(opening)
    }

    pub(crate) fn local_address(&self) -> Option<SocketAddr> {
        self.deaf.local_addr().ok()?.as_socket()
    }

    /// Acts on what the connection to the broker reports; true if it has just answered.
    pub(crate) fn on_broker(&mut self) -> io::Result<bool> {
        if self.mapped.is_some() || !carrier::is_connected(&self.broker)? {
            return Ok(false);
        }
        if !std::mem::replace(&mut self.has_asked, true) {
            // This fits into a fresh connection's buffer.
            self.broker.write_all(&reflection::question(self.id))?;
        }
        let mut bytes = [0; reflection::BYTES];
        while self.received.len() < reflection::BYTES {
            let missing = reflection::BYTES - self.received.len();
            match self.broker.read(&mut bytes[..missing]) {
                Ok(0) => return Err(ErrorKind::UnexpectedEof.into()),
                Ok(count) => self.received.extend_from_slice(&bytes[..count]),
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(false),
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        let answer = reflection::answered(&self.received).filter(|(id, _)| *id == self.id);
        self.mapped = answer.map(|(_, mapped)| mapped);
        match self.mapped {
            Some(_) => Ok(true),
            None => Err(io::Error::new(
                ErrorKind::InvalidData,
                "no answer to what was asked",
            )),
        }
    }

    /// Connects to an address, unless a connection to it is in progress or up. If connecting fails at once,
    /// the next step tries again.
    pub(crate) fn knock(&mut self, to: SocketAddr, registry: &Registry, token: impl Fn(usize) -> Token) {
        let slot = match self.attempts.iter().position(|attempt| attempt.to == to) {
            Some(slot) => slot,
            None if self.attempts.len() < MAX_ADDRESSES => {
                self.attempts.push(Attempt {
                    to,
                    socket: None,
                    is_up: false,
                });
                self.attempts.len() - 1
            }
            None => return,
        };
        let attempt = &mut self.attempts[slot];
        if attempt.is_up || attempt.socket.is_some() {
            return;
        }
        let filter: &[SockFilter] = if self.dials { &NO_FIRST } else { &[] };
        let begun = port_of(&self.deaf).and_then(|port| {
            let mut socket = connect(to, port, filter)?;
            let interest = Interest::READABLE | Interest::WRITABLE;
            registry.register(&mut socket, token(1 + slot), interest)?;
            Ok(socket)
        });
        attempt.socket = begun.ok();
    }

    /// Acts on what one of the connections reports: returns it and its far address once it is up. It is then
    /// no longer registered with the loop.
    pub(crate) fn on_attempt(&mut self, slot: usize, registry: &Registry) -> Option<(TcpStream, SocketAddr)> {
        let attempt = self.attempts.get_mut(slot.checked_sub(1)?)?;
        let connected = carrier::is_connected(attempt.socket.as_ref()?);
        if matches!(connected, Ok(false)) {
            return None;
        }
        let mut socket = attempt.socket.take()?;
        // Refused, or unreachable: the cause may let the next one through.
        connected.ok()?;
        attempt.is_up = true;
        registry.deregister(&mut socket).ok()?;
        if self.dials {
            // The filter has done its work; if left there, it would cost some nanoseconds for each segment.
            let _ = SockRef::from(&socket).detach_filter();
        }
        Some((socket, attempt.to))
    }
}

/// A socket at this port of every own address, which other sockets that this user binds in the same way can
/// share.
fn bound(like: SocketAddr, port: u16) -> io::Result<Socket> {
    let socket = Socket::new(
        Domain::for_address(like),
        Type::STREAM.nonblocking(),
        Some(Protocol::TCP),
    )?;
    socket.set_reuse_port(true)?;
    let any = match like {
        SocketAddr::V4(_) => SocketAddr::from((Ipv4Addr::UNSPECIFIED, port)),
        SocketAddr::V6(_) => SocketAddr::from((Ipv6Addr::UNSPECIFIED, port)),
    };
    socket.bind(&any.into())?;
    Ok(socket)
}

fn connect(to: SocketAddr, port: u16, filter: &[SockFilter]) -> io::Result<TcpStream> {
    let socket = bound(to, port)?;
    if !filter.is_empty() {
        socket.attach_filter(filter)?;
    }
    match socket.connect(&to.into()) {
        Err(error) if error.raw_os_error() != Some(libc::EINPROGRESS) => Err(error),
        _ => Ok(TcpStream::from_std(socket.into())),
    }
}

fn port_of(socket: &Socket) -> io::Result<u16> {
    let address = socket.local_addr()?.as_socket();
    Ok(address.ok_or(ErrorKind::AddrNotAvailable)?.port())
}

#[cfg(test)]
mod tests {
    use super::*;
    use mio::{Events, Poll};
    use std::net::TcpListener;
    use std::time::{Duration, Instant};

    const DEADLINE: Duration = Duration::from_secs(10);

    fn token(of: usize) -> impl Fn(usize) -> Token {
        move |slot| Token(of * SLOTS + slot)
    }

    /// An opening whose broker is this test; also, its address on loopback.
    fn opening(poll: &Poll, broker: &TcpListener, of: usize) -> (Opening, SocketAddr) {
        let to = broker.local_addr().unwrap();
        let opening = Opening::begin(to, of == 0, poll.registry(), token(of)).unwrap();
        let port = port_of(&opening.deaf).unwrap();
        (opening, SocketAddr::from((Ipv4Addr::LOCALHOST, port)))
    }

    /// Waits for both ends of the connection.
    fn both_come_up(poll: &mut Poll, one: &mut Opening, other: &mut Opening) -> Vec<(TcpStream, SocketAddr)> {
        let (mut events, began) = (Events::with_capacity(8), Instant::now());
        let mut up = Vec::new();
        while up.len() < 2 {
            assert!(
                began.elapsed() < DEADLINE,
                "no connection of the two within {DEADLINE:?}"
            );
            poll.poll(&mut events, Some(DEADLINE)).unwrap();
            for event in &events {
                let opening = match event.token().0 / SLOTS {
                    0 => &mut *one,
                    _ => &mut *other,
                };
                up.extend(opening.on_attempt(event.token().0 % SLOTS, poll.registry()));
            }
        }
        up
    }

    #[test]
    fn two_that_connect_to_each_other_have_one_connection_and_strangers_are_not_heard() {
        for first_begins in [false, true] {
            let mut poll = Poll::new().unwrap();
            let broker = TcpListener::bind("127.0.0.1:0").unwrap();
            let (mut one, here) = opening(&poll, &broker, 0);
            let (mut other, there) = opening(&poll, &broker, 1);
            let stranger = connect(here, 0, &[]).unwrap();
            // One of them is too early: the other has not connected yet, and its kernel must not refuse.
            if first_begins {
                one.knock(there, poll.registry(), token(0));
            }
            other.knock(here, poll.registry(), token(1));
            one.knock(there, poll.registry(), token(0));
            let up = both_come_up(&mut poll, &mut one, &mut other);
            let ends = up.iter().map(|(socket, to)| (socket.local_addr().unwrap(), *to));
            let ends: Vec<_> = ends.collect();
            assert!(
                ends.contains(&(here, there)) && ends.contains(&(there, here)),
                "{ends:?}"
            );
            one.knock(there, poll.registry(), token(0));
            assert!(one.attempts[0].socket.is_none(), "it is up");
            assert!(!carrier::is_connected(&stranger).unwrap());
        }
    }

    #[test]
    fn what_is_refused_is_tried_again_and_a_round_has_so_many_sockets_and_no_more() {
        let mut poll = Poll::new().unwrap();
        let broker = TcpListener::bind("127.0.0.1:0").unwrap();
        let (mut one, _) = opening(&poll, &broker, 0);
        // A port that no other program gets by chance, as it might get one that was free a moment ago.
        let nobody = SocketAddr::from(([127, 0, 0, 1], 1));
        let mut events = Events::with_capacity(8);
        for _ in 0..3 {
            one.knock(nobody, poll.registry(), token(0));
            let began = Instant::now();
            while one.attempts[0].socket.is_some() {
                assert!(began.elapsed() < DEADLINE, "not refused within {DEADLINE:?}");
                poll.poll(&mut events, Some(DEADLINE)).unwrap();
                assert!(one.on_attempt(1, poll.registry()).is_none());
            }
        }
        for last in 0..20 {
            one.knock(
                SocketAddr::from(([127, 0, 1, last], 9)),
                poll.registry(),
                token(0),
            );
        }
        assert_eq!(one.attempts.len(), MAX_ADDRESSES);
    }

    #[test]
    fn the_broker_is_asked_from_the_port_that_connects_and_a_false_answer_is_not_believed() {
        for lie in [false, true] {
            let poll = Poll::new().unwrap();
            let broker = TcpListener::bind("127.0.0.1:0").unwrap();
            let (mut one, here) = opening(&poll, &broker, 0);
            let (mut far, seen) = broker.accept().unwrap();
            assert_eq!(seen, here);
            assert!(!one.on_broker().unwrap());
            let mut question = [0; reflection::BYTES];
            far.read_exact(&mut question).unwrap();
            let mut id = reflection::asked(&question).unwrap();
            if lie {
                id[0] ^= 1;
            }
            far.write_all(&reflection::answer(id, seen)).unwrap();
            let began = Instant::now();
            let told = loop {
                match one.on_broker() {
                    Ok(false) if began.elapsed() < DEADLINE => std::thread::yield_now(),
                    other => break other,
                }
            };
            match lie {
                false => assert!(told.unwrap() && one.mapped == Some(here)),
                true => assert!(told.is_err() && one.mapped.is_none()),
            }
        }
    }
}
