//! One gateway of a user, and commands in different environments, as those of cron, `su` and a login session:
//! each finds it.

use crate::sites::wait_for;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

/// A user's home with the configuration of a gateway that names no socket.
struct Home(tempfile::TempDir);

impl Home {
    fn new() -> Home {
        let home = Home(tempfile::tempdir().unwrap());
        let directory = home.0.path().join(".config/causeway");
        std::fs::create_dir_all(&directory).unwrap();
        let key = directory.join("grid.key");
        std::fs::write(&key, "0123456789abcdef").unwrap();
        std::fs::set_permissions(&key, PermissionsExt::from_mode(0o600)).unwrap();
        let net = format!("127.{}.1", crate::nets::own());
        let text = format!(
            "[site]\nname = \"rennes\"\nsubnets = [\"{net}.0/24\"]\n[listen]\nlan = [\"{net}.1:7000\"]\n[grid]\nkey_file = \"grid.key\"\n"
        );
        std::fs::write(directory.join("gateway.toml"), text).unwrap();
        for name in ["session", "other"] {
            std::fs::create_dir(home.0.path().join(name)).unwrap();
        }
        home
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    /// The output of a command in an environment that has this directory for the user's sockets.
    fn says(&self, runtime: &Path, words: &[&str]) -> Output {
        Command::new(env!("CARGO_BIN_EXE_causeway"))
            .args(words)
            .env_clear()
            .env("PATH", "/usr/bin:/bin")
            .env("HOME", self.0.path())
            .env("XDG_RUNTIME_DIR", runtime)
            .output()
            .unwrap()
    }

    /// The process of the gateway that a command in this environment finds.
    fn found(&self, runtime: &Path) -> Option<i32> {
        let said = self.says(runtime, &["status", "--json"]);
        let status: serde_json::Value = serde_json::from_slice(&said.stdout).ok()?;
        assert_eq!(status["site"], "rennes");
        i32::try_from(status["pid"].as_i64()?).ok()
    }
}

impl Drop for Home {
    fn drop(&mut self) {
        let pid = self.found(&self.path("session"));
        if let Some(pid) = pid.or_else(|| self.found(&self.path("other"))) {
            let pid = nix::unistd::Pid::from_raw(pid);
            let _ = nix::sys::signal::kill(pid, nix::sys::signal::Signal::SIGTERM);
        }
    }
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

#[test]
fn a_command_finds_the_gateway_from_another_environment_and_another_gateway_does_not_start_there() {
    let home = Home::new();
    let [session, other] = ["session", "other"].map(|name| home.path(name));
    let nobody = home.says(&other, &["status"]);
    let why = text(&nobody.stderr);
    assert!(
        !nobody.status.success() && why.contains("no gateway runs here"),
        "{why}"
    );
    assert!(
        why.contains(&other.display().to_string()),
        "it names where it looked: {why}"
    );

    let started = home.says(&session, &["gateway", "--background"]);
    assert!(started.status.success(), "{}", text(&started.stderr));
    let pid = home.found(&session).unwrap();
    assert_eq!(home.found(&other), Some(pid));
    let second = home.says(&other, &["gateway", "--background"]);
    let why = text(&second.stderr);
    assert!(
        !second.status.success() && why.contains("already runs here"),
        "{why}"
    );

    // As happens to /run/user/UID when the user's last session ends.
    std::fs::remove_dir_all(&session).unwrap();
    wait_for("the gateway to be found again", || {
        home.found(&other) == Some(pid)
    });
}

#[test]
fn a_command_names_the_host_on_which_the_users_gateway_runs() {
    let home = Home::new();
    let note = home.path(".config/causeway/gateway.host");
    std::fs::write(
        note,
        r#"{"host":"head-2","control":"/run/user/7/causeway/gateway.sock"}"#,
    )
    .unwrap();
    let said = home.says(&home.path("session"), &["status"]);
    let why = text(&said.stderr);
    assert!(why.contains("yours was started on head-2"), "{why}");
}
