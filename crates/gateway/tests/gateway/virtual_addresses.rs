//! A site that the grid knows by other addresses than its own: what is said between sites is virtual, what
//! reaches a process of the site is real.

use crate::common::{DEADLINE, Grid, accept, connect_from, pattern, send_preface};
use causeway_wire::question::{Answer, NONCE_BYTES, Question};
use causeway_wire::{Reason, Token, Verdict};
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};

const VIRTUAL: &str = "virtual_subnets = [\"100.64.2.0/24\"]";

/// The same port of the same host, as the grid knows it.
fn in_grid(real: SocketAddr) -> SocketAddr {
    let std::net::IpAddr::V4(ip) = real.ip() else {
        panic!("{real}")
    };
    SocketAddr::from(([100, 64, 2, ip.octets()[3]], real.port()))
}

#[test]
fn what_other_sites_send_to_a_virtual_address_reaches_the_real_one() {
    let grid = Grid::with_far_site(VIRTUAL);
    let (job, _held) = grid.job("another");
    assert!(
        job.grid.starts_with("2|") && job.grid.contains("100.64.2.0/24=127."),
        "{}",
        job.grid
    );
    let listener = grid.listen();
    let known_as = in_grid(listener.local_addr().unwrap());
    let mut near = grid.connect(known_as).unwrap();
    let (mut far, preface) = accept(&listener, &grid.token);
    assert_eq!(
        (preface.source, preface.destination),
        (near.local_addr().unwrap(), known_as)
    );
    near.write_all(&pattern(1, 100)).unwrap();
    let mut got = [0; 100];
    far.read_exact(&mut got).unwrap();
    assert_eq!(got.to_vec(), pattern(1, 100));
}

#[test]
fn what_the_site_sends_comes_from_its_virtual_address_whichever_it_names() {
    let grid = Grid::with_far_site(VIRTUAL);
    let listener = TcpListener::bind(grid.address(1, 1, 0)).unwrap();
    for names in [|real| real, in_grid] {
        let near = grid.dial_at(2);
        let own = near.local_addr().unwrap();
        let mut preface = grid.preface(&near, listener.local_addr().unwrap(), true);
        preface.source = names(own);
        let _near = send_preface(near, &preface).unwrap();
        assert_eq!(accept(&listener, &grid.token).1.source, in_grid(own));
    }
    let near = grid.dial_at(2);
    let mut preface = grid.preface(&near, listener.local_addr().unwrap(), true);
    preface.source.set_ip([100, 64, 2, 77].into());
    let refused = send_preface(near, &preface).unwrap_err();
    assert_eq!(refused, Verdict::Failed(Reason::Denied), "another node's address");
}

#[test]
fn real_addresses_of_such_a_site_mean_nothing_at_other_sites() {
    let grid = Grid::with_far_site(VIRTUAL);
    let listener = grid.listen();
    let refused = grid.connect(listener.local_addr().unwrap()).unwrap_err();
    assert_eq!(refused, Verdict::Failed(Reason::Unreachable));
}

fn question(token: Token) -> Question {
    Question::new(&token, [3; NONCE_BYTES])
}

fn ask(mut stream: TcpStream, token: Token) -> Vec<u8> {
    stream.set_read_timeout(Some(DEADLINE)).unwrap();
    stream.write_all(&question(token).encode()).unwrap();
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer).unwrap();
    answer
}

#[test]
fn a_gateway_says_whose_it_is_to_processes_of_a_job_and_to_nobody_else() {
    let grid = Grid::with_far_site(VIRTUAL);
    let (_another, _held) = grid.job("another");
    for (stream, site) in [(grid.dial_at(2), "site2"), (grid.dial(), "site1")] {
        let answer = ask(stream, grid.token);
        let read = question(grid.token).read_answer(&grid.token, &answer);
        assert_eq!(read, Answer::Site(site));
    }
    assert!(ask(grid.dial_at(2), Token([9; 16])).is_empty());
    assert_eq!(grid.status(2).refused.get("unknown-token"), Some(&1));
}

#[test]
fn a_gateway_does_not_say_whose_it_is_to_nodes_of_other_sites() {
    let grid = Grid::with_far_site(VIRTUAL);
    let stranger = connect_from(grid.address(1, 1, 0), grid.address(2, 253, 7000));
    assert!(ask(stranger, grid.token).is_empty());
    let refused = grid.status(2).refused;
    assert_eq!(refused.get("foreign-source"), Some(&1), "{refused:?}");
}
