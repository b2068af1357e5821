//! mpirun as a guarded child: signals, the terminal and the status are passed through, and nothing of it is
//! ever left behind.

use super::directory;
use super::patience::Patience;
use causeway_control::{self as control, MAX_LINE_BYTES, Reply};
use causeway_host::say;
use causeway_remote::guard::{Guarded, HURRY, Outcome};
use causeway_remote::parts::{ELSEWHERE, Expected, PIPE_ENV, Parts, listed, pipe};
use causeway_service::signals::heeded;
use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::signal::{SigmaskHow, Signal, sigprocmask};
use nix::sys::signalfd::{SfdFlags, SignalFd};
use nix::unistd::{getpgrp, tcgetpgrp};
use std::fs::File;
use std::io::{self, Read, Write};
use std::os::fd::{AsFd, AsRawFd};
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

const PASSED_ON: &[Signal] = &[
    Signal::SIGINT,
    Signal::SIGTERM,
    Signal::SIGHUP,
    Signal::SIGQUIT,
    Signal::SIGUSR1,
    Signal::SIGUSR2,
    Signal::SIGTSTP,
    Signal::SIGCONT,
];

/// How soon ranks that an interrupt ends have ended: those that run for longer were not ended by it.
const INTERRUPTED_WITHIN: Duration = Duration::from_secs(5);

/// The signals that ask a run to end.
pub const ENDING: &[Signal] = &[Signal::SIGINT, Signal::SIGTERM, Signal::SIGHUP, Signal::SIGQUIT];

/// Why there is no status.
#[derive(Debug, thiserror::Error)]
pub enum ChildError {
    /// The launcher could not be started.
    #[error("run {0}: {1}")]
    Start(String, String),
    /// The launcher has ended well, but some sites had no part in the job.
    #[error("the launcher has started nothing at {0}; {ELSEWHERE}")]
    Missing(String),
    /// The launcher reports success, but parts of the job were lost.
    #[error(
        "the job's processes on {0} were lost before they had ended, although its launcher reports success"
    )]
    Lost(String),
    /// A system call that guarding the launcher needs has failed.
    #[error("guard {0}: {1}")]
    Guard(String, io::Error),
}

/// Signals for the launcher, and how long it may take to end once they have asked it to.
pub struct Signals {
    arriving: SignalFd,
    patience: Patience,
}

/// Blocks the signals that are for the launcher, until [`run`] passes them on.
///
/// # Errors
/// Those of sigprocmask and signalfd. It must be called while the process has one thread.
pub fn hold_signals(patience: Patience) -> io::Result<Signals> {
    let signals = heeded(PASSED_ON);
    sigprocmask(SigmaskHow::SIG_BLOCK, Some(&signals), None)?;
    let flags = SfdFlags::SFD_NONBLOCK | SfdFlags::SFD_CLOEXEC;
    let arriving = SignalFd::with_flags(&signals, flags)?;
    Ok(Signals { arriving, patience })
}

/// How a launcher ended.
#[derive(Debug)]
pub struct Ended {
    /// The launcher's status, as shells count it.
    status: u8,
    /// The sites at which the launcher should have started something, but has not.
    missing: Vec<String>,
    /// The nodes whose parts of the job were lost. hydra may report success even then.
    lost: Vec<String>,
    /// Whether the launcher was ended by Ctrl-C. hydra reports success then.
    is_interrupted: bool,
}

impl Ended {
    /// The status of the run.
    ///
    /// # Errors
    /// The launcher reports success, but some sites had no part in the job, or parts were lost.
    pub fn status(self) -> Result<u8, ChildError> {
        if self.status == 0 && self.is_interrupted {
            return Ok(128 + Signal::SIGINT as u8);
        }
        let names = |names: &[String]| listed(&names.iter().map(String::as_str).collect::<Vec<_>>());
        match self.status {
            0 if !self.lost.is_empty() => Err(ChildError::Lost(names(&self.lost))),
            0 if !self.missing.is_empty() => Err(ChildError::Missing(names(&self.missing))),
            status => Ok(status),
        }
    }
}

