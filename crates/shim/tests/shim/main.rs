//! The preload library in real programs, each test on a separate node.
#![allow(clippy::panic, clippy::unwrap_used)]

mod accept;
mod connect;
mod interfaces;
mod process;
mod support;
mod virtual_addresses;
