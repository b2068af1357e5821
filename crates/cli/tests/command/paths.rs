//! `causeway ping`, `probe`, `connect` and `check` against two real gateways. Loopback only: site one has
//! 127.x.1.0/24, site two 127.x.2.0/24, with an x of the test's own.

use crate::sites::{self, DEADLINE, Ways, wait_for};
use causeway_control::{self as control, Reply, Request};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::Value;
use std::io::{BufRead, BufReader, Read, Write};
use std::ops::Deref;
use std::os::unix::fs::PermissionsExt;
use std::process::{Child, Command, Output, Stdio};
use std::sync::mpsc;

/// Both gateways as processes, without a job.
struct Grid(sites::Grid);

impl Deref for Grid {
    type Target = sites::Grid;

    fn deref(&self) -> &sites::Grid {
        &self.0
    }
}

impl Grid {
    fn start() -> Grid {
        let mut grid = sites::Grid::start();
        grid.job = None;
        wait_for("the end of its job", || {
            [1, 2].iter().all(|site| grid.status(*site).jobs.is_empty())
        });
        Grid(grid)
    }

    /// Configurations and the key; nothing runs.
    fn plan() -> Grid {
        Grid(sites::Grid::plan(Ways::OneDials))
    }

    /// A command on site one's head node.
    fn command(&self, words: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_causeway"));
        command.args(words).env("CAUSEWAY_CONTROL", self.control(1));
        command
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        command
    }

    fn run(&self, words: &[&str]) -> Output {
        Bounded::new(self.command(words).spawn().unwrap()).output()
    }
}

/// A command that is killed at the deadline: whoever waits for it sees its end instead.
struct Bounded {
    child: Child,
    _alive: mpsc::Sender<()>,
}

impl Bounded {
    fn new(child: Child) -> Bounded {
        let pid = Pid::from_raw(child.id().cast_signed());
        let (alive, ended) = mpsc::channel::<()>();
        std::thread::spawn(move || {
            if ended.recv_timeout(DEADLINE) == Err(mpsc::RecvTimeoutError::Timeout) {
                let _ = kill(pid, Signal::SIGKILL);
            }
        });
        Bounded { child, _alive: alive }
    }

