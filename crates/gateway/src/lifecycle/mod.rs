//! How a gateway ends: in order, by continuing as another program, or by being killed, after which a new
//! worker follows.

use crate::sys::signals::Signals;
use handover::Successor;
use handover::vetting::Vetting;
use nix::sys::signal::Signal;

pub(crate) mod follow;
pub(crate) mod handover;
pub(crate) mod record;
pub(crate) mod shutdown;
mod state;
pub(crate) mod takeup;

/// What ends this gateway or makes it continue as another program.
pub(crate) struct Lifecycle {
    signals: Signals,
    /// How many programs had this gateway before.
    handed_over: u64,
    /// The program that asks to take over and is being checked.
    vetting: Option<Vetting>,
    /// The program that takes over next.
    successor: Option<Successor>,
}

impl Lifecycle {
    pub(crate) fn new(signals: Signals) -> Lifecycle {
        Lifecycle {
            signals,
            handed_over: 0,
            vetting: None,
            successor: None,
        }
    }

    /// Counts the programs that had this gateway before.
    pub(crate) fn handed_over(&self) -> u64 {
        self.handed_over
    }

    /// Goes on counting where a predecessor stopped.
    pub(crate) fn inherit(&mut self, handed_over: u64) {
        self.handed_over = handed_over;
    }

    /// Takes the next signal that has come in.
    pub(crate) fn next_signal(&self) -> Option<Signal> {
        self.signals.next()
    }

    /// Takes the program that is to get this gateway now, if there is one.
    pub(crate) fn take_successor(&mut self) -> Option<Successor> {
        self.successor.take()
    }
}
