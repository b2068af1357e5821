//! Questions to the gateway of this host that several commands ask.

use crate::{self as control, ControlError, JobReply, Plan, Pong, Reply, Request, Sites, Status};
use std::os::unix::net::UnixStream;
use std::path::Path;

/// Asks the gateway for its status.
///
/// # Errors
/// See [`ControlError`].
pub fn status(socket: &Path) -> Result<Status, ControlError> {
    match control::ask(socket, &Request::Status {})? {
        (Reply::Status(status), _) => Ok(*status),
        (other, _) => Err(ControlError::Answer(format!("{other:?}"))),
    }
}

/// Asks the gateway for the sites that a job may choose among.
///
/// # Errors
/// See [`ControlError`].
pub fn sites(socket: &Path) -> Result<Sites, ControlError> {
    match control::ask(socket, &Request::Sites {})? {
        (Reply::Sites(sites), _) => Ok(sites),
        (other, _) => Err(ControlError::Answer(format!("{other:?}"))),
    }
}

/// Starts a job of this command's own, which lasts as long as the connection.
///
/// # Errors
/// See [`ControlError`].
pub fn job(socket: &Path, name: &str, plan: Plan) -> Result<(JobReply, UnixStream), ControlError> {
    let request = Request::Job {
        name: name.to_owned(),
        weight: 1,
        plan,
    };
    match control::ask(socket, &request)? {
        (Reply::Job(job), connection) => Ok((job, connection)),
        (other, _) => Err(ControlError::Answer(format!("{other:?}"))),
    }
}

/// Makes a round trip to the gateway of another site.
///
/// # Errors
/// [`ControlError::Refused`] says why there was no answer; the other errors concern this host.
pub fn ping(socket: &Path, site: &str) -> Result<Pong, ControlError> {
    let request = Request::Ping {
        site: site.to_owned(),
    };
    match control::ask(socket, &request)? {
        (Reply::Pong(pong), _) => Ok(pong),
        (other, _) => Err(ControlError::Answer(format!("{other:?}"))),
    }
}

/// The names of a gateway's other sites, as part of a sentence.
pub fn other_sites(status: &Status) -> String {
    let names = status.sites.iter().map(|site| site.name.as_str());
    let names: Vec<&str> = names.filter(|name| *name != status.site).collect();
    match names.is_empty() {
        true => "none".to_owned(),
        false => names.join(", "),
    }
}
