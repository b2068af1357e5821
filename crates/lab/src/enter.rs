//! Runs commands inside nodes. A forked helper joins the node's namespaces and clones the command as a child of the
//! caller, so that it can be waited for and signalled like any other, and dies with the node.

use std::ffi::{CString, OsStr, OsString};
use std::fs::File;
use std::io::{self, Read};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::process::ExitStatusExt;
use std::path::PathBuf;
use std::process::ExitStatus;

use nix::fcntl::OFlag;
use nix::sched::{CloneFlags, setns};
use nix::sys::signal::SigSet;
use nix::sys::wait::{WaitPidFlag, waitpid};
use nix::unistd::{Pid, pipe2};

use crate::error::LabError;
use crate::sys;

/// A command to run in a node.
#[derive(Debug, Default)]
pub struct NodeCommand {
    /// Name of the node.
    pub node: String,
    /// Program and arguments; the program is looked for on the PATH of the resulting environment, in the node.
    pub argv: Vec<OsString>,
    /// Added to the caller's environment, or replacing what has the same name there.
    pub env: Vec<(OsString, OsString)>,
    /// Start from an empty environment instead of the caller's.
    pub clear_env: bool,
    /// Directory to start in; the caller's own where not given. One the node does not have becomes `/`.
    pub cwd: Option<PathBuf>,
    /// Where input comes from.
    pub stdin: Stdio,
    /// Where output goes.
    pub stdout: Stdio,
    /// Where messages go.
    pub stderr: Stdio,
    /// Whether the terminal's signals reach it by themselves.
    pub session: Session,
}

/// One standard stream of a command.
#[derive(Debug, Default)]
pub enum Stdio {
    /// The caller's.
    #[default]
    Inherit,
    /// /dev/null.
    Null,
    /// A pipe, handed out in [`NodeChild`].
    Piped,
    /// This descriptor.
    Fd(OwnedFd),
}

/// Which session a command belongs to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Session {
    /// The caller's: Ctrl-C on the terminal reaches the command too. For commands of the foreground.
    #[default]
    Inherit,
    /// A new one: only signals that are sent to it on purpose. For daemons, and where there is no terminal.
    Own,
}

/// How to find a node's namespaces.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Door {
    pub(crate) init: i32,
    /// Process in the lab's user namespace, where there is one.
    pub(crate) user_namespace_of: Option<i32>,
}

/// A command that runs in a node. Dropping it neither stops nor waits for it.
#[derive(Debug)]
pub struct NodeChild {
    pid: i32,
    handle: OwnedFd,
    ended: Option<ExitStatus>,
    /// Write end of its input, if piped.
    pub stdin: Option<File>,
    /// Read end of its output, if piped.
    pub stdout: Option<File>,
    /// Read end of its messages, if piped.
    pub stderr: Option<File>,
}

impl NodeChild {
    /// Process id outside the node.
    pub fn pid(&self) -> i32 {
        self.pid
    }

    /// Becomes readable when the command has ended.
    pub fn handle(&self) -> BorrowedFd<'_> {
        self.handle.as_fd()
    }

    /// Waits for the end.
    ///
    /// # Errors
    /// The kernel's answer, if somebody else has waited for it.
    pub fn wait(&mut self) -> io::Result<ExitStatus> {
        drop(self.stdin.take());
        loop {
            if let Some(status) = self.collect(0)? {
                return Ok(status);
            }
        }
    }

    /// How it ended, if it has.
    ///
    /// # Errors
    /// The kernel's answer, if somebody else has waited for it.
    pub fn try_wait(&mut self) -> io::Result<Option<ExitStatus>> {
        self.collect(libc::WNOHANG)
    }

    /// Sends a signal, such as `libc::SIGTERM`, to its first process.
    ///
    /// # Errors
    /// The kernel's answer; ESRCH when it has ended.
    pub fn signal(&self, signal: i32) -> io::Result<()> {
        sys::signal(self.handle.as_fd(), signal)
    }

    /// Reads piped output to its end and waits: status, output, messages.
    ///
    /// # Errors
    /// The first read or wait that failed.
    pub fn wait_with_output(mut self) -> io::Result<(ExitStatus, Vec<u8>, Vec<u8>)> {
        drop(self.stdin.take());
        let stderr = self.stderr.take();
        let reader = std::thread::spawn(move || read_all(stderr));
        let output = read_all(self.stdout.take())?;
        let messages = reader
            .join()
            .map_err(|_| io::Error::other("reading stderr panicked"))??;
        Ok((self.wait()?, output, messages))
    }

    fn collect(&mut self, flags: i32) -> io::Result<Option<ExitStatus>> {
        if self.ended.is_none() {
            let mut raw = 0;
            // SAFETY: `raw` outlives the call; nix's waitpid would lose the raw status that ExitStatus is made from.
            let result = unsafe { libc::waitpid(self.pid, &mut raw, flags) };
            match result {
                -1 if io::Error::last_os_error().kind() == io::ErrorKind::Interrupted => {}
                -1 => return Err(io::Error::last_os_error()),
                0 => {}
                _ => self.ended = Some(ExitStatus::from_raw(raw)),
            }
        }
        Ok(self.ended)
    }
}

