//! `causeway status`: asks the gateway of this host, once or again and again, and shows its answer.
//!
//! `text` is for people, in lines of `columns`, `rates` compares two polls, `watch` polls again and again.
//! docs/checking.md explains the columns.

mod rates;
pub mod text;
mod watch;

use causeway_control::{self as control, ControlError, Reply, Request, Status};
use causeway_host::columns::Width;
use causeway_host::say;
use causeway_wire::TextError;
use std::process::ExitCode;
use std::time::Duration;

/// Show the state of this host's gateway: sites, tunnels, jobs.
#[derive(clap::Args)]
pub struct Args {
    /// Show all columns, in lines of any length. Without this option, lines have 100 columns.
    #[arg(long, conflicts_with = "json")]
    wide: bool,
    /// Print the state as JSON; with --watch, one object per line.
    #[arg(long)]
    json: bool,
    /// Repeat every second, or every SECONDS, and show what crossed the tunnels since the last time.
    #[arg(long, value_name = "SECONDS", num_args = 0..=1, default_missing_value = "1", value_parser = seconds)]
    watch: Option<Duration>,
}

/// Longest time between two polls: a day.
const LONGEST: f64 = 86_400.0;

/// Shortest time: a gateway has more to do than answer polls.
const SHORTEST: f64 = 0.1;

fn seconds(text: &str) -> Result<Duration, TextError> {
    let seconds: f64 = text
        .parse()
        .map_err(|_| "is not a number of seconds".to_owned())?;
    if (SHORTEST..=LONGEST).contains(&seconds) {
        Ok(Duration::from_secs_f64(seconds))
    } else {
        Err(format!("is not between {SHORTEST} and {LONGEST}").into())
    }
}

/// Prints the state of the gateway of this host.
pub fn main(args: Args) -> ExitCode {
    let width = if args.wide { Width::Wide } else { Width::Narrow };
    if let Some(every) = args.watch {
        return watch::watch(every, args.json, width);
    }
    let status = match ask() {
        Ok(status) => status,
        Err(error) => return fail(error),
    };
    if !args.json {
        return say::result(text::readable(&status, None, width).trim_end());
    }
    match serde_json::to_string_pretty(&status) {
        Ok(text) => say::result(text),
        Err(error) => fail(error),
    }
}

fn ask() -> Result<Status, ControlError> {
    match control::ask(&control::socket(), &Request::Status {})? {
        (Reply::Status(status), _) => Ok(*status),
        (other, _) => Err(ControlError::Answer(format!("{other:?}"))),
    }
}

fn fail(error: impl std::fmt::Display) -> ExitCode {
    say::error(format_args!("causeway status: {error}"));
    ExitCode::FAILURE
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_between_looks_stay_within_reason() {
        assert_eq!(seconds("0.5"), Ok(Duration::from_millis(500)));
        assert_eq!(seconds("60"), Ok(Duration::from_secs(60)));
        for wrong in ["", "fast", "0", "-1", "0.01", "1e9", "NaN", "inf"] {
            assert!(seconds(wrong).is_err(), "{wrong}");
        }
    }
}
