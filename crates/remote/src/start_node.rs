//! `causeway start-node --word=ssh --word={node} NODE`: how a gateway reaches a node of its own site.
//!
//! Standard input and output are the byte stream to and from the agent. Input is passed on to the site's
//! remote shell, with renewals of the node's lease between its frames; output is read frame by frame, so that
//! a shell that fails becomes one clear line at the user's terminal.

use super::frame::{Frame, FrameError};
use super::lease;
use super::node_exec::MpiWords;
use causeway_batch::System;
use causeway_control::spawned::REMOTE_SHELL;
use causeway_host::{for_any_shell, quoted};
use nix::errno::Errno;
use nix::sys::signal::{SigSet, SigmaskHow, Signal, kill, sigprocmask};
use nix::unistd::Pid;
use std::fs::File;
use std::io::{self, BufReader, Read};
use std::net::IpAddr;
use std::os::fd::FromRawFd;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitCode, ExitStatus, Stdio};
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// How long a batch system may take to start a process on a node of an allocation; usually it takes 0.1 s.
const BEGINS_WITHIN: Duration = Duration::from_secs(60);

/// Variables that sshd would set, and those of the language and time zone, which it would accept.
const LOGIN: [&str; 8] = ["PATH", "HOME", "USER", "LOGNAME", "SHELL", "LANG", "LC_ALL", "TZ"];

/// Most bytes that are kept of the shell's complaints, for the line to the user.
const COMPLAINT_BYTES: u64 = 8 * 1024;

/// See the module.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// A word of the site's remote shell, given once for each; {node} stands for the node's name. The command
    /// to run is added behind them, as one word.
    #[arg(long = "word", value_name = "WORD", default_values = REMOTE_SHELL)]
    pub shell: Vec<String>,
    /// Where the gateway serves commands, which is told what the node runs.
    #[arg(long)]
    pub control: Option<PathBuf>,
    /// The site of the node, as its gateway has it. Processes there find their place by it.
    #[arg(long)]
    pub site: Option<String>,
    /// How the site starts MPI programs.
    #[command(flatten)]
    pub mpi: MpiWords,
    /// The batch system whose command the shell is: the node belongs to an allocation.
    #[arg(long)]
    pub batch: Option<System>,
    /// Its configuration.
    #[arg(long)]
    pub batch_conf: Option<PathBuf>,
    /// A word of the command that makes another one a part of the allocation, given once for each.
    #[arg(long, allow_hyphen_values = true)]
    pub task: Vec<String>,
    /// Slots of the allocation's nodes, in its order.
    #[arg(long, value_delimiter = ',')]
    pub slots: Vec<u32>,
    /// Bytes of files that the other site's job may send to the node.
    #[arg(long, value_name = "BYTES")]
    pub files: Option<u64>,
    /// The node to start on.
    pub node: String,
}

#[derive(Debug, thiserror::Error)]
enum StartError {
    #[error("find causeway's own path: {0}")]
    Own(io::Error),
    #[error("run {0:?}: {1}")]
    Shell(String, io::Error),
    #[error("the site's remote shell is empty; see remote_shell in the gateway's configuration")]
    NoShell,
    #[error("{0:?} is not a node's name: the remote shell would take it for an option")]
    Option(String),
    #[error("{0}")]
    Frame(#[from] FrameError),
    #[error("{0}")]
    Refused(String),
    #[error(
        "the batch system started nothing on node {0} within {BEGINS_WITHIN:?}; its controller or the node may be down"
    )]
    Late(String),
    #[error("{0}")]
    Io(#[from] io::Error),
}

/// Runs until the node's side ends; failures are sent to the agent as a frame.
pub fn main(args: Args) -> ExitCode {
    // The gateway blocks its signals, since it reads them from a descriptor, and this process inherits the
    // mask. A pending signal would not end this process, neither the one for the gateway's death nor a user's
    // kill.
    let _ = sigprocmask(SigmaskHow::SIG_SETMASK, Some(&SigSet::empty()), None);
    // SAFETY: descriptor 1 is open (std sees to it), and only this owner uses it.
    let mut output = unsafe { File::from_raw_fd(1) };
    match run(&args, &mut output) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            let _ = Frame::Error(error.to_string()).write(&mut output);
            ExitCode::FAILURE
        }
    }
}

