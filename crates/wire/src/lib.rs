//! Formats of the LAN leg, between the shim and the gateway of its site.
//!
//! No sockets, no clock, no allocation worth counting: the shim links this into every process of a job. Read
//! `preface` first (what both directions of the LAN leg open with), then `grid` (what every process knows).
//! `shown` is for all that prints what others chose.
#![forbid(unsafe_code)]

#[cfg(not(all(target_os = "linux", target_pointer_width = "64")))]
compile_error!(
    "Causeway is for Linux on processors of 64 bits: programs of 32 bits would need libraries of their own"
);
#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
compile_error!(
    "Causeway is for x86-64 and arm64: ARCHITECTURE.md says where a port to another processor begins"
);

pub mod grid;
pub mod preface;
pub mod proof;
mod proxy;
pub mod question;
pub mod shown;
pub mod text_error;
pub mod token;
pub mod verdict;

pub use grid::{Cidr, Grid, Place, Site};
pub use preface::{Preface, PrefaceError, Sender, Wants};
pub use text_error::TextError;
pub use token::Token;
pub use verdict::{Reason, Verdict};

/// Names of the environment variables that carry the grid to every process of a job.
///
/// A launcher forwards its own environment whole. So they hold the same value in every process of the job, at
/// every site, but for [`env::SITE`] and [`env::WORLD`], which the launcher of a job over all sites does
/// not have.
pub mod env {
    /// How the names of sanitizers' runtimes begin, gcc's and clang's. In LD_PRELOAD they stand before
    /// Causeway's libraries, since they refuse any other place.
    pub const SANITIZERS: &[&str] = &["libasan.", "libtsan.", "liblsan.", "libubsan.", "libclang_rt."];
    /// The grid map, see [`crate::Grid`].
    pub const GRID: &str = "CAUSEWAY_GRID";
    /// The same where [`GRID`] is missing. Open MPI's mpirun forwards it for its name, whatever its value; a
    /// variable that it is told to forward must not have a `=` in its value, as a map with virtual addresses
    /// has (4.1.4).
    pub const GRID_BY_OPEN_MPI: &str = "OMPI_CAUSEWAY_GRID";
    /// The job's token in hexadecimal, see [`crate::Token`].
    pub const TOKEN: &str = "CAUSEWAY_TOKEN";
    /// The site of a node, as its own gateway says when it starts something there. Where no gateway has
    /// started a process, it is missing.
    pub const SITE: &str = "CAUSEWAY_SITE";
    /// Bytes of files that a job of another site may send to this node, as the site's gateway says: `files`
    /// of `[accept]`.
    pub const ACCEPT_FILES: &str = "CAUSEWAY_ACCEPT_FILES";
    /// Version, site and rendezvous of a process in a run over sites that each run their own MPI. The shim
    /// only asks whether it is set.
    pub const WORLD: &str = "CAUSEWAY_WORLD";
    /// How the site starts MPI programs, as its gateway's configuration says: `start` and `setup` of `[mpi]`.
    pub const MPI_START: &str = "CAUSEWAY_MPI_START";
    /// See [`MPI_START`].
    pub const MPI_SETUP: &str = "CAUSEWAY_MPI_SETUP";
    /// For a site's own command: the path of causeway there, which may differ from the one where the job was
    /// started.
    pub const OWN_PROGRAM: &str = "CAUSEWAY_PROGRAM";
    /// What a launcher has for itself alone: the variable by which it tells a process that it is a rank, and
    /// behind a `|` the names of variables that the shim takes from ranks, with blanks between them.
    pub const NOT_FOR_RANKS: &str = "CAUSEWAY_NOT_FOR_RANKS";
    /// `1` makes the shim tell on stderr what it does with each connection.
    pub const DEBUG: &str = "CAUSEWAY_SHIM_DEBUG";
}
