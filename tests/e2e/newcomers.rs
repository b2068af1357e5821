//! The way of somebody who has never used Causeway: a grid, its broker, a token and one line for each of two sites, a job. One of the sites is behind
//! a NAT; nobody is root of anything but the emulated nodes, which have but one user.

use crate::grid::{causeway, root};
use crate::mpi;
use crate::namespaces;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

const DEADLINE: Duration = Duration::from_secs(60);

/// Where rennes, whose NAT lets nobody in, finds nancy.
const NANCY: &str = "198.51.100.5";

/// A grid of emulated sites on which nothing of ours runs yet.
pub struct Fresh {
    name: &'static str,
    pub directory: PathBuf,
    state: tempfile::TempDir,
    /// Daemons, as people leave them in a terminal.
    running: Vec<Child>,
}

impl Drop for Fresh {
    fn drop(&mut self) {
        let _ = self.lab(&["down", self.name]).output();
        for child in &mut self.running {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

impl Fresh {
    /// `scenario`: a file of this directory.
    pub fn up(scenario: &str, name: &'static str) -> Fresh {
        let directory = root().join("target/e2e").join(name);
        if directory.exists() {
            fs::remove_dir_all(&directory).unwrap();
        }
        fs::create_dir_all(&directory).unwrap();
        let prefix = "causeway-e2e-";
        let fresh = Fresh {
            name,
            directory,
            state: tempfile::Builder::new().prefix(prefix).tempdir().unwrap(),
            running: Vec::new(),
        };
        let scenario = root().join("tests/e2e").join(scenario).display().to_string();
        let up = fresh
            .lab(&["up", &scenario, "--no-gateways", "--name", name])
            .output();
        right(&up.unwrap());
        fresh
    }

    pub fn lab(&self, words: &[&str]) -> Command {
        let mut command = Command::new(causeway());
        command.arg("lab").args(words);
        command.env("XDG_RUNTIME_DIR", self.state.path());
        command
    }

    /// A command on a node, as its user types it. Every site has a home of its own, which the emulated nodes share.
    pub fn on(&self, site: &str, words: &[&str]) -> Command {
        let head = format!("{site}-head");
        let config = format!("XDG_CONFIG_HOME={}", self.directory.join(site).display());
        let program = causeway().display().to_string();
        let typed = [
            "exec",
            "--lab",
            self.name,
            &head,
            "--",
            "env",
            "XDG_RUNTIME_DIR=/run",
            &config,
            &program,
        ];
        self.lab(&[&typed, words].concat())
    }

    pub fn says(&self, site: &str, words: &[&str]) -> String {
        let output = self.on(site, words).output().unwrap();
        right(&output);
        String::from_utf8_lossy(&output.stdout).trim().to_owned()
    }

    pub fn leave(&mut self, site: &str, words: &[&str], log: &str) {
        let log = fs::File::create(self.directory.join(log)).unwrap();
        let child = self.on(site, words).stdout(Stdio::null()).stderr(log).spawn();
        self.running.push(child.unwrap());
    }

    pub fn wait_for(&self, what: &str, done: impl Fn() -> bool) {
        let start = Instant::now();
        while !done() {
            if start.elapsed() > DEADLINE {
                panic!(
                    "{what} did not come within {DEADLINE:?}: see {}",
                    self.directory.display()
                );
            }
            std::thread::sleep(Duration::from_millis(50));
        }
    }
}

fn right(output: &Output) {
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{}: {said}", output.status);
}

#[test]
#[ignore = "needs namespaces and Debian's Open MPI; run by make test"]
fn debian_open_mpi_runs_for_newcomers_who_join_two_sites_with_tokens() {
    if let Err(reason) = namespaces::probe() {
        println!("skipped: {reason}");
        return;
    }
    let mut fresh = Fresh::up("nat.toml", "nat-newcomers");
    let grid = fresh.directory.join("grid").display().to_string();
    let began = Instant::now();
    let broker = format!("{NANCY}:7443");
    fresh.says(
        "nancy",
        &["grid", "create", "g5k", "--broker", &broker, "--dir", &grid],
    );
    let config = Path::new(&grid).join("broker.toml").display().to_string();
    fresh.leave("nancy", &["broker", "--config", &config], "broker.log");
    fresh.wait_for("the broker", || {
        let listed = fresh.on("nancy", &["grid", "list", "--dir", &grid]).output();
        listed.unwrap().status.success() && Path::new(&grid).join("broker.sock").exists()
    });
    let wan = format!("{NANCY}:7001");
    for (site, subnet, more) in [
        ("nancy", "10.2.0.0/24", ["--wan", wan.as_str()].as_slice()),
        ("rennes", "10.1.0.0/24", &[]),
    ] {
        let token = fresh.says("nancy", &["grid", "token", "--site", site, "--dir", &grid]);
        let nodes = [1, 2].map(|number| format!("{site}-{number}:4"));
        let line = [
            "gateway", "--join", &token, "--subnet", subnet, "--node", &nodes[0], "--node", &nodes[1],
        ];
        fresh.leave(site, &[&line, more].concat(), &format!("{site}.log"));
    }
    fresh.wait_for("the tunnel", || {
        let status = fresh.on("rennes", &["status"]).output().unwrap();
        String::from_utf8_lossy(&status.stdout).contains("tunnel to nancy")
    });
    let met = began.elapsed();
    let programs = mpi::debian_openmpi().programs;
    let ring = programs.join("ring").display().to_string();
    let said = fresh.says("rennes", &["run", "--", "mpirun.openmpi", "-n", "4", &ring]);
    assert!(said.contains("all right"), "{said}");
    println!(
        "    two sites have met {met:.1?} after 'grid create', their first job has ended after {:.1?}: {said}",
        began.elapsed()
    );
}
