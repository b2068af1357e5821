//! Measures a grid and the MPIs on it: runs programs under deadlines, keeps rows, and compares them with the
//! physical limit.
//!
//! A measurement is a matrix of cells (`cell`), which a `plan` names. `matrix` runs them in the order that
//! `schedule` says, and `store` keeps each row (`row`). `summary` sums them up, by `samples`, `interval`,
//! `fit` and `limit`; `tables` shows it.
//!
//! `worth` is what a program takes over any link, from its times over three. `messages` is what a program
//! sends, from the counts of its ranks.
//!
//! `node` is what a node has, and how fast it is.
//!
//! `running` is `causeway bench`, which puts all of these to use.
//!
//! `program` runs one program, `lab` an emulated grid, `output` reads what programs print, `tcp` is the
//! ping-pong without an MPI, and `host` describes the machine.

pub mod cell;
pub mod fit;
pub mod host;
pub mod interval;
pub mod lab;
pub mod limit;
pub mod matrix;
pub mod messages;
pub mod node;
pub mod output;
pub mod plan;
pub mod program;
pub mod row;
pub mod running;
pub mod samples;
pub mod schedule;
pub mod store;
pub mod summary;
pub mod table;
pub mod tables;
pub mod tcp;
pub mod verdict;
pub mod worth;