/// Runs the launcher to its end. The job lives as long as `job`; `directory` is removed even if this process
/// is killed; `signals` are those of [`hold_signals`].
///
/// # Errors
/// See [`ChildError`]. It must be called while the process has one thread.
pub fn run(
    mut command: Command,
    job: &UnixStream,
    directory: &Path,
    signals: Signals,
    expected: Expected,
) -> Result<Ended, ChildError> {
    if let Some(signal) = asked_to_end(&signals.arriving) {
        return Ok(Ended {
            status: 128 + signal as u8,
            missing: Vec::new(),
            lost: Vec::new(),
            is_interrupted: false,
        });
    }
    let name = command.get_program().to_string_lossy().into_owned();
    let fail = |error: io::Error| ChildError::Guard(name.clone(), error);
    // Ctrl-C at a terminal reaches the whole foreground process group, and mpirun must read from the
    // terminal: so it stays in the group. Without a terminal it gets a group of its own, so that a signal for
    // our group reaches it only through us.
    let terminal = File::open("/dev/tty").ok();
    if terminal.is_none() {
        command.process_group(0);
    }
    command.env(control::SOCKET_ENV, control::socket());
    if !expected.leaves_ends {
        command.env(PIPE_ENV, pipe(directory));
    }
    let parts = Parts::listen(directory, expected, Instant::now()).map_err(fail)?;
    let not_for_guard = [job.as_raw_fd(), parts.descriptor()];
    let (guarded, order) =
        Guarded::start(command, &not_for_guard, || directory::remove(directory)).map_err(fail)?;
    let mut owner = Owner {
        order: Some(order),
        ending: 0,
        interrupted: None,
        patience: signals.patience,
        deadline: None,
        terminal,
        parts,
    };
    owner
        .wait(&guarded.report, &signals.arriving, job)
        .map_err(fail)?;
    let owned = |names: Vec<&str>| names.into_iter().map(str::to_owned).collect();
    let (missing, lost) = (owned(owner.parts.missing()), owned(owner.parts.lost()));
    let is_interrupted = owner
        .interrupted
        .is_some_and(|at| at.elapsed() < INTERRUPTED_WITHIN);
    drop(owner);
    match guarded.outcome() {
        Outcome::Status(status) => Ok(Ended {
            status,
            missing,
            lost,
            is_interrupted,
        }),
        Outcome::NotStarted(reason) => Err(ChildError::Start(name, reason)),
    }
}

/// A request to end that came before there was a launcher, if there was one.
fn asked_to_end(signals: &SignalFd) -> Option<Signal> {
    while let Ok(Some(signal)) = signals.read_signal() {
        let signal = Signal::try_from(signal.ssi_signo as i32).ok();
        if let Some(signal) = signal.filter(|signal| ENDING.contains(signal)) {
            return Some(signal);
        }
    }
    None
}

/// Prints what the gateway says about the job, line by line; false once the gateway is gone.
pub(super) fn hear(mut job: &UnixStream, told: &mut Vec<u8>) -> bool {
    let mut bytes = [0; 4096];
    // The stream is readable, and nobody else reads it: this does not block.
    match job.read(&mut bytes) {
        Ok(0) => return false,
        Ok(count) => told.extend_from_slice(&bytes[..count]),
        Err(error) => return error.kind() == io::ErrorKind::Interrupted,
    }
    while let Some(end) = told.iter().position(|byte| *byte == b'\n') {
        let line: Vec<u8> = told.drain(..=end).collect();
        if let Ok(Reply::Lost(text)) = control::later_reply(&line[..end]) {
            say::error(format_args!("causeway: {text}"));
        }
    }
    told.len() < MAX_LINE_BYTES
}

/// The process in front of the user.
struct Owner {
    /// The pipe for mpirun's signals; closing it ends mpirun.
    order: Option<File>,
    /// How many requests to end have come.
    ending: u32,
    /// When the last Ctrl-C came.
    interrupted: Option<Instant>,
    patience: Patience,
    deadline: Option<Instant>,
    terminal: Option<File>,
    parts: Parts,
}

