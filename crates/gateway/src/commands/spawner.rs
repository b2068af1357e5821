//! Starts programs in a thread: the kernel reads a program before it runs, and if a file system hangs, the
//! streams of the site must not.
//!
//! The thread lasts as long as the gateway. The programs that it starts are children of the process, not of
//! the thread, so they outlive the thread when another program gets the gateway.

use crate::driver::Driver;
use crate::sys::process;
use crate::sys::source::Class;
use causeway_control::PARENTS_ENV;
use mio::Interest;
use mio::net::UnixStream;
use nix::unistd::Pid;
use std::ffi::OsString;
use std::io::{self, ErrorKind, Read, Write};
use std::os::fd::OwnedFd;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::sync::mpsc::{Receiver, Sender, SyncSender, TrySendError, channel, sync_channel};
use std::time::Instant;

/// Most programs that wait to be started: as many as an MPI starts at once on a site with a thousand nodes.
const MOST_WAITING: usize = 1024;

/// A program that is to be started.
pub(super) struct Program {
    pub(super) path: PathBuf,
    pub(super) arguments: Vec<OsString>,
    /// Its standard input and output.
    pub(super) socket: OwnedFd,
}

/// The outcome of a start: the number of the process, which is a child of this one, or why it does not run.
pub(super) struct Outcome {
    pub(super) key: usize,
    pub(super) started: io::Result<Pid>,
}

pub(crate) struct Spawner {
    programs: SyncSender<(usize, Program)>,
    outcomes: Receiver<Outcome>,
    /// Receives a byte with each outcome, which wakes the loop.
    bell: UnixStream,
}

impl Spawner {
    /// Begins the thread; outcomes reach the loop under [`Class::Spawner`]. Call this after the gateway has
    /// taken its signals, because the thread and the programs inherit the mask.
    ///
    /// # Errors
    /// Those of socketpair, of registering and of starting a thread.
    pub(super) fn begin(driver: &Driver) -> io::Result<Spawner> {
        let (near, far) = std::os::unix::net::UnixStream::pair()?;
        near.set_nonblocking(true)?;
        // If the socket is full, the loop is woken anyway.
        far.set_nonblocking(true)?;
        let mut bell = UnixStream::from_std(near);
        let token = Class::Spawner.token(0);
        driver.registry().register(&mut bell, token, Interest::READABLE)?;
        let (programs, waiting) = sync_channel(MOST_WAITING);
        let (outcome, outcomes) = channel();
        let thread = std::thread::Builder::new().name("spawner".to_owned());
        let parents = format!("{}:{}", driver.process(), std::process::id());
        thread.spawn(move || work(&waiting, &outcome, &parents, far))?;
        Ok(Spawner {
            programs,
            outcomes,
            bell,
        })
    }

    /// Starts a program, whose outcome arrives under `key`.
    ///
    /// # Errors
    /// [`ErrorKind::WouldBlock`] when too many wait, [`ErrorKind::BrokenPipe`] when the thread is gone.
    pub(super) fn start(&self, key: usize, program: Program) -> io::Result<()> {
        self.programs
            .try_send((key, program))
            .map_err(|error| match error {
                TrySendError::Full(_) => io::Error::new(
                    ErrorKind::WouldBlock,
                    format!("{MOST_WAITING} programs wait to be started already"),
                ),
                TrySendError::Disconnected(_) => ErrorKind::BrokenPipe.into(),
            })
    }

    /// The outcomes since the last call.
    pub(super) fn outcomes(&mut self) -> Vec<Outcome> {
        let mut bytes = [0; 64];
        while matches!(self.bell.read(&mut bytes), Ok(1..)) {}
        self.outcomes.try_iter().collect()
    }

    /// The next outcome, if it arrives by `until`.
    pub(super) fn await_outcome(&self, until: Instant) -> Option<Outcome> {
        let wait = until.saturating_duration_since(Instant::now());
        self.outcomes.recv_timeout(wait).ok()
    }
}

/// Ends when the sender of the programs or the receiver of the outcomes is dropped.
fn work(
    programs: &Receiver<(usize, Program)>,
    outcomes: &Sender<Outcome>,
    parents: &str,
    mut bell: std::os::unix::net::UnixStream,
) {
    for (key, program) in programs {
        let started = start(program, parents);
        if outcomes.send(Outcome { key, started }).is_err() {
            return;
        }
        let _ = bell.write(&[0]);
    }
}

fn start(program: Program, parents: &str) -> io::Result<Pid> {
    let output = program.socket.try_clone()?;
    let child = Command::new(&program.path)
        .args(&program.arguments)
        .env(PARENTS_ENV, parents)
        .stdin(Stdio::from(program.socket))
        .stdout(Stdio::from(output))
        .spawn()?;
    process::not_ended_first(child.id());
    // Whoever receives the outcome collects the process.
    Ok(Pid::from_raw(child.id().cast_signed()))
}
