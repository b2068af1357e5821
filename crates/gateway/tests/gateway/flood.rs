//! A hundred thousand connections at a gateway's ports that never send a request, or send one a byte now and
//! then. They are opened one after the other, with some thousands open at a time, as descriptors allow; the
//! gateway is a separate process, whose files, memory and log are checked.

use crate::common::{Grid, connect_from, wait_for};
use causeway_wire::question::{NONCE_BYTES, Question};
use causeway_wire::{Reason, Verdict};
use std::collections::VecDeque;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::process::Stdio;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::Duration;

const FLOOD: usize = 100_000;

/// Connections open at a time, at the flood's end: more than either port has places.
const HELD: usize = 6000;

/// The places: connections without a preface, and handshakes.
const INTAKES: usize = 4096;
const HANDSHAKES: usize = 256;

/// The beginnings of a TLS handshake and of a preface, and how the former goes on.
const HELLO: u8 = 0x16;
const MORE: u8 = 0x03;
const PREFACE: u8 = b'\r';

/// Opens a connection that ends with a reset, so that no port stays in use.
fn flooding(own: SocketAddr, other: SocketAddr) -> TcpStream {
    let stream = connect_from(own, other);
    socket2::SockRef::from(&stream)
        .set_linger(Some(Duration::ZERO))
        .unwrap();
    stream
}

fn open_files(pid: u32) -> usize {
    std::fs::read_dir(format!("/proc/{pid}/fd")).unwrap().count()
}

#[test]
fn a_hundred_thousand_silent_connections_cost_a_gateway_bounded_files_memory_and_lines_and_keep_nobody_out() {
    let log = tempfile::NamedTempFile::new().unwrap();
    let grid = Grid::with_far_log(Stdio::from(log.reopen().unwrap()));
    let (pid, before) = (grid.status(2).pid, grid.status(2));
    let files = open_files(pid);
    let (near, far) = grid.pair(&grid.listen());
    // The job is site one's, but both sites' processes may use its token.
    let listener = TcpListener::bind(grid.address(1, 1, 0)).unwrap();
    let (lan, wan) = (grid.address(2, 253, 7000), grid.wan(2));
    let mut flood = VecDeque::new();
    let (mut most_files, mut most_bytes) = (0, 0);
    for number in 0..FLOOD {
        // Most connections go to the LAN port, from two hosts of the site; the others to the WAN port, from a
        // dozen.
        let (stream, first) = match number % 4 {
            0 => (
                flooding(grid.address(0, 20 + (number / 4 % 12) as u8, 0), wan),
                HELLO,
            ),
            _ => (
                flooding(grid.address(2, 20 + (number % 2) as u8, 0), lan),
                PREFACE,
            ),
        };
        flood.push_back((stream, first));
        if flood.len() > HELD {
            flood.pop_front();
        }
        // Each connection sends once it is in the middle of the others; it may have been ended by then.
        let (stream, first) = &mut flood[number.min(HELD - 1) / 2];
        let _ = stream.write(&[*first]);
        if number % 5000 == 4999 {
            most_files = most_files.max(open_files(pid));
            most_bytes = most_bytes.max(grid.status(2).resident_bytes);
            let (near, far) = grid.pair_back(&listener);
            crate::common::cross(&near, &far, b"while strangers wait");
        }
    }
    crate::common::cross(&near, &far, b"and what was open before goes on");
    let refused = grid.status(2).refused;
    assert!(refused["intakes"] > 0 && refused["handshakes"] > 0, "{refused:?}");
    // Beside them, the gateway has the streams of this test.
    let bound = files + INTAKES + HANDSHAKES + 64;
    assert!(most_files <= bound, "{most_files} files, not {bound} at most");
    // Half a kilobyte for each, a deadline for each of the last seconds, and what an allocator keeps.
    let bound = before.resident_bytes + (64 << 20);
    assert!(most_bytes <= bound, "{most_bytes} bytes, not {bound} at most");
    drop(flood);
    wait_for("the files to be closed", || open_files(pid) <= files + 16);
    let mut lines = String::new();
    log.reopen().unwrap().read_to_string(&mut lines).unwrap();
    let refusals = lines.lines().filter(|line| line.contains("refused"));
    let refusals: Vec<_> = refusals.collect();
    // There is one line for each kind and origin.
    assert!(!refusals.is_empty() && refusals.len() <= 4 * 14, "{refusals:#?}");
}

