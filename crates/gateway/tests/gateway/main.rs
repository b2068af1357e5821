//! Gateways of this crate, in threads and in separate processes, on loopback.
#![allow(clippy::panic, clippy::unwrap_used)]

mod bare;
mod certificates;
mod common;
mod consent;
mod flood;
mod lanes;
mod late;
mod members;
mod metrics;
#[path = "../../../../tests/nets.rs"]
mod nets;
mod quic;
mod refusals;
mod relays;
mod several;
mod streams;
mod tls;
mod virtual_addresses;
