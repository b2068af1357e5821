//! Runs a program with a deadline, keeps what it prints, and tells everything about it when it fails.

use nix::sys::statvfs::statvfs;
use std::fs::File;
use std::io;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// The shortest pause between two polls of a child: a short time compared with any program that crosses a
/// WAN.
const POLL: Duration = Duration::from_millis(2);

/// The pause is the child's time so far divided by this, up to [`SELDOM`], so that the delay stays within
/// half a percent: polling disturbs what is measured.
const POLLS_OF_ELAPSED: u32 = 200;
const SELDOM: Duration = Duration::from_millis(50);

/// How long a program told to stop may take before it is killed.
const STOP: Duration = Duration::from_secs(10);

/// What a program has left behind.
#[derive(Debug)]
pub struct Ended {
    /// How the program ended.
    pub status: ExitStatus,
    /// Standard output, with bytes that are not UTF-8 replaced.
    pub stdout: String,
    /// Standard error, likewise.
    pub stderr: String,
    /// Time from start to exit.
    pub elapsed: Duration,
}

/// Why there is no result.
#[derive(Debug, thiserror::Error)]
pub enum ProgramError {
    /// A file or process could not be made or read.
    #[error("{what}: {source}")]
    Io {
        /// What was tried.
        what: String,
        /// What the system said.
        source: io::Error,
    },
    /// The program took longer than allowed and was stopped.
    #[error(
        "{command}\n  in {directory} did not end within its deadline of {seconds} s\nstdout:\n{stdout}\nstderr:\n{stderr}"
    )]
    Deadline {
        /// The command line.
        command: String,
        /// The directory in which the program ran.
        directory: String,
        /// Allowed time.
        seconds: u64,
        /// What the program had printed.
        stdout: String,
        /// The program's standard error.
        stderr: String,
    },
    /// Somebody asked for it to stop.
    #[error("{command}\n  was stopped")]
    Stopped {
        /// The command line.
        command: String,
    },
    /// The program ended with another status than 0.
    #[error("{command}\n  in {directory} ended with {status}\nstdout:\n{stdout}\nstderr:\n{stderr}")]
    Failed {
        /// The command line.
        command: String,
        /// The directory in which the program ran.
        directory: String,
        /// How the program ended.
        status: ExitStatus,
        /// What the program printed.
        stdout: String,
        /// The program's standard error.
        stderr: String,
    },
}

impl ProgramError {
    /// Why, in one line for a row; the whole story is in files.
    pub fn reason(&self) -> String {
        match self {
            ProgramError::Io { what, source } => format!("{what}: {source}"),
            ProgramError::Stopped { .. } => "it was stopped".to_owned(),
            ProgramError::Deadline {
                seconds,
                stderr,
                directory,
                ..
            } => format!(
                "it did not end within {seconds} s{}",
                said_last(stderr, directory)
            ),
            ProgramError::Failed {
                status,
                stderr,
                directory,
                ..
            } => format!("it ended with {status}{}", said_last(stderr, directory)),
        }
    }
}

/// What a program printed last, and why that may not be all.
fn said_last(stderr: &str, directory: &str) -> String {
    let mut text = match last_line(stderr) {
        said if said.is_empty() => String::new(),
        said => format!("; it said last: {said}"),
    };
    // The programs' outputs are files there.
    if statvfs(directory).is_ok_and(|disk| disk.blocks_available() == 0) {
        text += &format!("; the disk of {directory} is full, so what it said may be lost");
    }
    text
}

/// The last line that says something.
fn last_line(text: &str) -> String {
    let quiet = |line: &&str| line.trim_matches(['-', '=', ' ', '*']).is_empty();
    let mut lines = text.lines().rev().skip_while(quiet);
    lines
        .next()
        .unwrap_or_default()
        .trim()
        .chars()
        .take(200)
        .collect()
}

