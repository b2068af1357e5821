//! `causeway fetch`: fetches the files of a job whose `--fetch` has failed or was interrupted.

use super::coming::{self, Asked};
use super::fetching::NotFetched;
use super::keeper::TAKE_UP;
use super::left::{self, Left};
use super::{AT_ONCE, Files, failed};
use crate::error::RunError;
use crate::job::ask_for_job;
use crate::via;
use causeway_control::{Plan, Request};
use causeway_host::say;
use std::collections::BTreeSet;
use std::env::current_dir;
use std::io::ErrorKind;

/// The command's share of busy tunnels: that of a job without `--weight`.
const WEIGHT: u32 = 1;

/// Fetches what a job has left to the current directory, using the patterns that the job was given, and
/// returns the status of the command. `name` is the name of the job's directories; it is needed if several
/// jobs have left some.
///
/// # Errors
/// Nothing is left, or it cannot be fetched.
pub fn fetch(name: Option<&str>) -> Result<u8, RunError> {
    let _via = via::open()?;
    let name = match name {
        Some(name) => name.to_owned(),
        None => only(left::names())?,
    };
    let left = Left::read(&name).map_err(|error| match error.kind() {
        ErrorKind::NotFound => RunError::Files(format!(
            "no job has left {name}, or it is fetched, or older than a day"
        )),
        _ => failed(&format!("read the note of {name}"), error),
    })?;
    let mut asked = coming::signals().map_err(RunError::Signals)?;
    let sites: BTreeSet<&String> = left.hosts.iter().map(|(site, _)| site).collect();
    let plan = Plan {
        sites: sites.into_iter().cloned().collect(),
        ..Plan::default()
    };
    // The job lasts as long as its connection.
    let (job, _connection) = ask_for_job(&Request::Job {
        name: "causeway fetch".to_owned(),
        weight: WEIGHT,
        plan,
    })?;
    let mut files = Files {
        name,
        token: job.token,
        program: std::env::current_exe().map_err(RunError::Own)?,
        here: current_dir().map_err(|error| failed("read the current directory", error))?,
        hosts: Vec::new(),
        fetch: left.patterns.clone(),
    };
    fetch_left(&mut files, &left, &mut asked)
}

fn fetch_left(files: &mut Files, left: &Left, asked: Asked<'_>) -> Result<u8, RunError> {
    let taken_up = { left.hosts.chunks(AT_ONCE) }.try_for_each(|some| files.keep(some, TAKE_UP));
    let lacking: Vec<String> = { files.hosts.iter() }
        .filter(|host| !host.is_made)
        .map(super::Host::describe)
        .collect();
    if taken_up.is_err() || !lacking.is_empty() {
        // Directories that were taken over stay for the next attempt.
        for host in files.hosts.iter().filter(|host| host.is_made) {
            host.tell(super::keeper::KEEP);
        }
        taken_up?;
        return Err(RunError::Files(format!(
            "{} is not there any more, or another command fetches it, at {}",
            files.name,
            lacking.join(", ")
        )));
    }
    match files.fetch(asked) {
        Ok(()) => Ok(0),
        Err(NotFetched { why, signal: None }) => Err(RunError::Files(why)),
        Err(NotFetched {
            why,
            signal: Some(signal),
        }) => {
            say::error(format_args!("causeway: {why}"));
            Ok(128 + signal as u8)
        }
    }
}

/// Returns the name if there is exactly one.
fn only(mut names: Vec<String>) -> Result<String, RunError> {
    match (names.pop(), names.is_empty()) {
        (Some(name), true) => Ok(name),
        (None, _) => Err(RunError::Files(
            "no job has left files that could not be fetched".to_owned(),
        )),
        (Some(last), false) => Err(RunError::Files(format!(
            "several jobs have left files; name one of them: {}, {last}",
            names.join(", ")
        ))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_names_none_gets_the_only_one_or_the_names_of_all() {
        let said = |names: &[&str]| {
            let names = names.iter().map(|name| (*name).to_owned()).collect();
            only(names).map_err(|error| error.to_string())
        };
        assert_eq!(said(&["one"]).unwrap(), "one");
        assert!(said(&[]).unwrap_err().contains("no job has left files"));
        assert!(said(&["one", "two"]).unwrap_err().contains("one, two"));
    }
}