fn run(args: &Args, output: &mut File) -> Result<(), StartError> {
    super::parent::end_with_parent()?;
    if args.node.starts_with('-') {
        return Err(StartError::Option(args.node.clone()));
    }
    let own = std::env::current_exe().map_err(StartError::Own)?;
    // A remote shell that the site has chosen may lead to another account, on this host, too.
    if args.shell == REMOTE_SHELL && is_this_host(&args.node) {
        let mut here = Command::new(own);
        here.arg("node-exec");
        if let Some(control) = &args.control {
            here.arg("--control").arg(control);
        }
        if let Some(site) = &args.site {
            here.arg("--site").arg(site);
        }
        here.args(args.mpi.options());
        here.args(args.files.map(|bytes| format!("--files={bytes}")));
        return Err(StartError::Own(here.exec()));
    }
    let mut child = start(args, &own)?;
    if let Some(stdin) = child.stdin.take() {
        // SAFETY: descriptor 0 is open (std sees to it), and only this owner uses it.
        let input = unsafe { File::from_raw_fd(0) };
        lease::pass_on(input, stdin, lease::TERM)?;
    }
    let watch = |_| Begun::watch(&child, output.try_clone()?, args.node.clone());
    let begun = args.batch.map(watch).transpose()?;
    let complaints = child
        .stderr
        .take()
        .map(|stderr| std::thread::spawn(move || collect(stderr)));
    let result = child.stdout.take().map_or(Ok(false), |stdout| {
        copy(stdout, output, args.control.as_deref(), begun.as_ref())
    });
    let is_late = begun.is_some_and(Begun::end);
    // The shell's output has ended, so it has nothing more to do; if it has said nothing, its status is the
    // reason. A shell whose output cannot be passed on, or that does not end, must not delay this process.
    let status = wait_or_kill(&mut child, result.is_ok())?;
    let complaints = complaints
        .and_then(|thread| thread.join().ok())
        .unwrap_or_default();
    match result {
        Ok(true) => Ok(()),
        _ if is_late => Err(StartError::Late(args.node.clone())),
        Ok(false) => Err(StartError::Refused(complaint(&complaints, &args.shell, status))),
        Err(FrameError::Io(_)) if !complaints.is_empty() => {
            Err(StartError::Refused(complaint(&complaints, &args.shell, status)))
        }
        Err(error) => Err(error.into()),
    }
}

/// How long ssh may take to end after it has closed its output: it needs no more than a moment.
const FAREWELL: Duration = Duration::from_secs(2);

fn wait_or_kill(child: &mut Child, in_order: bool) -> io::Result<ExitStatus> {
    let deadline = Instant::now() + FAREWELL;
    while in_order && Instant::now() < deadline {
        if let Some(status) = child.try_wait()? {
            return Ok(status);
        }
        std::thread::sleep(Duration::from_millis(5));
    }
    match child.kill() {
        // The command cannot be ended from here, since it runs as another user (OAR's oarsh). It ends when
        // its input does.
        Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {
            Ok(ExitStatus::from_raw(libc::SIGKILL))
        }
        _ => child.wait(),
    }
}

fn start(args: &Args, own: &Path) -> Result<Child, StartError> {
    let words = shell_words(&args.shell, &args.node);
    let (program, arguments) = words.split_first().ok_or(StartError::NoShell)?;
    let mut command = Command::new(program);
    command
        .args(arguments)
        .arg(node_exec(args, own))
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    if let Some(system) = args.batch.filter(|system| system.hands_on_variables()) {
        as_a_login(&mut command, system, args.batch_conf.as_deref());
    }
    causeway_host::processes::prepare(&mut command);
    command
        .spawn()
        .map_err(|error| StartError::Shell(program.clone(), error))
}

/// The command line for the shell on the node, which may be any.
fn node_exec(args: &Args, own: &Path) -> String {
    let mut words = vec![own.to_string_lossy().into_owned(), "node-exec".to_owned()];
    words.push(format!("--lease={}", lease::TERM.as_secs()));
    if let Some(system) = args.batch {
        let slots: Vec<String> = args.slots.iter().map(u32::to_string).collect();
        words.push(format!("--batch={system}"));
        words.push(format!("--slots={}", slots.join(",")));
    }
    words.extend(args.task.iter().map(|word| format!("--task={word}")));
    words.extend(args.site.iter().map(|site| format!("--site={site}")));
    words.extend(args.mpi.options());
    words.extend(args.files.iter().map(|bytes| format!("--files={bytes}")));
    let bare: Vec<String> = words.iter().map(quoted).collect();
    // Bare words are used if they suffice: what runs them may not even be a shell.
    match bare == words {
        true => words.join(" "),
        false => for_any_shell(&format!("exec {}", bare.join(" "))),
    }
}

/// Gives a batch system's command the environment that sshd would give, and no more: the command passes on
/// all that it has.
fn as_a_login(command: &mut Command, system: System, conf: Option<&Path>) {
    let kept = LOGIN
        .iter()
        .filter_map(|name| Some((*name, std::env::var_os(name)?)));
    let kept: Vec<_> = kept.collect();
    command.env_clear().envs(kept);
    let home = std::env::var_os("HOME").map(PathBuf::from);
    command.current_dir(home.filter(|home| home.is_dir()).unwrap_or_else(|| "/".into()));
    let Some(name) = system.configuration() else {
        return;
    };
    let conf = conf.map(|conf| conf.as_os_str().to_owned());
    let conf = conf.or_else(|| std::env::var_os(name));
    command.envs(conf.map(|conf| (name, conf)));
}

/// Watches whether a batch system has started what it was asked to start; ends its command if that takes too
/// long.
struct Begun {
    begun: Sender<()>,
    late: JoinHandle<bool>,
}

