//! `causeway agent [SSH OPTIONS] HOST COMMAND...`: what MPI launchers call in place of ssh.
//!
//! Asks the gateway of this site to reach the node, wherever it is, and passes on standard input, output,
//! error and the exit status as ssh would. When it ends, for whatever reason, everything that it started on
//! the node ends, too.

use super::frame::{Frame, FrameError, MAX_DATA, Request};
use super::parts::{self, Part};
use super::stdin::{self, Window};
use super::{AGENT_NAME, ending};
use causeway_control::{self as control, ControlError};
use causeway_host::say;
use causeway_mpis::names::DAEMON_FAMILIES;
use std::ffi::{OsStr, OsString};
use std::io::{self, Write};
use std::os::unix::net::UnixStream;
use std::process::ExitCode;
use std::sync::{Arc, Mutex};

/// Directories of the launcher, for the daemons of an MPI that is not in the `PATH` of a login.
pub const PATH_ENV: &str = "CAUSEWAY_LAUNCHER_PATH";

/// The status with which ssh reports its own failures: launchers know it.
const FAILED: u8 = 255;

/// Letters of ssh's options that take a value, from ssh(1).
const VALUED: &[u8] = b"BbcDEeFIiJLlmOoPpQRSWw";

/// Variables that are passed to the daemons, and through them to the ranks. Their values are the same at
/// every site.
const SENT: &[&str] = &[
    causeway_wire::env::GRID,
    causeway_wire::env::TOKEN,
    causeway_wire::env::DEBUG,
    causeway_wire::env::NOT_FOR_RANKS,
    "LD_PRELOAD",
    "LD_LIBRARY_PATH",
    "ASAN_OPTIONS",
];

/// How the names of variables for the library of collectives begin.
const COLLECTIVES: &str = "CAUSEWAY_COLLECTIVES_";

/// Arguments as ssh takes them.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// [ssh options] HOST COMMAND...
    #[arg(
        trailing_var_arg = true,
        allow_hyphen_values = true,
        value_name = "SSH ARGUMENTS"
    )]
    pub words: Vec<OsString>,
}

#[derive(Debug, thiserror::Error)]
enum AgentError {
    #[error("usage: causeway agent [ssh options] HOST COMMAND...")]
    Usage,
    #[error(
        "{} is not set: only an MPI launcher under 'causeway run' starts the agent",
        causeway_wire::env::TOKEN
    )]
    NoJob,
    #[error("{0:?} is not UTF-8")]
    Text(OsString),
    #[error("{0}")]
    Control(#[from] ControlError),
    #[error("{0}")]
    Frame(#[from] FrameError),
    #[error("{0}")]
    Io(#[from] io::Error),
    #[error("{0}")]
    Node(String),
    /// The command was running, or about to run.
    #[error("{0}")]
    Lost(Box<AgentError>),
    #[error(
        "the connection ended before the command did (the node, its gateway or the tunnel to it is down)"
    )]
    Cut,
}

/// The arguments, if this process was called as [`AGENT_NAME`].
pub fn called_by_name() -> Option<Vec<OsString>> {
    let mut words = std::env::args_os();
    let own = words.next()?;
    (std::path::Path::new(&own).file_name() == Some(OsStr::new(AGENT_NAME))).then(|| words.collect())
}

/// Runs the command on the node; the exit status is the command's, or 255 if it could not be run.
pub fn main(args: Args) -> ExitCode {
    ending::follow_the_launcher();
    let Some((host, command)) = split(&args.words) else {
        say::error(format_args!("causeway: {}", AgentError::Usage));
        return ExitCode::from(FAILED);
    };
    match run(&host, command) {
        Ok(status) => ExitCode::from(status),
        Err(error) => {
            say::error(format_args!(
                "causeway: start on node {}: {error}",
                host.to_string_lossy()
            ));
            let keeps_the_job = matches!(error, AgentError::Lost(_)) || parts::is_of_hydra();
            if keeps_the_job {
                end_launcher();
            }
            ExitCode::from(FAILED)
        }
    }
}

/// Finds host and command in ssh's arguments. Options have no effect here, because the site's own settings
/// apply.
fn split(words: &[OsString]) -> Option<(OsString, &[OsString])> {
    let mut rest = words;
    while let Some((word, more)) = rest.split_first() {
        let bytes = word.as_encoded_bytes();
        if bytes == b"--" {
            rest = more;
            break;
        }
        if bytes.first() != Some(&b'-') || bytes.len() == 1 {
            break;
        }
        // A letter that takes a value ends a group of letters; the value is the rest of the word, or the next
        // word.
        let valued = bytes[1..].iter().position(|letter| VALUED.contains(letter));
        let value_is_next = valued.is_some_and(|at| at + 2 == bytes.len());
        rest = if value_is_next { more.get(1..)? } else { more };
    }
    let (host, command) = rest.split_first()?;
    // user@host: which account is used is for the site to decide, like other options.
    let host = host.to_str().map_or(host.clone(), |host| {
        host.rsplit('@').next().unwrap_or(host).into()
    });
    (!command.is_empty()).then_some((host, command))
}

