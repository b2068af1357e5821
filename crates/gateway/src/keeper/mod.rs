//! The process that a supervisor sees: it makes the worker, which is the gateway, and another one when that
//! has been killed.
//!
//! Both share one table of descriptors (clone(2), CLONE_FILES), so that the death of a worker closes no
//! listener: connections that arrive meanwhile wait for the next worker. The keeper has one thread, opens no
//! file and reads nothing from outside. It is as small as possible, because if it dies, so does the gateway.

mod deaths;
mod worker;

use crate::config::Config;
use crate::error::GatewayError;
use crate::inherited::{InheritError, descriptor};
use crate::lifecycle::handover;
use crate::link::ends::{End, Ends};
use crate::link::{self, Before, Ending, KeptKeeper, Left, Memory};
use crate::listeners::Listeners;
use crate::sys::process::{self, Ended};
use crate::sys::signals::Signals;
use crate::sys::socket;
use causeway_control::private;
use causeway_service::Lines;
use deaths::Deaths;
use nix::errno::Errno;
use nix::fcntl::OFlag;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::signal::{Signal, kill};
use nix::unistd::{Pid, execv, getpid, pipe2};
use std::convert::Infallible;
use std::ffi::CString;
use std::fs::File;
use std::io;
use std::os::fd::{AsRawFd, OwnedFd, RawFd};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// After this time, the keeper repeats a message for which the worker had no room.
const TELL_AGAIN: Duration = Duration::from_millis(100);

/// How long the keeper waits before it tries again to make a worker.
const MAKE_AGAIN: Duration = Duration::from_secs(1);

/// How long a start waits for the listeners of a gateway that was killed just before: the worker ends a
/// moment after its keeper.
const LISTEN_WITHIN: Duration = Duration::from_millis(500);
const LISTEN_AGAIN: Duration = Duration::from_millis(10);

/// A site's gateway, kept running.
pub struct Keeper {
    process: Pid,
    config: Config,
    listeners: Listeners,
    memory: Arc<Memory>,
    /// Tells workers how processes have ended that earlier ones had started.
    orphans: (OwnedFd, File),
    signals: Signals,
    /// The files in which workers write down what the next one needs: see `book`.
    files: [OwnedFd; 3],
    /// Descriptors that do not belong to the workers.
    own: Vec<RawFd>,
    foreign: Vec<RawFd>,
    ends: Ends,
    deaths: Deaths,
    /// Whether the next worker goes on with what another program has handed over.
    is_handed_over: bool,
    stayed: Option<String>,
}

/// What has happened to a worker.
enum Outcome {
    /// The worker has ended as it was told; this is the gateway's status.
    Ended(u8),
    Died(Ended),
}

impl Keeper {
    /// Listens as configured, or takes over the listeners from the state in this descriptor. Nothing is
    /// answered before [`Keeper::keep`]. The process must have only one thread.
    ///
    /// # Errors
    /// [`GatewayError`] names the address at which it cannot listen, or says why the state cannot be used.
    pub fn begin(config: Config, state: Option<RawFd>) -> Result<Keeper, GatewayError> {
        // The workers use the same table of descriptors: with a lower limit than theirs, the keeper could
        // open nothing beside their streams.
        process::raise_file_limit();
        let mut foreign = process::open_descriptors().map_err(GatewayError::Keeper)?;
        // Descriptors that this program has opened itself close on exec, and need not be kept open.
        foreign.retain(|number| !process::closes_on_exec(*number));
        let kept = match state {
            Some(number) => handover::read(number, &config)?,
            None => KeptKeeper {
                foreign,
                ..KeptKeeper::default()
            },
        };
        let listeners = match state {
            Some(_) => Listeners::inherit(&kept.listeners, &config)?,
            None => listen(&config)?,
        };
        // The signals come before the memory, because this blocks a signal that would end the process if the
        // memory may not grow.
        let signals = Signals::take().map_err(GatewayError::Keeper)?;
        let memory = Arc::new(Memory::new().map_err(GatewayError::Memory)?);
        let orphans = orphans().map_err(GatewayError::Keeper)?;
        let mut own = kept.foreign.clone();
        own.extend(listeners.keep().numbers());
        own.extend([orphans.0.as_raw_fd(), orphans.1.as_raw_fd(), signals.as_raw_fd()]);
        let files = match state {
            Some(_) => inherited_files(kept.files)?,
            None => causeway_memory::files().map_err(GatewayError::Memory)?,
        };
        own.extend(files.iter().map(AsRawFd::as_raw_fd));
        Ok(Keeper {
            process: getpid(),
            config,
            listeners,
            memory,
            orphans,
            signals,
            files,
            own,
            foreign: kept.foreign,
            ends: kept.ends,
            deaths: Deaths::default(),
            is_handed_over: state.is_some(),
            stayed: None,
        })
    }

