//! What every service that strangers may call needs. The gateway, the broker and the rendezvous use it.
//!
//! `lines` writes what a service says on standard error: escaped, in a thread of its own, so that nobody
//! waits for a reader that stands still. `refusals` decides which refusals are logged: strangers must neither
//! fill a log nor silence it. `admission` chooses the connection that ends when too many callers have come.
//! `proxy` is the way out through a web proxy. `signals` tells which signals are to end a program.
#![forbid(unsafe_code)]

pub mod admission;
pub mod lines;
pub mod proxy;
pub mod refusals;
pub mod signals;

pub use admission::Admission;
pub use lines::Lines;
pub use proxy::Proxy;
pub use refusals::Refusals;
