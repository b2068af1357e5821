//! `causeway jobs`: the submitted jobs of this user.

use super::refused;
use causeway_host::columns::Width;
use causeway_host::say;
use causeway_run::phase::Phase;
use causeway_run::queue::store::{self, Job, State, Submitted, now};
use serde::Serialize;
use std::process::ExitCode;

/// How long the gateway may take to begin carrying a job, in seconds.
const CARRIED_SECONDS: u64 = 5;

/// How long an ended job is shown without --all, in seconds.
const SHOWN_SECONDS: u64 = 7 * 24 * 3600;

/// Show submitted jobs: those that go on, and those that have ended in the last week.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// Show all that are kept: 256 ended jobs at most, each for 30 days.
    #[arg(long)]
    all: bool,
    /// Print one JSON object a line.
    #[arg(long)]
    json: bool,
}

/// A submitted job as it is shown. Times are in seconds since 1970.
#[derive(Debug, Serialize)]
struct Shown {
    id: u64,
    state: State,
    site: String,
    submitted: u64,
    /// When its program began.
    began: Option<u64>,
    ended: Option<u64>,
    status: Option<u8>,
    /// What it waits for, or why it has ended.
    why: String,
    command: String,
}

/// Prints the jobs.
pub fn main(args: &Args) -> ExitCode {
    let place = match store::place() {
        Ok(place) => place,
        Err(error) => return refused("jobs", &error),
    };
    let jobs = store::all(&place);
    jobs.iter().for_each(Job::see_to_it);
    let is_shown = |job: &Shown| args.all || job.ended.is_none_or(|at| at + SHOWN_SECONDS > now());
    let jobs: Vec<Shown> = jobs.iter().filter_map(shown).filter(is_shown).collect();
    let lines: Vec<String> = match args.json {
        true => { jobs.iter() }
            .filter_map(|job| serde_json::to_string(job).ok())
            .collect(),
        false => jobs.iter().map(line).collect(),
    };
    match lines.is_empty() {
        false => say::result(lines.join("\n")),
        true if args.json => ExitCode::SUCCESS,
        true => {
            say::error("causeway jobs: there is none: type 'causeway submit' in the place of 'causeway run'");
            ExitCode::SUCCESS
        }
    }
}

fn shown(job: &Job) -> Option<Shown> {
    let Submitted {
        site, at, command, ..
    } = job.submitted().ok()?;
    let (end, phase, state) = (job.end(), job.phase(), job.state());
    let began = match phase {
        Some(Phase::Running { at }) => Some(at),
        _ => None,
    };
    let why = match (&end, phase) {
        (Some(end), _) => end.why.clone().unwrap_or_default(),
        (None, phase) if is_carried(job) => match phase {
            Some(Phase::Waiting { line } | Phase::Away { line }) => line,
            _ => String::new(),
        },
        _ if at + CARRIED_SECONDS > now() => String::new(),
        _ => format!(
            "no process carries it: a gateway of {site} looks for it when it starts, and every minute"
        ),
    };
    Some(Shown {
        id: job.id,
        state,
        site,
        submitted: at,
        began,
        ended: end.as_ref().map(|end| end.at),
        status: end.map(|end| end.status),
        why,
        command,
    })
}

/// Whether a process carries the job.
fn is_carried(job: &Job) -> bool {
    job.lock().is_ok_and(|lock| lock.is_none())
}

fn line(job: &Shown) -> String {
    let until = job.ended.unwrap_or_else(now);
    let queued = job.began.unwrap_or(until).saturating_sub(job.submitted);
    let ran = job
        .began
        .map(|began| format!("ran {}", span(until.saturating_sub(began))));
    let status = job.status.map(|status| format!("status {status}"));
    let fields = [
        job.id.to_string(),
        job.state.name().to_owned(),
        format!("queued {}", span(queued)),
        ran.unwrap_or_default(),
        status.unwrap_or_default(),
        job.command.clone(),
        job.why.clone(),
    ];
    let lines = Width::Narrow.lines(0, fields.iter().map(String::as_str));
    lines.trim_end().to_owned()
}

/// A time, as people say it.
fn span(seconds: u64) -> String {
    match seconds {
        0..=119 => format!("{seconds} s"),
        120..=7199 => format!("{} min", seconds / 60),
        7200..=172_799 => format!("{} h", seconds / 3600),
        _ => format!("{} d", seconds / 86_400),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_shown_in_one_unit() {
        let all = [5, 119, 120, 7199, 7200, 172_800].map(span);
        assert_eq!(all, ["5 s", "119 s", "2 min", "119 min", "2 h", "2 d"]);
    }
}
