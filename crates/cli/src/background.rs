//! `causeway gateway --background` and `causeway broker --background`: what the end of its terminal does not
//! end.
//!
//! The child is in a session of its own, and writes its log to a file. This process waits until it serves, so
//! that its status says whether it does.

use crate::{say, user_directories};
use causeway_wire::TextError;
use std::fs::{DirBuilder, File, OpenOptions};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitCode, Stdio};
use std::time::{Duration, Instant};

/// It serves after some milliseconds; names that the resolver does not find take their time.
const SERVES_WITHIN: Duration = Duration::from_secs(60);

/// How often it is asked meanwhile: nothing tells when another process listens.
const ASK_EVERY: Duration = Duration::from_millis(10);

/// Lines that are shown of the log of one that has ended.
const LAST_LINES: usize = 5;

/// A command that is to go on in the background.
pub struct Service<'a> {
    /// The command: `gateway` or `broker`.
    pub command: &'static str,
    /// Its site or its grid.
    pub of: &'a str,
    /// Its configuration.
    pub config: &'a Path,
    /// Where it takes commands once it serves.
    pub socket: &'a Path,
    /// The command that shows it.
    pub shown_by: &'static str,
}

impl Service<'_> {
    /// Starts it, and says where it is.
    pub fn start(&self) -> ExitCode {
        let command = self.command;
        match self.try_start() {
            Ok((pid, log)) => say::result(format_args!(
                "{command} of {} runs in the background as process {pid}; its log is {}\n'kill {pid}' stops it, '{}' shows it{}",
                self.of,
                log.display(),
                self.shown_by,
                lingering()
            )),
            Err(error) => {
                say::error(format_args!("causeway {command} --background: {error}"));
                ExitCode::FAILURE
            }
        }
    }

    fn try_start(&self) -> Result<(u32, PathBuf), TextError> {
        let serves = || UnixStream::connect(self.socket).is_ok();
        if serves() {
            let (command, socket) = (self.command, self.socket.display());
            return Err(format!(
                "a {command} of yours already runs here and serves {socket}; '{}' shows it",
                self.shown_by
            )
            .into());
        }
        let log = self.log_file()?;
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
        let mut child = self.spawn(output).map_err(|error| format!("start it: {error}"))?;
        let deadline = Instant::now() + SERVES_WITHIN;
        loop {
            if let Some(status) = child
                .try_wait()
                .map_err(|error| format!("wait for it: {error}"))?
            {
                return Err(format!("it ended with {status}: {}", last_lines(&log, begins)).into());
            }
            if serves() {
                return Ok((child.id(), log));
            }
            if Instant::now() > deadline {
                return Err(format!(
                    "process {} does not serve {} within {} s; its log is {}",
                    child.id(),
                    self.socket.display(),
                    SERVES_WITHIN.as_secs(),
                    log.display()
                )
                .into());
            }
            std::thread::sleep(ASK_EVERY);
        }
    }

    fn spawn(&self, output: File) -> std::io::Result<Child> {
        Command::new(std::env::current_exe()?)
            .args([self.command, "--own-session", "--config"])
            .arg(std::path::absolute(self.config)?)
            // It keeps no directory from being removed or unmounted.
            .current_dir("/")
            .stdin(Stdio::null())
            .stdout(output.try_clone()?)
            .stderr(output)
            .spawn()
    }

    fn log_file(&self) -> Result<PathBuf, TextError> {
        let state = user_directories::state().map_err(TextError::of)?;
        Ok(state.join(format!("{}-{}.log", self.command, self.of)))
    }
}

/// Leaves the terminal's session, as the command that started this one in the background asks.
///
/// # Errors
/// It leads a group of processes already.
pub fn leave_session() -> Result<(), TextError> {
    let left = nix::unistd::setsid();
    left.map(drop)
        .map_err(|error| format!("leave the terminal's session: {error}").into())
}

/// What it has said, from its first byte in the log on.
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
            "\nif this host ends a user's processes at logout (KillUserProcesses), 'loginctl enable-linger {user}' keeps it running"
        ),
        false => String::new(),
    }
}
