//! Measures programs in an emulated grid: runs them, reads what they print, and compares it with the physical
//! limit in tables and one HTML page.
//!
//! It knows nothing about tunnels: it sees what a user sees. Only the bench's `loopback` acts as `causeway
//! run` and a shim do, so that only gateways are between two sockets.
//!
//! `demo` and `bench` are the two workloads. `claim`, `netpipe` and `pingpong` have the numbers, together
//! with the crate causeway-bench. `results` makes what people read, with the crate causeway-report. `host`
//! and `checkout` describe the machine.

pub mod bench;
pub mod checkout;
pub mod claim;
pub mod demo;
pub mod host;
pub mod netpipe;
pub mod pingpong;
pub mod results;
