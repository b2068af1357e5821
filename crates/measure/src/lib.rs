//! Measures programs in an emulated grid: runs them, reads what they print, and compares it with the physical
//! limit in tables and one HTML page.
//!
//! It knows nothing about tunnels: it sees what a user sees. Only the bench's `loopback` acts as `causeway
//! run` and a shim do, so that only gateways are between two sockets.
//!
//! `demo` and `bench` are the two workloads. `claim` and `pingpong` have the numbers, together with the crate
//! causeway-bench, which runs, times and reads programs. `results` makes what people read, with the crate
//! causeway-report. `checkout` finds the files of this checkout.

pub mod bench;
pub mod checkout;
pub mod claim;
pub mod demo;
pub mod pingpong;
pub mod results;
