//! A broker as a process, and its log.

use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

const DEADLINE: Duration = Duration::from_secs(30);

/// A broker that serves.
pub struct Running {
    child: Child,
    lines: Receiver<String>,
    /// The address at which it runs.
    pub address: String,
}

impl Running {
    /// Starts the broker of this directory.
    pub fn start(directory: &Path) -> Running {
        let mut command = Command::new(env!("CARGO_BIN_EXE_causeway"));
        command
            .args(["broker", "--config"])
            .arg(directory.join("broker.toml"));
        Running::of(command)
    }

    /// Starts a broker with a copy of its directory on a disk of 3 MB; also returns that copy's path as seen
    /// from outside.
    pub fn start_on_disk(directory: &Path, disk: &Path) -> (Running, PathBuf) {
        std::fs::create_dir(disk).unwrap();
        let script = "mount -t tmpfs -o size=3m,mode=700 none \"$2\" && cp -a \"$1\"/. \"$2\" && \
                      exec \"$0\" broker --config \"$2/broker.toml\"";
        let mut command = Command::new("unshare");
        command
            .args(["--user", "--map-root-user", "--mount", "sh", "-c", script])
            .arg(env!("CARGO_BIN_EXE_causeway"))
            .args([directory, disk]);
        let running = Running::of(command);
        let root = PathBuf::from(format!("/proc/{}/root", running.child.id()));
        (running, root.join(disk.strip_prefix("/").unwrap()))
    }

    fn of(mut command: Command) -> Running {
        let mut child = command.stderr(Stdio::piped()).spawn().unwrap();
        let (told, lines) = channel();
        let said = BufReader::new(child.stderr.take().unwrap()).lines();
        // Read to its end, because a full pipe would stop the broker.
        std::thread::spawn(move || said.map_while(Result::ok).for_each(|line| drop(told.send(line))));
        let mut running = Running {
            child,
            lines,
            address: String::new(),
        };
        let line = running.says(" at ");
        let address = line.split(" at ").nth(1).and_then(|rest| rest.split(',').next());
        running.address = address.unwrap().to_owned();
        running
    }

    /// Waits for a line of its log.
    pub fn says(&self, what: &str) -> String {
        let began = Instant::now();
        let mut others = Vec::new();
        while let Some(left) = DEADLINE.checked_sub(began.elapsed()) {
            match self.lines.recv_timeout(left) {
                Ok(line) if line.contains(what) => return line,
                Ok(line) => others.push(line),
                Err(_) => break,
            }
        }
        panic!("the broker did not say {what:?} within {DEADLINE:?}, but {others:#?}");
    }

    /// Waits for any line, but no longer than this.
    pub fn says_something(&self, longest: Duration) {
        let _ = self.lines.recv_timeout(longest);
    }

    /// Sends the signal that nobody can prepare for.
    pub fn kill(mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
