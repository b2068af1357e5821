//! Jobs that are submitted and left alone: `causeway submit`, `jobs`, `output`, `wait` and `cancel`.
//! What they read and write is `queue` of crates/run.

pub mod cancel;
pub mod output;
pub mod show;
pub mod submit;
pub mod wait;

use causeway_host::say;
use causeway_wire::TextError;
use std::process::ExitCode;
use std::time::Duration;

/// Status if a job is unknown or a command line wrong.
const WRONG_USE: u8 = 2;

/// How often a command polls a job: another host that shares the home directory may carry it, and a shared
/// directory notifies nobody.
const LOOK_EVERY: Duration = Duration::from_millis(200);

/// Names a submitted job.
#[derive(Debug, clap::Args)]
pub struct One {
    /// The number that causeway submit printed.
    #[arg(value_name = "ID")]
    id: u64,
}

/// Says why a command has not done what it was asked to do.
fn refused(command: &str, error: &TextError) -> ExitCode {
    say::error(format_args!("causeway {command}: {error}"));
    ExitCode::from(WRONG_USE)
}