    fn output(self) -> Output {
        self.child.wait_with_output().unwrap()
    }
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

#[test]
fn ping_shows_each_round_trip_and_what_they_add_up_to() {
    let grid = Grid::start();
    let output = grid.run(&["ping", "site2", "--count", "3", "--interval", "0.01"]);
    let said = text(&output.stdout);
    assert!(output.status.success(), "{output:?}");
    assert_eq!(said.matches("answer from site2: seq=").count(), 3, "{said}");
    assert!(
        said.contains("3 asked, 3 answered, 0.0% lost\nrtt min/avg/median/max/mdev = "),
        "{said}"
    );
    let output = grid.run(&["ping", "site2", "--count", "2", "--interval", "0.01", "--json"]);
    let said = text(&output.stdout);
    let lines: Vec<Value> = said
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    assert_eq!(lines.len(), 3, "{said}");
    assert!(lines[1]["answer"]["round_trip_microseconds"].is_u64(), "{said}");
    assert_eq!(lines[2]["summary"]["received"], 2);
    let output = grid.run(&["ping", "elsewhere"]);
    assert_eq!(output.status.code(), Some(2));
    assert!(text(&output.stderr).contains("there are: site2"), "{output:?}");
}

#[test]
fn ctrl_c_ends_ping_with_the_summary() {
    let grid = Grid::start();
    let mut pinging = Bounded::new(
        grid.command(&["ping", "site2", "--interval", "0.05"])
            .spawn()
            .unwrap(),
    );
    let mut lines = BufReader::new(pinging.child.stdout.take().unwrap()).lines();
    assert!(
        lines
            .next()
            .unwrap()
            .unwrap()
            .starts_with("answer from site2: seq=1 ")
    );
    kill(Pid::from_raw(pinging.child.id().cast_signed()), Signal::SIGINT).unwrap();
    let rest: Vec<String> = lines.map(Result::unwrap).collect();
    assert!(rest.iter().any(|line| line.contains("0.0% lost")), "{rest:?}");
    assert!(pinging.child.wait().unwrap().success());
}

#[test]
fn ping_says_why_a_site_does_not_answer_and_counts_it() {
    let mut grid = Grid::start();
    grid.0.gateways.get_mut(&2).unwrap().kill().unwrap();
    let silent = || {
        grid.try_status(1)
            .is_some_and(|status| status.sites.iter().any(|site| site.unreachable.is_some()))
    };
    wait_for("the end of the tunnel", silent);
    let output = grid.run(&["ping", "site2", "--count", "1"]);
    let said = text(&output.stdout);
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    assert!(
        said.contains("no tunnel to site2") && said.contains("100.0% lost"),
        "{said}"
    );
}

#[test]
fn probe_tells_programs_what_a_pair_of_sites_has() {
    let grid = Grid::start();
    let output = grid.run(&["probe", "--seconds", "0.2", "--json"]);
    assert!(output.status.success(), "{output:?}");
    let pairs: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(
        (&pairs[0]["from"], &pairs[0]["to"]),
        (&"site1".into(), &"site2".into())
    );
    assert!(pairs[0]["round_trips"]["jitter_ms"].is_f64(), "{pairs}");
    assert!(
        pairs[0]["round_trips"]["received"].as_u64().unwrap() >= 1,
        "{pairs}"
    );
    assert_eq!(pairs[0]["round_trips"]["loss"], 0.0);
    assert_eq!(pairs[0]["seen"]["carriers"][0], "TLS 1.3");
    assert!(pairs[0]["seen"]["mtu_bytes"].as_u64().unwrap() > 0, "{pairs}");
    assert!(pairs[0].get("measured").is_none(), "{pairs}");
    let output = grid.run(&["probe", "site2", "--seconds", "0.1", "--measure=3", "--json"]);
    assert!(output.status.success(), "{output:?}");
    let pairs: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(pairs[0]["measured"]["bytes"], 3_000_000);
    assert!(
        pairs[0]["measured"]["rate_bits_per_second"].as_f64().unwrap() > 0.0,
        "{pairs}"
    );
    let said = text(&grid.run(&["probe", "site2", "--seconds", "0.1"]).stdout);
    assert!(
        said.contains("site1 -> site2") && said.contains("jitter"),
        "{said}"
    );
}

#[test]
fn connect_copies_both_ways_and_passes_the_end_of_the_input_on() {
    let grid = Grid::start();
    let listener = grid.listen();
    let port = listener.local_addr().unwrap().port().to_string();
    let mut command = grid.command(&["connect", "node2", &port]);
    let mut connecting = Bounded::new(command.stdin(Stdio::piped()).spawn().unwrap());
    let (mut far, _) = listener.accept().unwrap();
    far.set_read_timeout(Some(DEADLINE)).unwrap();
    // As with sshd, the far side speaks first: no preface has come before.
    far.write_all(b"SSH-2.0-test\r\n").unwrap();
    let mut banner = vec![0; 14];
    connecting
        .child
        .stdout
        .as_mut()
        .unwrap()
        .read_exact(&mut banner)
        .unwrap();
    assert_eq!(banner, b"SSH-2.0-test\r\n");
    connecting
        .child
        .stdin
        .take()
        .unwrap()
        .write_all(b"question")
        .unwrap();
    let mut got = Vec::new();
    far.read_to_end(&mut got).unwrap();
    assert_eq!(got, b"question");
    let answer: Vec<u8> = (0..1_000_000u32).map(|at| (at % 251) as u8).collect();
    far.write_all(&answer).unwrap();
    drop(far);
    let output = connecting.output();
    assert!(
        output.status.success() && output.stderr.is_empty(),
        "{:?}",
        output.stderr
    );
    assert!(output.stdout == answer, "{} bytes arrived", output.stdout.len());
    wait_for("the end of its job", || {
        grid.try_status(2).is_some_and(|status| status.jobs.is_empty())
    });
}

#[test]
fn connect_closes_its_output_when_the_far_side_ends_its_half() {
    let grid = Grid::start();
    let listener = grid.listen();
    let port = listener.local_addr().unwrap().port().to_string();
    let mut command = grid.command(&["connect", "node2", &port]);
    let mut connecting = Bounded::new(command.stdin(Stdio::piped()).spawn().unwrap());
    let (mut far, _) = listener.accept().unwrap();
    far.shutdown(std::net::Shutdown::Write).unwrap();
    let mut nothing = Vec::new();
    connecting
        .child
        .stdout
        .take()
        .unwrap()
        .read_to_end(&mut nothing)
        .unwrap();
    assert!(nothing.is_empty());
    connecting
        .child
        .stdin
        .take()
        .unwrap()
        .write_all(b"still here")
        .unwrap();
    let mut got = Vec::new();
    far.read_to_end(&mut got).unwrap();
    assert_eq!(got, b"still here");
    assert!(connecting.child.wait().unwrap().success());
}

#[test]
fn connect_says_what_failed() {
    let grid = Grid::start();
    let listener = grid.listen();
    let closed = listener.local_addr().unwrap();
    drop(listener);
    let said = |host: &str, port: &str| {
        let output = grid.run(&["connect", host, port]);
        assert_eq!(output.status.code(), Some(1), "{output:?}");
        text(&output.stderr)
    };
    let refused = said(&closed.ip().to_string(), &closed.port().to_string());
    assert!(
        refused.contains("site2: connection refused by the destination host"),
        "{refused}"
    );
    let low = said("node2", "2");
    assert!(low.contains("connect_from = [\"site1:2\"]"), "{low}");
    // The message names port 1, which the host refuses because nothing listens there.
    let named = said("node2", "1");
    assert!(named.contains("refused by the destination host"), "{named}");
    let nowhere = said("192.0.2.1", "5000");
    assert!(nowhere.contains("no site of the grid has 192.0.2.1"), "{nowhere}");
}

/// The step of this name in a group.
fn step<'a>(report: &'a Value, group: &str, name: &str) -> &'a Value {
    let groups = report["groups"].as_array().unwrap();
    let group = groups.iter().find(|found| found["name"] == group);
    let steps = group.unwrap_or_else(|| panic!("no {group:?} in {report:#}"))["steps"]
        .as_array()
        .unwrap();
    let step = steps
        .iter()
        .find(|step| step["name"].as_str().unwrap().starts_with(name));
    step.unwrap_or_else(|| panic!("no {name:?} in {report:#}"))
}

