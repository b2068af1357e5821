//! Asks this site's gateway to start the job, once the sites can be reached.

use super::error::RunError;
use super::gateways;
use super::meant::{Run, Start};
use super::mode::Mode;
use super::sites;
use causeway_control::questions;
use causeway_control::{
    self as control, ControlError, JobReply, Plan, Reply, Request, SiteStatus, Sites, Status,
};
use causeway_wire::Grid;
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};

/// Most characters of a job's name.
const MAX_NAME: usize = 200;

/// How long a run waits for a site that has just become unreachable.
const BACK_WITHIN: Duration = Duration::from_secs(2);
const LOOK_EVERY: Duration = Duration::from_millis(50);

/// What the gateway knows about the sites, once those that are named can be reached. Without the shim, this
/// site's own nodes have their real addresses.
pub(super) fn known_sites(mode: Mode, wanted: &[String]) -> Result<Sites, RunError> {
    let socket = control::socket();
    let wait = || match mode.passes_gateways() {
        true => wait_for_sites(wanted),
        false => gateway_status().map(drop),
    };
    match wait() {
        Err(RunError::Control(ControlError::NoGateway { .. })) if gateways::start_own(&socket)? => wait()?,
        waited => waited?,
    }
    let mut sites = ask_for_sites()?;
    if gateways::start_others(&sites, wanted)? {
        sites = ask_for_sites()?;
    }
    if !mode.has_shim() {
        sites::name_own_hosts_as_they_are(&mut sites);
    }
    Ok(sites)
}

fn ask_for_sites() -> Result<Sites, RunError> {
    Ok(questions::sites(&control::socket())?)
}

/// Starts the job at the sites of the plan, all of which must take part.
pub(super) fn start_job(run: &Run, plan: Plan) -> Result<(JobReply, UnixStream), RunError> {
    let name = name(&run.start);
    let weight = run.weight;
    let request = match run.mode {
        Mode::Transparent => Request::Transparent { name, weight, plan },
        _ => Request::Job { name, weight, plan },
    };
    let (job, connection) = ask_for_job(&request)?;
    if run.mode.has_shim() {
        job.grid.parse::<Grid>()?;
    }
    Ok((job, connection))
}

/// The name of a run in `causeway status`: its command, or with `--at` the command of each site.
fn name(start: &Start) -> String {
    let name = match start {
        Start::Launcher(words) | Start::Program(words) | Start::Script(words) => {
            let words = words.iter().map(|word| word.to_string_lossy());
            words.collect::<Vec<_>>().join(" ")
        }
        Start::Commands(commands) => {
            let each = commands
                .iter()
                .map(|command| format!("{}: {}", command.site, command.text));
            each.collect::<Vec<_>>().join("; ")
        }
        Start::Profile => String::new(),
    };
    name.chars().take(MAX_NAME).collect()
}

/// Waits for sites that were reachable and are not now: a gateway that has just been handed over, and one
/// whose lanes were reset, are back within a round trip or two. If no site is named, waits for all.
pub(super) fn wait_for_sites(names: &[String]) -> Result<(), RunError> {
    let until = Instant::now() + BACK_WITHIN;
    loop {
        let status = gateway_status()?;
        let is_away = |site: &SiteStatus| {
            site.unreachable.is_some()
                && site.info.is_some()
                && (names.is_empty() || names.contains(&site.name))
        };
        if !status.sites.iter().any(is_away) || Instant::now() >= until {
            return Ok(());
        }
        std::thread::sleep(LOOK_EVERY);
    }
}

/// Starts a job, which lasts as long as the connection; fails if a site does not take part.
pub(super) fn ask_for_job(request: &Request) -> Result<(JobReply, UnixStream), RunError> {
    match control::ask(&control::socket(), request)? {
        (Reply::Job(mut job), connection) => match job.left_out.pop_first() {
            Some((site, why)) => Err(RunError::Unreachable(site, why, "")),
            None => Ok((job, connection)),
        },
        (other, _) => Err(control::ControlError::Answer(format!("{other:?}")).into()),
    }
}

pub(super) fn gateway_status() -> Result<Status, RunError> {
    match control::ask(&control::socket(), &Request::Status {})? {
        (Reply::Status(status), _) => Ok(*status),
        (other, _) => Err(control::ControlError::Answer(format!("{other:?}")).into()),
    }
}

#[cfg(test)]
mod tests {
    use super::super::meant::SiteCommand;
    use super::*;

    #[test]
    fn a_run_is_called_by_what_the_user_typed() {
        let at = [("rennes", "srun ./a"), ("nancy", "mpirun ./a")].map(|(site, text)| SiteCommand {
            site: site.to_owned(),
            text: text.to_owned(),
        });
        assert_eq!(
            name(&Start::Commands(at.to_vec())),
            "rennes: srun ./a; nancy: mpirun ./a"
        );
        assert_eq!(name(&Start::Program(vec!["./a".into(), "-v".into()])), "./a -v");
    }
}
