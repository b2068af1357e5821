//! Runs commands inside nodes. A forked helper joins the node's namespaces and clones the command as a child
//! of the caller, so that it can be waited for and signalled like any other, and dies with the node.

mod child;
mod command;

use std::fs::File;
use std::io::{self, Read};
use std::os::fd::OwnedFd;

use nix::fcntl::OFlag;
use nix::sched::{CloneFlags, setns};
use nix::sys::prctl;
use nix::sys::signal::{SigSet, Signal};
use nix::sys::wait::{WaitPidFlag, waitpid};
use nix::unistd::{Pid, pipe2};

pub use child::NodeChild;
pub use command::{NodeCommand, Session, Stdio};

use crate::error::LabError;
use crate::sys;
use crate::wan::priority;
use command::Prepared;

/// The place where a command runs.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Place {
    /// A node: all namespaces of this init.
    Node { init: i32 },
    /// A router: only the network namespace behind this descriptor of the keeper.
    Router { descriptor: i32 },
}

/// How to find a place's namespaces.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Door {
    pub(crate) place: Place,
    pub(crate) keeper: i32,
    /// Whether the keeper lives in a user namespace of its own.
    pub(crate) in_user_namespace: bool,
}

/// The namespaces to join, found before the fork.
enum Target {
    Node(OwnedFd),
    Router(OwnedFd),
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
    let target = target(door).map_err(|error| failed("find its namespaces", error))?;
    let keeper = door
        .in_user_namespace
        .then(|| sys::pidfd(door.keeper))
        .transpose();
    let keeper = keeper.map_err(|error| failed("find the lab's user namespace", error))?;
    let (prepared, [stdin, stdout, stderr]) = command::prepare(command).map_err(prepare)?;
    let (read, write) = pipe2(OFlag::O_CLOEXEC).map_err(|error| prepare(error.into()))?;
    let helper = sys::fork(|| join_and_start(&target, keeper.as_ref(), &prepared, &write));
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

fn target(door: Door) -> io::Result<Target> {
    match door.place {
        Place::Node { init } => sys::pidfd(init).map(Target::Node),
        Place::Router { descriptor } => {
            let path = format!("/proc/{}/fd/{descriptor}", door.keeper);
            File::open(path).map(|netns| Target::Router(netns.into()))
        }
    }
}

/// Joins them from outside to inside: the lab's user namespace gives the right to join the others, and a
/// node's own takes it away again.
fn join(target: &Target, keeper: Option<&OwnedFd>) -> nix::Result<()> {
    if let Some(keeper) = keeper {
        setns(keeper, CloneFlags::CLONE_NEWUSER)?;
    }
    match target {
        Target::Router(netns) => setns(netns, CloneFlags::CLONE_NEWNET),
        Target::Node(init) => {
            let all = CloneFlags::CLONE_NEWNS
                | CloneFlags::CLONE_NEWUTS
                | CloneFlags::CLONE_NEWIPC
                | CloneFlags::CLONE_NEWNET
                | CloneFlags::CLONE_NEWPID;
            setns(init, all)?;
            if keeper.is_some() {
                setns(init, CloneFlags::CLONE_NEWUSER)
            } else {
                Ok(())
            }
        }
    }
}

/// Joins the namespaces, then clones the command. It runs in the helper, and reports on `said` what happened.
fn join_and_start(target: &Target, keeper: Option<&OwnedFd>, prepared: &Prepared, said: &OwnedFd) -> i32 {
    // This matters only if the caller is killed just now: without it, this fork would go on for a moment.
    let _ = prctl::set_pdeathsig(Signal::SIGKILL);
    let joined = join(target, keeper).map_err(|errno| errno as i32);
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

/// Runs in the command's own process, until exec.
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
    if prepared.before_ranks {
        // The grant is in the process's own scheduling policy; an ordinary user's lab works without it.
        let _ = priority::raise();
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
    // The supervisor blocks the signals that it reads from a signalfd, and std ignores SIGPIPE; a command
    // expects neither.
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
    // Five bytes are written to a pipe atomically; if the reader is gone, nobody needs to be told.
    let _ = nix::unistd::write(said, &record);
}

/// Process id of the command; and, if a step was refused, its number and the error's.
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
/// The status that shells report.
const EXIT_CANNOT_EXECUTE: i32 = 126;
