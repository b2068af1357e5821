//! `causeway broker` on a disk that is full for a while: a tmpfs in a mount namespace of the broker's own.

use causeway_broker::api::{Node, Reach, Record, Subnet, new_instance};
use causeway_broker::client::{Client, ClientConfig, Event, Membership, join};
use causeway_broker::clock::Clock;
use causeway_broker::join_token::JoinToken;
use std::fs::File;
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

const DEADLINE: Duration = Duration::from_secs(30);

/// A broker whose grid is on a disk of 3 MB, and its log.
struct Broker {
    child: Child,
    address: String,
    /// The grid, as seen from outside.
    grid: PathBuf,
    lines: Receiver<String>,
}

impl Broker {
    fn start(dir: &Path) -> Broker {
        let (grid, disk) = (dir.join("grid"), dir.join("disk"));
        let program = env!("CARGO_BIN_EXE_causeway");
        let made = Command::new(program)
            .args(["grid", "create", "g5k", "--broker", "127.0.0.1:7443", "--dir"])
            .arg(&grid)
            .output()
            .unwrap();
        assert!(made.status.success());
        let file = grid.join("broker.toml");
        let text = std::fs::read_to_string(&file).unwrap();
        std::fs::write(&file, text.replace("[::]:7443", "127.0.0.1:0")).unwrap();
        std::fs::create_dir(&disk).unwrap();
        let script = "mount -t tmpfs -o size=3m,mode=700 none \"$2\" && cp -a \"$1\"/. \"$2\" && \
                      exec \"$0\" broker --config \"$2/broker.toml\"";
        let mut child = Command::new("unshare")
            .args([
                "--user",
                "--map-root-user",
                "--mount",
                "sh",
                "-c",
                script,
                program,
            ])
            .args([&grid, &disk])
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let (told, lines) = channel();
        let said = BufReader::new(child.stderr.take().unwrap()).lines();
        std::thread::spawn(move || said.map_while(Result::ok).try_for_each(|line| told.send(line)));
        let line = lines.recv_timeout(DEADLINE).unwrap();
        let address = line.split(" at ").nth(1).and_then(|rest| rest.split(',').next());
        let address = address.unwrap_or_else(|| panic!("causeway broker said: {line}"));
        let root = PathBuf::from(format!("/proc/{}/root", child.id()));
        Broker {
            address: address.to_owned(),
            grid: root.join(disk.strip_prefix("/").unwrap()),
            lines,
            child,
        }
    }

    fn says(&self, what: &str) {
        let mut others = Vec::new();
        while let Ok(line) = self.lines.recv_timeout(DEADLINE) {
            if line.contains(what) {
                return;
            }
            others.push(line);
        }
        panic!("no line with {what:?} within {DEADLINE:?}: {others:#?}");
    }

    fn command(&self, words: &[&str]) -> Output {
        let mut command = Command::new(env!("CARGO_BIN_EXE_causeway"));
        command.arg("grid").args(words).arg("--dir").arg(&self.grid);
        command.output().unwrap()
    }

    fn token(&self, site: &str) -> Result<JoinToken, String> {
        let output = self.command(&["token", "--site", site]);
        if !output.status.success() {
            return Err(String::from_utf8_lossy(&output.stderr).into_owned());
        }
        let mut token: JoinToken = String::from_utf8_lossy(&output.stdout).parse().unwrap();
        token.brokers = vec![self.address.clone()];
        Ok(token)
    }

    /// Leaves no space, and no page of the store that could be reused: returns the file to remove afterwards.
    fn fill(&self) -> PathBuf {
        let path = self.grid.join("filler");
        let mut filler = File::create(&path).unwrap();
        while filler.write_all(&[0; 4096]).is_ok() {}
        path
    }
}

