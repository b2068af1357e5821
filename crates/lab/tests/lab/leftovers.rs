//! However a lab ends, nothing of it is left: no process, no interface, no mount, and no files once `down
//! --all` has run.
//!
//! The supervisor is the example program `lab`, which `cargo test` builds beside the tests.
#![allow(clippy::unwrap_used, clippy::panic)] // helpers of tests, which clippy does not take for tests

use std::fs;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use crate::common::own_directory;
use causeway_lab::{Answer, LabState, NodeCommand, Request, Scenario, down_all_in};

#[test]
fn a_killed_supervisor_leaves_only_files_and_the_next_start_removes_them() {
    let Some(mut supervisor) = Supervisor::start(own_directory()) else {
        return;
    };
    let state = supervisor.state();
    supervisor.end_by(libc::SIGKILL);
    supervisor.nothing_is_left(&state);
    assert!(state.dir.exists() && LabState::list_in(&supervisor.root).is_empty());
    let Some(again) = Supervisor::start(supervisor.root.clone()) else {
        return;
    };
    assert_ne!(again.state().supervisor, state.supervisor);
}

#[test]
fn down_all_removes_what_a_killed_supervisor_left_and_stops_what_runs() {
    let Some(mut killed) = Supervisor::start(own_directory()) else {
        return;
    };
    let state = killed.state();
    killed.end_by(libc::SIGKILL);
    killed.nothing_is_left(&state);
    assert_eq!(down_all_in(&killed.root).unwrap(), ["rennes-nancy"]);
    assert!(!state.dir.exists());

    let Some(mut running) = Supervisor::start(own_directory()) else {
        return;
    };
    let state = running.state();
    assert_eq!(down_all_in(&running.root).unwrap(), ["rennes-nancy"]);
    running.wait();
    running.nothing_is_left(&state);
    assert!(!state.dir.exists());
}

#[test]
fn interrupting_or_terminating_the_supervisor_leaves_nothing_at_all() {
    for signal in [libc::SIGINT, libc::SIGTERM, libc::SIGHUP] {
        let Some(mut supervisor) = Supervisor::start(own_directory()) else {
            return;
        };
        let state = supervisor.state();
        supervisor.end_by(signal);
        supervisor.nothing_is_left(&state);
        assert!(!state.dir.exists(), "signal {signal}");
    }
}

