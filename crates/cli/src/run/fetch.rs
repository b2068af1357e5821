//! `causeway fetch`: fetches the files of a job whose `--fetch` failed or was interrupted.

use causeway_host::say;
use causeway_run::WRONG_USE;
use causeway_run::files::again::fetch;
use std::process::ExitCode;

/// What of whose job.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// The job's directories, as the message that said what failed names them; needed if there are several.
    #[arg(value_name = "NAME")]
    name: Option<String>,
}

/// Fetches the files to the current directory, by the patterns that the job was given.
pub fn main(args: &Args) -> ExitCode {
    match fetch(args.name.as_deref()) {
        Ok(status) => ExitCode::from(status),
        Err(error) => {
            say::error(format_args!("causeway: {error}"));
            ExitCode::from(WRONG_USE)
        }
    }
}
