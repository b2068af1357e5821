//! `causeway run --profile`: a run as a job's profile describes it, at the sites where its groups are placed.

use super::error::RunError;
use super::groups::Groups;
use super::meant::{Asked, IDLE, Nodes, Run, Start};
use super::mode::Mode;
use crate::place;
use causeway_host::failure::Failure;
use causeway_profile::Profile;
use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

/// The run with what its profile and the placement of that profile say; a run without a profile is unchanged.
///
/// # Errors
/// The profile has mistakes, cannot be placed, or does not say what to run.
pub fn placed(run: Run) -> Result<Run, RunError> {
    let Some(wanted) = run.profile.clone() else {
        return Ok(run);
    };
    let (profile, placed) = place::for_run(&wanted.file, &wanted.weighing).map_err(failed)?;
    // Listed nodes are available for any time.
    let time = profile.seconds.filter(|_| placed.is_of_batch_systems);
    let mut run = with_command(run, profile, &wanted.file)?;
    run.nodes = time.map_or(Nodes::Listed, |seconds| {
        Nodes::Asked(Asked {
            time: Duration::from_secs(seconds),
            idle: IDLE,
            options: BTreeMap::new(),
        })
    });
    let shares = placed.sites.into_iter();
    run.sites = Some(shares.map(|(site, ranks)| (site, Some(ranks))).collect());
    run.groups = Groups::Placed(placed.value);
    Ok(run)
}

/// Checks what can be checked without the gateway.
///
/// # Errors
/// Those of [`placed`], except those of the placement.
pub fn check(run: &Run, file: &Path) -> Result<(), RunError> {
    let profile = place::read(file).map_err(failed)?;
    with_command(run.clone(), profile, file).map(drop)
}

/// The run with the command that the profile names, if it names one.
fn with_command(mut run: Run, profile: Profile, file: &Path) -> Result<Run, RunError> {
    if run.start == Start::Profile {
        let own_mpi = run.mode == Mode::OwnMpis || profile.command.is_none();
        let words = profile.command.or(profile.program);
        let words = words.ok_or_else(|| RunError::NothingInProfile(file.to_owned()))?;
        let words = words.into_iter().map(Into::into).collect();
        (run.mode, run.start) = match own_mpi {
            true => (Mode::OwnMpis, Start::Program(words)),
            false => (run.mode, Start::Launcher(words)),
        };
    }
    Ok(run)
}

fn failed(failure: Failure) -> RunError {
    RunError::Profile(failure.to_string())
}
