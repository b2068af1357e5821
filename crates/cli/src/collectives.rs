//! `causeway collectives explain`: which algorithm each collective operation gets, and what it is estimated
//! to cost.
//!
//! The preload library's code decides (mpi/collectives/select/model.c), and a small program beside this one
//! shows the decision, so that nothing is written twice. docs/collectives.md explains the table.

use causeway_control::questions;
use causeway_control::{self as control, Status};
use causeway_host::say;
use causeway_run::collectives::{MEGABITS, RTT_MICROSECONDS, is_set, links_of, settings};
use causeway_run::rules::{PROGRAM, RULES, RulesError, rules, with_rules};
use causeway_wire::TextError;
use std::path::PathBuf;
use std::process::{Command, ExitCode, Stdio};

/// Status for everything that the user has to correct.
const WRONG_USE: u8 = 2;

/// Collective operations over sites.
#[derive(clap::Subcommand)]
pub enum Task {
    /// Show which algorithm each operation gets at each size, and the costs that decide it.
    Explain(Explain),
}

/// See [`Task::Explain`].
#[derive(clap::Args)]
pub struct Explain {
    /// Ranks at each site [default: the slots of the sites that this host's gateway knows; with --link 4,4].
    #[arg(long, value_name = "RANKS,...")]
    sites: Option<String>,
    /// Round-trip time and rate between sites [default: the longest and the slowest that this host's gateway
    /// knows].
    #[arg(long, value_name = "TIME,RATE", value_parser = link)]
    link: Option<Link>,
    /// Show only these operations.
    #[arg(
        long,
        value_name = "OPERATION,...",
        default_value = "-",
        hide_default_value = true
    )]
    op: String,
    /// Show only this size, in bytes.
    #[arg(long, value_name = "BYTES")]
    size: Option<u64>,
    /// Rules that override the costs.
    #[arg(long, value_name = "FILE")]
    collectives: Option<PathBuf>,
}

/// Runs a task.
pub fn main(task: Task) -> ExitCode {
    let Task::Explain(args) = task;
    match explain(&args) {
        Ok(text) => say::result(text.trim_end()),
        Err(reason) => {
            say::error(format_args!("causeway collectives: {reason}"));
            ExitCode::from(WRONG_USE)
        }
    }
}

fn explain(args: &Explain) -> Result<String, TextError> {
    let own = std::env::current_exe().map_err(|error| format!("find causeway's own path: {error}"))?;
    let program = own.with_file_name(PROGRAM);
    let mut command = Command::new(&program);
    let status = match args.link {
        Some(_) => None,
        None => Some(
            questions::status(&control::socket())
                .map_err(|error| format!("{error}; or give --link 11.6ms,1Gbit/s"))?,
        ),
    };
    for (name, value) in links(args.link, status.as_ref()) {
        if args.link.is_some() || !is_set(name) {
            command.env(name, value);
        }
    }
    if let Some(file) = &args.collectives {
        let rules = rules(&own, file).map_err(|error| error.to_string())?;
        command.env(RULES, with_rules(std::env::var_os(RULES), &rules));
    }
    let sites = args
        .sites
        .clone()
        .unwrap_or_else(|| status.as_ref().map_or("4,4".to_owned(), slots));
    let size = args.size.map_or("-".to_owned(), |size| size.to_string());
    let output = command
        .args(["explain", &sites, &args.op, &size])
        .stdin(Stdio::null())
        .output();
    let output = output.map_err(|reason| RulesError::Program { program, reason }.to_string())?;
    match output.status.success() {
        true => Ok(String::from_utf8_lossy(&output.stdout).into_owned()),
        false => Err(String::from_utf8_lossy(&output.stderr).trim().into()),
    }
}

fn links(link: Option<Link>, status: Option<&Status>) -> Vec<(&'static str, String)> {
    match (link, status) {
        (Some(link), _) => vec![
            (RTT_MICROSECONDS, link.round_microseconds.to_string()),
            (MEGABITS, link.megabits.to_string()),
        ],
        (None, Some(status)) => settings(&links_of(status), &[]),
        (None, None) => Vec::new(),
    }
}

/// Returns the slots that the nodes of each site offer; four if a site has not said.
fn slots(status: &Status) -> String {
    let slots_at = |site: &control::SiteStatus| {
        let nodes = site.info.iter().flat_map(|info| &info.nodes);
        let slots: u32 = nodes.map(|node| node.slots).sum();
        if slots == 0 {
            "4".to_owned()
        } else {
            slots.to_string()
        }
    };
    status.sites.iter().map(slots_at).collect::<Vec<_>>().join(",")
}

/// The value of `--link`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Link {
    round_microseconds: u64,
    megabits: u64,
}

fn link(text: &str) -> Result<Link, TextError> {
    let (time, rate) = text
        .split_once(',')
        .ok_or("is not a time and rate such as 11.6ms,1Gbit/s")?;
    Ok(Link {
        round_microseconds: number(time, &[("us", 1.0), ("ms", 1e3), ("s", 1e6)])?,
        megabits: number(rate, &[("Mbit/s", 1.0), ("Gbit/s", 1e3)])?,
    })
}

/// A number with one of the units, converted to the first unit; at least one.
fn number(text: &str, units: &[(&str, f64)]) -> Result<u64, TextError> {
    let names: Vec<&str> = units.iter().map(|(name, _)| *name).collect();
    let end = text
        .find(|c: char| !c.is_ascii_digit() && c != '.')
        .unwrap_or(text.len());
    let unit = units.iter().find(|(name, _)| *name == &text[end..]);
    let (_, times) = unit.ok_or_else(|| format!("{text:?} has none of the units {}", names.join(", ")))?;
    let value: f64 = text[..end]
        .parse()
        .map_err(|_| format!("{text:?} does not begin with a number"))?;
    Ok((value * times).clamp(1.0, 1e12).round() as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_link_is_a_time_and_a_rate_with_units() {
        let parsed = |round_microseconds, megabits| {
            Ok(Link {
                round_microseconds,
                megabits,
            })
        };
        assert_eq!(link("11.6ms,1Gbit/s"), parsed(11_600, 1000));
        assert_eq!(link("100us,2.5Gbit/s"), parsed(100, 2500));
        assert_eq!(link("1s,10Mbit/s"), parsed(1_000_000, 10));
        for wrong in [
            "",
            "11.6ms",
            "11.6,1Gbit/s",
            "11.6ms,1000",
            "ms,1Gbit/s",
            "1.1.1ms,1Gbit/s",
            "1ms,1GB/s",
        ] {
            assert!(link(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn rules_of_the_environment_go_before_those_of_the_file() {
        assert_eq!(with_rules(None, "bcast 0.. native"), "bcast 0.. native");
        assert_eq!(
            with_rules(Some("scan native".into()), "bcast 0.. native"),
            "scan native, bcast 0.. native"
        );
        assert_eq!(with_rules(Some("scan native".into()), ""), "scan native");
    }
}
