//! An emulated grid on which nothing of ours runs yet, and its people, who type commands.

use crate::grid::{causeway, root};
use causeway_control::Status;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

/// What takes longer hangs.
const DEADLINE: Duration = Duration::from_secs(60);

/// Jobs among them: 3 s on two free cores, a minute and more beside fifteen compilers.
const COMMAND_SECONDS: &str = "240";

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

    pub fn name(&self) -> &str {
        &self.name
    }

    pub fn lab(&self, words: &[&str]) -> Command {
        let mut command = Command::new(causeway());
        command.arg("lab").args(words);
        command.env("XDG_RUNTIME_DIR", self.state.path());
        command
    }

    /// A command of ours on a node, as its user types it.
    pub fn on(&self, site: &str, words: &[&str]) -> Command {
        let program = causeway().display().to_string();
        self.any_on(site, &[&[program.as_str()], words].concat())
    }

    /// Makes any command on a head node. Every site has a home of its own, which the emulated nodes share.
    fn any_on(&self, site: &str, words: &[&str]) -> Command {
        let head = format!("{site}-head");
        let config = format!("XDG_CONFIG_HOME={}", self.directory.join(site).display());
        let typed = [
            "exec",
            "--lab",
            &self.name,
            &head,
            "--",
            "env",
            "XDG_RUNTIME_DIR=/run",
            &config,
        ];
        self.lab(&[&typed, words].concat())
    }

    /// A command of the system on a node.
    pub fn typed(&self, node: &str, words: &[&str]) -> Command {
        self.lab(&[&["exec", "--lab", &self.name, node, "--"], words].concat())
    }

    /// Returns what a command says, which must end well. Where it hangs, `timeout` ends it with status 124.
    pub fn says(&self, site: &str, words: &[&str]) -> String {
        let program = causeway().display().to_string();
        self.says_any(site, &[&[program.as_str()], words].concat())
    }

    /// The same for any command.
    pub fn says_any(&self, site: &str, words: &[&str]) -> String {
        let bounded = ["timeout", "-k", "10", COMMAND_SECONDS];
        let output = self.any_on(site, &[&bounded, words].concat()).output().unwrap();
        right(&output);
        String::from_utf8_lossy(&output.stdout).trim().to_owned()
    }

    /// A shell's command on any node.
    pub fn shell(&self, node: &str, script: &str) -> String {
        let words = ["exec", "--lab", &self.name, node, "--", "sh", "-ec", script];
        let output = self.lab(&words).output().unwrap();
        right(&output);
        String::from_utf8_lossy(&output.stdout).trim().to_owned()
    }

    /// Leaves a command of ours running; `name.log` in the directory is what it says, `name.pid` its process
    /// there.
    pub fn leave(&mut self, site: &str, words: &[&str], name: &str) {
        let program = causeway().display().to_string();
        self.leave_any(site, &[&[program.as_str()], words].concat(), name);
    }

    /// The same for any command.
    pub fn leave_any(&mut self, site: &str, words: &[&str], name: &str) {
        let log = fs::File::create(self.directory.join(format!("{name}.log"))).unwrap();
        let pid = self.directory.join(format!("{name}.pid"));
        let note = format!("echo $$ > {}; exec \"$@\"", pid.display());
        let command = ["sh", "-c", &note, "sh"];
        let mut command = self.any_on(site, &[&command, words].concat());
        let child = command.stdout(Stdio::null()).stderr(log).spawn();
        self.running.push(child.unwrap());
    }

    /// Ends what was left running under this name without a word, as a lost host would, and waits until it is
    /// gone: its sockets take connections until then.
    pub fn kill(&self, site: &str, name: &str) {
        let pid = fs::read_to_string(self.directory.join(format!("{name}.pid"))).unwrap();
        let pid = pid.trim();
        let kill = format!("kill -9 {pid}; while kill -0 {pid} 2>/dev/null; do sleep 0.02; done");
        right(&self.any_on(site, &["sh", "-c", &kill]).output().unwrap());
    }

    /// Asks the gateway of a site for its status; none while there is no gateway.
    pub fn status(&self, site: &str) -> Option<Status> {
        let output = self.on(site, &["status", "--json"]).output().unwrap();
        serde_json::from_slice(&output.stdout).ok()
    }

    /// Leaves the broker of the grid in this directory on a site's head node, and waits until it serves.
    pub fn start_broker(&mut self, site: &str, grid: &str) {
        self.start_named_broker("broker", site, grid);
    }

    /// The same under another name, where there are several.
    pub fn start_named_broker(&mut self, name: &str, site: &str, grid: &str) {
        let config = Path::new(grid).join("broker.toml").display().to_string();
        self.leave(site, &["broker", "--config", &config], name);
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
                    "{what} did not come within {DEADLINE:?}: see {}\n{}",
                    self.directory.display(),
                    self.logs()
                );
            }
            std::thread::sleep(Duration::from_millis(50));
        }
    }
}

impl Fresh {
    /// Returns what all that was left running has said.
    pub fn logs(&self) -> String {
        let files = fs::read_dir(&self.directory).into_iter().flatten().flatten();
        let logs = files.filter(|file| file.path().extension().is_some_and(|end| end == "log"));
        let logs = logs.map(|log| {
            let text = fs::read_to_string(log.path()).unwrap_or_default();
            format!("--- {}\n{text}", log.path().display())
        });
        logs.collect()
    }
}

pub fn right(output: &Output) {
    let [said, errors] = [&output.stdout, &output.stderr].map(|bytes| String::from_utf8_lossy(bytes));
    assert!(output.status.success(), "{}: {errors}\n{said}", output.status);
}
