//! Formats of the LAN leg, between the shim and the gateway of its site.
//!
//! There are no sockets, no clock and no allocations worth counting, because the shim links this into every
//! process of a job. Read `preface` first (how both directions of the LAN leg begin), then `grid` (what every
//! process knows). `shown` is for everything that prints what others have chosen.
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
/// A launcher forwards its whole environment. So the variables have the same value in every process of the
/// job, at every site, except [`env::SITE`] and [`env::WORLD`], which the launcher of a job over all sites
/// does not have.
pub mod env {
    /// The beginnings of the names of sanitizers' runtimes, gcc's and clang's. In LD_PRELOAD they precede
    /// Causeway's libraries, since they refuse any other place.
    pub const SANITIZERS: &[&str] = &["libasan.", "libtsan.", "liblsan.", "libubsan.", "libclang_rt."];
    /// The grid map, see [`crate::Grid`].
    pub const GRID: &str = "CAUSEWAY_GRID";
    /// The grid map, in processes that lack [`GRID`]. Open MPI's mpirun forwards this variable because of its
    /// name, whatever its value; the value of a variable that it is told to forward must not contain a `=`
    /// (4.1.4), but a map with virtual addresses does.
    pub const GRID_BY_OPEN_MPI: &str = "OMPI_CAUSEWAY_GRID";
    /// The job's token in hexadecimal, see [`crate::Token`].
    pub const TOKEN: &str = "CAUSEWAY_TOKEN";
    /// The site of a node; its gateway sets this when it starts a process there. If no gateway has started a
    /// process, it is missing.
    pub const SITE: &str = "CAUSEWAY_SITE";
    /// How many bytes of files a job of another site may send to this node, as the site's gateway says:
    /// `files` of `[accept]`.
    pub const ACCEPT_FILES: &str = "CAUSEWAY_ACCEPT_FILES";
    /// Version, site and rendezvous of a process in a run over sites that each run their own MPI. The shim
    /// only checks whether it is set.
    pub const WORLD: &str = "CAUSEWAY_WORLD";
    /// How the site starts MPI programs, as its gateway's configuration says: `start` and `setup` of `[mpi]`.
    pub const MPI_START: &str = "CAUSEWAY_MPI_START";
    /// See [`MPI_START`].
    pub const MPI_SETUP: &str = "CAUSEWAY_MPI_SETUP";
    /// The path of causeway at a site, for the site's own command; it may differ from the path where the job
    /// was started.
    pub const OWN_PROGRAM: &str = "CAUSEWAY_PROGRAM";
    /// What a launcher keeps for itself: the variable by which it tells a process that it is a rank and,
    /// after a `|`, the names of variables that the shim removes from ranks, separated by blanks.
    pub const NOT_FOR_RANKS: &str = "CAUSEWAY_NOT_FOR_RANKS";
    /// `1` makes the shim report on standard error what it does with each connection.
    pub const DEBUG: &str = "CAUSEWAY_SHIM_DEBUG";
}