#[test]
fn check_finds_a_grid_that_works_in_order() {
    let grid = Grid::start();
    let file = grid.file(1);
    let output = grid.run(&[
        "check",
        "--config",
        file.to_str().unwrap(),
        "--nodes",
        "--json",
        "/bin/sh",
    ]);
    let report: Value = serde_json::from_slice(&output.stdout).unwrap();
    let own = "gateway of this site";
    for (group, name) in [
        ("configuration", "file"),
        ("configuration", "key file"),
        (own, "control socket"),
        (own, "lan 127"),
        (own, "wan 127"),
        (own, "delivery ports"),
        ("site site2", "tunnel"),
        ("site site2", "lane 0"),
        ("site site2", "MTU"),
        ("site site2", "answer"),
        ("site site2", "clock"),
        ("program", "/bin/sh"),
        ("nodes of this site", "node1"),
    ] {
        let step = step(&report, group, name);
        assert_eq!(step["result"], "ok", "{group}: {step}");
    }
    assert!(
        step(&report, own, "lan 127")["detail"]
            .as_str()
            .unwrap()
            .starts_with("served by the gateway")
    );
    assert_eq!(output.status.success(), report["ok"].as_bool().unwrap());
}

#[test]
fn check_says_what_is_wrong_where_nothing_runs_and_changes_nothing() {
    let grid = Grid::plan();
    let file = grid.file(1);
    let check = || {
        let output = grid.run(&["check", "--config", file.to_str().unwrap()]);
        assert_eq!(output.status.code(), Some(1), "{output:?}");
        text(&output.stdout)
    };
    let said = check();
    assert!(
        said.contains("[ok]   lan 127") && said.contains("free for the gateway"),
        "{said}"
    );
    assert!(
        said.contains("[fail] control socket: no gateway runs here"),
        "{said}"
    );
    assert!(said.contains("-> causeway gateway --config FILE"), "{said}");
    assert!(!grid.control(1).exists());
    let key = grid.dir.path().join("grid.key");
    std::fs::set_permissions(&key, PermissionsExt::from_mode(0o644)).unwrap();
    let said = check();
    assert!(
        said.contains("[fail] file: ") && said.contains("chmod 600"),
        "{said}"
    );
}

