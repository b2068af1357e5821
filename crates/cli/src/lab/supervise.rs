//! The process a lab lives in: starts it, waits for what ends it, stops it.

use super::gateways::{self, Gateways};
use super::{Failure, Shape, exit_code};
use crate::say;
use causeway_lab::{Ended, Lab, LabOptions, NodeChild, NodeCommand};
use std::ffi::OsString;
use std::fs::File;
use std::io::{BufRead, BufReader, Read, Seek};
use std::os::unix::process::CommandExt;
use std::process::{Command, ExitCode, Stdio};
use std::time::Duration;

/// How often the gateways are looked after.
const CHECK_EVERY: Duration = Duration::from_secs(1);

/// What a background supervisor prints once its lab is up.
const READY: &str = "ready";

/// Runs a command on the first site's head node of a new lab; its exit status is ours.
pub fn run(shape: &Shape, command: &[OsString]) -> Result<ExitCode, Failure> {
    let (mut lab, mut gateways) = start(shape)?;
    let Some(site) = lab.sites().first() else {
        return Err(Failure::usage("the scenario has no site"));
    };
    let mut child = lab.spawn(NodeCommand {
        node: site.head.clone(),
        argv: command.to_vec(),
        env: gateways::environment(),
        ..NodeCommand::default()
    })?;
    let mut ended = None;
    loop {
        match lab.serve(Some(&mut child), Some(CHECK_EVERY))? {
            Ended::Child(status) => {
                drop(gateways);
                lab.stop();
                return Ok(ended.unwrap_or_else(|| exit_code(status)));
            }
            Ended::Timeout => gateways.iter_mut().for_each(Gateways::tell_ended),
            Ended::Down => return Err(Failure::new("the grid was taken down while the command ran")),
            Ended::Signal(signal) => {
                // A second one, or one the command does not end by, ends the lab and all in it.
                if ended.is_some() {
                    return Ok(code_of(signal));
                }
                pass_on(&child, signal);
                ended = Some(code_of(signal));
            }
        }
    }
}

/// The terminal sends Ctrl-C to the command as well; other signals came to this process alone.
fn pass_on(child: &NodeChild, signal: i32) {
    if signal != nix::libc::SIGINT && signal != nix::libc::SIGQUIT {
        let _ = child.signal(signal);
    }
}

fn code_of(signal: i32) -> ExitCode {
    ExitCode::from(u8::try_from(128 + signal).unwrap_or(1))
}

/// Keeps a lab until it is taken down or this process gets a signal.
pub fn foreground(shape: &Shape) -> Result<ExitCode, Failure> {
    let (mut lab, mut gateways) = start(shape)?;
    if let Err(status) = say::output(READY) {
        return Ok(status);
    }
    loop {
        match lab.serve(None, Some(CHECK_EVERY))? {
            Ended::Timeout => gateways.iter_mut().for_each(Gateways::tell_ended),
            _ => return Ok(ExitCode::SUCCESS),
        }
    }
}

/// Starts a supervisor of its own session and returns when its lab is up.
pub fn background(shape: &Shape) -> Result<ExitCode, Failure> {
    // Found here, so that mistakes are told at once.
    let scenario = shape.scenario()?;
    let name = shape.name.clone().unwrap_or(scenario.name);
    let fail = |error: std::io::Error| Failure::new(format!("start the supervisor: {error}"));
    let mut messages = File::from(
        nix::sys::memfd::memfd_create(c"messages", nix::sys::memfd::MFdFlags::MFD_CLOEXEC)
            .map_err(|errno| fail(errno.into()))?,
    );
    let exe = std::env::current_exe().map_err(fail)?;
    let mut supervisor = Command::new(exe)
        .args(["lab", "up", "--foreground"])
        .args(std::env::args_os().skip(3))
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(messages.try_clone().map_err(fail)?)
        .process_group(0)
        .spawn()
        .map_err(fail)?;
    let mut line = String::new();
    if let Some(output) = supervisor.stdout.take() {
        BufReader::new(output).read_line(&mut line).map_err(fail)?;
    }
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

fn start(shape: &Shape) -> Result<(Lab, Option<Gateways>), Failure> {
    let scenario = shape.scenario()?;
    let options = LabOptions {
        name: shape.name.clone(),
        ..LabOptions::default()
    };
    let lab = Lab::start(&scenario, &options)?;
    let gateways = match shape.no_gateways {
        true => None,
        false => Some(Gateways::start(&lab, shape.logs.as_deref(), &shape.grid)?),
    };
    Ok((lab, gateways))
}
