//! `causeway gateway --background` and `causeway broker --background`: a command that outlives its terminal.
//!
//! If this user's systemd starts with the host, it is a systemd service (`systemd`). Otherwise it is a child
//! in a session of its own. It writes its log to a file. This process waits until it serves, so that its
//! status says whether it does.

pub mod systemd;

use crate::quoted;
use crate::{say, user_directories};
use causeway_wire::TextError;
use std::fs::{DirBuilder, File, OpenOptions};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitCode, Stdio};
use std::time::{Duration, Instant};
use systemd::{Manager, Unit};

/// How long a service may take until it serves: this takes some milliseconds, but looking up names that do
/// not exist takes longer.
const SERVES_WITHIN: Duration = Duration::from_secs(60);

/// How often the service is polled meanwhile: nothing reports that another process listens.
const ASK_EVERY: Duration = Duration::from_millis(10);

/// How often the socket is tried for each question to systemd.
const LOOKS_TO_A_QUESTION: u32 = 20;

/// How many lines of the log are shown if the service has ended.
const LAST_LINES: usize = 5;

/// A command that is to go on in the background.
pub struct Service<'a> {
    /// The command: `gateway` or `broker`.
    pub command: &'static str,
    /// Its site or its grid.
    pub of: &'a str,
    /// Its configuration.
    pub config: &'a Path,
    /// The socket at which it takes commands once it serves.
    pub socket: &'a Path,
    /// The command that shows its state.
    pub shown_by: &'static str,
}

/// What now runs without this process.
enum Started {
    Service { unit: String, log: PathBuf },
    Child { pid: u32, log: PathBuf },
}

impl Service<'_> {
    /// Starts the service, and says where it is.
    pub fn start(&self) -> ExitCode {
        let command = self.command;
        match self.try_start() {
            Ok(Started::Service { unit, log }) => say::result(format_args!(
                "{command} of {} runs as the service {unit} of your systemd, which starts it with this host; its log is {}\n\
                 'systemctl --user stop {unit}' stops it, '{}' shows it",
                self.of,
                log.display(),
                self.shown_by
            )),
            Ok(Started::Child { pid, log }) => say::result(format_args!(
                "{command} of {} runs in the background as process {pid}; its log is {}\n'kill {pid}' stops it, '{}' shows it{}",
                self.of,
                log.display(),
                self.shown_by,
                self.after_a_restart()
            )),
            Err(error) => {
                say::error(format_args!("causeway {command} --background: {error}"));
                ExitCode::FAILURE
            }
        }
    }

    fn try_start(&self) -> Result<Started, TextError> {
        if self.serves() {
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
        if Manager::here() == Manager::Lingers
            && let Some(text) = self.unit_text(&log)
        {
            let unit = Unit::new(self.command, self.of)?;
            match unit.start(&text) {
                Ok(()) => return self.wait_for(&unit, log, begins),
                Err(why) => say::error(format_args!(
                    "causeway {} --background: it does not start with this host: {why}",
                    self.command
                )),
            }
            unit.remove();
        }
        let child = self.spawn(output).map_err(|error| format!("start it: {error}"))?;
        self.wait_for_child(child, log, begins)
    }

    /// Waits until a child serves.
    fn wait_for_child(&self, mut child: Child, log: PathBuf, begins: u64) -> Result<Started, TextError> {
        let deadline = Instant::now() + SERVES_WITHIN;
        loop {
            if let Some(status) = child
                .try_wait()
                .map_err(|error| format!("wait for it: {error}"))?
            {
                return Err(format!("it ended with {status}: {}", last_lines(&log, begins)).into());
            }
            if self.serves() {
                let pid = child.id();
                return Ok(Started::Child { pid, log });
            }
            if Instant::now() > deadline {
                return Err(self.is_late(&format!("process {}", child.id()), &log));
            }
            std::thread::sleep(ASK_EVERY);
        }
    }

    fn serves(&self) -> bool {
        UnixStream::connect(self.socket).is_ok()
    }

    fn is_late(&self, who: &str, log: &Path) -> TextError {
        let (socket, log) = (self.socket.display(), log.display());
        let seconds = SERVES_WITHIN.as_secs();
        format!("{who} does not serve {socket} within {seconds} s; its log is {log}").into()
    }

    /// Waits until a service that systemd has started serves.
    fn wait_for(&self, unit: &Unit, log: PathBuf, begins: u64) -> Result<Started, TextError> {
        let deadline = Instant::now() + SERVES_WITHIN;
        let mut looks = 0;
        while !self.serves() {
            looks += 1;
            let why = if looks % LOOKS_TO_A_QUESTION == 0 && unit.has_failed() {
                format!("it ended: {}", last_lines(&log, begins)).into()
            } else if Instant::now() > deadline {
                self.is_late(&format!("the service {}", unit.name()), &log)
            } else {
                std::thread::sleep(ASK_EVERY);
                continue;
            };
            unit.remove();
            return Err(why);
        }
        Ok(Started::Service {
            unit: unit.name().to_owned(),
            log,
        })
    }

    fn unit_text(&self, log: &Path) -> Option<String> {
        let config = std::path::absolute(self.config).ok()?;
        systemd::unit_text(self.command, self.of, &lasting_program()?, &config, log)
    }

    /// Says what happens to the service when the user logs out or the host restarts, and what can be done.
    fn after_a_restart(&self) -> String {
        let lingers = match Manager::here() {
            Manager::Absent => String::new(),
            Manager::Lingers => return String::new(),
            Manager::EndsAtLogout => format!(
                "\nThis host may end it at your last logout (KillUserProcesses). After 'loginctl enable-linger {}' it does not; \
                 what is then started by this command starts with the host, too",
                systemd::user_name()
            ),
        };
        let has_cron = std::env::var_os("PATH").is_some_and(|path| {
            std::env::split_paths(&path).any(|directory| directory.join("crontab").is_file())
        });
        let config = std::path::absolute(self.config).unwrap_or_default();
        let words = [lasting_program().unwrap_or_default(), config].map(quoted);
        let [program, config] = &words;
        if !has_cron || words.iter().any(|word| word.contains('\'')) {
            return lingers;
        }
        // The environment of a login contains the paths of batch systems.
        format!(
            "{lingers}\nThis has cron start it with the host:\n(crontab -l; echo '@reboot bash -lc \"{program} {} --background \
             --config {config}\"') | crontab -",
            self.command
        )
    }

    fn spawn(&self, output: File) -> std::io::Result<Child> {
        Command::new(std::env::current_exe()?)
            .args([self.command, "--own-session", "--config"])
            .arg(std::path::absolute(self.config)?)
            // With this, the service keeps no directory from being removed or unmounted.
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

/// This program, through the link that stays when another version is installed, if there is one.
fn lasting_program() -> Option<PathBuf> {
    let own = std::env::current_exe().ok()?;
    let link = user_directories::home().ok()?.join(".local/bin/causeway");
    match link.canonicalize() {
        Ok(leads_to) if leads_to == own => Some(link),
        _ => Some(own),
    }
}

/// The end of what the service has logged since it began, which was at this byte of the log.
fn last_lines(log: &Path, begins: u64) -> String {
    let bytes = std::fs::read(log).unwrap_or_default();
    let own = bytes.get(begins as usize..).unwrap_or_default();
    let said = String::from_utf8_lossy(own).into_owned();
    let lines: Vec<&str> = said.lines().collect();
    lines[lines.len().saturating_sub(LAST_LINES)..].join("\n")
}