#[test]
fn another_process_enters_a_node_and_changes_a_link() {
    let Some(supervisor) = Supervisor::start(own_directory()) else {
        return;
    };
    let state = supervisor.state();
    let argv = ["bash", "-c", "[ $(hostname) = nancy-1 ] && exit 42"]
        .map(Into::into)
        .to_vec();
    let status = state
        .exec(NodeCommand {
            node: "nancy-1".into(),
            argv,
            ..NodeCommand::default()
        })
        .unwrap();
    assert_eq!(status.code(), Some(42));
    let change = causeway_lab::wan::LinkChange {
        loss: Some(0.5),
        ..Default::default()
    };
    let between = ["nancy".to_owned(), "rennes".to_owned()];
    match state
        .ask(&Request::Link {
            between,
            change: change.clone(),
        })
        .unwrap()
    {
        Answer::Link(spec) => assert_eq!((spec.loss, spec.rtt), (0.5, Duration::from_micros(11_600))),
        other => panic!("{other:?}"),
    }
    let between = ["nancy".to_owned(), "paris".to_owned()];
    let error = state.ask(&Request::Link { between, change }).unwrap_err();
    assert!(error.to_string().contains("paris"), "{error}");
    match state.ask(&Request::Stats).unwrap() {
        Answer::Stats(stats) => assert_eq!(stats.len(), 2),
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_second_lab_of_the_same_name_is_refused_while_the_first_runs() {
    let Some(supervisor) = Supervisor::start(own_directory()) else {
        return;
    };
    let options = causeway_lab::LabOptions {
        state_dir: Some(supervisor.root.clone()),
        ..Default::default()
    };
    let scenario = Scenario::find("rennes-nancy").unwrap();
    let error = causeway_lab::Lab::start(&scenario, &options).unwrap_err();
    assert!(
        error.to_string().contains("lab rennes-nancy is already running"),
        "{error}"
    );
    assert!(supervisor.state().dir.exists());
}

struct Supervisor {
    root: PathBuf,
    process: Child,
    mounts: String,
}

impl Supervisor {
    fn start(root: PathBuf) -> Option<Supervisor> {
        let mounts = fs::read_to_string("/proc/self/mounts").unwrap();
        let program = example();
        let mut process = Command::new(&program)
            .args(["rennes-nancy", "--", "sleep", "1000"])
            .env("LAB_STATE_DIR", &root)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap_or_else(|error| {
                panic!("{}: {error}; cargo build --examples makes it", program.display())
            });
        let mut said = String::new();
        BufReader::new(process.stdout.take().unwrap())
            .read_line(&mut said)
            .unwrap();
        if said.starts_with("ready") {
            return Some(Supervisor {
                root,
                process,
                mounts,
            });
        }
        let status = process.wait().unwrap();
        assert_eq!(
            status.code(),
            Some(UNAVAILABLE),
            "the supervisor ended before it was ready"
        );
        println!("skipped: see the supervisor's message");
        None
    }

    fn state(&self) -> LabState {
        LabState::open_in(&self.root, None).unwrap()
    }

    fn end_by(&mut self, signal: i32) {
        let pid = nix::unistd::Pid::from_raw(self.process.id() as i32);
        nix::sys::signal::kill(pid, nix::sys::signal::Signal::try_from(signal).unwrap()).unwrap();
        self.wait();
    }

    fn wait(&mut self) {
        let deadline = Instant::now() + END_DEADLINE;
        while self.process.try_wait().unwrap().is_none() {
            assert!(
                Instant::now() < deadline,
                "the supervisor did not end within {END_DEADLINE:?}"
            );
            std::thread::yield_now();
        }
    }

    /// A node's namespaces live as long as its processes, so the end of these is also the end of its
    /// interfaces and mounts.
    fn nothing_is_left(&self, state: &LabState) {
        let deadline = Instant::now() + END_DEADLINE;
        for pid in state.nodes.iter().map(|node| node.pid).chain([state.keeper]) {
            while Path::new(&format!("/proc/{pid}")).exists() {
                assert!(
                    Instant::now() < deadline,
                    "process {pid} is left after {END_DEADLINE:?}: {state:?}"
                );
                std::thread::yield_now();
            }
        }
        let root = self.root.display().to_string();
        for process in fs::read_dir("/proc").unwrap().flatten() {
            let environment = fs::read(process.path().join("environ")).unwrap_or_default();
            let environment = String::from_utf8_lossy(&environment).into_owned();
            let command = fs::read_to_string(process.path().join("cmdline")).unwrap_or_default();
            assert!(
                !environment.contains(&format!("LAB_STATE_DIR={root}\0")),
                "left: {command}"
            );
        }
        let mounts = fs::read_to_string("/proc/self/mounts").unwrap();
        let of_a_node =
            |line: &&str| NODE_MOUNTS.iter().any(|place| line.contains(place)) || line.contains(&root);
        let left: Vec<&str> = mounts
            .lines()
            .filter(|line| !self.mounts.contains(line))
            .filter(of_a_node)
            .collect();
        assert_eq!(left, [""; 0], "mounts");
        let interfaces: Vec<_> = fs::read_dir("/sys/class/net")
            .unwrap()
            .flatten()
            .map(|one| one.file_name())
            .collect();
        let belongs_to_a_lab = |name: &str| ["br0", "wan0", "up0"].contains(&name) || name.starts_with("lan");
        assert!(
            !interfaces
                .iter()
                .any(|name| belongs_to_a_lab(&name.to_string_lossy())),
            "{interfaces:?}"
        );
    }
}

impl Drop for Supervisor {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
        let _ = down_all_in(&self.root);
    }
}

fn example() -> PathBuf {
    // This program is target/<profile>/deps/lab-<hash>.
    let deps = std::env::current_exe().unwrap();
    deps.parent().and_then(Path::parent).unwrap().join("examples/lab")
}

/// Mounts that only a node makes here; other programs may mount other things meanwhile.
const NODE_MOUNTS: [&str; 5] = ["boot_id", "/etc/hosts", "/etc/ssh", "tmp-layers", "causeway-lab"];
/// The status by which the example says that this machine cannot have a lab (EX_UNAVAILABLE).
const UNAVAILABLE: i32 = 69;
/// How long a lab may take to end: it ends within some 100 ms, but a busy machine may take seconds.
const END_DEADLINE: Duration = Duration::from_secs(30);
