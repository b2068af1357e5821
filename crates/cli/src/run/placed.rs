//! `causeway run --profile`: a run as a job's profile says, at the sites where its groups are placed.

use super::Args;
use super::error::RunError;
use crate::failure::Failure;
use crate::place;
use causeway_profile::Profile;
use std::path::Path;
use std::time::Duration;

/// The same arguments, with what the profile and its placement say.
///
/// # Errors
/// The profile has mistakes, cannot be placed, or does not say what to run.
pub fn placed(args: Args, file: &Path) -> Result<Args, RunError> {
    let (profile, placed) = place::for_run(file, &args.weighing).map_err(failed)?;
    let mut args = with_command(args, profile, file)?;
    args.sites = Some(placed.sites_option());
    // Listed nodes are there for any time.
    args.time = args.time.filter(|_| placed.is_of_batch_systems);
    args.placed = Some(placed.value);
    Ok(args)
}

/// Checks what can be checked without the gateway.
///
/// # Errors
/// Those of [`placed`], but for a placement.
pub fn check(args: &Args, file: &Path) -> Result<(), RunError> {
    let profile = place::read(file).map_err(failed)?;
    with_command(args.clone(), profile, file).map(drop)
}

/// What the profile has run, for how long. Nodes of batch systems are had for its time.
fn with_command(mut args: Args, profile: Profile, file: &Path) -> Result<Args, RunError> {
    args.time = profile.seconds.map(Duration::from_secs);
    if args.command.is_empty() {
        args.own_mpi |= profile.command.is_none();
        let words = profile.command.or(profile.program);
        let words = words.ok_or_else(|| RunError::NothingInProfile(file.to_owned()))?;
        args.command = words.into_iter().map(Into::into).collect();
    }
    Ok(args)
}

fn failed(failure: Failure) -> RunError {
    RunError::Profile(failure.to_string())
}
