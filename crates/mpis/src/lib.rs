//! Facts about each MPI and its launcher: a row of a table for each, or a branch if behaviour differs.
//! Nothing here runs a program.
//!
//! - [`Mpi`]: the families of launchers, with a [`Row`] for each. `launchers`: their names, and what they
//!   report about themselves.
//! - `by_hand`: what a careful user sets without Causeway.
//! - `command_line`: what a launcher's command line says: ranks, hosts, programs.
//! - `options`: which words of a launcher's command line are options, and which are their values.
//! - `environment`: the variables that a launcher gets. `eager`: the limits among them that depend on the
//!   link.
//! - `names`: names that processes, daemons and the loader use.
//! - `quoted`: a word of a command line that a shell reads.
//! - `starting`: how a site's own part of a job is started, by a batch system's command or a launcher.
//! - `system_file`: settings of a distribution for all users that Causeway undoes.
//! - `versions`: which versions were seen to compute the same with all of this.
//! - `family`: which MPI a program was built for, by the libraries that it asks for (`elf`).
//!
//! This crate depends on nothing else in the project.

pub mod by_hand;
pub mod command_line;
pub mod eager;
pub mod elf;
pub mod environment;
pub mod family;
pub mod launchers;
mod mpi;
pub mod names;
pub mod options;
pub mod preload;
pub mod starting;
pub mod system_file;
pub mod versions;

pub use mpi::{Mpi, OwnHost, Row};
