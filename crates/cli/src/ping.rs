//! `causeway ping SITE`: round trips to another site's gateway through the tunnel, in the manner of ping(8).
//!
//! The gateway of this host measures, so that what this command costs does not count.

use causeway_control::questions;
use causeway_control::{self as control, ControlError, Pong};
use causeway_host::say;
use causeway_paths::trips::{Summary, Trips};
use causeway_service::signals::heeded;
use causeway_wire::TextError;
use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::signal::{SigmaskHow, Signal, sigprocmask};
use nix::sys::signalfd::{SfdFlags, SignalFd};
use serde::Serialize;
use std::io;
use std::os::fd::AsFd;
use std::path::Path;
use std::process::ExitCode;
use std::time::{Duration, Instant};

/// Measure round trips through the tunnel to another site.
#[derive(clap::Args)]
pub struct Args {
    /// The site.
    site: String,
    /// Number of round trips [default: until Ctrl-C].
    #[arg(long, short, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    count: Option<u64>,
    /// Seconds from the start of one round trip to the start of the next, which also waits for the previous
    /// answer.
    #[arg(long, short, value_name = "SECONDS", default_value = "1", value_parser = seconds)]
    interval: Duration,
    /// Print one JSON object per line: each round trip, then the summary.
    #[arg(long)]
    json: bool,
}

/// Shortest pause, because the tunnel has other things to carry.
const SHORTEST: f64 = 0.001;
/// Longest pause: an hour.
const LONGEST: f64 = 3600.0;

/// A number of seconds, as typed.
///
/// # Errors
/// The text is not such a number; the error says what is wrong.
pub fn seconds(text: &str) -> Result<Duration, TextError> {
    let seconds: f64 = text
        .parse()
        .map_err(|_| "is not a number of seconds".to_owned())?;
    if (SHORTEST..=LONGEST).contains(&seconds) {
        Ok(Duration::from_secs_f64(seconds))
    } else {
        Err(format!("is not between {SHORTEST} and {LONGEST}").into())
    }
}

/// A line of `--json`.
#[derive(Serialize)]
#[serde(rename_all = "snake_case")]
enum Line<'a> {
    Answer {
        number: u64,
        #[serde(flatten)]
        pong: &'a Pong,
    },
    NoAnswer {
        number: u64,
        why: &'a str,
    },
    Summary {
        site: &'a str,
        #[serde(flatten)]
        summary: Summary,
    },
}

/// Pings as often as requested, or until asked to end. The status is 1 if nothing was answered.
pub fn main(args: Args) -> ExitCode {
    match run(&args) {
        Ok(Some(summary)) if summary.received > 0 => ExitCode::SUCCESS,
        Ok(_) => ExitCode::FAILURE,
        Err(code) => code,
    }
}

fn run(args: &Args) -> Result<Option<Summary>, ExitCode> {
    let socket = control::socket();
    let status = questions::status(&socket).map_err(fail)?;
    if args.site == status.site || !status.sites.iter().any(|site| site.name == args.site) {
        say::error(format_args!(
            "causeway ping: this gateway knows no other site {} (there are: {})",
            args.site,
            questions::other_sites(&status)
        ));
        return Err(ExitCode::from(2));
    }
    let signals = hold_signals().map_err(fail)?;
    let mut trips = Trips::default();
    let mut next = Instant::now();
    for number in 1..=args.count.unwrap_or(u64::MAX) {
        once(&socket, args, number, &mut trips)?;
        next = (next + args.interval).max(Instant::now());
        let is_last = Some(number) == args.count;
        if is_last || is_interrupted(&signals, next)? {
            break;
        }
    }
    let summary = trips.summary();
    if args.json {
        let site = &args.site;
        print(&Line::Summary { site, summary })?;
    } else {
        say::output(format_args!("--- {} ping statistics ---\n{summary}", args.site))?;
    }
    Ok(Some(summary))
}

fn once(socket: &Path, args: &Args, number: u64, trips: &mut Trips) -> Result<(), ExitCode> {
    match questions::ping(socket, &args.site) {
        Ok(pong) => {
            trips.answered(&pong);
            if args.json {
                return print(&Line::Answer { number, pong: &pong });
            }
            let milliseconds = pong.round_trip_microseconds as f64 / 1e3;
            say::output(format_args!(
                "answer from {}: seq={number} time={milliseconds:.3} ms",
                pong.site
            ))
        }
        Err(ControlError::Refused(why)) => {
            trips.unanswered();
            if args.json {
                return print(&Line::NoAnswer { number, why: &why });
            }
            say::output(format_args!("seq={number}: {why}"))
        }
        Err(error) => Err(fail(error)),
    }
}

fn print(line: &Line<'_>) -> Result<(), ExitCode> {
    say::output(serde_json::to_string(line).map_err(fail)?)
}

/// The summary comes last however the command ends: Ctrl-C is handled between two round trips.
fn hold_signals() -> io::Result<SignalFd> {
    let signals = heeded(&[Signal::SIGINT, Signal::SIGTERM]);
    sigprocmask(SigmaskHow::SIG_BLOCK, Some(&signals), None)?;
    Ok(SignalFd::with_flags(
        &signals,
        SfdFlags::SFD_NONBLOCK | SfdFlags::SFD_CLOEXEC,
    )?)
}

/// Waits until `until`, and returns whether it was interrupted; also ends when nobody reads the output any
/// more.
fn is_interrupted(signals: &SignalFd, until: Instant) -> Result<bool, ExitCode> {
    let stdout = io::stdout();
    loop {
        let left = until.saturating_duration_since(Instant::now());
        // Rounded up, because a pause of less than a millisecond would otherwise be none.
        let left = PollTimeout::try_from(left + Duration::from_micros(999)).unwrap_or(PollTimeout::MAX);
        let mut files = [
            PollFd::new(signals.as_fd(), PollFlags::POLLIN),
            PollFd::new(stdout.as_fd(), PollFlags::empty()),
        ];
        match poll(&mut files, left) {
            Ok(0) if Instant::now() >= until => return Ok(false),
            Ok(0) | Err(Errno::EINTR) => {}
            Ok(_) if files[0].any().unwrap_or(false) => return Ok(true),
            Ok(_) => return Err(ExitCode::from(say::READER_GONE)),
            Err(error) => return Err(fail(error)),
        }
    }
}

fn fail(error: impl std::fmt::Display) -> ExitCode {
    say::error(format_args!("causeway ping: {error}"));
    ExitCode::FAILURE
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_stay_within_reason() {
        assert_eq!(seconds("0.2"), Ok(Duration::from_millis(200)));
        for wrong in ["", "soon", "0", "-1", "1e9", "NaN"] {
            assert!(seconds(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn a_line_of_json_says_what_it_is() {
        let line = Line::NoAnswer {
            number: 2,
            why: "no tunnel",
        };
        assert_eq!(
            serde_json::to_string(&line).unwrap(),
            r#"{"no_answer":{"number":2,"why":"no tunnel"}}"#
        );
    }
}
