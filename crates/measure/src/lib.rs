//! Measures programs in an emulated grid: runs them, reads what they print, and sets it beside the physical
//! limit in tables and one HTML page.
//!
//! It knows nothing of tunnels: it sees what a user sees. Only the bench's `loopback` speaks as `causeway
//! run` and a shim do, to have nothing but gateways between two sockets.
//!
//! `demo` and `bench` are the two workloads. `limit`, `samples`, `claim`, `netpipe` and `pingpong` hold the
//! numbers. `results`, `plot`, `page` and `table` make what people read. `lab`, `program` and `host` are the
//! machine.

pub mod bench;
pub mod claim;
pub mod demo;
pub mod host;
pub mod lab;
pub mod limit;
pub mod netpipe;
pub mod page;
pub mod pingpong;
pub mod plot;
pub mod program;
pub mod results;
pub mod samples;
pub mod table;
