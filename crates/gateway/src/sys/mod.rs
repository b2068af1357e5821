//! What the kernel provides: sockets and their options, signals, timers, listeners, and processes.

pub(crate) mod addresses;
pub(crate) mod listening;
pub(crate) mod priority;
pub(crate) mod process;
pub(crate) mod signals;
pub(crate) mod socket;
pub(crate) mod source;
pub(crate) mod timers;
