//! `causeway node-exec`: the far end of the remote start. Runs the command that the agent requests, and
//! relays the command's streams over its own standard input and output; when its input or the command ends,
//! it ends every process below it before it exits.

use super::frame::{Frame, FrameError, MAX_DATA, Request, Started};
use super::guard::{Guarded, HURRY, Outcome, TO_GROUP};
use super::lease::{Held, Lease};
use causeway_batch::System;
use causeway_control::audit::MAX_TEXT;
use causeway_mpis::preload::as_here;
use causeway_wire::env;
use nix::sys::signal::Signal;
use nix::unistd::{User, getuid, pipe2};
use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::{self, Read, Write};
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

/// The request comes as a frame.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// Where the gateway that started this very process serves commands; without it, `start-node` reads what
    /// this one says.
    #[arg(long)]
    control: Option<PathBuf>,
    /// The site of this node.
    #[arg(long)]
    site: Option<String>,
    #[command(flatten)]
    mpi: MpiWords,
    /// The batch system in whose allocation this runs.
    #[arg(long)]
    batch: Option<System>,
    /// A word of the command that makes another one a part of the allocation, given once for each.
    #[arg(long, allow_hyphen_values = true)]
    task: Vec<String>,
    /// Slots of the allocation's nodes, in its order.
    #[arg(long, value_delimiter = ',')]
    slots: Vec<u32>,
    /// Seconds without a word from `start-node` after which all is ended: its host may be gone, and nobody
    /// else would tell.
    #[arg(long, value_name = "SECONDS")]
    lease: Option<u64>,
    /// Bytes of files that the other site's job may send here.
    #[arg(long, value_name = "BYTES")]
    files: Option<u64>,
}

/// How this site starts MPI programs, by its gateway's configuration.
#[derive(Debug, Default, Clone, PartialEq, Eq, clap::Args)]
pub struct MpiWords {
    /// `start` in `[mpi]`.
    #[arg(long = "mpi-start", value_name = "WORDS", allow_hyphen_values = true)]
    pub start: Option<String>,
    /// `setup` in `[mpi]`.
    #[arg(long = "mpi-setup", value_name = "COMMAND", allow_hyphen_values = true)]
    pub setup: Option<String>,
}

impl MpiWords {
    /// Returns the words as options of this very command.
    pub fn options(&self) -> impl Iterator<Item = String> {
        let options = [("--mpi-start", &self.start), ("--mpi-setup", &self.setup)];
        let options = options.map(|(option, text)| text.as_ref().map(|text| format!("{option}={text}")));
        options.into_iter().flatten()
    }

    /// Sets the words for a command as variables, and removes variables that stand for missing ones: they are
    /// known only here.
    fn set(&self, command: &mut Command) {
        for (name, text) in [(env::MPI_START, &self.start), (env::MPI_SETUP, &self.setup)] {
            match text {
                Some(text) => command.env(name, text),
                None => command.env_remove(name),
            };
        }
    }
}

#[derive(Debug, thiserror::Error)]
enum NodeError {
    #[error("{0}")]
    Frame(#[from] FrameError),
    #[error("node-exec expects a request on its standard input; only 'causeway start-node' starts it")]
    NoRequest,
    #[error(
        "{} is not installed there; causeway must have the same path at every site, unless each site runs its own MPI (--at, --own-mpi)",
        .0.display()
    )]
    NoShim(PathBuf),
    #[error("run {shell}: {reason}")]
    Shell { shell: String, reason: String },
    #[error("become the guard of the job's processes: {0}")]
    Guard(io::Error),
}

/// The output for frames: each is written as a whole under the lock.
type Output = Arc<Mutex<File>>;

/// Runs one request. As a process it always succeeds: what happened is in the last frame.
pub fn main(args: Args) -> ExitCode {
    // SAFETY: descriptors 0 and 1 are open (std sees to it), and only these two owners use them.
    let (input, output) = unsafe { (File::from_raw_fd(0), Arc::new(Mutex::new(File::from_raw_fd(1)))) };
    let last = match run(input, &output, &args) {
        Ok(status) => Frame::Exit(status),
        Err(error) => Frame::Error(error.to_string()),
    };
    // If this fails, nobody is left to be told.
    let _ = send(&output, &last);
    ExitCode::SUCCESS
}