fn read_all(file: Option<File>) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    if let Some(mut file) = file {
        file.read_to_end(&mut bytes)?;
    }
    Ok(bytes)
}

/// Everything the command needs, made before the fork: afterwards nothing may fail for want of memory.
struct Prepared {
    candidates: Vec<CString>,
    argv: Vec<CString>,
    env: Vec<CString>,
    cwd: CString,
    streams: [Option<OwnedFd>; 3],
    session: Session,
}

pub(crate) fn spawn(door: Door, command: NodeCommand) -> Result<NodeChild, LabError> {
    let (node, program) = (
        command.node.clone(),
        command.argv.first().cloned().unwrap_or_default(),
    );
    let failed = |step: &'static str, source: io::Error| {
        let program = program.to_string_lossy().into_owned();
        LabError::Spawn {
            node: node.clone(),
            program,
            step,
            source,
        }
    };
    let prepare = |source: io::Error| failed("prepare", source);
    let init = sys::pidfd(door.init).map_err(|error| failed("find the node's processes", error))?;
    let keeper = door.user_namespace_of.map(sys::pidfd).transpose();
    let keeper = keeper.map_err(|error| failed("find the lab's user namespace", error))?;
    let (prepared, [stdin, stdout, stderr]) = prepare_command(command).map_err(prepare)?;
    let (read, write) = pipe2(OFlag::O_CLOEXEC).map_err(|error| prepare(error.into()))?;
    let helper = sys::fork(|| join_and_start(&init, keeper.as_ref(), &prepared, &write));
    let helper = helper.map_err(|error| failed("fork", error))?;
    drop(write);
    drop(prepared);
    let mut said = Vec::new();
    let heard = File::from(read).read_to_end(&mut said);
    let _ = waitpid(Pid::from_raw(helper), None::<WaitPidFlag>);
    heard.map_err(prepare)?;
    let (started, refused) = hear(&said);
    if let Some((step, errno)) = refused {
        if let Some(pid) = started {
            let _ = waitpid(Pid::from_raw(pid), None::<WaitPidFlag>);
        }
        let step = STEPS.get(usize::from(step)).copied().unwrap_or("start");
        return Err(failed(step, io::Error::from_raw_os_error(errno)));
    }
    let pid = started.ok_or_else(|| failed("start", io::Error::other("the helper ended without a word")))?;
    let handle = sys::pidfd(pid).map_err(|error| failed("find the command", error))?;
    Ok(NodeChild {
        pid,
        handle,
        ended: None,
        stdin,
        stdout,
        stderr,
    })
}

/// In the helper: joins the node's namespaces, then clones the command. Says what happened on `said`.
fn join_and_start(init: &OwnedFd, keeper: Option<&OwnedFd>, prepared: &Prepared, said: &OwnedFd) -> i32 {
    let join = |fd: &OwnedFd, namespaces| setns(fd, namespaces).map_err(|errno| errno as i32);
    let all = CloneFlags::CLONE_NEWNS
        | CloneFlags::CLONE_NEWUTS
        | CloneFlags::CLONE_NEWIPC
        | CloneFlags::CLONE_NEWNET
        | CloneFlags::CLONE_NEWPID;
    let joined = match keeper {
        // Outside in: the lab's user namespace gives the right to join the rest, the node's own takes it away again.
        Some(keeper) => join(keeper, CloneFlags::CLONE_NEWUSER)
            .and_then(|()| join(init, all))
            .and_then(|()| join(init, CloneFlags::CLONE_NEWUSER)),
        None => join(init, all),
    };
    if let Err(errno) = joined {
        say(said, STEP_JOIN, errno);
        return 1;
    }
    match sys::siblings(|| become_command(prepared, said)) {
        Ok(pid) => say(said, STARTED, pid),
        Err(error) => say(said, STEP_CLONE, error.raw_os_error().unwrap_or_default()),
    }
    0
}

/// In the command's own process, until exec.
fn become_command(prepared: &Prepared, said: &OwnedFd) -> i32 {
    let refuse = |step, error: io::Error| {
        say(said, step, error.raw_os_error().unwrap_or_default());
        EXIT_CANNOT_EXECUTE
    };
    if prepared.session == Session::Own
        && let Err(errno) = nix::unistd::setsid()
    {
        return refuse(STEP_SESSION, errno.into());
    }
    for (target, stream) in (0..).zip(&prepared.streams) {
        if let Some(stream) = stream
            && let Err(error) = sys::duplicate_onto(stream, target)
        {
            return refuse(STEP_STREAMS, error);
        }
    }
    sys::close_on_exec();
    if nix::unistd::chdir(prepared.cwd.as_c_str()).is_err() {
        let _ = nix::unistd::chdir("/");
    }
    // The supervisor blocks what it reads from a signalfd and std ignores SIGPIPE; a command expects neither.
    let _ = SigSet::empty().thread_set_mask();
    sys::default_sigpipe();
    refuse(
        STEP_EXECUTE,
        sys::exec(&prepared.candidates, &prepared.argv, &prepared.env),
    )
}

