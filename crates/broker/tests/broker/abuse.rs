//! Callers that try what they must not: strangers, other grids, sites that claim what belongs to others, and
//! sites that were put out.

use crate::common::{
    DEADLINE, Grid, TestClock, connected, copy_store, member, question, read_answer, record, wait,
    write_request,
};
use causeway_broker::admin::{AdminReply, AdminRequest};
use causeway_broker::api::{ErrorKind, Node, ReachAnswer, ReachRequest, SendRequest, Subnet};
use causeway_broker::client::{Event, join};
use causeway_broker::revocation::Revocations;
use causeway_broker::tls::{Expect, Trust, client_config, server_config, server_name};
use causeway_broker::{Limits, clock::Clock};
use rustls::{ClientConnection, ServerConnection};
use std::io::Read;
use std::net::{TcpListener, TcpStream};
use std::sync::Arc;
use std::time::Duration;

#[test]
fn a_stranger_may_ask_for_nothing_but_to_join_and_the_time() {
    let grid = Grid::new("g5k");
    for path in ["renew", "sync", "revocations", "send", "reach", "jobs"] {
        let mut stream = grid.connect(None);
        write_request(&mut stream, &format!("/v1/{path}"), b"{}", 2);
        let (status, body) = read_answer(&mut stream).unwrap();
        assert_eq!(status, 401, "{path}");
        assert!(
            String::from_utf8_lossy(&body).contains("no_certificate"),
            "{path}"
        );
    }
    let mut stream = grid.connect(None);
    write_request(&mut stream, "/v2/anything", b"", 0);
    assert_eq!(read_answer(&mut stream).unwrap().0, 400);
    assert_eq!(
        grid.said("only members of the grid").len(),
        1,
        "said once for one origin"
    );
}

#[test]
fn a_certificate_of_another_grid_is_refused_by_broker_and_gateway_alike() {
    let (grid, other) = (Grid::new("g5k"), Grid::new("das"));
    let (own, foreign) = (grid.join("rennes"), other.join("rennes"));
    // A name alone is not enough: this one's authority also calls its grid g5k.
    let namesake = Grid::new("g5k").join("nancy");
    for stranger in [&foreign, &namesake] {
        let trust = own.trust(Revocations::default(), Clock::system()).unwrap();
        let config = client_config(&stranger.credentials, &trust, Expect::Broker).unwrap();
        let socket = TcpStream::connect(grid.address).unwrap();
        socket.set_read_timeout(Some(DEADLINE)).unwrap();
        let session = ClientConnection::new(Arc::new(config), server_name()).unwrap();
        let mut stream = rustls::StreamOwned::new(session, socket);
        write_request(&mut stream, "/v1/sync", b"{}", 2);
        assert_eq!(read_answer(&mut stream), None);
        let wrong = trust.check(
            std::slice::from_ref(&stranger.credentials.certificate),
            &Expect::AnySite,
        );
        assert!(
            wrong
                .unwrap_err()
                .to_string()
                .contains("the authority of grid g5k did not sign")
        );
    }
    assert_eq!(grid.says("the authority of grid g5k did not sign").len(), 1);
}

/// Makes a handshake between two gateways. The error is what either end reports.
fn meet(dials: (&rustls::ClientConfig, &rustls::ServerConfig)) -> Result<(), String> {
    let mut client = ClientConnection::new(Arc::new(dials.0.clone()), server_name()).unwrap();
    let mut server = ServerConnection::new(Arc::new(dials.1.clone())).unwrap();
    while client.is_handshaking() || server.is_handshaking() {
        let mut wire = Vec::new();
        client.write_tls(&mut wire).unwrap();
        server.read_tls(&mut wire.as_slice()).unwrap();
        server
            .process_new_packets()
            .map_err(|error| causeway_broker::tls::reason(&error))?;
        wire.clear();
        server.write_tls(&mut wire).unwrap();
        client.read_tls(&mut wire.as_slice()).unwrap();
        client
            .process_new_packets()
            .map_err(|error| causeway_broker::tls::reason(&error))?;
    }
    Ok(())
}

