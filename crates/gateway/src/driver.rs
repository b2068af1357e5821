//! What every owner may use: the kernel's events, time, numbers, the log, and what is to be done by others.

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
    /// Where this program lay when it started: what it starts on nodes is the same program, even when that
    /// was replaced meanwhile, as an upgrade does.
    pub(crate) program: PathBuf,
    pub(crate) poll: Poll,
    pub(crate) timers: Timers,
    pub(crate) log: Log,
    pub(crate) audit: Audit,
    /// Name of the user whose gateway this is, for the sites where this user's jobs run.
    pub(crate) user: String,
    /// Where the memory of bytes on their way comes from.
    pub(crate) arena: Arena,
    /// When this process began.
    pub(crate) began: Instant,
    /// When the loop last woke.
    pub(crate) now: Instant,
    /// Numbers given so far; see [`Driver::next_generation`].
    pub(crate) generations: u64,
    /// Files that this process may have open.
    pub(crate) files: usize,
    /// The gateway stops: nobody gets what arrives now.
    pub(crate) leaving: bool,
    /// What the next worker needs to know, if there would be one.
    pub(crate) book: Option<Book>,
    /// Sockets to be closed once that is written down: until then the next worker would look for them.
    pub(crate) closing: Vec<OwnedFd>,
    /// The process that makes another worker when this one is killed, where there is one.
    pub(crate) link: Option<KeeperLink>,
}

impl Driver {
    /// Starts the thread that writes the audit. Call it after the gateway has taken its signals.
    ///
    /// # Errors
    /// Those of starting it.
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

    /// Writes what waits, as far as that takes no longer than a moment. Call it before this program ends or
    /// another takes its place.
    pub(crate) fn flush(&mut self) {
        let left = self.audit.flush();
        if left > 0 {
            self.say(format_args!(
                "{left} lines of the audit are not written: its disk stands still"
            ));
        }
        self.log.flush();
    }

    /// How a process has ended that this worker has not started itself, if it has.
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

    /// Makes the loop tell the owner of the deadline after this time.
    pub(crate) fn set_deadline(&mut self, after: Duration, deadline: impl Into<Deadline>) {
        self.timers.set(after, deadline);
    }

    pub(crate) fn registry(&self) -> &Registry {
        self.poll.registry()
    }

    /// Gives a number that no other connection of this process has had.
    pub(crate) fn next_generation(&mut self) -> u64 {
        self.generations += 1;
        self.generations
    }
}

/// The name of the user that this process runs as; the number where it has none.
fn own_user() -> String {
    let own = nix::unistd::geteuid();
    let user = nix::unistd::User::from_uid(own).ok().flatten();
    user.map_or_else(|| own.to_string(), |user| user.name)
}
