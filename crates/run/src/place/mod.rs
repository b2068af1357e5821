//! `causeway place`, and `causeway run --profile`: decides which sites get the groups of a job's profile.
//!
//! `model` turns a profile, and what the gateway knows about the sites, into a question for crates/placement;
//! `offered` is the room that a batch system has, and `weigh` defines what makes a placement good. `answer`
//! contains the sites and groups of a run.

mod answer;
mod model;
mod offered;
mod weigh;

use crate::resources;
pub use answer::Placed;
use causeway_control as control;
use causeway_control::questions;
use causeway_host::failure::Failure;
use causeway_host::{say, text_file};
use causeway_placement::{Outcome, Refusal};
use causeway_profile::{MAX_BYTES, Profile};
use model::Question;
use std::path::Path;
use std::time::{Duration, Instant};
pub use weigh::{Weighing, price};

/// How long a run searches.
pub const SECONDS: u32 = 10;

/// Places the profile of a run, and prints where.
///
/// # Errors
/// Those of [`place`].
pub fn for_run(file: &Path, weighing: &Weighing) -> Result<(Profile, Placed), Failure> {
    let (profile, placed) = place(file, weighing, SECONDS)?;
    for line in placed.groups() {
        say::error(format_args!("causeway: {line}"));
    }
    Ok((profile, placed))
}

/// Reads the profile of a run.
///
/// # Errors
/// The profile cannot be read, or has mistakes.
pub fn read(file: &Path) -> Result<Profile, Failure> {
    let text = text_file::read(file, MAX_BYTES).map_err(Failure::new)?;
    let reading = causeway_profile::read(&text, &file.display().to_string());
    let read = reading.finish().map_err(Failure::usage)?;
    for warning in &read.warnings {
        say::error(format_args!("causeway: {warning}"));
    }
    Ok(read.value)
}

/// Places a profile, searching for this many seconds.
///
/// # Errors
/// The profile has mistakes or cannot be placed, or the gateway cannot be asked.
pub fn place(file: &Path, weighing: &Weighing, seconds: u32) -> Result<(Profile, Placed), Failure> {
    let profile = read(file)?;
    let sites = questions::sites(&control::socket()).map_err(Failure::usage)?;
    let now = resources::now();
    let offers = resources::offers(&sites, now).map_err(Failure::new)?;
    let status = questions::status(&control::socket()).map_err(Failure::new)?;
    let measured = resources::measured(&status);
    let mut question = Question::of(&profile, &sites, &offers, &measured, now).map_err(Failure::usage)?;
    let objectives = weighing.weigh(&mut question).map_err(Failure::usage)?;
    for warning in &question.warnings {
        say::error(format_args!("causeway: {warning}"));
    }
    let (began, budget) = (Instant::now(), Duration::from_secs(seconds.into()));
    let mut spent = || {
        let thousandths = began.elapsed().as_micros() * 1000 / budget.as_micros().max(1);
        u32::try_from(thousandths).unwrap_or(u32::MAX)
    };
    let placed = causeway_placement::place(&question.resources, &question.job, &objectives, &mut spent);
    match placed.map_err(Failure::usage)? {
        Outcome::Placed(placement) => {
            let placed = Placed::of(&question, &placement);
            Ok((profile, placed))
        }
        Outcome::Refused(refusal) => Err(Failure::usage(why(&question, &refusal))),
        Outcome::Undecided => Err(Failure::usage(format_args!(
            "no placement was found within {seconds} s; --seconds gives it more time"
        ))),
    }
}

/// Why there is no placement, for people.
fn why(question: &Question, refusal: &Refusal) -> String {
    let all = refusal.conflict.iter().map(|one| one.describe(&question.job));
    let all: Vec<String> = all.collect();
    let proved = match refusal.is_irreducible {
        true => "without any one of these it could be",
        false => "some of these may not matter",
    };
    let known: Vec<String> = { question.resources.sites.iter() }.map(model::shown).collect();
    format!(
        "the job cannot be placed: {} cannot all be met ({proved}); the sites are {}",
        all.join(", "),
        known.join(", ")
    )
}