#[test]
fn two_gateways_meet_only_if_each_is_whom_the_other_expects_and_not_revoked() {
    let grid = Grid::new("g5k");
    let (rennes, nancy) = (grid.join("rennes"), grid.join("nancy"));
    let trust = |who: &causeway_broker::client::Membership| {
        who.trust(Revocations::default(), Clock::system()).unwrap()
    };
    let (at_rennes, at_nancy) = (trust(&rennes), trust(&nancy));
    let to = |site: &str| client_config(&rennes.credentials, &at_rennes, Expect::Site(site.into())).unwrap();
    let serves = server_config(&nancy.credentials, &at_nancy, Expect::AnySite).unwrap();
    meet((&to("nancy"), &serves)).unwrap();
    assert!(
        meet((&to("lyon"), &serves))
            .unwrap_err()
            .contains("site nancy of grid g5k, not site lyon")
    );
    let to_broker = client_config(&rennes.credentials, &at_rennes, Expect::Broker).unwrap();
    assert!(
        meet((&to_broker, &serves))
            .unwrap_err()
            .contains("not the broker")
    );
    grid.revoke("rennes");
    let answer = grid.sync(&nancy, &question(&record(2))).unwrap();
    let signed = answer.revocations.unwrap();
    let set =
        causeway_broker::revocation::RevocationSet::verify(&signed, "g5k", at_nancy.authority()).unwrap();
    at_nancy.revocations().adopt(set);
    assert!(meet((&to("nancy"), &serves)).unwrap_err().contains("was revoked"));
}

#[test]
fn anothers_subnets_and_nodes_cannot_be_claimed_and_the_refusal_names_the_owner() {
    let grid = Grid::new("g5k");
    let (rennes, nancy) = (grid.join("rennes"), grid.join("nancy"));
    grid.sync(&rennes, &question(&record(1))).unwrap();
    let mut claim = record(2);
    claim.nodes[0].name = "node-1".into();
    let refusal = grid.sync(&nancy, &question(&claim)).unwrap_err();
    assert_eq!(refusal.kind, ErrorKind::Overlap);
    assert!(
        refusal.message.contains("node node-1 belongs to site rennes"),
        "{}",
        refusal.message
    );
    let refusal = grid.sync(&nancy, &question(&record(1))).unwrap_err();
    assert!(
        refusal
            .message
            .contains("subnet 10.1.0.0/24 belongs to site rennes"),
        "{}",
        refusal.message
    );
    let [mut both_a, mut both_b] = [record(1), record(1)];
    both_a.overlap_ok = true;
    both_b.overlap_ok = true;
    grid.sync(&rennes, &question(&both_a)).unwrap();
    let answer = grid.sync(&nancy, &question(&both_b)).unwrap();
    assert_eq!(answer.members.len(), 2);
}

#[test]
fn a_site_that_changes_its_record_without_end_is_told_to_wait_and_others_are_not() {
    let grid = Grid::new("g5k");
    let (rennes, nancy) = (grid.join("rennes"), grid.join("nancy"));
    let mut changing = record(1);
    changing.nodes = (0..16_384)
        .map(|number| Node {
            name: format!("rennes-{number}"),
            addresses: vec![],
            slots: 1,
        })
        .collect();
    let mut refused = None;
    for slots in 2..20 {
        changing.nodes[0].slots = slots;
        if let Err(refusal) = grid.sync(&rennes, &question(&changing)) {
            refused = Some((slots, refusal));
            break;
        }
    }
    let (slots, refusal) = refused.expect("a bound");
    assert_eq!(refusal.kind, ErrorKind::Busy);
    assert!(refusal.message.contains("it may again in"), "{}", refusal.message);
    assert!(slots > 4, "{slots}");
    // What the site has said before is not news.
    changing.nodes[0].slots = slots - 1;
    grid.sync(&rennes, &question(&changing)).unwrap();
    grid.sync(&nancy, &question(&record(2))).unwrap();
    grid.clock.shift(8);
    changing.nodes[0].slots = slots;
    grid.sync(&rennes, &question(&changing)).unwrap();
}

