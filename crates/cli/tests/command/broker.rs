//! `causeway broker` and `causeway grid` as users run them: what was answered still holds after a kill -9.

use crate::running::Running;
use causeway_broker::api::{Node, Reach, Record, Subnet, new_instance};
use causeway_broker::client::{Client, ClientConfig, Event, Membership, join};
use causeway_broker::clock::Clock;
use causeway_broker::join_token::JoinToken;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::time::{Duration, Instant};

const DEADLINE: Duration = Duration::from_secs(30);

fn causeway(grid: &Path, words: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_causeway"));
    command.arg("grid").args(words).arg("--dir").arg(grid);
    command.output().unwrap()
}

fn said(grid: &Path, words: &[&str]) -> String {
    let output = causeway(grid, words);
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(
        output.status.success(),
        "causeway grid {words:?}: {} {errors}",
        output.status
    );
    String::from_utf8(output.stdout).unwrap().trim().to_owned()
}

/// A new grid whose broker takes any port of loopback.
fn create(dir: &Path) -> PathBuf {
    let grid = dir.join("grid");
    said(&grid, &["create", "g5k", "--broker", "127.0.0.1:7443"]);
    let file = grid.join("broker.toml");
    let text = std::fs::read_to_string(&file).unwrap();
    std::fs::write(&file, text.replace("[::]:7443", "127.0.0.1:0")).unwrap();
    grid
}

fn token(grid: &Path, site: &str, broker: &Running) -> JoinToken {
    let mut token: JoinToken = said(grid, &["token", "--site", site]).parse().unwrap();
    token.brokers = vec![broker.address.clone()];
    token
}

/// Registers a site of one node with the broker.
fn register(membership: &Membership, home: &Path, broker: &Running) {
    let record = Record {
        instance: new_instance().unwrap(),
        subnets: vec![Subnet("10.1.0.0/24".parse().unwrap())],
        lan: vec![],
        reach: Reach::default(),
        udp_port: None,
        nodes: vec![Node {
            name: "rennes-1".into(),
            addresses: vec!["10.1.0.1".parse().unwrap()],
            slots: 4,
        }],
        overlap_ok: false,
        virtual_subnets: vec![],
        version: "0.1.0".into(),
    };
    let mut membership = membership.clone();
    membership.brokers = vec![broker.address.clone()];
    let config = ClientConfig::new(membership, home.to_owned(), record, Box::new(|| {}));
    let client = Client::start(config).unwrap();
    let began = Instant::now();
    while began.elapsed() < DEADLINE {
        match client.wait_event(DEADLINE) {
            Some(Event::Member(member)) if member.site == "rennes" => return,
            Some(Event::Refused { message, .. }) => panic!("{message}"),
            _ => {}
        }
    }
    panic!("the site was not registered within {DEADLINE:?}");
}

#[test]
fn members_tokens_and_revocations_survive_a_kill() {
    let dir = tempfile::tempdir().unwrap();
    let grid = create(dir.path());
    let again = causeway(&grid, &["create", "g5k"]);
    assert!(!again.status.success() && String::from_utf8_lossy(&again.stderr).contains("is there already"));
    let broker = Running::start(&grid);
    let used = token(&grid, "rennes", &broker);
    let home = dir.path().join("rennes");
    let membership = join(&used, &home, &Clock::system()).unwrap();
    register(&membership, &home, &broker);
    let mut unused = token(&grid, "nancy", &broker);
    assert!(said(&grid, &["revoke", "lyon", "--unknown"]).contains("list 1"));
    broker.kill();

    let listing = said(&grid, &["list", "--json"]);
    for there in [
        r#""site":"rennes","subnets":["10.1.0.0/24"],"virtual_subnets":[],"nodes":1"#,
        r#"{"site":"nancy","expires""#,
        "lyon",
    ] {
        assert!(listing.contains(there), "{there} is not in {listing}");
    }
    let text = said(&grid, &["list"]);
    assert!(
        text.contains("no broker runs here") && text.contains("rennes") && text.contains("revoked at"),
        "{text}"
    );

    let broker = Running::start(&grid);
    let mut used = used;
    used.brokers = vec![broker.address.clone()];
    let refused = join(&used, &dir.path().join("other"), &Clock::system()).unwrap_err();
    assert!(refused.to_string().contains("the token was used"), "{refused}");
    unused.brokers = vec![broker.address.clone()];
    join(&unused, &dir.path().join("nancy"), &Clock::system()).unwrap();
    register(&membership, &home, &broker);
    assert!(!said(&grid, &["list"]).contains("no broker runs here"));
}

#[test]
fn whatever_was_answered_before_a_kill_in_the_middle_of_writing_is_there() {
    let dir = tempfile::tempdir().unwrap();
    let grid = create(dir.path());
    let mut given = Vec::new();
    for round in 0..3 {
        let broker = Running::start(&grid);
        let (told, answers) = std::sync::mpsc::channel();
        let place = grid.clone();
        let asking = std::thread::spawn(move || {
            for number in 0.. {
                let site = format!("site-{round}-{number}");
                let output = causeway(&place, &["token", "--site", &site]);
                let by_broker = !String::from_utf8_lossy(&output.stderr).contains("no broker runs here");
                if !output.status.success() || !by_broker || told.send(site).is_err() {
                    return;
                }
            }
        });
        for _ in 0..10 {
            given.push(answers.recv_timeout(DEADLINE).unwrap());
        }
        broker.kill();
        asking.join().unwrap();
        given.extend(answers.try_iter());
    }
    let listing = said(&grid, &["list", "--json"]);
    for site in &given {
        assert!(
            listing.contains(&format!("\"{site}\"")),
            "{site} of {} is not in {listing}",
            given.len()
        );
    }
}

#[test]
fn a_second_broker_says_that_the_first_one_runs_and_a_site_nobody_knows_is_not_revoked() {
    let dir = tempfile::tempdir().unwrap();
    let grid = create(dir.path());
    let broker = Running::start(&grid);
    let mut second = Command::new(env!("CARGO_BIN_EXE_causeway"));
    let second = second.args(["broker", "--config"]).arg(grid.join("broker.toml"));
    let output = second.output().unwrap();
    let errors = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(1), "{errors}");
    assert!(errors.contains("already runs here"), "{errors}");

    let unknown = causeway(&grid, &["revoke", "lyon"]);
    let errors = String::from_utf8_lossy(&unknown.stderr).into_owned();
    assert!(
        !unknown.status.success() && errors.contains("no site lyon"),
        "{errors}"
    );
    said(&grid, &["revoke", "lyon", "--unknown"]);
    // A site that has a token may be put out before it has joined.
    let token = token(&grid, "rennes", &broker);
    join(&token, &dir.path().join("rennes"), &Clock::system()).unwrap();
    let listed = said(&grid, &["list"]);
    assert!(
        listed.contains("has joined; its gateway has never connected"),
        "{listed}"
    );
    said(&grid, &["revoke", "rennes"]);
    let listed = said(&grid, &["list"]);
    assert!(listed.contains("rennes                   revoked at"), "{listed}");
    let none = causeway(&grid, &["token", "--site", "nancy", "--ttl", "0s"]);
    let errors = String::from_utf8_lossy(&none.stderr).into_owned();
    assert!(
        errors.contains("valid for some time") && !errors.contains("at most"),
        "{errors}"
    );
}
