//! `causeway gateway --background`: a gateway that the end of its terminal does not end.
//!
//! The child is in a session of its own, and writes its log to a file. This process waits until it serves, so
//! that its status says whether there is a gateway.

use crate::{ask, places, say};
use causeway_gateway::Config;
use causeway_wire::TextError;
use std::fs::{DirBuilder, File, OpenOptions};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitCode, Stdio};
use std::time::{Duration, Instant};

/// A gateway serves after some milliseconds; names that the resolver does not find take their time.
const SERVES_WITHIN: Duration = Duration::from_secs(60);

/// How often it is asked meanwhile: nothing tells when another process listens.
const ASK_EVERY: Duration = Duration::from_millis(10);

/// Lines that are shown of the log of a gateway that has ended.
const LAST_LINES: usize = 5;

/// Starts it, and says where it is.
pub fn start(file: &Path, config: &Config) -> ExitCode {
    match try_start(file, config) {
        Ok((pid, log)) => say::result(format_args!(
            "gateway of {} runs in the background as process {pid}; its log is {}\n'kill {pid}' stops it, 'causeway status' shows it{}",
            config.site,
            log.display(),
            lingering()
        )),
        Err(error) => {
            say::error(format_args!("causeway gateway --background: {error}"));
            ExitCode::FAILURE
        }
    }
}

fn try_start(file: &Path, config: &Config) -> Result<(u32, PathBuf), TextError> {
    let log = log_file(&config.site)?;
    let failed = |error: std::io::Error| TextError::from(format!("write {}: {error}", log.display()));
    if let Some(directory) = log.parent() {
        DirBuilder::new()
            .mode(0o700)
            .recursive(true)
            .create(directory)
            .map_err(failed)?;
    }
    let output = OpenOptions::new()
        .create(true)
        .append(true)
        .mode(0o600)
        .open(&log)
        .map_err(failed)?;
    let begins = output.metadata().map_err(failed)?.len();
    let mut child = spawn(file, output).map_err(|error| format!("start a gateway: {error}"))?;
    let deadline = Instant::now() + SERVES_WITHIN;
    loop {
        if let Some(status) = child
            .try_wait()
            .map_err(|error| format!("wait for the gateway: {error}"))?
        {
            return Err(format!("it ended with {status}: {}", last_lines(&log, begins)).into());
        }
        // Another one may serve the socket until this one has found that out.
        if ask::status(&config.control).is_ok_and(|status| status.pid == child.id()) {
            return Ok((child.id(), log));
        }
        if Instant::now() > deadline {
            return Err(format!(
                "process {} does not serve {} within {} s; its log is {}",
                child.id(),
                config.control.display(),
                SERVES_WITHIN.as_secs(),
                log.display()
            )
            .into());
        }
        std::thread::sleep(ASK_EVERY);
    }
}

fn spawn(file: &Path, output: File) -> std::io::Result<Child> {
    Command::new(std::env::current_exe()?)
        .args(["gateway", "--own-session", "--config"])
        .arg(std::path::absolute(file)?)
        // It keeps no directory from being removed or unmounted.
        .current_dir("/")
        .stdin(Stdio::null())
        .stdout(output.try_clone()?)
        .stderr(output)
        .spawn()
}

fn log_file(site: &str) -> Result<PathBuf, TextError> {
    let state = places::state().map_err(TextError::of)?;
    Ok(state.join(format!("gateway-{site}.log")))
}

/// What the gateway has said, from its first byte in the log on.
fn last_lines(log: &Path, begins: u64) -> String {
    let bytes = std::fs::read(log).unwrap_or_default();
    let own = bytes.get(begins as usize..).unwrap_or_default();
    let said = String::from_utf8_lossy(own).into_owned();
    let lines: Vec<&str> = said.lines().collect();
    lines[lines.len().saturating_sub(LAST_LINES)..].join("\n")
}

/// Says where systemd may end it all the same: it may be told to end a user's processes at the last logout.
fn lingering() -> String {
    let user = nix::unistd::User::from_uid(nix::unistd::geteuid()).ok().flatten();
    let user = user.map_or_else(String::new, |user| user.name);
    let lingers = Path::new("/var/lib/systemd/linger").join(&user).exists();
    let is_needed = Path::new("/run/systemd/system").exists() && !lingers && user != "root";
    match is_needed {
        true => format!(
            "\nwhere this host ends processes at logout (KillUserProcesses), 'loginctl enable-linger {user}' keeps it"
        ),
        false => String::new(),
    }
}
