//! mpirun as a guarded child: signals, terminal and status pass through, and nothing of it is left in any
//! case.

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

/// Ranks that an interrupt ends do so within a second or two; those that run for longer were not ended by it.
const INTERRUPTED_WITHIN: Duration = Duration::from_secs(5);

/// The signals that ask a run to end.
pub const ENDING: &[Signal] = &[Signal::SIGINT, Signal::SIGTERM, Signal::SIGHUP, Signal::SIGQUIT];

/// Why there is no status.
#[derive(Debug, thiserror::Error)]
pub enum ChildError {
    /// The launcher could not be started.
    #[error("run {0}: {1}")]
    Start(String, String),
    /// It has ended well, and some sites had no part in it.
    #[error("the launcher has started nothing at {0}; {ELSEWHERE}")]
    Missing(String),
    /// The launcher calls it a success, and parts of the job were lost.
    #[error(
        "the job's processes on {0} were lost before they had ended, although its launcher reports success"
    )]
    Lost(String),
    /// A system call on the way failed.
    #[error("guard {0}: {1}")]
    Guard(String, io::Error),
}

/// Signals for the launcher, and how long it may take to end once they ask it to.
pub struct Signals {
    arriving: SignalFd,
    patience: Patience,
}

/// Blocks the signals that are for the launcher, until [`run`] passes them on.
///
/// # Errors
/// Those of sigprocmask and signalfd. To be called while the process has one thread.
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
    /// Its status as shells count it.
    status: u8,
    /// The sites at which it has started nothing, of those expected.
    missing: Vec<String>,
    /// The nodes whose parts of the job were lost. hydra may call that a success, too.
    lost: Vec<String>,
    /// It has ended by Ctrl-C. hydra calls that a success.
    is_interrupted: bool,
}

impl Ended {
    /// The status of the run.
    ///
    /// # Errors
    /// The launcher calls it a success, and some sites had no part in it, or parts were lost.
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
/// See [`ChildError`]. To be called while the process has one thread.
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
    // Ctrl-C at a terminal reaches the whole foreground group, and mpirun must read from that terminal: it
    // stays in the group. Without a terminal it gets its own, so that a signal for our group reaches it
    // through us only.
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

/// The request to end that came before there was a launcher, if one did.
fn asked_to_end(signals: &SignalFd) -> Option<Signal> {
    while let Ok(Some(signal)) = signals.read_signal() {
        let signal = Signal::try_from(signal.ssi_signo as i32).ok();
        if let Some(signal) = signal.filter(|signal| ENDING.contains(signal)) {
            return Some(signal);
        }
    }
    None
}

/// Prints what the gateway tells of the job, one line each; false once it is gone.
pub(super) fn hear(mut job: &UnixStream, told: &mut Vec<u8>) -> bool {
    let mut bytes = [0; 4096];
    // It is readable, and nobody else reads: this does not block.
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

/// The side that the user sees.
struct Owner {
    /// Signals for mpirun; closing it ends mpirun.
    order: Option<File>,
    /// Requests to end so far.
    ending: u32,
    /// When the last Ctrl-C came.
    interrupted: Option<Instant>,
    patience: Patience,
    deadline: Option<Instant>,
    terminal: Option<File>,
    parts: Parts,
}

impl Owner {
    /// Passes on signals, and messages of the gateway and the agents, until the guard reports or is gone.
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
                // Reads what the last agents have reported.
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
        // What the terminal sends, it has sent to mpirun as well.
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
            // Stopped like any job of the shell; the shell's SIGCONT is passed to mpirun when we run again.
            let _ = nix::sys::signal::raise(Signal::SIGSTOP);
        }
    }

    /// Ends the launcher at once: its time is up.
    fn end_now(&mut self) {
        if let Some(mut order) = self.order.take() {
            // A guard that is gone needs no order.
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