impl Drop for Broker {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn session(membership: &Membership, home: &Path, broker: &Broker) -> Client {
    let record = Record {
        instance: new_instance().unwrap(),
        subnets: vec![Subnet("10.1.0.0/24".parse().unwrap())],
        lan: vec![],
        reach: Reach::default(),
        udp_port: None,
        // A long record needs more pages than the store has free.
        nodes: (0..8000)
            .map(|number| Node {
                name: format!("rennes-{number}"),
                addresses: vec![],
                slots: 4,
            })
            .collect(),
        overlap_ok: false,
        virtual_subnets: vec![],
        version: "0.1.0".into(),
    };
    let mut membership = membership.clone();
    membership.brokers = vec![broker.address.clone()];
    let mut config = ClientConfig::new(membership, home.to_owned(), record, Box::new(|| {}));
    config.retry = Duration::from_millis(50)..=Duration::from_millis(100);
    config.refused = Duration::from_millis(100);
    Client::start(config).unwrap()
}

fn wait(client: &Client, what: &str, is_it: impl Fn(&Event) -> bool) {
    let began = Instant::now();
    while began.elapsed() < DEADLINE {
        if client.wait_event(DEADLINE).is_some_and(|event| is_it(&event)) {
            return;
        }
    }
    panic!("no {what} within {DEADLINE:?}");
}

#[test]
fn a_disk_that_is_full_for_a_while_costs_that_while_and_nothing_that_was_answered() {
    let dir = tempfile::tempdir().unwrap();
    let broker = Broker::start(dir.path());
    let home = dir.path().join("rennes");
    let membership = join(&broker.token("rennes").unwrap(), &home, &Clock::system()).unwrap();
    let filler = broker.fill();
    let client = session(&membership, &home, &broker);
    wait(
        &client,
        "refusal",
        |event| matches!(event, Event::Refused { message, .. } if message.contains("store")),
    );
    broker.says("what would change is refused");
    let (refusal, revoked) = (0..1000)
        .find_map(|number| {
            let refusal = broker.token(&format!("site-{number}")).err()?;
            Some((refusal, broker.command(&["revoke", "nancy", "--unknown"])))
        })
        .unwrap();
    assert!(refusal.contains("store.redb"), "{refusal}");
    let said = String::from_utf8_lossy(&revoked.stderr);
    assert!(!revoked.status.success() && said.contains("store"), "{said}");

    std::fs::remove_file(filler).unwrap();
    wait(
        &client,
        "registration",
        |event| matches!(event, Event::Member(member) if member.site == "rennes"),
    );
    broker.says("the store is written again");
    broker.token("lyon").unwrap();
    assert!(broker.command(&["revoke", "nancy", "--unknown"]).status.success());
    drop(client);
    // The state that a crash would leave behind.
    let kept = dir.path().join("grid");
    std::fs::copy(broker.grid.join("store.redb"), kept.join("store.redb")).unwrap();
    drop(broker);
    let mut list = Command::new(env!("CARGO_BIN_EXE_causeway"));
    let listed = list
        .args(["grid", "list", "--json", "--dir"])
        .arg(&kept)
        .output()
        .unwrap();
    let listing = String::from_utf8_lossy(&listed.stdout);
    for there in [r#""site":"rennes""#, r#""nodes":8000"#, "lyon", "nancy"] {
        assert!(listing.contains(there), "{there} is not in {listing}");
    }
}

#[test]
fn a_broker_whose_store_is_gone_for_good_ends_with_a_status_that_says_so() {
    let dir = tempfile::tempdir().unwrap();
    let mut broker = Broker::start(dir.path());
    let filler = broker.fill();
    (0..1000)
        .find_map(|number| broker.token(&format!("site-{number}")).err())
        .unwrap();
    std::fs::remove_file(filler).unwrap();
    std::fs::rename(broker.grid.join("store.redb"), broker.grid.join("elsewhere")).unwrap();
    broker.token("lyon").unwrap_err();
    broker.says("the store is lost");
    assert_eq!(broker.child.wait().unwrap().code(), Some(1));
}
