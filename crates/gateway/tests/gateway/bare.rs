//! Connections of `causeway connect`: delivered without a preface, to programs that know nothing about it;
//! and round trips.

use crate::common::{DEADLINE, Grid, pattern, send_preface, wait_for};
use causeway_control::{self as control, Reply, Request};
use causeway_wire::{Reason, Token, Verdict};
use std::io::{Read, Write};
use std::net::{Shutdown, SocketAddr, TcpStream};
use std::os::unix::net::UnixStream;

/// A job of `causeway connect`; it ends with the connection.
fn bare_job(grid: &Grid) -> (Token, UnixStream) {
    let request = Request::Connect {
        name: "connect".into(),
        site: "site2".into(),
        lingers: false,
    };
    match control::ask(&grid.control(1), &request).unwrap() {
        (Reply::Job(job), held) => (job.token.parse().unwrap(), held),
        (other, _) => panic!("{other:?}"),
    }
}

fn connect(grid: &Grid, token: Token, destination: SocketAddr) -> Result<TcpStream, Verdict> {
    let stream = grid.dial();
    let mut preface = grid.preface(&stream, destination, true);
    preface.token = token;
    send_preface(stream, &preface)
}

#[test]
fn a_bare_connection_carries_nothing_but_its_bytes_and_comes_from_no_delivery_port() {
    let grid = Grid::start();
    let listener = grid.listen();
    let (token, _held) = bare_job(&grid);
    let mut near = connect(&grid, token, listener.local_addr().unwrap()).unwrap();
    let (mut far, peer) = listener.accept().unwrap();
    assert_eq!(peer.ip(), grid.address(2, 253, 0).ip());
    assert!(
        !(20000..=32767).contains(&peer.port()),
        "from port {}",
        peer.port()
    );
    far.set_read_timeout(Some(DEADLINE)).unwrap();
    near.write_all(b"question").unwrap();
    near.shutdown(Shutdown::Write).unwrap();
    let mut got = Vec::new();
    far.read_to_end(&mut got).unwrap();
    assert_eq!(got, b"question");
    far.write_all(b"answer").unwrap();
    drop(far);
    got.clear();
    near.read_to_end(&mut got).unwrap();
    assert_eq!(got, b"answer");
    // The other job's connections have their prefaces as before.
    grid.pair(&listener);
}

/// Returns the reason why a connection to this port of site two's node is refused.
fn refusal(grid: &Grid, token: Token, destination: SocketAddr) -> Reason {
    match connect(grid, token, destination).unwrap_err() {
        Verdict::Failed(reason) => reason,
        Verdict::Connected => panic!("connected"),
    }
}

#[test]
fn users_of_another_site_connect_where_this_one_says_so_and_nowhere_else() {
    // Nothing listens at port 1: what is allowed is refused by the host, what is not by the gateway.
    let grid = Grid::with_far_accept("connect_from = [\"site1:1\"]");
    let (token, _held) = bare_job(&grid);
    let node = |port| grid.address(2, 1, port);
    assert_eq!(refusal(&grid, token, node(1)), Reason::Refused);
    assert_eq!(refusal(&grid, token, node(2)), Reason::Denied);
    assert_eq!(refusal(&grid, token, node(5000)), Reason::Denied);
    // This address is not a listed node's, and not in `addresses`.
    assert_eq!(refusal(&grid, token, grid.address(2, 7, 1)), Reason::Denied);
    let refused = grid.status(2).refused;
    assert_eq!((refused["connect"], refused["unlisted-destination"]), (2, 1));
    // The site accepts connections, not jobs.
    let job = grid.job("test").0;
    let why = job.left_out["site2"].as_str();
    assert!(why.contains("accepts no jobs of site1"), "{why}");
}

#[test]
fn a_site_that_says_nothing_takes_no_connection_and_its_user_is_told_which_key_would() {
    let grid = Grid::with_far_accept("");
    let request = Request::Connect {
        name: "connect".into(),
        site: "site2".into(),
        lingers: false,
    };
    let (reply, _held) = control::ask(&grid.control(1), &request).unwrap();
    let Reply::Job(job) = reply else {
        panic!("{reply:?}")
    };
    let why = job.left_out["site2"].as_str();
    assert!(
        why.contains("site2") && why.contains("connect_from in [accept]"),
        "{why}"
    );
    let token = job.token.parse().unwrap();
    assert_eq!(refusal(&grid, token, grid.address(2, 1, 5000)), Reason::Denied);
    assert_eq!(refusal(&grid, token, grid.address(2, 253, 9)), Reason::Denied);
    // The other gateway has heard of none of these connections.
    assert!(grid.status(2).refused.is_empty() && grid.status(1).refused["no-part"] == 2);
}

