//! `causeway wait`.

use super::{LOOK_EVERY, One, refused};
use causeway_host::say;
use causeway_run::queue::store;
use std::process::ExitCode;
use std::time::{Duration, Instant};

/// How often it checks whether a process carries the job.
const SEE_TO_IT_EVERY: Duration = Duration::from_secs(3);

/// Wait until a submitted job has ended, and end with its status.
#[derive(Debug, clap::Args)]
pub struct Args {
    #[command(flatten)]
    job: One,
}

/// Waits.
pub fn main(args: &Args) -> ExitCode {
    let job = match store::find(args.job.id) {
        Ok(job) => job,
        Err(error) => return refused("wait", &error),
    };
    let mut looked = Instant::now();
    loop {
        if looked.elapsed() >= SEE_TO_IT_EVERY {
            job.see_to_it();
            looked = Instant::now();
        }
        if let Some(end) = job.end() {
            if let Some(why) = end.why {
                say::error(format_args!("causeway: job {}: {why}", job.id));
            }
            return ExitCode::from(end.status);
        }
        if !job.directory.exists() {
            return refused("wait", &"it was removed".into());
        }
        std::thread::sleep(LOOK_EVERY);
    }
}