impl Owner {
    /// Passes on signals, and messages from the gateway and the agents, until the guard reports or is gone.
    fn wait(&mut self, report: &File, arriving: &SignalFd, job: &UnixStream) -> io::Result<()> {
        let mut gateway_lives = true;
        let mut told = Vec::new();
        loop {
            let (reported, tells) = {
                let mut wait = vec![
                    PollFd::new(report.as_fd(), PollFlags::POLLIN),
                    PollFd::new(arriving.as_fd(), PollFlags::POLLIN),
                    PollFd::new(self.parts.as_fd(), PollFlags::POLLIN),
                ];
                if gateway_lives {
                    wait.push(PollFd::new(job.as_fd(), PollFlags::POLLIN));
                }
                match poll(&mut wait, self.timeout()) {
                    Ok(_) | Err(Errno::EINTR) => {}
                    Err(error) => return Err(error.into()),
                }
                let any = |at: usize| wait.get(at).and_then(PollFd::any).unwrap_or(false);
                (any(0), any(3))
            };
            while let Ok(Some(signal)) = arriving.read_signal() {
                self.on_signal(signal.ssi_signo as i32, signal.ssi_code);
            }
            if reported {
                // This reads what the last agents have reported.
                self.parts.hear(Instant::now());
                return Ok(());
            }
            if tells && !hear(job, &mut told) {
                gateway_lives = false;
                say::error("causeway: the connection to this site's gateway ended, and the job with it");
                self.order = None;
            }
            let now = Instant::now();
            if self.deadline.is_some_and(|deadline| now >= deadline) {
                self.end_now();
            }
            self.parts.hear(now);
            if let Some(line) = self.parts.due_line(now) {
                say::error(format_args!("causeway: {line}"));
            }
        }
    }

    fn timeout(&self) -> PollTimeout {
        let deadlines = [self.deadline, self.parts.due()];
        let Some(deadline) = deadlines.into_iter().flatten().min() else {
            return PollTimeout::NONE;
        };
        let left = deadline.saturating_duration_since(Instant::now()) + Duration::from_millis(1);
        PollTimeout::try_from(left).unwrap_or(PollTimeout::MAX)
    }

    fn on_signal(&mut self, number: i32, code: i32) {
        let Ok(signal) = Signal::try_from(number) else {
            return;
        };
        // A signal from the terminal has reached mpirun, too.
        let came_to_all = code == libc::SI_KERNEL && self.in_foreground();
        if !came_to_all && let Some(order) = &mut self.order {
            let _ = order.write_all(&[number as u8]);
        }
        if signal == Signal::SIGINT {
            self.interrupted = Some(Instant::now());
        }
        if ENDING.contains(&signal) {
            self.ending += 1;
            match self.patience.after(self.ending) {
                Some(left) => {
                    let deadline = Instant::now() + left;
                    self.deadline = Some(self.deadline.map_or(deadline, |before| before.min(deadline)));
                }
                None if self.ending > 1 => self.end_now(),
                None => {}
            }
        }
        if signal == Signal::SIGTSTP {
            // This process stops like any job of the shell; when the shell continues it, its SIGCONT is
            // passed to mpirun.
            let _ = nix::sys::signal::raise(Signal::SIGSTOP);
        }
    }

    /// Ends the launcher at once: its time is up.
    fn end_now(&mut self) {
        if let Some(mut order) = self.order.take() {
            // If the guard has ended, it needs no order.
            let _ = order.write_all(&[HURRY]);
        }
        self.deadline = None;
    }

    fn in_foreground(&self) -> bool {
        self.terminal
            .as_ref()
            .is_some_and(|terminal| tcgetpgrp(terminal) == Ok(getpgrp()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_launcher_calls_a_success_is_none_where_a_part_of_the_job_was_lost() {
        let ended = |status, lost: &[&str], is_interrupted| Ended {
            status,
            missing: vec!["nancy".to_owned()],
            lost: lost.iter().map(|node| (*node).to_owned()).collect(),
            is_interrupted,
        };
        let error = ended(0, &["n-1", "n-2"], false).status().unwrap_err();
        assert!(
            matches!(error, ChildError::Lost(_)) && error.to_string().contains("on n-1, n-2 were lost"),
            "{error}"
        );
        assert!(matches!(
            ended(0, &[], false).status(),
            Err(ChildError::Missing(_))
        ));
        assert_eq!(ended(137, &["n-1"], false).status().unwrap(), 137);
        assert_eq!(ended(0, &["n-1"], true).status().unwrap(), 130);
    }
}
