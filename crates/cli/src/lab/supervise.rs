//! The process that a lab lives in: starts it, waits for what ends it, stops it.

use super::gateways::{self, Gateways};
use super::{Failure, Shape, code_of, exit_code, failed};
use causeway_host::say;
use causeway_lab::{Ended, Lab, LabError, LabOptions, NodeCommand};
use causeway_service::signals::heeded;
use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::signal::{Signal, kill};
use nix::sys::signalfd::{SfdFlags, SignalFd};
use nix::unistd::Pid;
use std::ffi::OsString;
use std::fs::File;
use std::io::{Read, Seek};
use std::os::fd::AsFd;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitCode, Stdio};
use std::time::Duration;

/// How often the gateways are checked.
const CHECK_EVERY: Duration = Duration::from_secs(1);

/// What a background supervisor prints once its lab is up.
const READY: &str = "ready";

/// Runs a command on the first site's head node of a new lab; its exit status is ours.
pub fn run(shape: &Shape, command: &[OsString]) -> Result<ExitCode, Failure> {
    let (mut lab, mut gateways) = start(shape)?;
    let Some(site) = lab.sites().first() else {
        return Err(Failure::usage("the scenario has no site"));
    };
    // A terminal sends Ctrl-C to the command as well, once it runs.
    if let Some(signal) = lab.poll_signal() {
        return Err(failed(LabError::Signal(signal.number)));
    }
    let child = lab.spawn(NodeCommand {
        node: site.head.clone(),
        argv: command.to_vec(),
        env: gateways::environment(),
        ..NodeCommand::default()
    });
    let mut child = child.map_err(failed)?;
    let mut ended = None;
    loop {
        match lab.serve(Some(&mut child), Some(CHECK_EVERY)).map_err(failed)? {
            Ended::Child(status) => {
                drop(gateways);
                lab.stop();
                return Ok(ended.unwrap_or_else(|| exit_code(status)));
            }
            Ended::Timeout => gateways.iter_mut().for_each(Gateways::tell_ended),
            Ended::Down => return Err(Failure::new("the grid was taken down while the command ran")),
            Ended::Signal(signal) => {
                // A second signal, or one by which the command does not end, ends the lab and everything in
                // it.
                let code = ExitCode::from(code_of(signal.number));
                if ended.is_some() {
                    return Ok(code);
                }
                if !signal.by_terminal {
                    let _ = child.signal(signal.number);
                }
                ended = Some(code);
            }
        }
    }
}

/// Keeps a lab until it is taken down or this process gets a signal.
pub fn foreground(shape: &Shape) -> Result<ExitCode, Failure> {
    let (mut lab, mut gateways) = start(shape)?;
    if let Err(status) = say::output(READY) {
        return Ok(status);
    }
    loop {
        match lab.serve(None, Some(CHECK_EVERY)).map_err(failed)? {
            Ended::Timeout => gateways.iter_mut().for_each(Gateways::tell_ended),
            _ => return Ok(ExitCode::SUCCESS),
        }
    }
}

/// Starts a supervisor in a session of its own, and returns when its lab is up.
pub fn background(shape: &Shape) -> Result<ExitCode, Failure> {
    // Found here, so that mistakes are reported at once.
    let scenario = shape.scenario()?;
    let name = shape.name.clone().unwrap_or(scenario.name);
    let fail = |error: std::io::Error| Failure::new(format!("start the supervisor: {error}"));
    let mut messages = File::from(
        nix::sys::memfd::memfd_create(c"messages", nix::sys::memfd::MFdFlags::MFD_CLOEXEC)
            .map_err(|errno| fail(errno.into()))?,
    );
    let exe = std::env::current_exe().map_err(fail)?;
    // Before there is a supervisor, because a signal that ended only this process would leave the supervisor
    // and its lab behind. The supervisor inherits the signals blocked, and also reads them from a descriptor.
    let signals = block_ends().map_err(fail)?;
    let mut supervisor = Command::new(exe)
        .args(["lab", "up", "--foreground"])
        .args(std::env::args_os().skip(3))
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(messages.try_clone().map_err(fail)?)
        .process_group(0)
        .spawn()
        .map_err(fail)?;
    let line = match first_line(&mut supervisor, &signals).map_err(fail)? {
        Said::Line(line) => line,
        Said::Signal(number) => {
            // The supervisor is in a process group of its own, which Ctrl-C does not reach.
            if let Ok(pid) = i32::try_from(supervisor.id()) {
                let _ = kill(Pid::from_raw(pid), Signal::SIGTERM);
            }
            let _ = supervisor.wait();
            return Err(failed(LabError::Signal(number)));
        }
    };
    if line.trim() == READY {
        return Ok(say::result(format_args!(
            "{name} is up; stop it with: causeway lab down {name}"
        )));
    }
    let _ = supervisor.wait();
    let mut said = String::new();
    let _ = messages
        .rewind()
        .and_then(|()| messages.read_to_string(&mut said));
    Err(Failure::new(said.trim().trim_start_matches("causeway lab: ")))
}

enum Said {
    Line(String),
    /// This process was meanwhile told to end.
    Signal(i32),
}

/// Makes signals that would end this process readable from a descriptor.
fn block_ends() -> std::io::Result<SignalFd> {
    let ends = heeded(&[Signal::SIGINT, Signal::SIGTERM, Signal::SIGHUP]);
    ends.thread_block()?;
    let flags = SfdFlags::SFD_CLOEXEC | SfdFlags::SFD_NONBLOCK;
    Ok(SignalFd::with_flags(&ends, flags)?)
}

/// Waits for the first line of a supervisor, or for a signal.
fn first_line(supervisor: &mut Child, signals: &SignalFd) -> std::io::Result<Said> {
    let mut line = String::new();
    let Some(mut output) = supervisor.stdout.take() else {
        return Ok(Said::Line(line));
    };
    loop {
        let mut events = [output.as_fd(), signals.as_fd()].map(|fd| PollFd::new(fd, PollFlags::POLLIN));
        match poll(&mut events, PollTimeout::NONE) {
            Err(Errno::EINTR) => continue,
            polled => polled?,
        };
        if let Some(signal) = signals.read_signal()? {
            return Ok(Said::Signal(signal.ssi_signo as i32));
        }
        // The supervisor writes one line in one piece, or nothing.
        let mut bytes = [0; 64];
        let length = output.read(&mut bytes)?;
        line += &String::from_utf8_lossy(&bytes[..length]);
        return Ok(Said::Line(line));
    }
}

/// The directory in which this Causeway is installed: that of the tar, or cargo's.
fn installed() -> Option<PathBuf> {
    let own = std::env::current_exe().ok()?;
    let directory = own.parent()?;
    match directory.ends_with("lib/causeway") {
        true => directory.ancestors().nth(2).map(Path::to_owned),
        false => Some(directory.to_owned()),
    }
}

fn start(shape: &Shape) -> Result<(Lab, Option<Gateways>), Failure> {
    let scenario = shape.scenario()?;
    let options = LabOptions {
        name: shape.name.clone(),
        shown: installed().into_iter().collect(),
        ..LabOptions::default()
    };
    let lab = Lab::start(&scenario, &options).map_err(failed)?;
    let grid = [scenario.grid.as_slice(), &shape.grid].concat();
    let gateways = match shape.no_gateways {
        true => None,
        false => Some(Gateways::start(&lab, shape.logs.as_deref(), &grid)?),
    };
    Ok((lab, gateways))
}
