//! The host, and the user for whom a command runs: output for the user, the user's files and directories,
//! locks, output of children, processes. Every other crate of the command builds on this one, and it knows
//! none of them.
#![deny(clippy::print_stdout, clippy::print_stderr)]

pub mod background;
pub mod columns;
pub mod failure;
pub mod first_line;
pub mod journal_entry;
pub mod lock;
pub mod output;
pub mod own_file;
pub mod processes;
mod quoted;
pub mod say;
pub mod text_file;
pub mod user_directories;

pub use quoted::{for_any_shell, quoted};
