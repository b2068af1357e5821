//! The server on loopback, with clients that speak byte for byte.

use super::message::tests::{TOKEN, a_join, done_bytes, join_bytes, process_bytes};
use super::message::{self, VERSION};
use super::{Event, Meeting, Origins, Server};
use causeway_wire::preface::ANSWER_BYTES;
use causeway_wire::{Preface, Sender, Token};
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::time::{Duration, Instant};

const PATIENCE: Duration = Duration::from_secs(20);

/// Creates a server on loopback and returns it with its address.
fn server(origins: Option<Origins>) -> (Server, SocketAddr) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let meeting = Meeting::new(&["rennes".to_owned(), "nancy".to_owned()], 5);
    (Server::new(listener, meeting, TOKEN, origins).unwrap(), address)
}

/// A preface as the own gateway sends it.
fn delivered(preface: &Preface) -> Vec<u8> {
    preface.encode(Sender::Gateway, b"a nonce.").unwrap()
}

fn address_of_this_host() -> std::net::IpAddr {
    [127, 0, 0, 1].into()
}

fn connect(address: SocketAddr, bytes: &[u8]) -> TcpStream {
    let mut stream = TcpStream::connect(address).unwrap();
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    stream.write_all(bytes).unwrap();
    stream
}

/// Serves until this many events have happened.
fn events(server: &mut Server, count: usize) -> Vec<Event> {
    let until = Instant::now() + PATIENCE;
    let mut events = Vec::new();
    while events.len() < count {
        assert!(
            Instant::now() < until,
            "{events:?} and no more within {PATIENCE:?}"
        );
        events.extend(server.turn(Some(until)).unwrap());
    }
    events
}

/// Serves until a client has received a frame; returns it without its length.
fn frame(server: &mut Server, client: &mut TcpStream) -> Vec<u8> {
    let until = Instant::now() + PATIENCE;
    client.set_nonblocking(true).unwrap();
    let mut bytes = Vec::new();
    loop {
        assert!(Instant::now() < until, "no frame within {PATIENCE:?}");
        let mut more = [0; 4096];
        match client.read(&mut more) {
            Ok(0) => panic!("the connection ended after {bytes:?}"),
            Ok(read) => bytes.extend(&more[..read]),
            Err(_) => drop(
                server
                    .turn(Some(Instant::now() + Duration::from_millis(5)))
                    .unwrap(),
            ),
        }
        if let Some(length) = message::length(&bytes).unwrap()
            && bytes.len() >= length
        {
            return bytes[4..length].to_vec();
        }
    }
}

fn text(frame: &[u8]) -> String {
    String::from_utf8_lossy(&frame[3..]).into_owned()
}

#[test]
fn two_sites_get_one_world_and_are_done() {
    let (mut server, address) = server(None);
    let mut rennes = connect(address, &join_bytes(&a_join("rennes", 2), &TOKEN));
    assert_eq!(events(&mut server, 1).len(), 1);
    let bytes = join_bytes(&a_join("nancy", 1), &TOKEN);
    let mut nancy = connect(address, &bytes[..30]);
    nancy.write_all(&bytes[30..]).unwrap();
    assert!(events(&mut server, 2).contains(&Event::Made { processes: 3 }));
    let world = frame(&mut server, &mut rennes);
    assert_eq!(world, frame(&mut server, &mut nancy));
    assert_eq!(world[0], 2);
    for mut client in [nancy, rennes] {
        client.set_nonblocking(false).unwrap();
        client.write_all(&done_bytes()).unwrap();
    }
    events(&mut server, 2);
    assert!(server.is_over());
}

#[test]
fn strangers_are_told_no_and_crowd_nobody_out() {
    let (mut server, address) = server(None);
    let mut stranger = connect(address, &join_bytes(&a_join("rennes", 1), &Token([1; 16])));
    let told = frame(&mut server, &mut stranger);
    assert!(told[0] == 3 && text(&told).contains("token"), "{told:?}");
    let mut silent = Vec::new();
    for _ in 0..300 {
        silent.push(connect(address, &[]));
        // The kernel queues only some connections that nobody has accepted.
        server.turn(Some(Instant::now())).unwrap();
    }
    let mut later = connect(address, &join_bytes(&a_join("rennes", 1), &TOKEN));
    events(&mut server, 1);
    // The flood has closed the oldest of its own connections.
    assert_eq!(silent[0].read(&mut [0]).unwrap_or(0), 0);
    drop(silent);
    let _later = connect(address, &join_bytes(&a_join("nancy", 1), &TOKEN));
    events(&mut server, 2);
    assert_eq!(frame(&mut server, &mut later)[0], 2);
}

