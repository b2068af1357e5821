//! `causeway cancel`.

use super::{LOOK_EVERY, One, refused};
use causeway_host::say;
use causeway_run::phase::Phase;
use causeway_run::queue::store::{self, CANCELED, End, Job, now};
use causeway_wire::TextError;
use std::io;
use std::process::ExitCode;
use std::time::{Duration, Instant};

/// How long a job gets to end: its run is killed after 40 s.
const ENDS_WITHIN: Duration = Duration::from_secs(60);

/// Cancel a submitted job: what it waits for is given back, what runs ends.
#[derive(Debug, clap::Args)]
pub struct Args {
    #[command(flatten)]
    job: One,
}

/// Returns once the job has ended; the status is 1 if it had ended before.
pub fn main(args: &Args) -> ExitCode {
    let id = args.job.id;
    let canceled = store::find(id).and_then(|job| match job.end() {
        Some(_) => Ok(false),
        None => cancel(&job).map_err(|error| format!("job {id}: {error}").into()),
    });
    match canceled {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => {
            say::error(format_args!("causeway cancel: job {id} had ended before"));
            ExitCode::FAILURE
        }
        Err(error) => refused("cancel", &error),
    }
}

fn cancel(job: &Job) -> Result<bool, TextError> {
    let text = |error: io::Error| TextError::from(error.to_string());
    job.ask_to_cancel().map_err(text)?;
    let until = Instant::now() + ENDS_WITHIN;
    loop {
        if let Some(end) = job.end() {
            return Ok(end.is_canceled);
        }
        // If no process carries it, nothing of it runs.
        if let Some(_lock) = job.lock().map_err(text)?
            && job.end().is_none()
        {
            let end = match job.phase() {
                Some(Phase::Running { .. }) => End::lost(job),
                _ => End {
                    is_canceled: true,
                    status: CANCELED,
                    at: now(),
                    why: None,
                },
            };
            job.set_end(&end).map_err(text)?;
            return Ok(true);
        }
        if Instant::now() > until {
            return Err(
                format!("it has not ended within {ENDS_WITHIN:?}; whatever carries it will end it").into(),
            );
        }
        std::thread::sleep(LOOK_EVERY);
    }
}