#[test]
fn a_site_has_no_public_addresses_unless_its_token_grants_them_and_then_nothing_else() {
    let mut grid = Grid::new("g5k");
    let in_range = |subnet: &str, node: &str| {
        let mut record = record(1);
        record.subnets = vec![Subnet(subnet.parse().unwrap())];
        record.lan = vec![];
        record.nodes[0].addresses = vec![node.parse().unwrap()];
        record
    };
    let public = in_range("198.51.100.0/24", "198.51.100.1");
    let rennes = grid.join("rennes");
    let refusal = grid.sync(&rennes, &question(&public)).unwrap_err();
    assert_eq!(refusal.kind, ErrorKind::NotYours);
    assert!(
        refusal.message.contains("--subnet 198.51.100.0/24"),
        "{}",
        refusal.message
    );
    grid.sync(&rennes, &question(&record(1))).unwrap();

    let token = grid.token_for("rennes", &["198.51.100.0/24"]);
    let rennes = join(&token, &grid.home("again"), &Clock::system()).unwrap();
    grid.sync(&rennes, &question(&public)).unwrap();
    grid.stop();
    grid.start();
    grid.sync(&rennes, &question(&public)).unwrap();
    let refusal = grid.sync(&rennes, &question(&record(1))).unwrap_err();
    assert!(
        refusal
            .message
            .contains("may have 198.51.100.0/24, not 10.1.0.0/24"),
        "{}",
        refusal.message
    );
    let AdminReply::Listing(listing) = grid.ask(&AdminRequest::List {}) else {
        panic!("no listing");
    };
    assert_eq!(listing.sites[0].granted, ["198.51.100.0/24"]);

    // It has joined again without a grant: what it was granted is over.
    let rennes = join(&grid.token("rennes"), &grid.home("later"), &Clock::system()).unwrap();
    let refusal = grid.sync(&rennes, &question(&public)).unwrap_err();
    assert_eq!(refusal.kind, ErrorKind::NotYours);
    grid.sync(&rennes, &question(&record(1))).unwrap();
}

#[test]
fn a_site_that_is_revoked_is_out_at_once_and_the_others_learn_it() {
    let grid = Grid::new("g5k");
    let (rennes, nancy) = (grid.join("rennes"), grid.join("nancy"));
    let staying = grid.session(&nancy, record(2));
    let leaving = grid.session(&rennes, record(1));
    member(&staying, "rennes");
    connected(&leaving);
    let unused = grid.token("rennes");
    assert_eq!(grid.revoke("rennes"), AdminReply::Revoked(1));
    let message = wait(&leaving, "Refused", |event| match event {
        Event::Refused {
            kind: ErrorKind::Revoked,
            message,
        } => Some(message.clone()),
        _ => None,
    });
    assert!(
        message.contains("the certificate of site rennes was revoked"),
        "{message}"
    );
    wait(&staying, "Removed", |event| {
        matches!(event, Event::Removed(site) if site == "rennes").then_some(())
    });
    assert!(staying.trust().revocations().refuses(&rennes.certified).is_some());
    let late = causeway_broker::client::join(&unused, &grid.home("late"), &grid.clock.clock());
    assert!(late.unwrap_err().to_string().contains("taken back"));
    leaving.stop();
    std::fs::remove_file(grid.home("rennes").join("membership.json")).unwrap();
    let again = grid.join("rennes");
    grid.sync(&again, &question(&record(1))).unwrap();
    member(&staying, "rennes");
    assert!(grid.sync(&rennes, &question(&record(1))).is_err());
}

