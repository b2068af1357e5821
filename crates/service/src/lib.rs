//! What every service that strangers may call needs. The gateway, the broker and the rendezvous use it.
//!
//! `lines` writes a service's messages to standard error: escaped, and in a separate thread, so that nobody
//! waits for a reader that has stopped. `refusals` decides which refusals are logged: strangers must neither
//! fill a log nor silence it. `admission` chooses the connection to close when too many callers have come.
//! `proxy` connects through a web proxy. `signals` decides which signals end a program.
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
