//! Figures and where they come from: runs programs in an emulated grid, reads what they print, and sets it beside the
//! physical limit in tables and one HTML page. Knows nothing of tunnels: it sees what a user sees.
//!
//! `demo` and `bench` are the two workloads; `limit`, `samples`, `netpipe` and `pingpong` the numbers; `plot`, `page` and
//! `table` what people read; `program` and `host` the machine.

pub mod bench;
pub mod demo;
pub mod host;
pub mod limit;
pub mod netpipe;
pub mod page;
pub mod pingpong;
pub mod plot;
pub mod program;
pub mod results;
pub mod samples;
pub mod table;