#[test]
fn a_broker_restored_from_an_old_copy_gets_its_revocations_back_from_the_gateways() {
    let mut grid = Grid::new("g5k");
    let (rennes, nancy, lyon) = (grid.join("rennes"), grid.join("nancy"), grid.join("lyon"));
    let gateway = grid.session(&nancy, record(2));
    connected(&gateway);
    let old = tempfile::tempdir().unwrap();
    grid.stop();
    copy_store(&grid.config.directory, old.path());
    grid.start();
    grid.revoke("rennes");
    wait(&gateway, "Revocations", |event| {
        matches!(event, Event::Revocations(_)).then_some(())
    });
    gateway.stop();
    grid.stop();
    copy_store(old.path(), &grid.config.directory);
    grid.start();
    // The lost list was the first one, and this is a first one again.
    assert_eq!(grid.revoke("lyon"), AdminReply::Revoked(1));
    grid.sync(&rennes, &question(&record(1))).unwrap();
    let gateway = grid.session(&nancy, record(2));
    let both = wait(&gateway, "Revocations", |event| match event {
        Event::Revocations(set) => Some(set.clone()),
        _ => None,
    });
    let sites: Vec<&str> = both.revoked().map(|(site, _)| site).collect();
    assert_eq!((sites, both.counter()), (vec!["lyon", "rennes"], 2));
    for out in [&rennes, &lyon] {
        let refusal = grid.sync(out, &question(&record(1))).unwrap_err();
        assert_eq!(refusal.kind, ErrorKind::Revoked);
    }
    assert_eq!(grid.says("its store is an old copy").len(), 1);
}

#[test]
fn a_list_of_revocations_that_the_authority_did_not_sign_is_refused() {
    let (grid, other) = (Grid::new("g5k"), Grid::new("g5k"));
    let rennes = grid.join("rennes");
    other.revoke("nancy");
    let foreign = other.join("lyon");
    let signed = other
        .sync(&foreign, &question(&record(1)))
        .unwrap()
        .revocations
        .unwrap();
    let refusal = grid
        .post::<_, causeway_broker::api::Done>(&rennes, "/v1/revocations", &signed)
        .unwrap_err();
    assert!(
        refusal.message.contains("not signed by the grid's authority"),
        "{}",
        refusal.message
    );
}

#[test]
fn a_body_that_is_too_long_is_refused_before_it_is_kept() {
    let grid = Grid::new("g5k");
    let rennes = grid.join("rennes");
    for (path, most) in [("send", 64 * 1024), ("sync", 1024 * 1024)] {
        let mut stream = grid.connect(Some(&rennes));
        write_request(
            &mut stream,
            &format!("/v1/{path}"),
            &vec![b' '; most + 1],
            most + 1,
        );
        let (status, body) = read_answer(&mut stream).unwrap();
        assert_eq!(status, 413, "{path}");
        assert!(
            String::from_utf8_lossy(&body).contains(&format!("longer than {most} bytes")),
            "{path}"
        );
    }
    let long = SendRequest {
        to: "rennes".into(),
        kind: "k".repeat(33),
        body: String::new(),
    };
    let refusal = grid
        .post::<_, causeway_broker::api::Done>(&rennes, "/v1/send", &long)
        .unwrap_err();
    assert!(
        refusal.message.contains("kind has 33 bytes"),
        "{}",
        refusal.message
    );
}

#[test]
fn a_body_that_does_not_arrive_and_a_handshake_that_does_not_end_are_given_up() {
    let limits = Limits {
        body: Duration::from_millis(50),
        handshake: Duration::from_millis(200),
        ..Limits::default()
    };
    let grid = Grid::with("g5k", limits);
    let mut silent = TcpStream::connect(grid.address).unwrap();
    silent.set_read_timeout(Some(DEADLINE)).unwrap();
    assert_eq!(silent.read(&mut [0]).unwrap_or(0), 0, "ended, not timed out");
    assert_eq!(grid.says("the TLS handshake did not end in time").len(), 1);
    let rennes = grid.join("rennes");
    let mut stream = grid.connect(Some(&rennes));
    write_request(&mut stream, "/v1/sync", b"{", 100);
    let (status, body) = read_answer(&mut stream).unwrap();
    assert_eq!(status, 408);
    assert!(String::from_utf8_lossy(&body).contains("did not arrive within"));
}

#[test]
fn a_head_that_does_not_end_is_given_up() {
    use std::io::Write;
    let limits = Limits {
        head: Duration::from_millis(200),
        ..Limits::default()
    };
    let grid = Grid::with("g5k", limits);
    let rennes = grid.join("rennes");
    let mut stream = grid.connect(Some(&rennes));
    stream.write_all(b"POST /v1/sync HTTP/1.1\r\nhost: ").unwrap();
    assert!(read_answer(&mut stream).is_none_or(|(status, _)| status == 408));
}

