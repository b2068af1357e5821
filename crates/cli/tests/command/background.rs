//! `causeway gateway --background` and `causeway broker --background`: on loopback, without privilege.

use crate::sites::wait_for;
use causeway_control::{Reply, Request, ask};
use nix::sys::signal::{Signal, kill};
use nix::unistd::{Pid, getsid};
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::process::{Command, Output};
use std::time::{Duration, Instant};

/// How long a gateway may take to end: it ends in a moment, but the machine may be busy with other tests.
const DEADLINE: Duration = Duration::from_secs(20);

struct Site(tempfile::TempDir);

impl Site {
    fn new() -> Site {
        let site = Site(tempfile::tempdir().unwrap());
        let key = site.0.path().join("grid.key");
        std::fs::write(&key, "0123456789abcdef").unwrap();
        std::fs::set_permissions(&key, PermissionsExt::from_mode(0o600)).unwrap();
        let net = format!("127.{}.1", crate::nets::own());
        let text = format!(
            "[site]\nname = \"rennes\"\nsubnets = [\"{net}.0/24\"]\n[listen]\nlan = [\"{net}.1:7000\"]\n\
             control = \"{}\"\n[grid]\nkey_file = \"grid.key\"\n",
            site.socket().display()
        );
        std::fs::write(site.0.path().join("gateway.toml"), text).unwrap();
        site
    }

    fn socket(&self) -> PathBuf {
        self.0.path().join("run/gateway.sock")
    }

    fn start(&self) -> Output {
        self.start_by(Command::new(env!("CARGO_BIN_EXE_causeway")))
    }

    fn start_by(&self, mut command: Command) -> Output {
        command.args(["gateway", "--background", "--config"]);
        command
            .arg(self.0.path().join("gateway.toml"))
            .env("XDG_STATE_HOME", self.0.path())
            .output()
            .unwrap()
    }

    fn pid(&self) -> Option<i32> {
        match ask(&self.socket(), &Request::Status {}).ok()? {
            (Reply::Status(status), _) => i32::try_from(status.pid).ok(),
            _ => None,
        }
    }
}

impl Drop for Site {
    fn drop(&mut self) {
        if let Some(pid) = self.pid() {
            let _ = kill(Pid::from_raw(pid), Signal::SIGKILL);
        }
    }
}

#[test]
fn a_gateway_in_the_background_serves_once_the_command_returns_and_has_no_terminal() {
    let site = Site::new();
    let started = site.start();
    let said = String::from_utf8_lossy(&started.stdout).into_owned();
    let errors = String::from_utf8_lossy(&started.stderr).into_owned();
    assert!(started.status.success(), "{errors}");
    let pid = Pid::from_raw(site.pid().unwrap());
    assert!(said.contains(&format!("process {pid}")), "{said}");
    assert_eq!(getsid(Some(pid)).unwrap(), pid, "a session of its own");
    let log = site.0.path().join("causeway/gateway-rennes.log");
    // A thread writes the log.
    wait_for("a line in its log", || {
        std::fs::read_to_string(&log).is_ok_and(|text| text.contains("rennes"))
    });
    assert_eq!(log.metadata().unwrap().permissions().mode() & 0o777, 0o600);

    let second = site.start();
    let errors = String::from_utf8_lossy(&second.stderr).into_owned();
    assert_eq!(second.status.code(), Some(1), "{errors}");
    assert!(errors.contains("already runs here"), "{errors}");
    assert_eq!(site.pid(), Some(pid.as_raw()));

    kill(pid, Signal::SIGTERM).unwrap();
    let begun = Instant::now();
    while site.pid().is_some() {
        assert!(begun.elapsed() < DEADLINE, "it did not end within {DEADLINE:?}");
        std::thread::sleep(Duration::from_millis(1));
    }
}

/// Kills a process if the test fails before the process has ended.
struct Left(Pid);

impl Drop for Left {
    fn drop(&mut self) {
        if std::thread::panicking() {
            let _ = kill(self.0, Signal::SIGKILL);
        }
    }
}

/// If the gateway blocked the signal, the kernel would keep it to be read, even though it is ignored.
#[test]
fn a_gateway_that_nohup_started_does_not_end_by_a_hang_up() {
    let site = Site::new();
    let mut nohup = Command::new("env");
    nohup.args(["--ignore-signal=HUP", env!("CARGO_BIN_EXE_causeway")]);
    let started = site.start_by(nohup);
    assert!(
        started.status.success(),
        "{}",
        String::from_utf8_lossy(&started.stderr)
    );
    let pid = site.pid().unwrap();
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
    let bits = |name: &str| {
        let line = status.lines().find_map(|line| line.strip_prefix(name));
        u64::from_str_radix(line.unwrap().trim(), 16).unwrap()
    };
    let bit = |signal: Signal| 1u64 << (signal as i32 - 1);
    assert_ne!(bits("SigIgn:") & bit(Signal::SIGHUP), 0);
    assert_eq!(bits("SigBlk:") & bit(Signal::SIGHUP), 0);
    assert_ne!(bits("SigBlk:") & bit(Signal::SIGTERM), 0);
    kill(Pid::from_raw(pid), Signal::SIGHUP).unwrap();
    assert_eq!(site.pid(), Some(pid));
}

#[test]
fn a_broker_in_the_background_serves_once_the_command_returns_and_has_no_terminal() {
    let dir = tempfile::tempdir().unwrap();
    let grid = dir.path().join("grid");
    let causeway = |words: &[&str]| {
        let mut command = Command::new("env");
        // Whatever started the tests may ignore this signal, as nohup does.
        command
            .args(["--default-signal=HUP", env!("CARGO_BIN_EXE_causeway")])
            .args(words)
            .env("XDG_STATE_HOME", dir.path())
            .output()
            .unwrap()
    };
    let at = grid.display().to_string();
    let made = causeway(&[
        "grid",
        "create",
        "g5k",
        "--broker",
        "127.0.0.1:7443",
        "--dir",
        &at,
    ]);
    assert!(made.status.success());
    let file = grid.join("broker.toml");
    let text = std::fs::read_to_string(&file).unwrap();
    std::fs::write(&file, text.replace("[::]:7443", "127.0.0.1:0")).unwrap();
    let file = file.display().to_string();
    let started = causeway(&["broker", "--background", "--config", &file]);
    let said = String::from_utf8_lossy(&started.stdout).into_owned();
    assert!(
        started.status.success(),
        "{}",
        String::from_utf8_lossy(&started.stderr)
    );
    let pid = said
        .split("process ")
        .nth(1)
        .and_then(|rest| rest.split(';').next());
    let pid = Pid::from_raw(pid.unwrap().parse().unwrap());
    let _left = Left(pid);
    assert_eq!(getsid(Some(pid)).unwrap(), pid, "a session of its own");
    assert!(causeway(&["grid", "list", "--dir", &at]).status.success());
    let second = causeway(&["broker", "--background", "--config", &file]);
    let errors = String::from_utf8_lossy(&second.stderr).into_owned();
    assert!(
        !second.status.success() && errors.contains("already runs here"),
        "{errors}"
    );
    // A hang-up makes the broker end in order, as the end of its terminal would.
    kill(pid, Signal::SIGHUP).unwrap();
    let log = dir.path().join("causeway/broker-g5k.log");
    let begun = Instant::now();
    while !std::fs::read_to_string(&log).unwrap().contains("stops at SIGHUP") {
        assert!(begun.elapsed() < DEADLINE, "it did not end within {DEADLINE:?}");
        std::thread::sleep(Duration::from_millis(1));
    }
}
