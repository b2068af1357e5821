//! Everything that can happen in a run, in one queue: signals, the gateway's end, the rendezvous, the ends of
//! commands. Each has a thread that waits for it, and all threads end with the process.

use super::supervisor::Ended;
use crate::child::{ENDING, hear};
use causeway_rendezvous::{self, Server};
use causeway_service::signals::heeded;
use nix::sys::signal::{SigSet, SigmaskHow, Signal, sigprocmask};
use std::io;
use std::os::unix::net::UnixStream;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread;
use std::time::Instant;

/// What has happened.
pub enum Event {
    /// Something has happened at the rendezvous.
    Rendezvous(causeway_rendezvous::Event),
    /// The rendezvous has failed, for this reason.
    RendezvousFailed(String),
    /// A site's command has ended.
    Ended(usize, Ended),
    /// The user, or whoever started this, asks the run to end.
    Signal(u8),
    /// The gateway of this site has ended.
    GatewayGone,
}

/// The queue.
pub struct Events {
    sender: Sender<Event>,
    events: Receiver<Event>,
}

/// Blocks the signals that end a run, and the one that would stop it when it reads from a terminal in the
/// background: the read fails then, and the command's input ends.
///
/// # Errors
/// Those of sigprocmask. It must be called while the process has one thread.
pub fn hold_signals() -> io::Result<SigSet> {
    let ending = heeded(ENDING);
    let mut held = ending;
    held.add(Signal::SIGTTIN);
    sigprocmask(SigmaskHow::SIG_BLOCK, Some(&held), None)?;
    Ok(ending)
}

fn begin(name: &str, work: impl FnOnce() + Send + 'static) -> io::Result<()> {
    thread::Builder::new().name(name.to_owned()).spawn(work).map(drop)
}

impl Events {
    /// Creates an empty queue. It needs no limit: sites and signals are few, and output does not pass through
    /// it.
    pub fn new() -> Events {
        let (sender, events) = channel();
        Events { sender, events }
    }

    /// Waits for the next event, until the deadline at the latest.
    pub fn next(&self, deadline: Option<Instant>) -> Option<Event> {
        match deadline {
            Some(deadline) => {
                let left = deadline.saturating_duration_since(Instant::now());
                self.events.recv_timeout(left).ok()
            }
            None => self.events.recv().ok(),
        }
    }

    /// The signal that asks the run to end, if one has come.
    pub fn asked_to_end(&self) -> Option<Signal> {
        self.events.try_iter().find_map(|event| match event {
            Event::Signal(number) => Signal::try_from(i32::from(number)).ok(),
            _ => None,
        })
    }

    /// Returns a function that reports the end of a site's command.
    pub fn on_ended(&self, site: usize) -> impl FnOnce(Ended) + Send + 'static {
        let sender = self.sender.clone();
        move |how| drop(sender.send(Event::Ended(site, how)))
    }

    /// Reports what comes: signals, which must be blocked, what the gateway says about the job, and what
    /// happens at the rendezvous.
    ///
    /// # Errors
    /// Those of the system when it starts three threads.
    pub fn hear(&self, signals: SigSet, job: &UnixStream, mut server: Server) -> io::Result<()> {
        let sender = self.sender.clone();
        begin("signals", move || {
            while let Ok(signal) = signals.wait() {
                let _ = sender.send(Event::Signal(signal as i32 as u8));
            }
        })?;
        let (sender, job) = (self.sender.clone(), job.try_clone()?);
        begin("gateway", move || {
            let mut told = Vec::new();
            while hear(&job, &mut told) {}
            let _ = sender.send(Event::GatewayGone);
        })?;
        let sender = self.sender.clone();
        begin("rendezvous", move || {
            loop {
                match server.turn(None) {
                    Ok(events) => events
                        .into_iter()
                        .for_each(|event| drop(sender.send(Event::Rendezvous(event)))),
                    Err(error) => return drop(sender.send(Event::RendezvousFailed(error.to_string()))),
                }
            }
        })
    }
}