#[test]
fn a_crowd_of_silent_strangers_ends_itself_and_keeps_nobody_out() {
    let limits = Limits {
        strangers_per_address: 20,
        ..Limits::default()
    };
    let grid = Grid::with("g5k", limits);
    let rennes = grid.join("rennes");
    let session = grid.session(&rennes, record(1));
    connected(&session);
    let mut crowd: Vec<TcpStream> = (0..200)
        .map(|_| TcpStream::connect(grid.address).unwrap())
        .collect();
    crowd[0].set_read_timeout(Some(DEADLINE)).unwrap();
    assert_eq!(crowd[0].read(&mut [0]).unwrap_or(0), 0, "the oldest was ended");
    let nancy = grid.join("nancy");
    grid.sync(&nancy, &question(&record(2))).unwrap();
    member(&session, "nancy");
    assert_eq!(
        grid.says("more than 20 connections that show no certificate")
            .len(),
        1
    );
}

#[test]
fn one_sites_connections_are_bounded_and_anothers_go_on() {
    let limits = Limits {
        per_site: 4,
        ..Limits::default()
    };
    let grid = Grid::with("g5k", limits);
    let (rennes, nancy) = (grid.join("rennes"), grid.join("nancy"));
    let session = grid.session(&nancy, record(2));
    connected(&session);
    let mut crowd: Vec<_> = (0..6)
        .map(|_| {
            let mut stream = grid.connect(Some(&rennes));
            // The broker knows whose connection it is only once something arrives over it.
            write_request(&mut stream, "/v1/send", b"{}", 2);
            assert_eq!(read_answer(&mut stream).unwrap().0, 400);
            stream
        })
        .collect();
    assert_eq!(crowd[0].read(&mut [0]).unwrap_or(0), 0, "the oldest was ended");
    assert_eq!(grid.says("more than 4 connections of site rennes").len(), 1);
    session.send("nancy", "still", "here").unwrap();
    wait(&session, "Message", |event| {
        matches!(event, Event::Message(_)).then_some(())
    });
}

#[test]
fn only_declared_addresses_are_dialled_back_and_each_answer_says_how_it_went() {
    let grid = Grid::new("g5k");
    let rennes = grid.join("rennes");
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let open = listener.local_addr().unwrap();
    // A port that no other program gets by chance, as it might get one that was free a moment ago.
    let closed = std::net::SocketAddr::from(([127, 0, 0, 1], 4747));
    let mut own = record(1);
    own.reach.public = vec![open, closed];
    grid.sync(&rennes, &question(&own)).unwrap();
    let ask = |addresses: Vec<std::net::SocketAddr>| {
        grid.post::<_, ReachAnswer>(&rennes, "/v1/reach", &ReachRequest { addresses })
    };
    let answer = ask(vec![open, closed]).unwrap();
    let reached: Vec<bool> = answer.results.iter().map(|result| result.reached).collect();
    assert_eq!(reached, [true, false]);
    let refusal = ask(vec![grid.address]).unwrap_err();
    assert_eq!(refusal.kind, ErrorKind::NotYours);
    assert!(ask(vec![open; 5]).unwrap_err().message.contains("4 are allowed"));
}

#[test]
fn over_udp_a_question_is_answered_with_where_it_came_from_and_nothing_else_at_all() {
    use causeway_broker::reflection;
    let grid = Grid::new("g5k");
    let socket = std::net::UdpSocket::bind("127.0.0.1:0").unwrap();
    socket.set_read_timeout(Some(DEADLINE)).unwrap();
    socket.connect(grid.address).unwrap();
    let question = reflection::question([7; 12]);
    let mut longer = question.to_vec();
    longer.push(0);
    for other in [
        b"".as_slice(),
        b"\x30",
        &longer,
        &reflection::answer([1; 12], grid.address),
    ] {
        socket.send(other).unwrap();
    }
    socket.send(&question).unwrap();
    let mut space = [0; 100];
    // The first answer is to the question: what came before it has no answer.
    let count = socket.recv(&mut space).unwrap();
    assert_eq!(count, question.len());
    let seen = socket.local_addr().unwrap();
    assert_eq!(reflection::answered(&space[..count]), Some(([7; 12], seen)));
}

