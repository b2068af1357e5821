//! `causeway place`, and `causeway run --profile`: which sites get the groups of a job's profile.
//!
//! `model` makes a question for crates/placement of a profile and of what the gateway knows of the sites;
//! `offered` is the room that a batch system has, and `weigh` says what makes a placement good. `answer` has
//! the sites and groups of a run.

mod answer;
mod model;
mod offered;
mod weigh;

use crate::failure::Failure;
use crate::{ask, resources, say, text_file};
pub use answer::Placed;
use causeway_control as control;
use causeway_placement::{Outcome, Refusal};
use causeway_profile::{MAX_BYTES, Profile};
use model::Question;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::{Duration, Instant};
pub use weigh::Weighing;

/// Show which sites the groups of a job's profile get (docs/profile.md).
#[derive(Debug, clap::Args)]
pub struct Args {
    /// The profile, in TOML or QCG's XML.
    #[arg(value_name = "PROFILE")]
    file: PathBuf,
    /// Look for so long for a placement and for a proof that there is no better one, in seconds.
    #[arg(long, value_name = "SECONDS", default_value_t = SECONDS, value_parser = clap::value_parser!(u32).range(1..=3600))]
    seconds: u32,
    #[command(flatten)]
    weighing: Weighing,
}

/// How long a run looks.
const SECONDS: u32 = 10;

/// Prints a line for each group, and the command that runs the job so. The status is 2 where the profile has
/// mistakes or cannot be placed.
pub fn main(args: &Args) -> ExitCode {
    match place(&args.file, &args.weighing, args.seconds) {
        Ok((_, placed)) => say::result(placed.lines().join("\n")),
        Err(failure) => {
            say::error(format_args!("causeway place: {failure}"));
            ExitCode::from(failure.code)
        }
    }
}

/// Places the profile of a run, and says where.
///
/// # Errors
/// See [`main`].
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
/// It cannot be read, or has mistakes.
pub fn read(file: &Path) -> Result<Profile, Failure> {
    let text = text_file::read(file, MAX_BYTES).map_err(Failure::new)?;
    let reading = causeway_profile::read(&text, &file.display().to_string());
    let read = reading.finish().map_err(Failure::usage)?;
    for warning in &read.warnings {
        say::error(format_args!("causeway: {warning}"));
    }
    Ok(read.value)
}

fn place(file: &Path, weighing: &Weighing, seconds: u32) -> Result<(Profile, Placed), Failure> {
    let profile = read(file)?;
    let sites = ask::sites(&control::socket()).map_err(Failure::usage)?;
    let now = resources::now();
    let offers = resources::offers(&sites, now).map_err(Failure::new)?;
    let status = ask::status(&control::socket()).map_err(Failure::new)?;
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