fn run(mut input: File, output: &Output, args: &Args) -> Result<u8, NodeError> {
    send(output, &Frame::Hello).map_err(FrameError::Io)?;
    let request = loop {
        match Frame::read(&mut input)? {
            Some(Frame::Request(request)) => break request,
            // The request took longer to arrive than a renewal.
            Some(Frame::Alive) => {}
            _ => return Err(NodeError::NoRequest),
        }
    };
    tell_started(&request, output, args.control.as_deref());
    let (shell, mut command) = command(&request, args)?;
    if let Some(system) = args.batch {
        leave_allocation(&mut command, system, request.is_of_site.then_some(&args.slots));
    }
    let ((stdin, feeder), (stdout_end, stdout), (stderr_end, stderr)) = (pipe()?, pipe()?, pipe()?);
    command.stdin(stdin).stdout(stdout).stderr(stderr);
    let ours = [
        0,
        1,
        feeder.as_raw_fd(),
        stdout_end.as_raw_fd(),
        stderr_end.as_raw_fd(),
    ];
    let (guarded, order) = Guarded::start(command, &ours, || ()).map_err(NodeError::Guard)?;
    // Up to here, the process has one thread. A process that sshd started sees the end of its input.
    if args.control.is_some() {
        super::parent::end_with_parent().map_err(NodeError::Guard)?;
    }
    let credit = Arc::clone(output);
    let (chunks, chunk) = std::sync::mpsc::channel();
    thread::spawn(move || feed(Some(feeder.into()), &chunk, &credit));
    // The channel needs no bound: the agent's window already bounds what is in flight.
    let order = Held::new(order);
    let lease = args
        .lease
        .map(|seconds| order.lease(Duration::from_secs(seconds)));
    let lease = lease.transpose().map_err(NodeError::Guard)?;
    thread::spawn(move || take_input(input, &chunks, &order, lease.as_ref()));
    let pumps = [
        pump(stdout_end, output, Frame::Stdout),
        pump(stderr_end, output, Frame::Stderr),
    ];
    let outcome = guarded.outcome();
    for pump in pumps {
        // All writers have ended, so each pump has seen the end, or will.
        let _ = pump.join();
    }
    match outcome {
        Outcome::Status(status) => Ok(status),
        Outcome::NotStarted(reason) => Err(NodeError::Shell { shell, reason }),
    }
}

/// Removes the batch system's variables from this process, and lets a site's own command find the allocation.
fn leave_allocation(command: &mut Command, system: System, slots: Option<&Vec<u32>>) {
    let own = std::env::vars_os().map(|(name, _)| name);
    for name in own.filter(|name| system.is_of_a_process(name)) {
        command.env_remove(name);
    }
    if let Some(slots) = slots {
        command.envs(system.script_variables(slots, |name| std::env::var_os(name)));
    }
}

/// Reports what runs here, for the audit of the site.
fn tell_started(request: &Request, output: &Output, control: Option<&Path>) {
    let command = request.command.as_os().to_string_lossy();
    let started = Started {
        pid: std::process::id(),
        command: command[..command.floor_char_boundary(MAX_TEXT)].to_owned(),
    };
    match control {
        Some(control) => super::tell_gateway(control, std::process::id(), started),
        None => drop(send(output, &Frame::Started(started))),
    }
}

fn pipe() -> Result<(OwnedFd, OwnedFd), NodeError> {
    pipe2(nix::fcntl::OFlag::O_CLOEXEC).map_err(|error| NodeError::Guard(error.into()))
}

const SH: &str = "/bin/sh";

/// Shells that understand lines for sh.
const LIKE_SH: [&str; 7] = ["sh", "bash", "dash", "ash", "ksh", "mksh", "zsh"];

/// Paths of the shells that understand what the launcher of a csh user writes.
const LIKE_CSH: [&str; 4] = ["/bin/tcsh", "/usr/bin/tcsh", "/bin/csh", "/usr/bin/csh"];

/// What a line for csh contains, as Open MPI writes it.
const OF_CSH: [&str; 2] = ["set path = (", "( $?LD_LIBRARY_PATH == "];

/// The variable that contains the line to run, for a shell that would read it differently.
const COMMAND: &str = "CAUSEWAY_COMMAND";

/// Makes any shell have sh run the line in [`COMMAND`].
const HAVE_SH_RUN_IT: &str = "exec /bin/sh -c 'c=$CAUSEWAY_COMMAND; unset CAUSEWAY_COMMAND; eval \"$c\"'";

