//! What a gateway does not let in: each connection is refused and counted, and leaves the rest unharmed.

use crate::common::{Grid, accept_silently, encoded, introduce, send_preface, wait_for};
use causeway_control::{self as control, Reply, Request};
use causeway_wire::{Preface, Reason, Sender, Token, Verdict};
use std::io::{Read, Write};

#[test]
fn prefaces_that_lie_are_denied_and_counted() {
    let grid = Grid::start();
    let listener = grid.listen();
    let destination = listener.local_addr().unwrap();
    let attempt = |change: &dyn Fn(&mut Preface)| {
        let stream = grid.dial();
        let mut preface = grid.preface(&stream, destination, true);
        change(&mut preface);
        send_preface(stream, &preface).unwrap_err()
    };
    let denied = Verdict::Failed(Reason::Denied);
    assert_eq!(attempt(&|preface| preface.token = Token([7; 16])), denied);
    assert_eq!(attempt(&|preface| preface.source.set_port(9)), denied);
    assert_eq!(
        attempt(&|preface| preface.destination = grid.address(1, 1, 5000)),
        denied
    );
    let nowhere = attempt(&|preface| preface.destination = "192.0.2.1:5000".parse().unwrap());
    assert_eq!(nowhere, Verdict::Failed(Reason::Unreachable));
    let refused = grid.status(1).refused;
    for kind in ["unknown-token", "false-source", "own-site", "unknown-destination"] {
        assert_eq!(refused.get(kind), Some(&1), "{kind} in {refused:?}");
    }
    grid.pair(&listener);
}

#[test]
fn who_passes_on_the_preface_of_a_process_gets_no_proof_to_pass_back() {
    let grid = Grid::start();
    let listener = grid.listen();
    let (process, other) = (grid.dial(), grid.dial());
    let preface = grid.preface(&process, listener.local_addr().unwrap(), true);
    let denied = Verdict::Failed(Reason::Denied).encode();
    assert_eq!(introduce(&other, &preface), Some(denied));
    assert_eq!(introduce(&process, &preface), None);
}

#[test]
fn what_listens_at_a_destination_and_does_not_know_the_jobs_token_gets_neither_it_nor_the_stream() {
    let grid = Grid::start();
    let listener = grid.listen();
    // Arbitrary bytes, another protocol's greeting, and a process's own proof.
    let preface =
        |near: &std::net::TcpStream| encoded(&grid.preface(near, listener.local_addr().unwrap(), true));
    for wrong in [
        vec![0; 8],
        b"GET / HTTP/1.1\r\n\r\n".to_vec(),
        preface(&grid.dial()),
    ] {
        let mut near = grid.connect(listener.local_addr().unwrap()).unwrap();
        near.write_all(b"secret").unwrap();
        let (mut far, claim) = accept_silently(&listener);
        assert!(claim.proven(Sender::Gateway, &grid.token).is_some());
        far.write_all(&wrong).unwrap();
        let mut got = Vec::new();
        assert!(far.read_to_end(&mut got).is_err() && got.is_empty(), "{got:?}");
        assert!(near.read(&mut [0]).is_err());
    }
    assert_eq!(grid.status(2).refused["no-proof"], 3);
    grid.pair(&listener);
}

#[test]
fn bytes_that_are_no_preface_end_their_connection_and_nothing_else() {
    let grid = Grid::start();
    let listener = grid.listen();
    let whole = {
        let stream = grid.dial();
        encoded(&grid.preface(&stream, listener.local_addr().unwrap(), false))
    };
    let mut oversized = whole.clone();
    oversized[14..16].copy_from_slice(&u16::MAX.to_be_bytes());
    let cut = whole[..20].to_vec();
    for bytes in [b"GET / HTTP/1.1\r\n\r\n".to_vec(), oversized, vec![0; 1000]] {
        let mut stream = grid.dial();
        let _ = stream.write_all(&bytes);
        assert!(matches!(stream.read(&mut [0]), Ok(0) | Err(_)));
    }
    let mut stream = grid.dial();
    stream.write_all(&cut).unwrap();
    drop(stream);
    wait_for("the count of cut prefaces", || {
        grid.status(1).refused.contains_key("preface-cut")
    });
    assert_eq!(grid.status(1).refused["bad-preface"], 3);
    grid.pair(&listener);
}

#[test]
fn a_connection_that_says_nothing_is_closed_at_the_deadline() {
    let grid = Grid::start();
    let mut stream = grid.dial();
    assert_eq!(stream.read(&mut [0]).unwrap(), 0);
    assert_eq!(grid.status(1).refused["preface-late"], 1);
}

#[test]
fn a_gateway_with_another_key_does_not_get_in_and_both_sides_say_why() {
    let grid = Grid::with_keys("the key of this grid", "the key of another grid");
    wait_for("the reason", || grid.trouble().contains("key"));
    wait_for("the count", || grid.status(2).refused.contains_key("handshake"));
}

#[test]
fn a_gateway_that_the_other_side_forgot_to_name_gets_no_tunnel_and_is_told_what_to_look_for() {
    let grid = Grid::with_forgotten_peer();
    wait_for("the reason", || {
        grid.trouble().contains("[[peer]] for this site, site1")
    });
    wait_for("the count", || {
        grid.status(2).refused.contains_key("unknown-site")
    });
    assert!(grid.status(1).tunnels.is_empty());
}

#[test]
fn strangers_that_say_nothing_make_room_for_those_who_come_later() {
    let grid = Grid::start();
    for addresses in [20..21, 20..32] {
        let mut strangers: Vec<_> = (0..300)
            .zip(addresses.cycle())
            .map(|(_, host)| grid.stranger(host))
            .collect();
        let (last, first) = (strangers.pop().unwrap(), &mut strangers[0]);
        assert!(matches!(first.read(&mut [0]), Ok(0) | Err(_)));
        last.set_nonblocking(true).unwrap();
        let still_there = (&last).read(&mut [0]).unwrap_err();
        assert_eq!(still_there.kind(), std::io::ErrorKind::WouldBlock);
        assert!(grid.status(2).refused.contains_key("handshakes"));
    }
}

#[test]
fn requests_that_are_not_understood_get_an_answer() {
    let grid = Grid::start();
    let ask = |line: &str| {
        let mut socket = std::os::unix::net::UnixStream::connect(grid.control(1)).unwrap();
        socket.write_all(line.as_bytes()).unwrap();
        let mut answer = String::new();
        socket.read_to_string(&mut answer).unwrap();
        answer
    };
    assert!(ask("hello\n").contains("not understood"));
    assert!(ask("{\"version\":9,\"body\":{\"status\":{}}}\n").contains("speaks version 9"));
    assert!(ask(&"x".repeat(256 * 1024 + 1)).contains("longer than"));
    let unknown = Request::Spawn {
        token: grid.token.to_hex(),
        node: "elsewhere".into(),
        takes_connection: true,
    };
    assert!(
        control::ask(&grid.control(1), &unknown)
            .unwrap_err()
            .to_string()
            .contains("no site of the grid")
    );
    let ended = Request::Spawn {
        token: Token([3; 16]).to_hex(),
        node: "node2".into(),
        takes_connection: true,
    };
    assert!(
        control::ask(&grid.control(1), &ended)
            .unwrap_err()
            .to_string()
            .contains("has ended")
    );
    assert!(matches!(
        control::ask(&grid.control(1), &Request::Status {}),
        Ok((Reply::Status(_), _))
    ));
}
