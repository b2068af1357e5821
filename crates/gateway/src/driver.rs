//! What every owner may use: the kernel's events, time, numbers, the log, and the queue of what other owners
//! are to do.

use crate::audit::Audit;
use crate::book::Book;
use crate::config::Config;
use crate::link::KeeperLink;
use crate::log::Log;
use crate::sys::process::Ended;
use crate::sys::source::Class;
use crate::sys::timers::{Deadline, Timers};
use causeway_memory::Arena;
use mio::{Poll, Registry};
use nix::unistd::Pid;
use std::fmt::Display;
use std::io;
use std::os::fd::OwnedFd;
use std::path::PathBuf;
use std::time::{Duration, Instant};

pub(crate) struct Driver {
    pub(crate) config: Config,
    /// The path of this program when it started. What it starts on nodes is the same program, even if that
    /// file has been replaced since, as by an upgrade.
    pub(crate) program: PathBuf,
    pub(crate) poll: Poll,
    pub(crate) timers: Timers,
    pub(crate) log: Log,
    pub(crate) audit: Audit,
    /// Name of the user whose gateway this is, for the sites at which this user's jobs run.
    pub(crate) user: String,
    /// The source of memory for bytes in transit.
    pub(crate) arena: Arena,
    /// When this process began.
    pub(crate) began: Instant,
    /// When the loop last woke.
    pub(crate) now: Instant,
    /// Numbers given so far; see [`Driver::next_generation`].
    pub(crate) generations: u64,
    /// Files that this process may have open.
    pub(crate) files: usize,
    /// Whether the gateway is stopping: what arrives now is passed on to nobody.
    pub(crate) leaving: bool,
    /// The records for the next worker, if there would be one.
    pub(crate) book: Option<Book>,
    /// Sockets to be closed once the book no longer mentions them: until then, the next worker would look for
    /// them.
    pub(crate) closing: Vec<OwnedFd>,
    /// The link to the process that makes another worker when this one is killed, if there is one.
    pub(crate) link: Option<KeeperLink>,
}

impl Driver {
    /// Starts the thread that writes the audit. Call this after the gateway has taken its signals.
    ///
    /// # Errors
    /// The errors of starting the thread.
    pub(crate) fn new(
        config: Config,
        poll: Poll,
        files: usize,
        link: Option<KeeperLink>,
        book: Option<Book>,
    ) -> io::Result<Driver> {
        let mut audit = Audit::begin(&config.audit)?;
        audit.register(poll.registry(), Class::Audit.token(0))?;
        if let Some(link) = &link {
            link.orphans.register(poll.registry(), Class::Orphans.token(0))?;
        }
        Ok(Driver {
            log: Log::new(&config.site),
            audit,
            user: own_user(),
            config,
            program: std::env::current_exe()?,
            arena: book
                .as_ref()
                .map_or_else(Arena::private, |book| book.arena().clone()),
            poll,
            timers: Timers::default(),
            began: Instant::now(),
            now: Instant::now(),
            generations: 0,
            files,
            leaving: false,
            book,
            closing: Vec::new(),
            link,
        })
    }

    /// Writes the lines that wait, as far as that takes only a moment. Call this before this program ends or
    /// another one takes its place.
    pub(crate) fn flush(&mut self) {
        let left = self.audit.flush();
        if left > 0 {
            self.say(format_args!(
                "{left} lines of the audit are not written: its disk stands still"
            ));
        }
        self.log.flush();
    }

    /// How a process that this worker did not start itself has ended, if it has.
    pub(crate) fn end_of_orphan(&mut self, process: Pid) -> Option<Ended> {
        self.link.as_mut()?.orphans.end_of(process)
    }

    /// The gateway's process, as others see it.
    pub(crate) fn process(&self) -> u32 {
        self.link
            .as_ref()
            .map_or_else(std::process::id, |link| link.process)
    }

    /// Logs a line of this gateway.
    pub(crate) fn say(&self, text: impl Display) {
        self.log.say(text);
    }

    /// Makes the loop call the owner of the deadline after this time.
    pub(crate) fn set_deadline(&mut self, after: Duration, deadline: impl Into<Deadline>) {
        self.timers.set(after, deadline);
    }

    pub(crate) fn registry(&self) -> &Registry {
        self.poll.registry()
    }

    /// Returns a number that no other connection of this process has had.
    pub(crate) fn next_generation(&mut self) -> u64 {
        self.generations += 1;
        self.generations
    }
}

/// The name of the user that this process runs as, or the user's number if there is no name.
fn own_user() -> String {
    let own = nix::unistd::geteuid();
    let user = nix::unistd::User::from_uid(own).ok().flatten();
    user.map_or_else(|| own.to_string(), |user| user.name)
}
