//! `causeway probe [SITE]`: measures the paths to other sites, for people and for programs that choose
//! between them.
//!
//! Round trips, jitter and clock are measured for a bounded time, beside whatever else crosses. Rate and loss
//! are what the lanes have seen of the path; only with --measure are data sent to find out more, as many
//! bytes as it says.

use crate::ping::seconds;
use causeway_control::questions;
use causeway_control::{self as control, ControlError, Status};
use causeway_host::say;
use causeway_paths::measure::{self, Measured};
use causeway_paths::trips::{Summary, Trips};
use causeway_wire::TextError;
use causeway_wire::shown::Line;
use serde::Serialize;
use std::path::Path;
use std::process::ExitCode;
use std::thread;
use std::time::{Duration, Instant};

/// Measure round-trip time, jitter and clock difference through the tunnels, and show the rate and loss
/// that their lanes have seen.
#[derive(clap::Args)]
pub struct Args {
    /// The site to measure [default: all others].
    site: Option<String>,
    /// How long to measure, in seconds.
    #[arg(long, value_name = "SECONDS", default_value = "2", value_parser = seconds)]
    seconds: Duration,
    /// Send MEGABYTES (64) to each site in turn, and print how fast a stream carries them.
    #[arg(long, value_name = "MEGABYTES", num_args = 0..=1, require_equals = true, default_missing_value = "64",
        value_parser = clap::value_parser!(u64).range(1..=10_000))]
    measure: Option<u64>,
    /// Print the result as JSON.
    #[arg(long)]
    json: bool,
}

/// Pause from the end of one round trip to the next: each costs some hundred bytes, and there are twenty a
/// second if the path is short.
const PAUSE: Duration = Duration::from_millis(50);

/// What was found out about a pair of sites.
#[derive(Debug, Serialize)]
struct Pair {
    from: String,
    to: String,
    /// Why the path cannot be used now.
    #[serde(skip_serializing_if = "Option::is_none")]
    unreachable: Option<String>,
    /// Round trips made now.
    #[serde(skip_serializing_if = "Option::is_none")]
    round_trips: Option<Summary>,
    /// What a stream carried, if that was asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    measured: Option<Measured>,
    /// What the lanes have seen.
    #[serde(skip_serializing_if = "Option::is_none")]
    seen: Option<Seen>,
}

#[derive(Debug, Serialize)]
struct Seen {
    least_rtt_microseconds: u32,
    /// 0 if nothing is known.
    rate_bits_per_second: u64,
    /// Share of the segments sent again.
    loss: f64,
    lanes: usize,
    carriers: Vec<String>,
    /// 0 if nothing is known.
    mtu_bytes: u32,
}

/// Measures and reports; the status is 1 if a site cannot be reached.
pub fn main(args: Args) -> ExitCode {
    match run(&args) {
        Ok(all_reached) if all_reached => ExitCode::SUCCESS,
        Ok(_) => ExitCode::FAILURE,
        Err(code) => code,
    }
}

fn run(args: &Args) -> Result<bool, ExitCode> {
    let socket = control::socket();
    let status = questions::status(&socket).map_err(fail)?;
    let others = status
        .sites
        .iter()
        .map(|site| &site.name)
        .filter(|name| **name != status.site);
    let wanted: Vec<&String> = others
        .filter(|name| args.site.as_ref().is_none_or(|site| site == *name))
        .collect();
    if let (Some(site), true) = (&args.site, wanted.is_empty()) {
        let others = questions::other_sites(&status);
        say::error(format_args!(
            "causeway probe: this gateway knows no other site {site} (there are: {others})"
        ));
        return Err(ExitCode::from(2));
    }
    let trips: Vec<Result<Summary, TextError>> = thread::scope(|scope| {
        let (socket, time) = (&socket, args.seconds);
        let ask = |site| scope.spawn(move || round_trips(socket, site, time));
        let running: Vec<_> = wanted.iter().map(|site| ask(site.as_str())).collect();
        let ended = running.into_iter().map(|thread| thread.join());
        ended
            .map(|result| result.unwrap_or_else(|_| Err("could not be measured".into())))
            .collect()
    });
    let mut paths: Vec<Pair> = wanted
        .into_iter()
        .zip(trips)
        .map(|(site, trips)| path(&status, site, trips))
        .collect();
    let mut all_right = paths.iter().all(|path| path.unreachable.is_none());
    // One after the other: they may share this site's uplink.
    for path in paths.iter_mut().filter(|path| path.unreachable.is_none()) {
        let Some(megabytes) = args.measure else { break };
        match measure::measure(&path.to, megabytes * 1_000_000, path.least_round_trip()) {
            Ok(measured) => path.measured = Some(measured),
            Err(why) => {
                say::error(format_args!("causeway probe: {why}"));
                all_right = false;
            }
        }
    }
    // The lanes may have learnt meanwhile.
    let status = questions::status(&socket).map_err(fail)?;
    for path in &mut paths {
        path.seen = seen(&status, &path.to);
    }
    if args.json {
        say::output(serde_json::to_string_pretty(&paths).map_err(fail)?)?;
    } else {
        let lines: Vec<String> = paths.iter().map(readable).collect();
        say::output(lines.join("\n"))?;
    }
    Ok(all_right)
}

