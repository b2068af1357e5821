//! An emulated grid on which nothing of ours runs yet, and its people, who type commands.

use crate::grid::{causeway, root};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

/// What takes longer hangs.
const DEADLINE: Duration = Duration::from_secs(60);

/// A grid of emulated sites on which nothing of ours runs yet.
pub struct Fresh {
    pub directory: PathBuf,
    name: String,
    state: tempfile::TempDir,
    /// Daemons, as people leave them in a terminal.
    running: Vec<Child>,
}

impl Drop for Fresh {
    fn drop(&mut self) {
        let _ = self.lab(&["down", &self.name]).output();
        for child in &mut self.running {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

impl Fresh {
    /// Starts the emulated sites of a scenario.
    pub fn up(name: &str, scenario: &Path) -> Fresh {
        let directory = root().join("target/e2e").join(name);
        if directory.exists() {
            fs::remove_dir_all(&directory).unwrap();
        }
        fs::create_dir_all(&directory).unwrap();
        let prefix = "causeway-e2e-";
        let fresh = Fresh {
            directory,
            name: name.to_owned(),
            state: tempfile::Builder::new().prefix(prefix).tempdir().unwrap(),
            running: Vec::new(),
        };
        let scenario = scenario.display().to_string();
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
            &self.name,
            &head,
            "--",
            "env",
            "XDG_RUNTIME_DIR=/run",
            &config,
            &program,
        ];
        self.lab(&[&typed, words].concat())
    }

    /// A command of the system on a node.
    pub fn typed(&self, node: &str, words: &[&str]) -> Command {
        self.lab(&[&["exec", "--lab", &self.name, node, "--"], words].concat())
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

    /// Leaves the broker of the grid in this directory on a site's head node, and waits until it serves.
    pub fn start_broker(&mut self, site: &str, grid: &str) {
        let config = Path::new(grid).join("broker.toml").display().to_string();
        self.leave(site, &["broker", "--config", &config], "broker.log");
        self.wait_for("the broker", || {
            // Not before: a command that finds no broker takes the store, which the broker then waits for.
            Path::new(grid).join("broker.sock").exists() && {
                let listed = self.on(site, &["grid", "list", "--dir", grid]).output();
                listed.unwrap().status.success()
            }
        });
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
