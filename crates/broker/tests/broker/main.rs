//! A broker of this crate on loopback, and callers that join, ask and abuse it.
#![allow(clippy::panic, clippy::print_stdout, clippy::unwrap_used)]

mod abuse;
mod common;
mod flood;
mod joining;
mod sessions;
mod several;
mod size;
mod stolen;