    /// Makes workers serve until one is told to stop by SIGINT, SIGTERM or SIGHUP; returns the gateway's
    /// status.
    ///
    /// # Errors
    /// [`GatewayError::Keeper`] if no worker can be made, or if the first one is killed before it serves.
    pub fn keep(mut self) -> Result<u8, GatewayError> {
        let mut before = self.is_handed_over.then_some(Before::HandedOver);
        let status = loop {
            self.memory.begin();
            let began = Instant::now();
            let worker = match process::divide() {
                Ok(Some(worker)) => worker,
                Ok(None) => worker::work(self, before),
                Err(error) if self.is_first() && is_unknown(&error) => {
                    return worker::serve_alone(self, &error).map(|()| 0);
                }
                Err(error) if self.is_first() => return Err(GatewayError::Keeper(error)),
                Err(error) => {
                    // At present, this user has too many processes, or there is too little memory.
                    Lines::say_at_once(format_args!(
                        "causeway gateway {}: make a worker: {error}; it tries again in {MAKE_AGAIN:?}",
                        self.config.site
                    ));
                    match self
                        .is_told_to_stop_within(MAKE_AGAIN)
                        .map_err(GatewayError::Keeper)?
                    {
                        true => break 0,
                        false => continue,
                    }
                }
            };
            // The worker has what it takes over, or has not begun.
            self.stayed = None;
            let outcome = self.attend(worker).map_err(GatewayError::Keeper)?;
            let ended = match outcome {
                Outcome::Ended(status) => break status,
                Outcome::Died(ended) => ended,
            };
            if let Ending::HandsOver {
                program,
                config,
                state,
            } = self.memory.ending()
            {
                self.hand_over(&program, &config, state);
                before = Some(Before::HandedOver);
                continue;
            }
            if self.is_first() && !self.memory.has_served() {
                let _ = private::remove_socket(&self.config.control);
                let text = format!("its worker {ended} before it served");
                return Err(GatewayError::Keeper(io::Error::other(text)));
            }
            before = Some(Before::Killed(self.record_death(ended, began)));
            if let Some(wait) = self.deaths.wait()
                && self.is_told_to_stop_within(wait).map_err(GatewayError::Keeper)?
            {
                break 0;
            }
        };
        // Otherwise the socket's file would outlive the process, and the next start would have to guess.
        let _ = private::remove_socket(&self.config.control);
        Ok(status)
    }

    /// Whether there is nothing yet that a next worker would go on with.
    fn is_first(&self) -> bool {
        self.ends.count == 0 && !self.is_handed_over
    }

    /// Notes a death. The next worker takes up or closes what this one had open.
    fn record_death(&mut self, ended: Ended, began: Instant) -> Left {
        let (streams, jobs) = self.memory.counts();
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let end = End::new(now.as_secs(), ended);
        self.ends.count += 1;
        self.ends.last = Some(end);
        let was_killed = ended.is_killed() && self.memory.has_served();
        self.deaths.add(began, Instant::now(), was_killed);
        self.is_handed_over = false;
        let begins_clean = self.deaths.are_too_many();
        if begins_clean {
            // What the worker had open ends with it.
            process::close_all_but(&self.own);
        }
        Left {
            end,
            streams,
            jobs,
            begins_clean,
        }
    }

    /// Waits for the end of a worker. Signals for the gateway are passed on to it; processes that it and
    /// earlier workers have started are collected.
    fn attend(&mut self, worker: Pid) -> io::Result<Outcome> {
        loop {
            if let Some(ended) = process::ended_child(Some(worker))? {
                let _ = nix::sys::wait::waitpid(worker, None);
                return Ok(match self.memory.ending() {
                    Ending::Stops => Outcome::Ended(ended.exit_status()),
                    _ => Outcome::Died(ended),
                });
            }
            let all_told = self.tell_of_orphans(worker)?;
            self.await_signal((!all_told).then_some(TELL_AGAIN))?;
            while let Some(signal) = self.signals.next() {
                if signal != Signal::SIGCHLD {
                    // If the worker has just ended, that is handled next.
                    let _ = kill(worker, signal);
                }
            }
        }
    }

