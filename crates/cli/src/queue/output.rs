//! `causeway output`.

use super::{LOOK_EVERY, One, refused};
use causeway_host::say::READER_GONE;
use causeway_run::queue::kept::Reader;
use causeway_run::queue::store::{self, Job};
use std::io::{self, ErrorKind, Write};
use std::process::ExitCode;

/// Print what a submitted job has printed: its first and its last 16 MiB.
#[derive(Debug, clap::Args)]
pub struct Args {
    #[command(flatten)]
    job: One,
    /// Go on until the job has ended.
    #[arg(long, short)]
    follow: bool,
}

/// Prints the output.
pub fn main(args: &Args) -> ExitCode {
    let job = match store::find(args.job.id) {
        Ok(job) => job,
        Err(error) => return refused("output", &error),
    };
    match print(&job, args.follow) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) if error.kind() == ErrorKind::BrokenPipe => ExitCode::from(READER_GONE),
        Err(error) => refused("output", &format!("job {}: {error}", job.id).into()),
    }
}

fn print(job: &Job, follows: bool) -> io::Result<()> {
    let mut reader = Reader::of(&job.directory);
    let mut stdout = io::stdout().lock();
    loop {
        // Whether the job has ended is checked first, so that everything printed before the end is copied.
        let is_last = !follows || job.end().is_some();
        reader.copy(&mut stdout)?;
        stdout.flush()?;
        if is_last {
            return Ok(());
        }
        std::thread::sleep(LOOK_EVERY);
    }
}