impl Begun {
    /// `output` is this process's own: the frame about a command that cannot be ended is written to it.
    fn watch(child: &Child, mut output: File, node: String) -> io::Result<Begun> {
        let process = Pid::from_raw(child.id().cast_signed());
        let (begun, wait) = channel();
        let thread = std::thread::Builder::new().name("begins".to_owned());
        let late = thread.spawn(move || {
            let is_late = wait.recv_timeout(BEGINS_WITHIN) == Err(RecvTimeoutError::Timeout);
            if is_late {
                // Nobody reaps the process before this thread has ended. OAR's oarsh runs as another user,
                // and so cannot be ended; whoever reads its output would wait for ever.
                if kill(process, Signal::SIGKILL) == Err(Errno::EPERM) {
                    let _ = Frame::Error(StartError::Late(node).to_string()).write(&mut output);
                    std::process::exit(1);
                }
            }
            is_late
        })?;
        Ok(Begun { begun, late })
    }

    fn tell(&self) {
        let _ = self.begun.send(());
    }

    /// Whether the command was ended because it took too long.
    fn end(self) -> bool {
        drop(self.begun);
        self.late.join().unwrap_or(false)
    }
}

/// The words with which a remote shell reaches a node.
pub fn shell_words(shell: &[String], node: &str) -> Vec<String> {
    shell.iter().map(|word| word.replace("{node}", node)).collect()
}

/// Passes frames on; true if the last one said how the command ended.
fn copy(
    from: impl Read,
    output: &mut File,
    control: Option<&Path>,
    begun: Option<&Begun>,
) -> Result<bool, FrameError> {
    let mut from = BufReader::new(from);
    if !Frame::read_hello(&mut from)? {
        return Ok(false);
    }
    begun.into_iter().for_each(Begun::tell);
    Frame::Hello.write(output)?;
    while let Some(frame) = Frame::read(&mut from)? {
        if let Frame::Started(started) = frame {
            if let Some(control) = control {
                super::tell_gateway(control, std::process::id(), started);
            }
            continue;
        }
        frame.write(output)?;
        if matches!(frame, Frame::Exit(_) | Frame::Error(_)) {
            return Ok(true);
        }
    }
    Ok(false)
}

/// Reads all of the shell's standard error and keeps its end: the reason comes last.
fn collect(mut stderr: impl Read) -> String {
    let mut kept = Vec::new();
    let mut buffer = [0; 1024];
    while let Ok(read @ 1..) = stderr.read(&mut buffer) {
        kept.extend(&buffer[..read]);
        let excess = kept.len().saturating_sub(COMPLAINT_BYTES as usize);
        kept.drain(..excess);
    }
    String::from_utf8_lossy(&kept).into_owned()
}

/// The shell's last words, on one line.
fn complaint(text: &str, shell: &[String], status: ExitStatus) -> String {
    let lines: Vec<&str> = text
        .lines()
        .map(str::trim)
        .filter(|line| !line.is_empty())
        .collect();
    match lines.last() {
        Some(last) => (*last).to_owned(),
        None => format!(
            "remote shell {:?} ended with {status} and no message, its command unfinished",
            shell.join(" ")
        ),
    }
}

/// Whether a node is the host on which this runs: a head node may compute, too, and needs no ssh to itself.
pub fn is_this_host(node: &str) -> bool {
    if nix::unistd::gethostname().is_ok_and(|own| own.to_str() == Some(node)) || node == "localhost" {
        return true;
    }
    let Ok(address) = node.parse::<IpAddr>() else {
        return false;
    };
    let own = nix::ifaddrs::getifaddrs()
        .into_iter()
        .flatten()
        .filter_map(|interface| interface.address);
    own.into_iter().any(|own| {
        let v4 = own.as_sockaddr_in().map(|own| IpAddr::V4(own.ip()));
        v4.or_else(|| own.as_sockaddr_in6().map(|own| IpAddr::V6(own.ip()))) == Some(address)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::process::ExitStatusExt;

    #[test]
    fn the_node_is_filled_in_wherever_it_stands() {
        let words = |shell: &[&str]| {
            shell_words(
                &shell.iter().map(|word| (*word).to_owned()).collect::<Vec<_>>(),
                "n1",
            )
        };
        assert_eq!(words(&["ssh", "-l", "me", "{node}"]), ["ssh", "-l", "me", "n1"]);
        assert_eq!(
            words(&["ip", "netns", "exec", "lab-{node}"]),
            ["ip", "netns", "exec", "lab-n1"]
        );
    }

    #[test]
    fn the_last_line_of_a_failing_shell_is_the_reason() {
        let status = ExitStatus::from_raw(255 << 8);
        let text = "Warning: added key\nssh: connect to host nancy-1 port 22: Connection refused\r\n\n";
        assert_eq!(
            complaint(text, &[], status),
            "ssh: connect to host nancy-1 port 22: Connection refused"
        );
        assert!(complaint("", &["ssh".into()], status).contains("exit status: 255"));
    }

    #[test]
    fn loopback_is_this_host() {
        assert!(is_this_host("127.0.0.1"));
        assert!(!is_this_host("192.0.2.7"));
    }
}