#[test]
fn another_version_is_told_to_both() {
    let (mut server, address) = server(None);
    let mut bytes = join_bytes(&a_join("rennes", 1), &TOKEN);
    bytes[5] = VERSION + 1;
    let mut client = connect(address, &bytes);
    let events = events(&mut server, 1);
    let Event::Refused { reason, .. } = &events[0] else {
        panic!("{events:?}")
    };
    assert!(reason.contains("version 2"), "{reason}");
    assert!(text(&frame(&mut server, &mut client)).contains("version 2"));
}

#[test]
fn the_end_reaches_a_site_that_waits() {
    let (mut server, address) = server(None);
    let mut client = connect(address, &join_bytes(&a_join("rennes", 1), &TOKEN));
    events(&mut server, 1);
    let hears = std::thread::spawn(move || {
        let mut bytes = Vec::new();
        client.read_to_end(&mut bytes).unwrap();
        bytes
    });
    server.end(1, "nancy failed").unwrap();
    assert_eq!(hears.join().unwrap(), message::no("nancy failed"));
}

#[test]
fn a_process_that_has_not_joined_says_that_it_aborts() {
    let (mut server, address) = server(None);
    let bytes = [process_bytes("nancy", &TOKEN), message::abort(3, "rank 5")].concat();
    let _client = connect(address, &bytes);
    let (site, code, text) = (1, 3, "rank 5".to_owned());
    assert_eq!(events(&mut server, 1), [Event::Aborted { site, code, text }]);
}

#[test]
fn what_the_own_gateway_delivers_begins_with_a_preface_of_this_job() {
    let grid: causeway_wire::Grid = "1|rennes;127.0.0.0/8;127.0.0.1:7000;1024-65535;10.0.0.0\
                                     |nancy;10.2.0.0/24;10.2.0.253:7000;20000-32767;10.0.0.0-10.0.0.9"
        .parse()
        .unwrap();
    let (mut server, address) = server(Some(Origins {
        own: grid.sites[0].clone(),
        sites: grid.sites,
        host: address_of_this_host(),
    }));
    let sent = |destination, token| Preface {
        source: "10.2.0.1:40000".parse().unwrap(),
        destination,
        token,
        wants: causeway_wire::Wants::Nothing,
    };
    let preface = |token| sent(address, token);
    let join = join_bytes(&a_join("nancy", 1), &TOKEN);
    let bytes = [delivered(&preface(TOKEN)), join.clone()].concat();
    let mut stream = connect(address, &bytes[..20]);
    stream.write_all(&bytes[20..]).unwrap();
    assert_eq!(events(&mut server, 1).len(), 1);
    let bytes = [delivered(&preface(Token([1; 16]))), join].concat();
    let mut foreign = connect(address, &bytes);
    assert_eq!(frame(&mut server, &mut foreign)[0], 3);
    // Nor is a connection served that was delivered to another process, which passes it on.
    let elsewhere = SocketAddr::new(address.ip(), address.port() - 1);
    let bytes = [
        delivered(&sent(elsewhere, TOKEN)),
        join_bytes(&a_join("nancy", 1), &TOKEN),
    ]
    .concat();
    let mut passed_on = connect(address, &bytes);
    assert_eq!(frame(&mut server, &mut passed_on)[0], 3);
    // Another process of the gateway's host sends none.
    let _native = connect(address, &join_bytes(&a_join("rennes", 1), &TOKEN));
    assert_eq!(events(&mut server, 2).len(), 2);
}

#[test]
fn a_process_of_one_site_that_joins_as_another_is_told_so_and_gets_no_world() {
    let grid: causeway_wire::Grid = "1|rennes;127.0.0.0/8;127.0.0.1:7000;1024-65535;10.0.0.0\
                                     |nancy;10.2.0.0/24;10.2.0.253:7000;20000-32767;10.0.0.0-10.0.0.9"
        .parse()
        .unwrap();
    let (mut server, address) = server(Some(Origins {
        own: grid.sites[0].clone(),
        sites: grid.sites,
        host: address_of_this_host(),
    }));
    let preface = Preface {
        source: "10.2.0.1:40000".parse().unwrap(),
        destination: address,
        token: TOKEN,
        wants: causeway_wire::Wants::Nothing,
    };
    let join = join_bytes(&a_join("rennes", 1), &TOKEN);
    let mut hostile = connect(address, &[delivered(&preface), join].concat());
    // The answer to the preface comes first.
    let until = Instant::now() + PATIENCE;
    hostile.set_nonblocking(true).unwrap();
    while hostile.peek(&mut [0; ANSWER_BYTES]).ok() != Some(ANSWER_BYTES) {
        assert!(Instant::now() < until);
        server
            .turn(Some(Instant::now() + Duration::from_millis(5)))
            .unwrap();
    }
    hostile.read_exact(&mut [0; ANSWER_BYTES]).unwrap();
    let told = frame(&mut server, &mut hostile);
    assert_eq!(told[0], 3, "NO");
    let told = String::from_utf8_lossy(&told).into_owned();
    assert!(
        told.contains("a process at nancy joined as one at rennes"),
        "{told}"
    );
}
