//! `causeway audit`: shows what other sites did at this site, and what they were refused.

use causeway_broker::clock::{Clock, timestamp};
use causeway_control::audit::line::{Columns, readable};
use causeway_control::audit::{self, AuditEntry};
use causeway_gateway::Config;
use causeway_host::say;
use causeway_wire::TextError;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// Show what other sites did at this site, and which of their requests it refused.
#[derive(clap::Args)]
pub struct Args {
    /// The gateway's configuration, which names the audit file [default: ~/.config/causeway/gateway.toml].
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    /// Show only events of the last 30min, 2h or 7d, or since a date or time in UTC (2026-11-24,
    /// 2026-11-24T18:30).
    #[arg(long, value_name = "TIME", value_parser = since)]
    since: Option<String>,
    /// Show only what this site asked for.
    #[arg(long, value_name = "SITE")]
    site: Option<String>,
    /// Show long commands in full.
    #[arg(long)]
    wide: bool,
    /// Print the lines of the file unchanged, one JSON object per line.
    #[arg(long)]
    json: bool,
}

/// Prints what is asked for; the status is 1 if the file cannot be read.
pub fn main(args: Args) -> ExitCode {
    match run(&args) {
        Ok(()) => ExitCode::SUCCESS,
        Err(Failure::Said(reason)) => {
            say::error(format_args!("causeway audit: {reason}"));
            ExitCode::FAILURE
        }
        Err(Failure::Output(code)) => code,
    }
}

enum Failure {
    Said(String),
    /// Nobody reads the output.
    Output(ExitCode),
}

fn run(args: &Args) -> Result<(), Failure> {
    let file = args
        .config
        .clone()
        .map_or_else(causeway_host::user_directories::gateway_config, Ok);
    let file = file.map_err(|error| Failure::Said(error.to_string()))?;
    let config = Config::load(&file).map_err(|mistakes| Failure::Said(mistakes.to_string()))?;
    let mut wanted = Vec::new();
    let mut seen = BTreeSet::new();
    let mut damaged = 0;
    let [starts, connections, refusals] = [Path::to_owned, audit::connections, audit::refusals];
    for file in [starts, connections, refusals].map(|of: fn(&Path) -> PathBuf| of(&config.audit)) {
        let read = audit::read(&file, |entry| {
            if !seen.contains(&entry.site) {
                seen.insert(entry.site.clone());
            }
            if is_wanted(args, &entry) {
                wanted.push(entry);
            }
        });
        damaged += read.map_err(|error| Failure::Said(format!("read the audit: {error}")))?;
    }
    // Each file is in order; times are texts that sort by time.
    wanted.sort_by(|one, other| one.time.cmp(&other.time));
    let columns = Columns::of(&wanted, args.wide);
    for entry in &wanted {
        let line = match args.json {
            true => serde_json::to_string(entry).map_err(|error| Failure::Said(error.to_string()))?,
            false => readable(entry, &columns),
        };
        say::output(line).map_err(Failure::Output)?;
    }
    if let Some(site) = args.site.as_ref().filter(|site| !seen.contains(*site)) {
        say::error(format_args!(
            "causeway audit: {} has no entry of site {site}{}",
            config.audit.display(),
            match seen.is_empty() {
                true => String::new(),
                false => format!(
                    "; it has entries of {}",
                    seen.into_iter().collect::<Vec<_>>().join(", ")
                ),
            }
        ));
    }
    if damaged > 0 {
        say::error(format_args!(
            "causeway audit: left out {damaged} lines of {} that no gateway wrote",
            config.audit.display()
        ));
    }
    Ok(())
}

/// Compares times as texts: a later time sorts after an earlier one, and after any prefix of itself.
fn is_wanted(args: &Args, entry: &AuditEntry) -> bool {
    let late = args.since.as_ref().is_none_or(|since| entry.time >= *since);
    late && args.site.as_ref().is_none_or(|site| entry.site == *site)
}

/// A length of time before now, or a time in writing.
fn since(text: &str) -> Result<String, TextError> {
    if let Ok(length) = causeway_units::span(text) {
        return Ok(timestamp(Clock::system().now().saturating_sub(length)));
    }
    let is_date = text.len() >= 10 && text.bytes().all(|byte| b"0123456789-:TZ".contains(&byte));
    let wrong = || format!("{text:?} is neither a length of time (2h) nor a time (2026-11-24T18:30)");
    Ok(is_date.then(|| text.to_owned()).ok_or_else(wrong)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_is_a_length_before_now_or_the_beginning_of_one_that_is_written() {
        let now = timestamp(Clock::system().now());
        assert!(since("0s").unwrap() >= now);
        assert!(since("2h").unwrap() < now);
        assert!(since("2026-11-24").unwrap().as_str() < "2026-11-24T00:00:00Z");
        for wrong in ["", "2", "yesterday", "99999999999999999999d", "2026"] {
            assert!(since(wrong).is_err(), "{wrong}");
        }
    }
}