#[test]
fn nobody_over_there_connects_back_under_a_job_of_causeway_connect() {
    let grid = Grid::start();
    let (token, _held) = bare_job(&grid);
    let stream = grid.dial_at(2);
    let mut preface = grid.preface(&stream, grid.address(1, 1, 5000), true);
    preface.token = token;
    let verdict = send_preface(stream, &preface).unwrap_err();
    assert_eq!(verdict, Verdict::Failed(Reason::Denied));
    assert_eq!(grid.status(1).refused["no-part"], 1);
}

#[test]
fn what_was_sent_right_before_the_job_ended_arrives_and_its_token_is_worth_nothing_after() {
    let grid = Grid::start();
    let listener = grid.listen();
    let bytes = pattern(1, 300_000);
    for _ in 0..20 {
        let (token, held) = bare_job(&grid);
        let mut near = connect(&grid, token, listener.local_addr().unwrap()).unwrap();
        let (mut far, _) = listener.accept().unwrap();
        far.set_read_timeout(Some(DEADLINE)).unwrap();
        // The far half has ended, so nothing is left to wait for once everything is written.
        far.shutdown(Shutdown::Write).unwrap();
        assert_eq!(near.read(&mut [0]).unwrap(), 0);
        let mut got = Vec::new();
        std::thread::scope(|scope| {
            scope.spawn(|| {
                near.write_all(&bytes).unwrap();
                drop((near, held));
            });
            far.read_to_end(&mut got).unwrap();
        });
        assert!(got == bytes, "{} bytes arrived", got.len());
        wait_for("the end of the job", || grid.status(2).jobs.len() == 1);
        let refused = connect(&grid, token, listener.local_addr().unwrap());
        assert_eq!(refused.unwrap_err(), Verdict::Failed(Reason::Denied));
    }
    wait_for("the end of the streams", || {
        [1, 2].iter().all(|site| grid.status(*site).streams == 0)
    });
}

#[test]
fn a_connection_whose_ends_stay_open_goes_soon_after_its_command_unless_its_user_asked_otherwise() {
    let grid = Grid::start();
    let listener = grid.listen();
    let open = |lingers| {
        let request = Request::Connect {
            name: "connect".into(),
            site: "site2".into(),
            lingers,
        };
        let (reply, held) = control::ask(&grid.control(1), &request).unwrap();
        let Reply::Job(job) = reply else {
            panic!("{reply:?}")
        };
        let near = connect(&grid, job.token.parse().unwrap(), listener.local_addr().unwrap()).unwrap();
        let far = listener.accept().unwrap().0;
        drop(held);
        (near, far)
    };
    let (mut near, mut far) = open(true);
    let ends = open(false);
    for mut end in [ends.0, ends.1] {
        end.set_read_timeout(Some(DEADLINE)).unwrap();
        let ended = end.read(&mut [0]);
        assert!(
            ended
                .as_ref()
                .is_err_and(|error| error.kind() == std::io::ErrorKind::ConnectionReset),
            "{ended:?}"
        );
    }
    near.write_all(b"still here").unwrap();
    let mut got = [0; 10];
    far.read_exact(&mut got).unwrap();
    assert_eq!(&got, b"still here");
}

#[test]
fn a_round_trip_tells_its_time_the_other_clock_and_version() {
    let grid = Grid::start();
    let ping = |site: &str| {
        let request = Request::Ping { site: site.into() };
        control::ask(&grid.control(1), &request).map(|(reply, _)| reply)
    };
    let Reply::Pong(pong) = ping("site2").unwrap() else {
        panic!("no pong")
    };
    assert_eq!((pong.site.as_str(), pong.version.is_empty()), ("site2", false));
    // Both gateways have the same clock: the difference between them comes from the unequal halves of the
    // round trip.
    assert!(
        pong.clock_ahead_microseconds.unsigned_abs() <= pong.round_trip_microseconds,
        "{pong:?}"
    );
    let said = ping("site1").unwrap_err().to_string();
    assert!(said.contains("is this site"), "{said}");
    let said = ping("site3").unwrap_err().to_string();
    assert!(
        said.contains("site3") && said.contains("there are: site2"),
        "{said}"
    );
}

#[test]
fn who_chooses_sites_hears_of_the_links_of_every_one() {
    let grid = Grid::start();
    let (reply, _) = control::ask(&grid.control(1), &Request::Sites {}).unwrap();
    let Reply::Sites(sites) = reply else {
        panic!("{reply:?}")
    };
    let mut heard = Vec::new();
    for (from, links) in &sites.links {
        for link in links {
            assert!(link.rtt_microseconds > 0, "{link:?}");
            heard.push((from.as_str(), link.to.as_str()));
        }
    }
    assert_eq!(heard, [("site1", "site2"), ("site2", "site1")]);
}

#[test]
fn a_site_without_a_tunnel_is_not_waited_for() {
    let mut grid = Grid::start();
    grid.stop(2);
    let request = Request::Ping { site: "site2".into() };
    wait_for("the reason", || {
        let said = control::ask(&grid.control(1), &request).map(|_| ());
        said.is_err_and(|error| error.to_string().contains("no tunnel to site2:"))
    });
}