/// The shell that reads a line, and what that shell is given. Launchers write lines for sh, unless their
/// user's own shell is csh; the login shell here may be any, and is left out if it has already done its work.
fn reader(
    login: &Path,
    line: &OsStr,
    has_logged_in: bool,
    exists: impl Fn(&Path) -> bool,
) -> (PathBuf, OsString) {
    let name = login.file_name().unwrap_or_default().to_string_lossy();
    let text = line.to_string_lossy();
    let is_of_csh = OF_CSH.iter().any(|part| text.contains(part));
    let csh = LIKE_CSH.iter().map(Path::new).find(|shell| exists(shell));
    match (is_of_csh, csh) {
        (true, _) if name.ends_with("csh") => (login.to_owned(), line.to_owned()),
        (true, Some(csh)) => (csh.to_owned(), line.to_owned()),
        _ if LIKE_SH.contains(&&*name) => (login.to_owned(), line.to_owned()),
        _ if has_logged_in => (SH.into(), line.to_owned()),
        _ => (login.to_owned(), HAVE_SH_RUN_IT.into()),
    }
}

/// The user's shell with the request, as sshd would start it.
fn command(request: &Request, args: &Args) -> Result<(String, Command), NodeError> {
    let preload = request.environment.iter().find(|(name, _)| name == "LD_PRELOAD");
    let preload = preload.map_or(&[][..], |(_, value)| value.as_os().as_bytes());
    let own = std::env::current_exe().ok().filter(|_| request.is_of_site);
    let here = own.as_deref().and_then(Path::parent);
    let preload = as_here(OsStr::from_bytes(preload), here, Path::exists).map_err(NodeError::NoShim)?;
    let login = User::from_uid(getuid()).ok().flatten().map(|user| user.shell);
    let login = login.filter(|shell| shell.exists()).unwrap_or_else(|| SH.into());
    // A process that a remote shell has started already has the login shell's environment.
    let has_logged_in = args.lease.is_some() && args.batch.is_none();
    let (shell, words) = reader(&login, request.command.as_os(), has_logged_in, Path::exists);
    let environment = request.environment.iter();
    let environment = environment.map(|(name, value)| (name.as_str(), value.as_os()));
    let mut command = match args.task.split_first() {
        None => Command::new(&shell),
        // The batch system's own commands run without our libraries.
        Some((program, arguments)) => {
            let mut preloaded = OsString::from("LD_PRELOAD=");
            preloaded.push(&preload);
            let mut command = Command::new(program);
            command.args(arguments);
            if !preload.is_empty() {
                command.arg("/usr/bin/env").arg(preloaded);
            }
            command.arg(&shell);
            command
        }
    };
    if words == HAVE_SH_RUN_IT {
        command.env(COMMAND, request.command.as_os());
    }
    command.arg("-c").arg(words);
    command.envs(environment.filter(|(name, _)| *name != "LD_PRELOAD"));
    if args.task.is_empty() && !preload.is_empty() {
        command.env("LD_PRELOAD", &preload);
    }
    command.envs(own.map(|own| (env::OWN_PROGRAM, own)));
    // This is not taken from the request: it is known only here.
    match &args.site {
        Some(site) => command.env(env::SITE, site),
        None => command.env_remove(env::SITE),
    };
    args.mpi.set(&mut command);
    match args.files {
        Some(bytes) => command.env(env::ACCEPT_FILES, bytes.to_string()),
        None => command.env_remove(env::ACCEPT_FILES),
    };
    let login = std::env::var_os("PATH").unwrap_or_else(|| "/usr/local/bin:/usr/bin:/bin".into());
    let path = request.path.iter().map(|entry| entry.as_os());
    let path: Vec<&OsStr> = path.chain([login.as_os_str()]).collect();
    command.env("PATH", path.join(OsStr::new(":")));
    // As under sshd: a daemon that kills its process group, as Intel's does, must not kill its guard. SAFETY:
    // setsid is one system call; nothing is allocated or locked between fork and exec.
    unsafe {
        command.pre_exec(|| Ok(nix::unistd::setsid().map(drop)?));
    }
    Ok((shell.display().to_string(), command))
}

