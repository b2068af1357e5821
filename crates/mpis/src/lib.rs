//! Holds what is known of each MPI and its launcher, and nothing else: a row of a table for each, or a branch
//! where behaviour differs. Nothing here runs a program.
//!
//! - [`Mpi`]: the families of launchers, a [`Row`] for each. `launchers`: their names, and what they say of
//!   themselves.
//! - `by_hand`: what a careful user sets without Causeway.
//! - `command_line`: what a launcher's command line says: ranks, hosts, programs.
//! - `options`: what of a launcher's command line is an option, and what its value.
//! - `environment`: the variables that a launcher gets. `eager`: the limits among them that depend on the
//!   link.
//! - `names`: what processes, daemons and the loader call things.
//! - `quoted`: a word of a command line that a shell reads.
//! - `starting`: what starts a site's own part of a job, a batch system's command or a launcher.
//! - `system_file`: what a distribution has set for all users, and Causeway undoes.
//! - `versions`: which versions were seen to compute the same with all that.
//! - `family`: which MPI a program was built for, by the libraries that it asks for (`elf`).
//!
//! Depends on nothing of the project.

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
