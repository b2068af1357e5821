//! Describes what `causeway bench` is to measure, or to count.

use crate::cell::{Settings, Traffic, Way};
use crate::plan::KnownLink;
use std::ffi::OsString;
use std::path::PathBuf;

/// What to measure, or to count.
#[derive(Debug)]
pub enum Task {
    /// A ping-pong over TCP, without an MPI.
    Tcp {
        /// Its messages.
        messages: Messages,
        /// See [`Common`].
        common: Common,
    },
    /// A ping-pong between two MPI ranks.
    Pingpong {
        /// Its messages.
        messages: Messages,
        /// See [`Common`].
        common: Common,
    },
    /// The MPI operations that Intel's MPI benchmarks time.
    Operations(Operations),
    /// A program of the user's own.
    App {
        /// See [`Common`].
        common: Common,
        /// The launcher and its arguments, as for `causeway run`; the launchers of [`Common::mpi`], if any,
        /// replace it.
        command: Vec<OsString>,
    },
    /// The NAS Parallel Benchmarks.
    Npb(Npb),
    /// How long a program would take over two sites with any link between them.
    Worth(Worth),
    /// The messages of a program, their sizes and their receivers.
    Messages(Counting),
}

/// See [`Task::Messages`].
#[derive(Debug)]
pub struct Counting {
    /// The launcher and its arguments.
    pub command: Vec<OsString>,
    /// Directory of the counts.
    pub out: PathBuf,
    /// Number of ranks at each site, in rank order; empty: two halves.
    pub sites: Vec<u32>,
    /// Whether the counts are printed as JSON.
    pub json: bool,
}

/// See [`Task::Worth`].
#[derive(Debug)]
pub struct Worth {
    /// The launcher and its arguments, as for `causeway run`.
    pub command: Vec<OsString>,
    /// Directory of the runs.
    pub out: PathBuf,
    /// How many runs there are over each link, in turn.
    pub rounds: u32,
    /// The link to estimate for; `None`: the one that this host's gateway has, else the papers'.
    pub link: Option<KnownLink>,
    /// Seconds after which a run, and with it the whole measurement, is stopped.
    pub time_limit: u64,
    /// Whether the figures are printed as JSON.
    pub json: bool,
    /// The version of the command, which rows name.
    pub version: String,
}

/// See [`Task::Operations`].
#[derive(Debug)]
pub struct Operations {
    /// Names of the operations; empty: all.
    pub operations: Vec<String>,
    /// Programs that measure them instead.
    pub program: Vec<PathBuf>,
    /// Message sizes in bytes.
    pub sizes: Vec<u64>,
    /// See [`Rounds`].
    pub rounds: Rounds,
    /// See [`Common`].
    pub common: Common,
}

/// See [`Task::Npb`].
#[derive(Debug)]
pub struct Npb {
    /// Directory or archive of the sources.
    pub source: PathBuf,
    /// Benchmarks to run.
    pub benchmarks: Vec<String>,
    /// Problem size, S to E.
    pub class: String,
    /// Options of the Fortran compiler.
    pub fflags: String,
    /// See [`Common`].
    pub common: Common,
}

/// How messages go back and forth.
#[derive(Debug)]
pub struct Messages {
    /// The messages' sizes in bytes.
    pub sizes: Vec<u64>,
    /// See [`Rounds`].
    pub rounds: Rounds,
    /// Pause before each round, in milliseconds.
    pub idle: u64,
}

/// How often one size is measured in a run.
#[derive(Debug, Clone, Copy)]
pub struct Rounds {
    /// Rounds of each size; `None`: the default for what is measured.
    pub count: Option<u32>,
    /// Seconds after which a size ends with fewer rounds, but at least five; `None`: the default.
    pub seconds: Option<f64>,
}

/// What all measurements have in common.
#[derive(Debug)]
pub struct Common {
    /// Directory of the results; `None`: `bench-NAME`.
    pub out: Option<PathBuf>,
    /// Emulated grids to measure on, in turn; empty: this host's grid.
    pub lab: Vec<String>,
    /// Launchers of the MPIs to measure; empty: all in PATH.
    pub mpi: Vec<OsString>,
    /// How ranks reach each other.
    pub ways: Vec<Way>,
    /// Settings of the MPI.
    pub settings: Vec<Settings>,
    /// What else crosses the link.
    pub traffic: Vec<Traffic>,
    /// Number of flows of busy traffic.
    pub flows: u32,
    /// Sites to measure; empty: this one, and the first other one that has nodes.
    pub sites: Vec<String>,
    /// Ranks at each site; `None`: the default for what is measured.
    pub ranks: Option<u32>,
    /// The least and the most runs of each cell.
    pub least: u32,
    /// See [`Common::least`].
    pub most: u32,
    /// A cell is done when the 95 % confidence interval of each median is within this percentage of it.
    pub interval: f64,
    /// Seconds after which a run is stopped and counts as failed.
    pub time_limit: u64,
    /// Seed of the random numbers.
    pub seed: u64,
    /// The link; `None`: as seen by the gateways.
    pub link: Option<KnownLink>,
    /// Whether the summary is printed as JSON.
    pub json: bool,
    /// The version of the command, which rows name.
    pub version: String,
}