fn say(said: &OwnedFd, what: u8, number: i32) {
    let mut record = [what, 0, 0, 0, 0];
    record[1..].copy_from_slice(&number.to_ne_bytes());
    // Five bytes fit a pipe's atomic write; if the reader is gone there is nobody to tell.
    let _ = nix::unistd::write(said, &record);
}

/// Process id of the command, and the step that was refused with its error number.
fn hear(said: &[u8]) -> (Option<i32>, Option<(u8, i32)>) {
    let (mut started, mut refused) = (None, None);
    for record in said.chunks_exact(5) {
        let number = i32::from_ne_bytes([record[1], record[2], record[3], record[4]]);
        match record[0] {
            STARTED => started = Some(number),
            step => refused = Some((step, number)),
        }
    }
    (started, refused)
}

fn prepare_command(command: NodeCommand) -> io::Result<(Prepared, [Option<File>; 3])> {
    let env = environment(&command);
    let program = command.argv.first().filter(|program| !program.is_empty());
    let program =
        program.ok_or_else(|| io::Error::new(io::ErrorKind::InvalidInput, "the command is empty"))?;
    let cwd = command
        .cwd
        .clone()
        .or_else(|| std::env::current_dir().ok())
        .unwrap_or_else(|| "/".into());
    let mut streams = [None, None, None];
    let mut ours = [None, None, None];
    for (number, stream) in [command.stdin, command.stdout, command.stderr]
        .into_iter()
        .enumerate()
    {
        (streams[number], ours[number]) = open_stream(stream, number == 0)?;
    }
    let prepared = Prepared {
        candidates: candidates(program, &env)?,
        argv: command
            .argv
            .iter()
            .map(|word| c_string(word))
            .collect::<io::Result<_>>()?,
        env: env
            .iter()
            .map(|(name, value)| c_string(&join_variable(name, value)))
            .collect::<io::Result<_>>()?,
        cwd: c_string(cwd.as_os_str())?,
        streams,
        session: command.session,
    };
    Ok((prepared, ours))
}

fn environment(command: &NodeCommand) -> Vec<(OsString, OsString)> {
    let mut env: Vec<(OsString, OsString)> = if command.clear_env {
        Vec::new()
    } else {
        std::env::vars_os().collect()
    };
    for (name, value) in &command.env {
        env.retain(|(existing, _)| existing != name);
        env.push((name.clone(), value.clone()));
    }
    env
}

fn candidates(program: &OsStr, env: &[(OsString, OsString)]) -> io::Result<Vec<CString>> {
    if program.as_bytes().contains(&b'/') {
        return Ok(vec![c_string(program)?]);
    }
    let path = env
        .iter()
        .find(|(name, _)| name == "PATH")
        .map_or(OsStr::new(DEFAULT_PATH), |(_, path)| path);
    std::env::split_paths(path)
        .map(|directory| c_string(directory.join(program).as_os_str()))
        .collect()
}

/// The command's end and ours.
fn open_stream(stream: Stdio, is_input: bool) -> io::Result<(Option<OwnedFd>, Option<File>)> {
    match stream {
        Stdio::Inherit => Ok((None, None)),
        Stdio::Null => Ok((
            Some(File::options().read(true).write(true).open("/dev/null")?.into()),
            None,
        )),
        Stdio::Fd(fd) => Ok((Some(fd), None)),
        Stdio::Piped => {
            let (read, write) = pipe2(OFlag::O_CLOEXEC)?;
            let (theirs, ours) = if is_input { (read, write) } else { (write, read) };
            Ok((Some(theirs), Some(ours.into())))
        }
    }
}

fn join_variable(name: &OsStr, value: &OsStr) -> OsString {
    let mut joined = name.to_owned();
    joined.push("=");
    joined.push(value);
    joined
}

fn c_string(text: &OsStr) -> io::Result<CString> {
    Ok(CString::new(text.as_bytes())?)
}

const STARTED: u8 = b'P';
const STEP_JOIN: u8 = 0;
const STEP_CLONE: u8 = 1;
const STEP_SESSION: u8 = 2;
const STEP_STREAMS: u8 = 3;
const STEP_EXECUTE: u8 = 4;
const STEPS: [&str; 5] = [
    "join its namespaces",
    "clone",
    "start a session",
    "connect its streams",
    "execute",
];
/// As shells do.
const EXIT_CANNOT_EXECUTE: i32 = 126;
/// As execvp without a PATH.
const DEFAULT_PATH: &str = "/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin";