fn run(host: &OsStr, command: &[OsString]) -> Result<u8, AgentError> {
    let token = std::env::var(causeway_wire::env::TOKEN).map_err(|_| AgentError::NoJob)?;
    let node = text(host)?;
    let request = request(command);
    let (_, stream) = control::ask(
        &control::socket(),
        &control::Request::Spawn {
            token,
            node: node.clone(),
            takes_connection: control::takes_connections(),
        },
    )?;
    let mut reader = stream.try_clone()?;
    match Frame::read(&mut reader)? {
        Some(Frame::Hello) => {}
        Some(Frame::Error(reason)) => return Err(AgentError::Node(reason)),
        _ => return Err(AgentError::Cut),
    }
    let mut writer = stream;
    Frame::Request(Box::new(request)).write(&mut writer)?;
    parts::tell(&node, Part::Runs);
    let writer = Arc::new(Mutex::new(writer));
    ending::pass_hurry_on(&writer)?;
    let window = Arc::new(Window::default());
    let filled = Arc::clone(&window);
    std::thread::spawn(move || stdin::send(&writer, &filled));
    let status = relay(reader, &window).map_err(|error| {
        // The lost part is reported before the launcher learns about it, because the launcher may call this a
        // success.
        parts::tell(&node, Part::Lost);
        AgentError::Lost(Box::new(error))
    })?;
    parts::tell(&node, Part::Ended);
    Ok(status)
}

/// Ends the launcher. hydra does not watch its agents: without this, a node on which nothing starts delays
/// the job by a minute, and a lost one for ever. Every launcher obeys SIGTERM as the order to end the job
/// cleanly. Open MPI itself notices that an agent has started nothing.
fn end_launcher() {
    let launcher = nix::unistd::getppid();
    if launcher.as_raw() > 1 {
        let _ = nix::sys::signal::kill(launcher, nix::sys::signal::Signal::SIGTERM);
    }
}

/// Handles what the node sends, until the command's end.
fn relay(reader: UnixStream, window: &Window) -> Result<u8, AgentError> {
    let mut reader = io::BufReader::with_capacity(MAX_DATA, reader);
    loop {
        match Frame::read(&mut reader)?.ok_or(AgentError::Cut)? {
            // A launcher that no longer reads does not want the output; how the command ends still counts.
            Frame::Stdout(data) => drop(io::stdout().write_all(&data).and_then(|()| io::stdout().flush())),
            Frame::Stderr(data) => drop(io::stderr().write_all(&data)),
            Frame::Credit(bytes) => window.give_back(bytes as usize),
            Frame::Exit(status) => return Ok(status),
            Frame::Error(reason) => return Err(AgentError::Node(reason)),
            _ => return Err(AgentError::Cut),
        }
    }
}

/// Joins the words by blanks, as ssh does: this is what the remote shell gets.
fn request(command: &[OsString]) -> Request {
    let variables = std::env::vars_os();
    let environment = variables.filter_map(|(name, value)| {
        let name = name.to_str().filter(|name| is_sent(name))?.to_owned();
        Some((name, value.into()))
    });
    let path = std::env::var_os(PATH_ENV).unwrap_or_default();
    let path = std::env::split_paths(&path).filter(|entry| !entry.as_os_str().is_empty());
    Request {
        command: command.join(OsStr::new(" ")).into(),
        environment: environment.collect(),
        path: path.map(|entry| entry.into_os_string().into()).collect(),
        is_of_site: false,
    }
}

fn is_sent(name: &str) -> bool {
    let mut families = DAEMON_FAMILIES.iter().chain([&COLLECTIVES]);
    SENT.contains(&name) || families.any(|family| name.starts_with(family))
}

fn text(word: &OsStr) -> Result<String, AgentError> {
    word.to_str()
        .map(str::to_owned)
        .ok_or_else(|| AgentError::Text(word.to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn host_and_command(line: &str) -> Option<(String, String)> {
        let words: Vec<OsString> = line.split(' ').map(OsString::from).collect();
        let (host, command) = split(&words)?;
        let command: Vec<&str> = command.iter().map(|word| word.to_str().unwrap()).collect();
        Some((host.into_string().unwrap(), command.join(" ")))
    }

    #[test]
    fn ssh_options_are_skipped_wherever_their_values_stand() {
        let wanted = Some(("nancy-1".to_owned(), "orted -x -p 1".to_owned()));
        for options in [
            "",
            "-x ",
            "-q -p 22 ",
            "-xqp 22 ",
            "-p22 ",
            "-o BatchMode=yes -l user ",
            "-oBatchMode=yes -- ",
            "user@",
        ] {
            assert_eq!(
                host_and_command(&format!("{options}nancy-1 orted -x -p 1")),
                wanted,
                "{options}"
            );
        }
    }

    #[test]
    fn a_host_without_a_command_is_refused() {
        for line in ["nancy-1", "-x", "-p", "-p 22"] {
            assert_eq!(host_and_command(line), None, "{line}");
        }
    }

    #[test]
    fn only_what_is_the_same_at_every_site_is_sent() {
        for name in [
            "CAUSEWAY_GRID",
            "CAUSEWAY_COLLECTIVES_GROUPS",
            "LD_PRELOAD",
            "OMPI_MCA_btl",
            "I_MPI_ROOT",
        ] {
            assert!(is_sent(name), "{name}");
        }
        for name in [
            "CAUSEWAY_CONTROL",
            "PATH",
            "HOME",
            "XDG_RUNTIME_DIR",
            "HYDRA_HOST_FILE",
        ] {
            assert!(!is_sent(name), "{name}");
        }
    }
}