    /// Collects children other than the worker; false while the worker has no room to be told about them.
    fn tell_of_orphans(&self, worker: Pid) -> io::Result<bool> {
        while let Some(ended) = process::ended_child(None)? {
            if ended.process == worker {
                return Ok(true);
            }
            match link::tell(&self.orphans.1, ended) {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(false),
                _ => {}
            }
            let _ = nix::sys::wait::waitpid(ended.process, None);
        }
        Ok(true)
    }

    fn await_signal(&self, longest: Option<Duration>) -> io::Result<()> {
        let longest = longest.map_or(PollTimeout::NONE, |longest| {
            PollTimeout::try_from(longest).unwrap_or(PollTimeout::MAX)
        });
        let mut readable = [PollFd::new(self.signals.as_fd(), PollFlags::POLLIN)];
        match poll(&mut readable, longest) {
            Ok(_) | Err(Errno::EINTR) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }

    /// Waits before the next worker is made; returns whether the gateway was told to stop meanwhile.
    fn is_told_to_stop_within(&mut self, wait: Duration) -> io::Result<bool> {
        let until = Instant::now() + wait;
        loop {
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Ok(false);
            }
            self.await_signal(Some(left))?;
            while let Some(signal) = self.signals.next() {
                if signal != Signal::SIGCHLD {
                    return Ok(true);
                }
            }
        }
    }

    /// Executes another program in this process's place. If that fails, the next worker goes on from the
    /// state that was meant for the program.
    fn hand_over(&mut self, program: &Path, config: &Path, state: RawFd) {
        let failed = match self.execute(program, config, state) {
            Err(error) => error,
            Ok(never) => match never {},
        };
        self.stayed = Some(format!("execute {}: {failed}", program.display()));
        process::close(state);
        self.is_handed_over = true;
        // As exec(3) would have done.
        let open = process::open_descriptors().unwrap_or_default();
        let closing = open.into_iter().filter(|number| process::closes_on_exec(*number));
        closing
            .filter(|number| !self.own.contains(number))
            .for_each(process::close);
        let files = self.files.iter().map(AsRawFd::as_raw_fd);
        for number in self.listeners.keep().numbers().chain(files) {
            let _ = process::set_closes_on_exec(number, true);
        }
    }

    fn execute(&self, program: &Path, config: &Path, state: RawFd) -> nix::Result<Infallible> {
        let number = state.to_string();
        let words: [&[u8]; 6] = [
            program.as_os_str().as_bytes(),
            b"gateway",
            b"--config",
            config.as_os_str().as_bytes(),
            handover::INHERIT.as_bytes(),
            number.as_bytes(),
        ];
        let words = words.map(CString::new).into_iter().collect::<Result<Vec<_>, _>>();
        let words = words.map_err(|_| Errno::EINVAL)?;
        socket::pass_net_admin_on(self.config.transparent.is_some());
        execv(&words[0], &words)
    }
}

/// Whether this system cannot have processes that share descriptors but no memory, as qemu's user-mode
/// emulation cannot.
fn is_unknown(error: &io::Error) -> bool {
    matches!(
        error.raw_os_error(),
        Some(libc::EINVAL | libc::ENOSYS | libc::EPERM)
    )
}

/// Listens as configured.
fn listen(config: &Config) -> Result<Listeners, GatewayError> {
    let until = Instant::now() + LISTEN_WITHIN;
    loop {
        match Listeners::bind(config) {
            Err(error) if error.is_taken() && Instant::now() < until => std::thread::sleep(LISTEN_AGAIN),
            bound => return bound,
        }
    }
}

/// The files in which workers write things down, from the previous program.
fn inherited_files(numbers: [RawFd; 3]) -> Result<[OwnedFd; 3], InheritError> {
    let [first, second, third] = numbers.map(descriptor);
    Ok([first?, second?, third?])
}

fn orphans() -> io::Result<(OwnedFd, File)> {
    // If that is refused, as under some emulators, nobody learns how they end.
    let _ = process::take_in_orphans();
    let (reader, writer) = pipe2(OFlag::O_NONBLOCK | OFlag::O_CLOEXEC)?;
    Ok((reader, writer.into()))
}
