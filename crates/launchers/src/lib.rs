//! The user's launcher. `launcher` finds it in PATH and asks which MPI it belongs to, `rewrite` changes its
//! arguments so that ranks get Causeway's libraries, and `programs` does so with those in a file.
//! `mpi_programs` are the MPI programs that come with Causeway, as any launcher starts them.

pub mod launcher;
pub mod mpi_programs;
pub mod programs;
pub mod rewrite;