/// Names `what` in an I/O error.
pub fn io(what: impl Into<String>) -> impl FnOnce(io::Error) -> ProgramError {
    let what = what.into();
    |source| ProgramError::Io { what, source }
}

/// A bash command line, the directory it runs in and how long it may take.
#[derive(Debug, Clone)]
pub struct Program {
    /// The command line for `bash -c`.
    pub command: String,
    /// An existing directory; its outputs are kept in files there.
    pub directory: PathBuf,
    /// Time after which it is stopped.
    pub deadline: Duration,
    /// Becomes true when it is to be stopped before its deadline; a signal handler may set it.
    pub stop: Arc<AtomicBool>,
}

/// A program that is running.
#[derive(Debug)]
pub struct Running {
    program: Program,
    child: Child,
    start: Instant,
}

impl Program {
    /// A program in `directory`.
    pub fn new(command: impl Into<String>, directory: &Path, deadline: Duration) -> Program {
        Program {
            command: command.into(),
            directory: directory.to_owned(),
            deadline,
            stop: Arc::default(),
        }
    }

    /// The same program, which is also stopped when `stop` becomes true.
    pub fn until(self, stop: &Arc<AtomicBool>) -> Program {
        Program {
            stop: Arc::clone(stop),
            ..self
        }
    }

    /// Starts it in a process group of its own, so that it can be stopped with all its children.
    ///
    /// # Errors
    /// The output files or the process cannot be made.
    pub fn start(self) -> Result<Running, ProgramError> {
        let file = |name: &str| {
            let path = self.directory.join(name);
            File::create(&path).map_err(io(format!("create {}", path.display())))
        };
        let child = Command::new("bash")
            .args(["-c", &self.command])
            .current_dir(&self.directory)
            .stdin(Stdio::null())
            .stdout(file("stdout")?)
            .stderr(file("stderr")?)
            .process_group(0)
            .spawn()
            .map_err(io(format!("start bash -c '{}'", self.command)))?;
        Ok(Running {
            program: self,
            child,
            start: Instant::now(),
        })
    }

    /// Runs it until it ends, however it ends.
    ///
    /// # Errors
    /// It cannot be started or does not end within its deadline.
    pub fn run(self) -> Result<Ended, ProgramError> {
        self.start()?.end()
    }

    /// Runs it, and expects it to succeed.
    ///
    /// # Errors
    /// It cannot be started, does not end within its deadline, or ends with another status than 0.
    pub fn succeed(self) -> Result<Ended, ProgramError> {
        self.start()?.succeed()
    }
}

impl Running {
    /// Waits for its end.
    ///
    /// # Errors
    /// It does not end within its deadline.
    pub fn end(mut self) -> Result<Ended, ProgramError> {
        while self.start.elapsed() < self.program.deadline {
            if let Some(status) = self.ended()? {
                let elapsed = self.start.elapsed();
                return Ok(Ended {
                    status,
                    stdout: self.left("stdout"),
                    stderr: self.left("stderr"),
                    elapsed,
                });
            }
            if self.program.stop.load(Ordering::Relaxed) {
                self.stop();
                return Err(ProgramError::Stopped {
                    command: self.program.command.clone(),
                });
            }
            std::thread::sleep((self.start.elapsed() / POLLS_OF_ELAPSED).clamp(POLL, SELDOM));
        }
        self.stop();
        Err(ProgramError::Deadline {
            command: self.program.command.clone(),
            directory: self.program.directory.display().to_string(),
            seconds: self.program.deadline.as_secs(),
            stdout: self.left("stdout"),
            stderr: self.left("stderr"),
        })
    }

    /// Waits for its end, and expects it to have succeeded.
    ///
    /// # Errors
    /// It does not end within its deadline, or ends with another status than 0.
    pub fn succeed(self) -> Result<Ended, ProgramError> {
        let program = self.program.clone();
        let ended = self.end()?;
        if ended.status.success() {
            return Ok(ended);
        }
        Err(ProgramError::Failed {
            command: program.command,
            directory: program.directory.display().to_string(),
            status: ended.status,
            stdout: ended.stdout,
            stderr: ended.stderr,
        })
    }