/// A job of site one; it ends with the connection.
fn start_job(grid: &Grid) -> (control::JobReply, std::os::unix::net::UnixStream) {
    let request = Request::Job {
        name: "mpirun ./app".into(),
        weight: 1,
        plan: control::Plan {
            sites: vec!["site2".into()],
            ranks: 0,
            ..control::Plan::default()
        },
    };
    match control::ask(&grid.control(1), &request).unwrap() {
        (Reply::Job(job), held) => (job, held),
        (other, _) => panic!("{other:?}"),
    }
}

/// Starts an agent as a launcher does: a command on site two's node, under a job of site one.
fn on_node(grid: &Grid, token: &str, command: &str) -> Child {
    let mut agent = grid.command(&["agent", "node2", command]);
    agent.env("CAUSEWAY_TOKEN", token).stdin(Stdio::piped());
    agent.spawn().unwrap()
}

/// The lines of site two's audit.
fn audited(grid: &Grid, more: &[&str]) -> Vec<Value> {
    let file = grid.file(2).display().to_string();
    let output = grid.run(&[&["audit", "--json", "--config", &file], more].concat());
    assert!(output.status.success(), "{output:?}");
    let lines = text(&output.stdout);
    lines
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect()
}

#[test]
fn audit_shows_each_start_for_another_site_what_ran_there_and_its_end() {
    let grid = Grid::start();
    let (job, _held) = start_job(&grid);
    let agent = Bounded::new(on_node(&grid, &job.token, "echo started; exit 3"));
    let output = agent.output();
    assert_eq!(
        (text(&output.stdout).as_str(), output.status.code()),
        ("started\n", Some(3))
    );
    wait_for("the end", || audited(&grid, &[]).len() == 3);
    let lines = audited(&grid, &["--site", "site1", "--since", "1h"]);
    let [start, command, end] = &lines[..] else {
        panic!("{lines:?}")
    };
    let events = [&start["event"], &command["event"], &end["event"]];
    assert_eq!(events, ["start", "command", "end"]);
    let own = nix::unistd::User::from_uid(nix::unistd::geteuid())
        .unwrap()
        .unwrap();
    assert_eq!([&start["node"], &start["user"]], ["node2", own.name.as_str()]);
    assert_eq!(
        [&start["name"], &command["command"]],
        ["mpirun ./app", "echo started; exit 3"]
    );
    assert!(start["pid"].is_u64() && start["pid"] == command["pid"] && start["pid"] == end["pid"]);
    assert!(
        command["node_pid"].is_u64() && end["outcome"] == "status 0",
        "{end}"
    );
    assert!(audited(&grid, &["--site", "site3"]).is_empty());
    assert!(audited(&grid, &["--since", "9999-01-01"]).is_empty());
}

#[test]
fn what_another_site_starts_has_the_account_of_that_site() {
    let grid = Grid::start();
    let (job, _held) = start_job(&grid);
    let output = Bounded::new(on_node(&grid, &job.token, "echo $ACCOUNT_OF")).output();
    assert_eq!(text(&output.stdout), "site1\n", "{output:?}");
}

#[test]
fn no_job_of_another_site_has_more_processes_here_than_its_nodes_have_slots_and_two_for_its_files() {
    // One node with one slot.
    let grid = Grid::start();
    let (job, _held) = start_job(&grid);
    let mut three = [(); 3].map(|()| Bounded::new(on_node(&grid, &job.token, "cat")));
    wait_for("the three", || audited(&grid, &[]).len() == 6);
    let output = Bounded::new(on_node(&grid, &job.token, "echo fourth")).output();
    let said = text(&output.stderr);
    assert!(
        output.status.code() == Some(255)
            && said.contains("at site2,")
            && said.contains("max_processes in [accept]"),
        "{output:?}"
    );
    let refused = audited(&grid, &[]).pop().unwrap();
    assert_eq!(
        [&refused["event"], &refused["kind"]],
        ["refused", "max-processes"]
    );
    for process in &mut three {
        drop(process.child.stdin.take());
    }
    for process in three {
        assert!(process.output().status.success());
    }
    wait_for("room", || {
        let output = Bounded::new(on_node(&grid, &job.token, "echo last")).output();
        text(&output.stdout) == "last\n"
    });
}