#[test]
fn gateways_whose_clocks_are_an_hour_apart_meet_unless_a_certificate_is_too_young_for_the_one_behind_and_that_is_said_in_words()
 {
    let grid = Grid::new("g5k");
    let (rennes, nancy) = (grid.join("rennes"), grid.join("nancy"));
    let clocks = [-3600, 0, 3600].map(|seconds| {
        let clock = TestClock::default();
        clock.shift(seconds);
        clock
    });
    let trusts = clocks
        .each_ref()
        .map(|clock| rennes.trust(Revocations::default(), clock.clock()).unwrap());
    let [behind, right, ahead] = &trusts;
    let meet = |ours: &Trust, theirs: &Trust| {
        let dials = client_config(&rennes.credentials, ours, Expect::Site("nancy".into())).unwrap();
        meet((
            &dials,
            &server_config(&nancy.credentials, theirs, Expect::AnySite).unwrap(),
        ))
    };
    // Certificates begin five minutes before they are made, and last for a month.
    for (ours, theirs) in [(right, right), (right, ahead), (ahead, right)] {
        meet(ours, theirs).unwrap();
    }
    for (ours, theirs) in [(right, behind), (behind, right), (ahead, behind)] {
        let why = meet(ours, theirs).unwrap_err();
        assert!(why.contains("in 54 min") || why.contains("in 55 min"), "{why}");
        assert!(why.contains("clock"), "{why}");
    }
    // An hour later, the record is old enough for all of them.
    clocks.iter().for_each(|clock| clock.shift(3600));
    for (ours, theirs) in [(right, behind), (behind, right), (ahead, behind)] {
        meet(ours, theirs).unwrap();
    }
}

#[test]
fn a_token_is_good_for_as_long_as_the_brokers_clock_says_whatever_that_of_who_joins() {
    let grid = Grid::new("g5k");
    // Four minutes behind, and two hours ahead of the broker, which is beyond the end of the token.
    for (site, shift) in [("rennes", -240), ("nancy", 2 * 3600)] {
        let clock = TestClock::default();
        clock.shift(shift);
        causeway_broker::client::join(&grid.token(site), &grid.home(site), &clock.clock()).unwrap();
    }
}

#[test]
fn over_tcp_the_same_question_is_answered_and_the_connection_kept_and_a_false_one_ended() {
    use causeway_broker::reflection;
    use std::io::{Read, Write};
    let grid = Grid::new("g5k");
    let connect = || {
        let socket = std::net::TcpStream::connect(grid.address).unwrap();
        socket.set_read_timeout(Some(DEADLINE)).unwrap();
        socket
    };
    let mut socket = connect();
    let question = reflection::question([7; 12]);
    // The question arrives in two pieces, as a network may deliver it.
    socket.write_all(&question[..1]).unwrap();
    socket.write_all(&question[1..]).unwrap();
    let mut answer = [0; reflection::BYTES];
    socket.read_exact(&mut answer).unwrap();
    let seen = socket.local_addr().unwrap();
    assert_eq!(reflection::answered(&answer), Some(([7; 12], seen)));
    socket.set_nonblocking(true).unwrap();
    let kept = socket.read(&mut answer).unwrap_err();
    assert_eq!(kept.kind(), std::io::ErrorKind::WouldBlock);
    socket.set_nonblocking(false).unwrap();
    socket.write_all(b"more").unwrap();
    assert_eq!(socket.read(&mut answer).unwrap_or(0), 0, "ended");
    let mut other = connect();
    other
        .write_all(&[reflection::QUESTION; reflection::BYTES])
        .unwrap();
    assert_eq!(other.read(&mut answer).unwrap_or(0), 0, "ended unanswered");
}
