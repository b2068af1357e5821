//! `causeway grid` with several brokers, as users run it: they are made, killed, added, replaced and taken
//! out of service.

use crate::running::Running;
use causeway_broker::client::{Membership, join};
use causeway_broker::clock::Clock;
use causeway_broker::join_token::JoinToken;
use std::fs::File;
use std::io::Write;
use std::path::PathBuf;
use std::process::{Command, Output};
use std::time::{Duration, Instant};

const DEADLINE: Duration = Duration::from_secs(30);

fn causeway(words: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_causeway"));
    command.arg("grid").args(words).output().unwrap()
}

fn said(words: &[&str]) -> String {
    let output = causeway(words);
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(
        output.status.success(),
        "causeway grid {words:?}: {} {errors}",
        output.status
    );
    String::from_utf8(output.stdout).unwrap().trim().to_owned()
}

fn refused(words: &[&str]) -> String {
    let output = causeway(words);
    assert!(!output.status.success(), "causeway grid {words:?}");
    String::from_utf8(output.stderr).unwrap()
}

/// A directory, with addresses of loopback that no other test has.
struct Place {
    dir: tempfile::TempDir,
    network: String,
}

impl Place {
    fn new(number: u32) -> Place {
        let number = std::process::id().wrapping_mul(13) + number;
        Place {
            dir: tempfile::tempdir().unwrap(),
            network: format!("127.{}.{}", 20 + number / 250 % 40, 1 + number % 250),
        }
    }

    fn address(&self, number: u8) -> String {
        format!("{}.{number}:7443", self.network)
    }

    fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    fn text(&self, name: &str) -> String {
        self.path(name).display().to_string()
    }

    /// Makes a broker listen only at its own address.
    fn listen_at_own_address(&self, directory: &str, number: u8) {
        let file = self.path(directory).join("broker.toml");
        let text = std::fs::read_to_string(&file).unwrap();
        std::fs::write(&file, text.replace("[::]:7443", &self.address(number))).unwrap();
    }

    fn three(&self) -> Vec<Running> {
        let brokers: Vec<String> = (1..=3).map(|number| self.address(number)).collect();
        let told = said(&[
            "create",
            "g5k",
            "--brokers",
            &brokers.join(","),
            "--dir",
            &self.text("grid"),
        ]);
        assert!(
            told.contains("authority/ca.key") && told.contains("broker-3"),
            "{told}"
        );
        let start = |number: u8| {
            let directory = format!("grid/broker-{number}");
            self.listen_at_own_address(&directory, number);
            assert!(!self.path(&directory).join("ca.key").exists());
            Running::start(&self.path(&directory))
        };
        (1..=3).map(start).collect()
    }

    fn join(&self, broker: &str, site: &str) -> Membership {
        let token = said(&["token", "--site", site, "--dir", &self.text(broker)]);
        let token: JoinToken = token.parse().unwrap();
        join(&token, &self.path(site), &Clock::system()).unwrap()
    }

    fn list(&self, broker: &str) -> String {
        said(&["list", "--dir", &self.text(broker)])
    }

    /// Waits until a list contains this: looks whenever that broker has logged something.
    fn lists(&self, broker: &str, running: &Running, what: &str) {
        let began = Instant::now();
        loop {
            let list = self.list(broker);
            if list.contains(what) {
                return;
            }
            let left = DEADLINE.checked_sub(began.elapsed());
            let left = left.unwrap_or_else(|| panic!("{broker} never listed {what:?} but {list}"));
            // A second without a log line is as good a reason to look as a new line.
            running.says_something(left.min(Duration::from_secs(1)));
        }
    }
}

#[test]
fn a_site_joins_at_one_of_three_brokers_and_is_revoked_at_another_that_is_killed() {
    let place = Place::new(1);
    let mut brokers = place.three();
    place.join("grid/broker-1", "rennes");
    for (at, running) in brokers.iter().enumerate() {
        place.lists(&format!("grid/broker-{}", at + 1), running, "rennes ");
    }
    let told = said(&["revoke", "rennes", "--dir", &place.text("grid/broker-3")]);
    assert!(
        told.contains("with all that any broker has given it until"),
        "{told}"
    );
    place.lists("grid/broker-1", &brokers[0], "revoked at");
    brokers.remove(2).kill();
    place.lists("grid/broker-2", &brokers[1], "revoked at");
    place.lists(
        "grid/broker-1",
        &brokers[0],
        &format!("broker 3 at {}: cannot be reached", place.address(3)),
    );
    let list = place.list("grid/broker-1");
    assert!(
        list.contains(&format!("broker 1 at {}: this one", place.address(1))),
        "{list}"
    );
    assert!(
        list.contains("broker 2") && list.contains("records exchanged"),
        "{list}"
    );
}