/// An unanswered round trip counts as one that takes long; any other error ends the measurement.
fn round_trips(socket: &Path, site: &str, time: Duration) -> Result<Summary, TextError> {
    let end = Instant::now() + time;
    let mut trips = Trips::default();
    loop {
        match questions::ping(socket, site) {
            Ok(pong) => trips.answered(&pong),
            Err(ControlError::Refused(why)) if trips.summary().received == 0 => return Err(why.into()),
            Err(ControlError::Refused(_)) => trips.unanswered(),
            Err(error) => return Err(TextError::of(error)),
        }
        if Instant::now() + PAUSE >= end {
            return Ok(trips.summary());
        }
        thread::sleep(PAUSE);
    }
}

impl Pair {
    fn least_round_trip(&self) -> Duration {
        let times = self.round_trips.and_then(|summary| summary.times);
        times.map_or(Duration::ZERO, |times| {
            Duration::from_secs_f64(times.min_ms / 1e3)
        })
    }
}

fn path(status: &Status, site: &str, trips: Result<Summary, TextError>) -> Pair {
    let (round_trips, unreachable) = match trips {
        Ok(summary) => (Some(summary), None),
        Err(why) => (None, Some(why.into())),
    };
    Pair {
        from: status.site.clone(),
        to: site.to_owned(),
        unreachable,
        round_trips,
        measured: None,
        seen: seen(status, site),
    }
}

fn seen(status: &Status, site: &str) -> Option<Seen> {
    let mut tunnels = status.tunnels.iter();
    let tunnel = tunnels.find(|tunnel| tunnel.site == site && !tunnel.lanes.is_empty())?;
    let lanes = &tunnel.lanes;
    let known = lanes.iter().map(|lane| lane.mtu_bytes).filter(|bytes| *bytes > 0);
    Some(Seen {
        least_rtt_microseconds: tunnel.rtt_microseconds,
        rate_bits_per_second: tunnel.rate_bits_per_second,
        loss: tunnel.loss,
        lanes: lanes.len(),
        carriers: lanes.iter().map(|lane| lane.carrier.clone()).collect(),
        mtu_bytes: known.min().unwrap_or(0),
    })
}

fn readable(path: &Pair) -> String {
    let mut text = format!("{} -> {}", Line(&path.from), Line(&path.to));
    if let Some(why) = &path.unreachable {
        text += &format!("\n  cannot be measured: {}", Line(why));
    }
    if let Some(summary) = &path.round_trips {
        text += &format!("\n  {}", summary.to_string().replace('\n', "\n  "));
        if let Some(times) = &summary.times {
            text += &format!("\n  jitter {:.3} ms", times.jitter_ms);
        }
    }
    if let Some(measured) = &path.measured {
        text += &format!(
            "\n  a stream carried {:.0} MB in {:.2} s: {:.0} Mbit/s",
            measured.bytes as f64 / 1e6,
            measured.seconds,
            measured.rate_bits_per_second / 1e6
        );
    }
    if let Some(seen) = &path.seen {
        text += &format!(
            "\n  lanes have seen: least rtt {:.1} ms  rate {}  loss {:.3} %  MTU {}  {}",
            f64::from(seen.least_rtt_microseconds) / 1e3,
            match seen.rate_bits_per_second {
                0 => "unknown".to_owned(),
                rate => format!("{:.0} Mbit/s", rate as f64 / 1e6),
            },
            seen.loss * 100.0,
            seen.mtu_bytes,
            seen.carriers.join(", ")
        );
    }
    text
}

fn fail(error: impl std::fmt::Display) -> ExitCode {
    say::error(format_args!("causeway probe: {error}"));
    ExitCode::FAILURE
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::status::text::tests::status;

    #[test]
    fn a_path_joins_what_was_measured_with_what_the_lanes_have_seen() {
        let path = path(&status(), "nancy", Ok(Trips::default().summary()));
        let json = serde_json::to_value(&path).unwrap();
        assert_eq!((&json["from"], &json["to"]), (&"rennes".into(), &"nancy".into()));
        assert_eq!(json["seen"]["rate_bits_per_second"], 1_000_000_000);
        assert_eq!(json["seen"]["carriers"][0], "clear");
        assert_eq!(json["round_trips"]["sent"], 0);
        assert!(readable(&path).contains("rate 1000 Mbit/s"));
    }

    #[test]
    fn a_site_without_a_tunnel_says_why() {
        let path = path(&status(), "bordeaux", Err("no tunnel to bordeaux".into()));
        assert_eq!(
            readable(&path),
            "rennes -> bordeaux\n  cannot be measured: no tunnel to bordeaux"
        );
    }
}
