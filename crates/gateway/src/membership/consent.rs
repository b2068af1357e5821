//! Whether this site takes part in a job of another one.

use crate::config::accept::Accept;
use crate::membership::jobs::{Job, Origin};
use crate::tunnels::message::JobRefusal;

/// Why this site takes no part in a job; none where it does. Of its own jobs it takes part in each.
pub(crate) fn why_not(accept: &Accept, job: &Job) -> Option<JobRefusal> {
    let Origin::Site(site) = &job.origin else {
        return None;
    };
    // `causeway probe` measures by a plain job: who may run jobs may measure.
    match job.plain {
        _ if accept.takes_jobs_of(site) => None,
        true if accept.takes_connections_of(site) => None,
        true => Some(JobRefusal::ConnectFrom),
        false => Some(JobRefusal::Jobs),
    }
}