#[test]
fn shims_get_through_while_one_host_holds_all_places_for_prefaces_and_the_slow_one_that_came_first_is_not_pushed_out()
 {
    let grid = Grid::with_far_process();
    let listener = TcpListener::bind(grid.address(1, 1, 0)).unwrap();
    let lan = grid.address(2, 253, 7000);
    let mut slow = connect_from(grid.address(2, 1, 0), lan);
    let preface = grid.preface(&slow, listener.local_addr().unwrap(), true);
    let preface = crate::common::encoded(&preface);
    let (begun, rest) = preface.split_at(20);
    slow.write_all(begun).unwrap();
    let mut flood: Vec<_> = (0..INTAKES + 400)
        .map(|_| {
            let mut stream = flooding(grid.address(2, 20, 0), lan);
            stream.write_all(&[PREFACE]).unwrap();
            stream
        })
        .collect();
    let (near, far) = grid.pair_back(&listener);
    slow.write_all(rest).unwrap();
    slow.read_exact(&mut [0; causeway_wire::preface::ANSWER_BYTES])
        .unwrap();
    let mut verdict = [0; Verdict::BYTES];
    slow.read_exact(&mut verdict).unwrap();
    assert_eq!(Verdict::decode(verdict), Some(Verdict::Connected));
    let refused = grid.status(2).refused;
    assert!(refused["intakes"] >= 400, "{refused:?}");
    // Nobody got in because another connection's time was over.
    assert!(!refused.contains_key("preface-late"), "{refused:?}");
    assert!(
        matches!(flood[0].read(&mut [0]), Ok(0) | Err(_)),
        "the oldest is ended"
    );
    crate::common::cross(&near, &far, b"among silent ones");
}

#[test]
fn a_gateway_comes_up_while_strangers_from_many_addresses_hold_all_places_for_handshakes_and_speak_now_and_then()
 {
    let mut grid = Grid::with_far_process();
    grid.stop(1);
    wait_for("the far gateway to have none", || {
        grid.status(2).tunnels.is_empty()
    });
    let stop = AtomicBool::new(false);
    let full = AtomicBool::new(false);
    let (net, wan) = (grid.address(0, 0, 0), grid.wan(2));
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let mut held = VecDeque::new();
            for number in 0.. {
                if stop.load(Relaxed) {
                    return;
                }
                let mut own = net;
                own.set_ip([127, octet(net), 0, 40 + (number % 8) as u8].into());
                let mut stranger = flooding(own, wan);
                let _ = stranger.write(&[HELLO]);
                held.push_back(stranger);
                if held.len() > 2 * HANDSHAKES {
                    let _ = held[HANDSHAKES].write(&[MORE]);
                    held.pop_front();
                    full.store(true, Relaxed);
                }
            }
        });
        wait_for("all places to be taken", || full.load(Relaxed));
        grid.gateway(1);
        grid.wait_for_tunnel();
        stop.store(true, Relaxed);
    });
    assert!(grid.status(2).refused["handshakes"] > 0);
}

fn octet(address: SocketAddr) -> u8 {
    let SocketAddr::V4(address) = address else {
        panic!("{address} is none of the test's")
    };
    address.ip().octets()[1]
}

#[test]
fn a_site_that_opens_more_streams_than_another_gateway_has_files_for_leaves_it_those_that_others_need() {
    let grid = Grid::with_far_files(400);
    let listener = grid.listen();
    let destination = listener.local_addr().unwrap();
    // The site is the only other one; otherwise it would have half.
    let mut pairs: Vec<_> = (0..300).map(|_| grid.pair(&listener)).collect();
    for _ in 0..200 {
        assert_eq!(
            grid.connect(destination).unwrap_err(),
            Verdict::Failed(Reason::Exhausted)
        );
    }
    assert_eq!(grid.status(2).refused["streams"], 200);
    // In the other direction, the gateway's own processes get through; so do commands.
    let own = TcpListener::bind(grid.address(1, 1, 0)).unwrap();
    let (near, far) = grid.pair_back(&own);
    crate::common::cross(&near, &far, b"from here");
    // And when one of the streams ends, there is room for one.
    drop((near, far, pairs.pop()));
    wait_for("the streams to end", || grid.status(2).streams < 300);
    grid.pair(&listener);
}

#[test]
fn silent_connections_get_a_share_of_few_files_and_shims_still_get_through() {
    let grid = Grid::with_far_files(200);
    let own = TcpListener::bind(grid.address(1, 1, 0)).unwrap();
    let lan = grid.address(2, 253, 7000);
    let _silent: Vec<_> = (0..400).map(|_| flooding(grid.address(2, 20, 0), lan)).collect();
    let (near, far) = grid.pair_back(&own);
    crate::common::cross(&near, &far, b"from here");
    let refused = grid.status(2).refused;
    assert!(
        !refused.contains_key("accept") && refused["intakes"] >= 350,
        "{refused:?}"
    );
}

#[test]
fn questions_that_were_answered_push_nobody_out() {
    let grid = Grid::with_far_files(200);
    let question = Question::new(&grid.token, [3; NONCE_BYTES]).encode();
    let answer = |mut stream: TcpStream| {
        stream.write_all(&question).unwrap();
        let mut answer = Vec::new();
        stream.read_to_end(&mut answer).map(|_| answer.len())
    };
    // One connection that takes its time, and more requests than there are places.
    let slow = grid.dial_at(2);
    for _ in 0..50 {
        assert!(answer(grid.dial_at(2)).unwrap() > 0);
    }
    assert!(answer(slow).unwrap() > 0);
    assert_eq!(grid.status(2).refused.get("intakes"), None);
}
