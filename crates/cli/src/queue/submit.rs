//! `causeway submit`: stores a job, and has the gateway carry it.

use super::refused;
use crate::run;
use causeway_control::questions;
use causeway_control::{self as control, ControlError};
use causeway_host::say;
use causeway_run::gateways;
use causeway_run::meant::Run;
use causeway_run::queue::store::{self, Job, Submitted, now};
use causeway_wire::TextError;
use std::process::ExitCode;

/// Most characters of a command that are shown.
const MOST_SHOWN: usize = 200;

/// Queue a run and return: the gateway carries it on. Takes the options of causeway run.
#[derive(Debug, clap::Args)]
pub struct Args {
    #[command(flatten)]
    run: run::Args,
}

/// Prints the job's number.
pub fn main(args: &Args) -> ExitCode {
    let run = match run::read(&args.run).and_then(|run| causeway_run::check(&run).map(|()| run)) {
        Ok(run) => run,
        Err(error) => return refused("submit", &TextError::of(error)),
    };
    match submit(&run) {
        Ok(job) => {
            say::error(format_args!(
                "causeway: job {} is queued: 'causeway jobs' shows it, 'causeway output --follow {}' its output",
                job.id, job.id
            ));
            say::result(job.id)
        }
        Err(error) => refused("submit", &error),
    }
}

fn submit(run: &Run) -> Result<Job, TextError> {
    let control = control::socket();
    // Without a gateway, nobody would carry it.
    let status = match questions::status(&control) {
        Err(ControlError::NoGateway { .. }) if gateways::start_own(&control).map_err(TextError::of)? => {
            questions::status(&control)
        }
        asked => asked,
    };
    let status = status.map_err(TextError::of)?;
    let directory =
        std::env::current_dir().map_err(|error| format!("find the current directory: {error}"))?;
    let words = run.words();
    let command = words.iter().map(|word| word.to_string_lossy().into_owned());
    let command = command
        .collect::<Vec<_>>()
        .join(" ")
        .chars()
        .take(MOST_SHOWN)
        .collect();
    let submitted = Submitted {
        site: status.site.clone(),
        control: std::path::absolute(&control).map_err(|error| error.to_string())?,
        directory,
        at: now(),
        wait_seconds: run.wait().as_secs(),
        command,
    };
    let place = store::place()?;
    let failed = |error: std::io::Error| format!("write the job down in {}: {error}", place.display());
    let job = store::create(&place, &submitted, &words).map_err(failed)?;
    match store::have_carried(&control, &place) {
        Ok(()) => Ok(job),
        // Another gateway, such as a later one, might still carry the job, so it is removed: the user is told
        // that it is not queued.
        Err(ControlError::Refused(why)) => {
            job.remove().map_err(failed)?;
            Err(format!("the gateway does not carry it: {why}").into())
        }
        Err(error) => {
            say::error(format_args!(
                "causeway: job {}: no process carries it yet: {error}; a gateway that starts carries it on",
                job.id
            ));
            Ok(job)
        }
    }
}