    /// Whether it has ended, without waiting.
    ///
    /// # Errors
    /// The system cannot tell.
    pub fn ended(&mut self) -> Result<Option<ExitStatus>, ProgramError> {
        self.child.try_wait().map_err(io("wait for a program"))
    }

    fn left(&self, name: &str) -> String {
        let bytes = std::fs::read(self.program.directory.join(name)).unwrap_or_default();
        String::from_utf8_lossy(&bytes).into_owned()
    }

    /// Stops it first as a user would, which lets it clean up, and then everything in its group.
    fn stop(&mut self) {
        use nix::sys::signal::{Signal, killpg};
        let Ok(group) = i32::try_from(self.child.id()).map(nix::unistd::Pid::from_raw) else {
            return;
        };
        let _ = killpg(group, Signal::SIGTERM);
        let end = Instant::now() + STOP;
        while Instant::now() < end && matches!(self.child.try_wait(), Ok(None)) {
            std::thread::sleep(POLL);
        }
        let _ = killpg(group, Signal::SIGKILL);
        let _ = self.child.wait();
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // Left early because something else failed: nothing of it may stay behind.
        if matches!(self.child.try_wait(), Ok(None)) {
            self.stop();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn scratch(name: &str) -> PathBuf {
        let directory = std::env::temp_dir().join(format!("causeway-bench-{}-{name}", std::process::id()));
        std::fs::create_dir_all(&directory).unwrap();
        directory
    }

    #[test]
    fn a_failure_tells_command_directory_status_and_both_outputs() {
        let directory = scratch("failure");
        let program = Program::new(
            "echo out; echo err >&2; exit 3",
            &directory,
            Duration::from_secs(20),
        );
        let text = program.succeed().unwrap_err().to_string();
        for part in [
            "exit 3",
            "exit status: 3",
            "stdout:\nout",
            "stderr:\nerr",
            &directory.display().to_string(),
        ] {
            assert!(text.contains(part), "{part:?} is missing in {text}");
        }
        std::fs::remove_dir_all(directory).unwrap();
    }

    #[test]
    fn a_program_whose_outputs_had_no_room_is_not_said_to_have_ended_without_a_reason() {
        use std::os::unix::process::ExitStatusExt;
        let failed = |directory: &str| ProgramError::Failed {
            command: String::new(),
            directory: directory.to_owned(),
            status: ExitStatus::from_raw(1 << 8),
            stdout: String::new(),
            stderr: String::new(),
        };
        // /proc never has room.
        let reason = failed("/proc").reason();
        assert!(reason.contains("the disk of /proc is full"), "{reason}");
        assert_eq!(failed("/nowhere").reason(), "it ended with exit status: 1");
    }

    #[test]
    fn a_program_that_is_told_to_stop_ends_with_its_children() {
        let directory = scratch("stop");
        let stop = Arc::new(AtomicBool::new(false));
        let line = "echo begun; sleep 1000 & wait";
        let running = Program::new(line, &directory, Duration::from_secs(500)).until(&stop);
        let running = running.start().unwrap();
        stop.store(true, Ordering::Relaxed);
        let error = running.end().unwrap_err();
        assert!(matches!(error, ProgramError::Stopped { .. }), "{error}");
        std::fs::remove_dir_all(directory).unwrap();
    }

    #[test]
    fn a_program_over_its_deadline_is_stopped_with_its_children_and_named() {
        let directory = scratch("deadline");
        let program = Program::new(
            "echo begun; sleep 1000 & wait",
            &directory,
            Duration::from_millis(300),
        );
        let text = program.run().unwrap_err().to_string();
        assert!(
            text.contains("deadline of 0 s") && text.contains("begun"),
            "{text}"
        );
        std::fs::remove_dir_all(directory).unwrap();
    }
}
