//! A hundred thousand connections that never say who they are, opened one after the other, with some
//! thousands open at a time: as many as the descriptors allow if both ends are in one process.

use crate::common::{Grid, connected, member, question, record};
use causeway_broker::clock::Clock;
use causeway_broker::tls::{joining_config, server_name};
use causeway_broker::{Limits, Rate};
use nix::sys::socket::{SockaddrStorage, getsockname};
use socket2::{Domain, SockAddr, Socket, Type};
use std::collections::VecDeque;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::Arc;
use std::time::Duration;

const FLOOD: usize = 100_000;

/// Connections open at a time, at the flood's end.
const HELD: usize = 2000;

/// Number of addresses that the flood comes from.
const ADDRESSES: usize = 20;

/// Connects from an address that no honest caller has. The connection ends with a reset, so that no port
/// stays in use.
fn stranger(number: usize, broker: SocketAddr) -> TcpStream {
    let own = SocketAddr::from(([127, 0, 7, 1 + (number % ADDRESSES) as u8], 0));
    let socket = Socket::new(Domain::IPV4, Type::STREAM, None).unwrap();
    socket.bind(&SockAddr::from(own)).unwrap();
    socket.connect(&SockAddr::from(broker)).unwrap();
    socket.set_linger(Some(Duration::ZERO)).unwrap();
    socket.into()
}

/// Sockets of the broker at this address: other tests in this process have sockets open at the same time.
fn sockets_at(address: SocketAddr) -> usize {
    let numbers = std::fs::read_dir("/proc/self/fd").unwrap();
    let numbers = numbers.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok());
    let is_there = |number: &i32| {
        let name = getsockname::<SockaddrStorage>(*number).ok();
        let name = name.and_then(|name| name.as_sockaddr_in().copied());
        name.map(SocketAddr::from) == Some(address)
    };
    numbers.filter(is_there).count()
}

#[test]
fn a_hundred_thousand_strangers_who_speak_a_byte_now_and_then_keep_out_no_site_and_cost_a_bounded_number_of_files()
 {
    let grid = Grid::new("g5k");
    let limits = Limits::default();
    let rennes = grid.join("rennes");
    let session = grid.session(&rennes, record(1));
    connected(&session);
    let before = sockets_at(grid.address);
    let mut flood = VecDeque::new();
    let mut most = 0;
    for number in 0..FLOOD {
        let mut stranger = stranger(number, grid.address);
        // The first byte of what a TLS client sends; the broker may have closed the connection already.
        let _ = stranger.write(&[22]);
        flood.push_back(stranger);
        if flood.len() > HELD {
            let _ = flood.pop_front().unwrap().write(&[3]);
        }
        if number % 1000 == 999 {
            most = most.max(sockets_at(grid.address));
        }
        if number == FLOOD / 2 {
            // A site that has not joined yet arrives in the middle of the flood.
            let nancy = grid.join("nancy");
            grid.sync(&nancy, &question(&record(2))).unwrap();
            member(&session, "nancy");
        }
    }
    // Besides the strangers: 64 that were told to end and have not ended yet, one that is being let in, and
    // those of the two sites.
    let bound = before + limits.strangers + 64 + 1 + 2 * limits.per_site;
    assert!(most <= bound, "{most} sockets, not {bound} at most");
    // There are strangers to be counted.
    assert!(most > before, "{most} sockets");
    grid.sync(&rennes, &question(&record(1))).unwrap();
    let lines = grid.said("refused");
    // There is one line for each kind and origin.
    assert!(!lines.is_empty() && lines.len() <= 4 * ADDRESSES, "{lines:?}");
}

#[test]
fn hellos_beyond_the_rate_of_an_address_wait_and_those_from_elsewhere_do_not() {
    let rate = Rate {
        in_all: 6,
        to_one: 4,
        // Longer than any test.
        every: Duration::from_hours(1),
    };
    let limits = Limits {
        hellos: rate,
        handshake: Duration::from_hours(1),
        ..Limits::default()
    };
    let grid = Grid::with("g5k", limits);
    let answered = |last: u8| {
        let own = SocketAddr::from(([127, 0, 7, last], 0));
        let socket = Socket::new(Domain::IPV4, Type::STREAM, None).unwrap();
        socket.bind(&SockAddr::from(own)).unwrap();
        socket.connect(&SockAddr::from(grid.address)).unwrap();
        let mut stream: TcpStream = socket.into();
        stream.write_all(&hello()).unwrap();
        stream
    };
    let mut first: Vec<TcpStream> = (0..4).map(|_| answered(1)).collect();
    for stream in &mut first {
        stream.read_exact(&mut [0]).unwrap();
    }
    let waits = answered(1);
    // What arrives after it from elsewhere is answered: it waits, but nothing waits for it.
    let mut other = answered(2);
    other.read_exact(&mut [0]).unwrap();
    waits.set_nonblocking(true).unwrap();
    let nothing = (&waits).read(&mut [0]).unwrap_err();
    assert_eq!(nothing.kind(), std::io::ErrorKind::WouldBlock);
}

/// Makes a client's first flight of TLS.
fn hello() -> Vec<u8> {
    let authority = [0; 32];
    let config = joining_config(authority, Clock::system()).unwrap();
    let mut client = rustls::ClientConnection::new(Arc::new(config), server_name()).unwrap();
    let mut hello = Vec::new();
    client.write_tls(&mut hello).unwrap();
    hello
}
