//! A gateway that has the grid's key and does what no proper one does. It only ends its own tunnel; the other
//! sites' streams and jobs go on.

use crate::common::member::{Member, shared};
use crate::common::{Grid, cross, everywhere, wait_for};
use causeway_control::{self as control, Reply, Request, TunnelStatus};
use causeway_tunnel::{Header, Kind, OpenRequest, Settings, Target};
use causeway_wire::Token;
use std::io::Write;

/// Returns the reason why site one has no tunnel with site three.
fn trouble(grid: &Grid) -> Option<String> {
    let mut sites = grid.status(1).sites.into_iter();
    sites.find(|site| site.name == "site3").unwrap().unreachable
}

fn wait_for_trouble(grid: &Grid, what: &str) {
    wait_for(what, || trouble(grid).is_some_and(|why| why.contains(what)));
}

#[test]
fn a_member_that_claims_anothers_subnet_or_node_later_loses_its_tunnel_and_streams_go_where_they_went() {
    let grid = Grid::with_member();
    let listener = grid.listen();
    let (near, far) = grid.pair(&listener);
    for (subnet, node, why) in [
        (2, "node3", "is also at site2"),
        (3, "node2", "node node2, which is also at site2"),
    ] {
        let mut member = Member::introduced(&grid);
        member.say(&Member::site(&grid, subnet, node));
        member.read_to_the_end();
        wait_for_trouble(&grid, why);
        cross(&near, &far, b"went on");
        grid.pair(&listener);
    }
}

#[test]
fn frames_and_messages_that_are_too_long_end_the_tunnel_they_came_in_and_no_other() {
    let grid = Grid::with_member();
    let listener = grid.listen();
    let (near, far) = grid.pair(&listener);
    let header = |kind, detail, length, position| Header {
        kind,
        detail,
        length,
        stream: 0,
        position,
    };
    let mut member = Member::introduced(&grid);
    let mut bytes = header(Kind::Message, 0, 60 * 1024, 1).encode();
    bytes[2..4].copy_from_slice(&(60 * 1024 + 1u16).to_be_bytes());
    member.stream.write_all(&bytes).unwrap();
    member.read_to_the_end();
    wait_for_trouble(&grid, "frame payload of 61441 bytes is too long");

    let mut member = Member::introduced(&grid);
    let part = [&header(Kind::Message, 1, 60_000, 0).encode()[..], &[b' '; 60_000]].concat();
    for number in 1.. {
        let mut part = part.clone();
        part[8..16].copy_from_slice(&u64::to_be_bytes(number));
        // A message that never ends.
        if member.stream.write_all(&part).is_err() {
            break;
        }
        assert!(number < 1000, "60 MB of one message were taken");
    }
    wait_for_trouble(&grid, "message of more than");
    cross(&near, &far, b"went on");
    grid.pair(&listener);
}

