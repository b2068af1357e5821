//! Writes what a service says on standard error. The gateway and the broker use it.
//!
//! `lines` writes them: escaped, in a thread of its own, so that nobody waits for a reader that stands still.
//! `refusals` decides which refusals are said: strangers must neither fill a log nor silence it.
#![forbid(unsafe_code)]

pub mod lines;
pub mod refusals;

pub use lines::Lines;
pub use refusals::Refusals;
