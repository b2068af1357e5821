//! Whether this site takes part in a job of another one.

use crate::config::Config;
use crate::driver::Driver;
use crate::membership::jobs::{Job, Jobs, Origin};
use crate::tunnels::message::{Acceptance, JobRefusal};
use causeway_control::audit::{AuditEntry, AuditEvent};
use causeway_wire::Token;

/// Why something is refused: its kind, by which refusals are counted, and the reason in words.
pub(crate) type Refusal = (&'static str, String);

/// Counts a refusal of another site's request, and writes it to the audit.
pub(crate) fn record_refusal(
    driver: &mut Driver,
    jobs: &Jobs,
    kind: &'static str,
    site: &str,
    token: Token,
    why: String,
) {
    let mut entry = driver.audit.entry(AuditEvent::Refused);
    site.clone_into(&mut entry.site);
    entry.job = token.hint();
    if let Some(job) = jobs.get(&token) {
        entry.user.clone_from(&job.user);
        entry.name.clone_from(&job.name);
    }
    refuse(driver, kind, entry, why);
}

/// Records a refusal with what is known about the asker.
pub(crate) fn refuse(driver: &mut Driver, kind: &'static str, mut entry: AuditEntry, why: String) {
    driver.log.refuse(kind, format_args!("site {}", entry.site), &why);
    entry.why = why;
    if let Err(error) = driver.audit.refuse(driver.now, kind, entry) {
        driver.log.refuse("audit", &driver.config.site, error);
    }
}

/// Why this site takes no part in a job; `None` if it does. It takes part in each of its own jobs.
pub(crate) fn why_not(config: &Config, job: &Job) -> Option<JobRefusal> {
    match &job.origin {
        Origin::Here(_) => None,
        Origin::Site(site) => why_not_of(config, site, job.bare),
    }
}

/// What this site accepts from another one.
pub(crate) fn acceptance(config: &Config, site: &str) -> Acceptance {
    Acceptance {
        jobs: why_not_of(config, site, false),
        connections: why_not_of(config, site, true),
    }
}

fn why_not_of(config: &Config, site: &str, bare: bool) -> Option<JobRefusal> {
    let accept = &config.accept;
    // `causeway probe` measures with a bare job: whoever may run jobs may measure.
    match bare {
        _ if accept.takes_jobs_of(site) => {}
        true if accept.takes_connections_of(site) => {}
        true => return Some(JobRefusal::ConnectFrom),
        false => return Some(JobRefusal::Jobs),
    }
    // Whoever is on the path could start anything, or read and change what a user types.
    (config.is_clear() && !accept.over_clear_text).then_some(JobRefusal::ClearText)
}
