//! The rendezvous, where sites that each run their own MPI learn about each other: the native rank 0 of each
//! one connects, says what its site has, and gets the table of all processes.
//!
//! Read `message` (the frames) first, then `meeting` (who is told what), then `server` (the sockets).

pub mod meeting;
pub mod message;
pub mod origins;
pub mod server;

pub use meeting::{Event, FAILURE, Meeting};
pub use origins::Origins;
pub use server::Server;

#[cfg(test)]
mod tests;
