//! `causeway bench`: its command line (`options`), and that of the ranks that it starts if no MPI is measured
//! (`part`). What it does is `running` in crates/bench.

pub mod options;
pub mod part;

pub use options::Task;