/// Reads this process's input to its end, whatever the command does with its own input. The end of `order` is
/// the order to kill, and so is the end of the lease.
fn take_input(
    mut input: File,
    chunks: &std::sync::mpsc::Sender<Vec<u8>>,
    order: &Held<File>,
    lease: Option<&Lease>,
) {
    loop {
        let frame = Frame::read(&mut input);
        if let Some(lease) = lease {
            lease.renew();
        }
        match frame {
            // A command that no longer reads drops its end of the channel; this is no reason to stop reading
            // here.
            Ok(Some(Frame::Stdin(data))) => drop(chunks.send(data)),
            Ok(Some(Frame::StdinEnd)) => drop(chunks.send(Vec::new())),
            // If the guard has ended, it needs no order.
            Ok(Some(Frame::Hurry)) => order.with(|order| drop(order.write_all(&[HURRY]))),
            Ok(Some(Frame::Interrupt)) => {
                order.with(|order| drop(order.write_all(&[TO_GROUP | Signal::SIGINT as u8])));
            }
            Ok(Some(Frame::Error(_))) | Ok(None) | Err(_) => break,
            Ok(Some(_)) => {}
        }
    }
    order.end();
}

/// Writes to the command's standard input; an empty chunk closes it.
fn feed(mut stdin: Option<File>, chunks: &std::sync::mpsc::Receiver<Vec<u8>>, credit: &Output) {
    for data in chunks {
        if data.is_empty() || stdin.as_mut().is_none_or(|stdin| stdin.write_all(&data).is_err()) {
            stdin = None;
        }
        let _ = send(credit, &Frame::Credit(data.len() as u32));
    }
}

/// Sends what the command prints, in a thread that ends when all who could print have ended.
fn pump(from: OwnedFd, output: &Output, frame: fn(Vec<u8>) -> Frame) -> thread::JoinHandle<()> {
    let (mut from, output) = (File::from(from), Arc::clone(output));
    thread::spawn(move || {
        let mut buffer = vec![0; MAX_DATA];
        loop {
            match from.read(&mut buffer) {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Ok(0) | Err(_) => return,
                // If the agent has gone, the pipe is still emptied, so that the command can end.
                Ok(read) => drop(send(&output, &frame(buffer[..read].to_vec()))),
            }
        }
    })
}

fn send(output: &Output, frame: &Frame) -> io::Result<()> {
    frame.write(&mut *output.lock().unwrap_or_else(|poisoned| poisoned.into_inner()))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What a line prints for a user of this shell, including whether it leaves its variable in the
    /// environment.
    fn printed(login: &str, line: &str, has_logged_in: bool) -> String {
        let (shell, words) = reader(Path::new(login), OsStr::new(line), has_logged_in, Path::exists);
        let output = Command::new(shell)
            .arg("-c")
            .arg(words)
            .env(COMMAND, line)
            .output()
            .unwrap();
        String::from_utf8_lossy(&output.stdout).into_owned()
    }

    #[test]
    fn a_launchers_line_of_sh_runs_whatever_the_login_shell_is() {
        let line = "PATH=/opt/mpi/bin:$PATH ; export PATH ; X='it'\\''s! \\\\' && printf '%s %s' \"$X\" \"${PATH%%:*}\"";
        for login in ["/bin/sh", "/bin/bash", "/bin/tcsh", "/usr/bin/fish"] {
            for has_logged_in in [false, true] {
                assert_eq!(
                    printed(login, line, has_logged_in),
                    "it's! \\\\ /opt/mpi/bin",
                    "{login}"
                );
            }
        }
    }

    #[test]
    fn a_launchers_line_of_csh_runs_where_there_is_a_csh() {
        let line = "set path = ( /opt/mpi/bin $path ) ; printf '%s' \"$path[1]\"";
        for login in ["/bin/bash", "/bin/tcsh", "/usr/bin/fish"] {
            assert_eq!(printed(login, line, false), "/opt/mpi/bin", "{login}");
        }
        let nowhere = |_: &Path| false;
        let (shell, _) = reader(Path::new("/bin/bash"), OsStr::new(line), false, nowhere);
        assert_eq!(shell, Path::new("/bin/bash"), "its message says what is missing");
    }

    #[test]
    fn a_login_shell_that_reads_sh_runs_the_line_itself_and_keeps_what_only_it_can() {
        let line = OsStr::new("orted -mca ess env");
        let given = |login: &str, has| reader(Path::new(login), line, has, Path::exists);
        assert_eq!(given("/bin/bash", true), ("/bin/bash".into(), line.to_owned()));
        assert_eq!(given("/usr/bin/fish", true), ("/bin/sh".into(), line.to_owned()));
        assert_eq!(given("/usr/bin/fish", false).0, Path::new("/usr/bin/fish"));
    }
}
