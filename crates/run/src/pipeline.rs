//! The steps of every run, however its processes start: it asks for the sites, reserves their nodes and
//! starts the job; in the end it fetches files and gives the nodes back. In between, either `one_mpi` runs
//! one launcher over all sites, or `own` runs a command at each site.

use super::allocations::{self, Allocations};
use super::coallocation::{self, Begun, Held};
use super::error::RunError;
use super::files::coming::Asked;
use super::files::{self, Files};
use super::job::{known_sites, start_job};
use super::meant::Run;
use causeway_control::{JobReply, Plan, Sites};
use causeway_mpis::preload::unsayable;
use std::os::unix::net::UnixStream;
use std::path::Path;

/// What a run has reserved at the sites' batch systems.
pub struct Reserved {
    /// The allocations, by site.
    pub allocations: Allocations,
    /// The job for which they were obtained, if the run requested them itself.
    begun: Option<Begun>,
}

/// Asks for these sites (all, if none is named), gets the allocations of `--time` or those that the user has
/// obtained, and replaces the nodes that the sites list with those of the allocations. `takes_part` decides
/// whether the run may use a site. A launcher that starts nothing gets no nodes.
///
/// # Errors
/// Those of [`known_sites`], [`coallocation::begin`] and [`allocations::apply`].
pub fn reserve(
    run: &Run,
    (names, starts_nothing): (&[String], bool),
    takes_part: impl Fn(&str) -> bool,
) -> Result<(Sites, Reserved), RunError> {
    let mut known = known_sites(run.mode, names)?;
    let begun = coallocation::begin(run, &mut known)?;
    let allocations = match &begun {
        Some(begun) => begun.allocations.clone(),
        None if run.mode.has_shim() && !starts_nothing => {
            allocations::apply(run.allocations(), &mut known, takes_part)?
        }
        None => Allocations::new(),
    };
    Ok((known, Reserved { allocations, begun }))
}

/// A job that the gateway has started.
pub struct Job {
    /// What the gateway has answered about the job.
    pub reply: JobReply,
    /// Dropping this gives the job's allocations back.
    held: Held,
    /// The connection: the job lasts as long as it.
    pub connection: UnixStream,
}

impl Job {
    /// Starts the job of a run, unless it was started with its allocations.
    ///
    /// # Errors
    /// Those of [`start_job`].
    pub fn start(run: &Run, plan: Plan, reserved: Reserved) -> Result<Job, RunError> {
        let (reply, connection, held) = match reserved.begun {
            Some(begun) => (begun.job, begun.connection, begun.held),
            None => {
                let (reply, connection) = start_job(run, plan)?;
                (reply, connection, Held::default())
            }
        };
        Ok(Job {
            reply,
            held,
            connection,
        })
    }

    /// Fetches the job's files, gives its allocations back, and returns the status of the run. The keepers of
    /// the files on the nodes are processes of the job, on nodes of its allocations: so these end first.
    ///
    /// # Errors
    /// Those of [`files::fetched`].
    pub fn finish(self, status: u8, files: Option<Files>, asked: Asked<'_>) -> Result<u8, RunError> {
        let fetched = files::fetched(files.as_ref(), self.held.status_after(status), asked);
        drop(files);
        fetched
    }
}

/// Refuses to run if the loader or a launcher would split the path of this program.
///
/// # Errors
/// The path, and what it contains.
pub fn check_path(own: &Path) -> Result<(), RunError> {
    match unsayable(own) {
        Some(what) => Err(RunError::Unsayable {
            own: own.to_owned(),
            what,
        }),
        None => Ok(()),
    }
}