#[test]
fn a_broker_is_added_one_replaced_and_one_taken_out_of_service_by_a_command_each() {
    let place = Place::new(2);
    let brokers = place.three();
    place.join("grid/broker-3", "nancy");
    let authority = place.text("grid/authority");
    said(&["add-broker", &place.address(4), "--authority", &authority]);
    place.listen_at_own_address("grid/broker-4", 4);
    let fourth = Running::start(&place.path("grid/broker-4"));
    place.lists("grid/broker-1", &brokers[0], "broker 4 at");
    place.lists("grid/broker-4", &fourth, "nancy ");

    said(&[
        "replace-broker",
        "3",
        &place.address(5),
        "--authority",
        &authority,
    ]);
    place.listen_at_own_address("grid/broker-5", 5);
    let fifth = Running::start(&place.path("grid/broker-5"));
    let gone = format!("broker 3 at {}: out of service", place.address(3));
    place.lists("grid/broker-2", &brokers[1], &gone);
    place.lists("grid/broker-5", &fifth, "nancy ");
    place.lists("grid/broker-3", &brokers[2], "out of service");
    let why = refused(&["token", "--site", "lyon", "--dir", &place.text("grid/broker-3")]);
    assert!(why.contains("taken out of service"), "{why}");

    place.join("grid/broker-2", "lyon");
    place.lists("grid/broker-1", &brokers[0], "lyon ");
    let told = said(&["retire-broker", "2", "--compromised", "--authority", &authority]);
    assert!(told.contains("causeway grid take"), "{told}");
    let records = place.text("grid/authority/records.json");
    let told = said(&["take", &records, "--dir", &place.text("grid/broker-1")]);
    assert!(told.contains("1 record was news"), "{told}");
    let needs =
        "lyon is no member any more, for an expelled broker alone has let it in; it joins again with a token";
    assert!(told.contains(needs) && !told.contains("nancy"), "{told}");
    place.lists("grid/broker-5", &fifth, "broker 2 at");
    place.lists("grid/broker-4", &fourth, "expelled");
    let why = refused(&["retire-broker", "9", "--authority", &authority]);
    assert!(why.contains("no broker 9"), "{why}");
}

#[test]
fn a_grid_of_one_broker_is_given_another_and_its_authority_moves_away() {
    let place = Place::new(3);
    let grid = place.text("grid");
    said(&["create", "g5k", "--broker", &place.address(1), "--dir", &grid]);
    place.listen_at_own_address("grid", 1);
    let first = Running::start(&place.path("grid"));
    place.join("grid", "rennes");
    let why = refused(&["move-authority", &place.text("stick"), "--dir", &grid]);
    assert!(why.contains("in use"), "{why}");
    first.kill();
    let told = said(&["move-authority", &place.text("stick"), "--dir", &grid]);
    assert!(told.contains("this broker is broker 1"), "{told}");
    assert!(!place.path("grid/ca.key").exists() && place.path("stick/ca.key").exists());
    let first = Running::start(&place.path("grid"));
    said(&[
        "add-broker",
        &place.address(2),
        "--authority",
        &place.text("stick"),
        "--out",
        &place.text("made"),
    ]);
    place.listen_at_own_address("made/broker-2", 2);
    let second = Running::start(&place.path("made/broker-2"));
    place.lists("made/broker-2", &second, "rennes ");
    place.lists("grid", &first, "broker 2 at");
    place.join("made/broker-2", "nancy");
    place.lists("grid", &first, "nancy ");
}

#[test]
fn a_broker_whose_disk_is_full_refuses_what_the_others_do_and_knows_it_once_there_is_room() {
    let place = Place::new(4);
    let mut brokers = place.three();
    brokers.remove(1).kill();
    let (second, grid) = Running::start_on_disk(&place.path("grid/broker-2"), &place.path("disk"));
    let second_grid = grid.display().to_string();
    place.join("grid/broker-1", "rennes");
    let filler = grid.join("filler");
    let mut file = File::create(&filler).unwrap();
    while file.write_all(&[0; 4096]).is_ok() {}
    // An open file keeps its space, even once it is removed.
    drop(file);
    // This goes on until the store has no free page left that it could reuse.
    let why = (0..1000).find_map(|number| {
        let output = causeway(&[
            "token",
            "--site",
            &format!("site-{number}"),
            "--dir",
            &second_grid,
        ]);
        (!output.status.success()).then(|| String::from_utf8_lossy(&output.stderr).into_owned())
    });
    assert!(why.unwrap().contains("store.redb"));
    let why = refused(&["revoke", "rennes", "--unknown", "--dir", &second_grid]);
    assert!(why.contains("store"), "{why}");
    place.lists("grid/broker-3", &brokers[1], "rennes ");
    said(&["revoke", "rennes", "--dir", &place.text("grid/broker-3")]);
    place.lists("grid/broker-1", &brokers[0], "revoked at");
    place.join("grid/broker-1", "nancy");
    std::fs::remove_file(filler).unwrap();
    for what in ["revoked at", "nancy "] {
        place.lists(&second_grid, &second, what);
    }
}
