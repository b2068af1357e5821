//! A command to run in a node, and the same made ready for exec: after the fork nothing may fail for lack of
//! memory.

use std::ffi::{CString, OsStr, OsString};
use std::fs::File;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;

use nix::fcntl::OFlag;
use nix::unistd::pipe2;

/// A command to run in a node.
#[derive(Debug, Default)]
pub struct NodeCommand {
    /// Name of the node.
    pub node: String,
    /// Program and arguments; the program is looked for on the PATH of the resulting environment, in the
    /// node.
    pub argv: Vec<OsString>,
    /// Added to the caller's environment, or replacing variables of the same name.
    pub env: Vec<(OsString, OsString)>,
    /// Whether to start from an empty environment instead of the caller's.
    pub clear_env: bool,
    /// Directory to start in; by default, the caller's. If the node does not have it, this becomes `/`.
    pub cwd: Option<PathBuf>,
    /// The source of its input.
    pub stdin: Stdio,
    /// The destination of its output.
    pub stdout: Stdio,
    /// The destination of its messages.
    pub stderr: Stdio,
    /// Whether the terminal's signals reach it by themselves.
    pub session: Session,
    /// Whether to run it before all ordinary processes, as far as the caller may. This is for something that
    /// emulates a separate host, and would not share cores with MPI ranks there. What it starts is ordinary
    /// again.
    pub before_ranks: bool,
}

/// One standard stream of a command.
#[derive(Debug, Default)]
pub enum Stdio {
    /// The caller's.
    #[default]
    Inherit,
    /// /dev/null.
    Null,
    /// A pipe, whose other end is in [`crate::NodeChild`].
    Piped,
    /// This descriptor.
    Fd(OwnedFd),
}

/// The session that a command belongs to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Session {
    /// The caller's: Ctrl-C on the terminal also reaches the command. For commands in the foreground.
    #[default]
    Inherit,
    /// A new session, which only signals reach that are sent to it on purpose. It is for daemons, and if
    /// there is no terminal.
    Own,
}

/// Everything that exec needs.
pub(super) struct Prepared {
    pub(super) candidates: Vec<CString>,
    pub(super) argv: Vec<CString>,
    pub(super) env: Vec<CString>,
    pub(super) cwd: CString,
    pub(super) streams: [Option<OwnedFd>; 3],
    pub(super) session: Session,
    pub(super) before_ranks: bool,
}

/// Also returns our ends of the pipes: input, output, messages.
pub(super) fn prepare(command: NodeCommand) -> io::Result<(Prepared, [Option<File>; 3])> {
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
        before_ranks: command.before_ranks,
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

/// The command's end, and ours.
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

/// The search path of execvp if PATH is not set.
const DEFAULT_PATH: &str = "/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin";