#[test]
fn a_member_that_says_long_things_without_end_loses_its_tunnel_and_a_large_site_does_not() {
    let grid = Grid::with_member();
    let listener = grid.listen();
    let (near, far) = grid.pair(&listener);
    let mut member = Member::introduced(&grid);
    let long = format!(r#"{{"of a later version":"{}"}}"#, "x".repeat(2_000_000));
    let said = (0..1000).take_while(|_| member.try_say(&long).is_ok()).count();
    assert!((8..1000).contains(&said), "{said} long messages were taken");
    wait_for_trouble(&grid, "says more than 65536 bytes at once too often");
    cross(&near, &far, b"went on");
    grid.pair(&listener);
}

#[test]
fn a_member_that_has_a_gateway_answer_and_reads_nothing_loses_its_tunnel_before_much_waits() {
    let grid = Grid::with_member();
    let listener = grid.listen();
    let (near, far) = grid.pair(&listener);
    let mut member = Member::introduced(&grid);
    // Each is answered with some hundred bytes.
    let mut asked = 0;
    while member
        .try_say(r#"{"ping":{"number":18446744073709551615}}"#)
        .is_ok()
    {
        asked += 1;
        assert!(asked < 5_000_000, "half a gigabyte of answers wait");
        if asked % 20_000 == 0 {
            cross(&near, &far, b"goes on");
        }
    }
    wait_for_trouble(&grid, "takes no answers");
    cross(&near, &far, b"went on");
    grid.pair(&listener);
}

#[test]
fn a_member_that_grants_everything_and_reads_nothing_is_sent_no_more_than_a_lane_may_hold() {
    let grid = Grid::with_member();
    let listener = grid.listen();
    let (near, far) = grid.pair(&listener);
    let mut member = Member::introduced(&grid);
    let (job, _held) = grid.job("over both");
    let stream = grid.dial();
    let mut preface = grid.preface(&stream, grid.address(3, 1, 5000), false);
    preface.token = job.token.parse().unwrap();
    (&stream).write_all(&crate::common::encoded(&preface)).unwrap();
    wait_for("the stream to be opened", || {
        tunnel(&grid).is_some_and(|tunnel| tunnel.streams == 1)
    });
    // The first stream that site one opens, with as many bytes as it likes.
    let opened = Header {
        kind: Kind::Opened,
        detail: 0,
        length: 0,
        stream: 1,
        position: 1 << 40,
    };
    member.stream.write_all(&opened.encode()).unwrap();
    let writer = stream.try_clone().unwrap();
    // The thread ends with the stream.
    std::thread::spawn(move || while (&writer).write(&[7; 1 << 16]).is_ok_and(|count| count > 0) {});
    wait_for("the lane to be given up", || trouble(&grid).is_some());
    let taken = tunnel(&grid).unwrap().sent_bytes;
    let bound = Settings::default().lane_bytes + (1 << 20);
    assert!(taken > 64 << 10, "{taken} bytes were taken");
    assert!(taken <= bound, "{taken} bytes were taken, not {bound} at most");
    cross(&near, &far, b"went on");
    grid.pair(&listener);
}

fn tunnel(grid: &Grid) -> Option<TunnelStatus> {
    let mut tunnels = grid.status(1).tunnels.into_iter();
    tunnels.find(|tunnel| tunnel.site == "site3")
}

#[test]
fn a_member_that_confirms_no_job_keeps_none_from_starting_without_it() {
    let grid = Grid::with_member();
    let _member = Member::introduced(&grid);
    let request = Request::Job {
        plan: everywhere(),
        name: "without it".into(),
        weight: 1,
    };
    let (reply, _held) = control::ask(&grid.control(1), &request).unwrap();
    let Reply::Job(job) = reply else {
        panic!("{reply:?}")
    };
    assert_eq!(job.left_out.get("site2"), None);
    assert!(job.left_out["site3"].contains("did not confirm the job"));
    assert!(!job.grid.contains("site3"), "{}", job.grid);
    assert_eq!(grid.status(1).refused["job-unconfirmed"], 1);
}

#[test]
fn a_member_can_neither_end_nor_change_anothers_job_by_its_token() {
    let grid = Grid::with_member();
    let listener = grid.listen();
    let (near, far) = grid.pair(&listener);
    let mut member = Member::introduced(&grid);
    let token = grid.token.to_hex();
    member.say(&format!(
        r#"{{"job_start":{{"token":"{token}","name":"mine","weight":100,"bare":true}}}}"#
    ));
    member.say(&format!(r#"{{"job_end":{{"token":"{token}"}}}}"#));
    wait_for("the refusal", || grid.status(1).refused.contains_key("job"));
    // Messages on one lane are acted on in order: once this job is known, the other job's end has been read.
    let other = "00".repeat(16);
    member.say(&format!(
        r#"{{"job_start":{{"token":"{other}","name":"its own"}}}}"#
    ));
    wait_for("its own job", || grid.status(1).jobs.len() == 2);
    let jobs = grid.status(1).jobs;
    assert!(
        jobs.iter().any(|job| job.name == "test" && job.weight == 1),
        "{jobs:?}"
    );
    cross(&near, &far, b"went on");
    grid.pair(&listener);
}

#[test]
fn a_member_that_floods_with_opens_has_each_of_them_answered_and_the_others_go_on_meanwhile() {
    const OPENS: u32 = 100_000;
    let grid = Grid::with_member();
    let listener = grid.listen();
    let (near, far) = grid.pair(&listener);
    let mut member = Member::introduced(&grid);
    let request = OpenRequest {
        token: Token([0x5a; 16]),
        target: Target::Connection {
            source: grid.address(3, 1, 5000),
            destination: grid.address(1, 1, 5000),
        },
    };
    let mut payload = 0_u64.to_be_bytes().to_vec();
    payload.extend(request.encode());
    let mut flood = Vec::new();
    for number in 0..OPENS {
        let header = Header {
            kind: Kind::Open,
            detail: 0,
            length: payload.len() as u16,
            // Site one sorts first, so its own numbers are odd.
            stream: 2 + 2 * number,
            position: 1 << 16,
        };
        flood.extend(header.encode());
        flood.extend(&payload);
    }
    let flooding = std::thread::spawn(move || {
        member.stream.write_all(&flood).unwrap();
        member
    });
    let refused = || grid.status(1).refused.get("unknown-token").copied();
    let mut between = false;
    wait_for("each open to be refused", || {
        cross(&near, &far, b"goes on");
        let count = refused().unwrap_or(0);
        between |= (1..u64::from(OPENS)).contains(&count);
        count == u64::from(OPENS)
    });
    assert!(between, "the others waited until all of the flood was taken in");
    let mut member = flooding.join().unwrap();
    member.say(r#"{"job_start":{"token":"00000000000000000000000000000000","name":"its own"}}"#);
    wait_for("what it says afterwards", || grid.status(1).jobs.len() == 2);
    grid.pair(&listener);
}

#[test]
fn a_member_that_says_where_it_relays_has_nobody_dial_there_and_hears_nothing_of_what_is_there() {
    let grid = Grid::with_member();
    let mut member = Member::introduced(&grid);
    // A listener of somebody who has nothing to do with the grid.
    let victim = std::net::TcpListener::bind(grid.address(0, 77, 0)).unwrap();
    victim.set_nonblocking(true).unwrap();
    let (address, ticket) = (victim.local_addr().unwrap(), "41".repeat(32));
    for meeting in 0..100 {
        member.say(&format!(
            r#"{{"relay_come":{{"meeting":{meeting},"from":"site2","ticket":"{ticket}","address":"{address}"}}}}"#
        ));
    }
    wait_for("all to be refused", || {
        grid.status(1).refused.get("relay-come") == Some(&100)
    });
    let nobody = victim.accept().unwrap_err();
    assert_eq!(nobody.kind(), std::io::ErrorKind::WouldBlock);
}

#[test]
fn a_member_that_asks_to_meet_another_without_end_has_that_one_come_a_few_times_alone() {
    const ASKS: u64 = 200;
    let grid = Grid::with_member();
    let mut member = Member::introduced(&grid);
    for id in 1..=ASKS {
        member.say(&format!(r#"{{"relay_ask":{{"to":"site2","id":{id}}}}}"#));
    }
    let heard = member.hear_until(&format!(r#""id":{ASKS},"why""#));
    let refused = heard.matches("too_often").count() as u64;
    assert!(refused > ASKS * 3 / 4, "{refused} of {ASKS}: {heard}");
    // Site two knows no site three, and counts each time that it was asked to come.
    wait_for("site two to be asked by the relay", || {
        grid.status(2).refused.get("relay-come").copied() == Some(ASKS - refused)
    });
}

/// A listener of site one's node, and the address of a process of site three.
fn ends(grid: &Grid) -> (std::net::TcpListener, std::net::SocketAddr) {
    let listener = std::net::TcpListener::bind(grid.address(1, 1, 0)).unwrap();
    listener.set_nonblocking(true).unwrap();
    (listener, grid.address(3, 1, 5000))
}

#[test]
fn a_member_whose_jobs_are_not_accepted_starts_and_opens_nothing_whatever_it_says() {
    let grid = Grid::with_member_and_accept("jobs = [\"site2\"]\nover_clear_text = true");
    let mut member = Member::introduced(&grid);
    let (listener, source) = ends(&grid);
    let token = Token([0x33; 16]);
    member.say(&format!(
        r#"{{"job_start":{{"token":"{}","name":"\u001b[2Jmine","user":"mallory","sites":["site1"]}}}}"#,
        token.to_hex()
    ));
    wait_for("the refusal", || {
        grid.status(1).refused.contains_key("not-accepted")
    });
    let destination = listener.local_addr().unwrap();
    member.open(2, &token, Target::Connection { source, destination });
    member.open(6, &token, Target::Node("node1".into()));
    wait_for("both refusals", || {
        grid.status(1).refused.get("unknown-token") == Some(&2)
    });
    assert_eq!(
        listener.accept().unwrap_err().kind(),
        std::io::ErrorKind::WouldBlock
    );
    wait_for("the lines", || grid.audit(1).len() == 3);
    let written = grid.audit(1);
    assert!(
        written
            .iter()
            .all(|entry| entry.site == "site3" && !entry.kind.is_empty())
    );
    assert_eq!((written.len(), written[0].user.as_str()), (3, "mallory"));
    assert!(!written[0].name.contains('\x1b'), "{}", written[0].name);
}

#[test]
fn a_member_speaks_for_no_other_site_and_opens_nothing_under_a_job_in_which_it_takes_no_part() {
    let grid = Grid::with_member();
    let mut member = Member::introduced(&grid);
    let (listener, source) = ends(&grid);
    let destination = listener.local_addr().unwrap();
    let connection = |source| Target::Connection { source, destination };
    // A job of site two, in which site three takes part only as far as site two has said so.
    member.open(2, &grid.token, connection(source));
    wait_for("the refusal", || grid.status(1).refused.contains_key("no-part"));
    // Its token as it is, and under the name that another pair of sites has for it.
    for (id, token) in [(6, grid.token), (10, shared(&grid.token, "site1", "site2"))] {
        let request = OpenRequest {
            token,
            target: connection(source),
        };
        member.open_as_said(id, &request);
    }
    wait_for("both refusals", || {
        grid.status(1).refused.get("unknown-token") == Some(&2)
    });
    // The member's own job, under another's name.
    let own = Token([0x33; 16]);
    member.say(&format!(
        r#"{{"job_start":{{"token":"{}","name":"its own"}}}}"#,
        own.to_hex()
    ));
    wait_for("its own job", || grid.status(1).jobs.len() == 2);
    for (id, source) in [(14, grid.address(2, 1, 5000)), (18, grid.address(1, 2, 5000))] {
        member.open(id, &own, connection(source));
    }
    wait_for("the refusals", || {
        grid.status(1).refused.get("false-source") == Some(&2)
    });
    assert_eq!(
        listener.accept().unwrap_err().kind(),
        std::io::ErrorKind::WouldBlock
    );
    member.open(22, &own, connection(source));
    wait_for("the one that is right", || listener.accept().is_ok());
}

#[test]
fn who_takes_no_part_in_a_job_is_not_told_its_token() {
    let grid = Grid::with_member();
    let mut member = Member::introduced(&grid);
    let plan = |sites: &[&str]| causeway_control::Plan {
        sites: sites.iter().map(|site| (*site).to_owned()).collect(),
        ranks: 2,
        ..causeway_control::Plan::default()
    };
    let job = |name: &str, sites: &[&str]| {
        let request = Request::Job {
            name: name.into(),
            weight: 1,
            plan: plan(sites),
        };
        match control::ask(&grid.control(1), &request).unwrap() {
            (Reply::Job(job), held) => {
                // The map of its processes does not have more sites, either.
                assert!(!job.grid.contains("site3"), "{}", job.grid);
                (job.token, held)
            }
            (other, _) => panic!("{other:?}"),
        }
    };
    let (of_two, _held) = job("for site two", &["site1", "site2"]);
    // Site three answers nothing, so this gateway waits for it in vain; what it is told arrives in order.
    let (of_three, _also_held) = job("for site three", &["site3"]);
    let heard = member.hear_until(&of_three);
    assert!(
        !heard.contains(&of_two) && !heard.contains("for site two"),
        "{heard}"
    );
}

#[test]
fn a_site_that_is_no_partner_of_this_ones_users_is_not_told_of_their_jobs_whatever_it_accepts() {
    let grid =
        Grid::with_member_and_accept("jobs = [\"all\"]\npartners = [\"site2\"]\nover_clear_text = true");
    let mut member = Member::introduced(&grid);
    let (job, _held) = grid.job("of partners");
    assert_eq!(job.left_out.get("site2"), None);
    let why = &job.left_out["site3"];
    assert!(why.contains("add \"site3\" to partners in [accept]"), "{why}");
    assert!(!job.grid.contains("site3"), "{}", job.grid);
    // What it is told arrives in order: the answer to this would arrive after the job.
    member.say(r#"{"ping":{"number":77}}"#);
    let heard = member.hear_until("\"number\":77");
    assert!(
        !heard.contains(&job.token) && !heard.contains("of partners"),
        "{heard}"
    );
}
