//! Measures a grid and the MPIs on it: runs programs under deadlines, keeps rows, and sets them beside the
//! physical limit.
//!
//! `program` runs one program, `lab` an emulated grid. `limit` and `samples` are the numbers, `table`
//! shows them.

pub mod lab;
pub mod limit;
pub mod program;
pub mod samples;
pub mod table;
