//! Starts the gateways of sites where none runs, using the commands in `[start]` of this site's
//! configuration.

use super::error::RunError;
use causeway_control::questions;
use causeway_control::{self as control, SiteStatus, Sites};
use causeway_gateway::Config;
use causeway_host::say;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::process::{Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

/// How long such a command may take, and how long its gateway may then take to serve or to have a tunnel.
const STARTS_WITHIN: Duration = Duration::from_secs(60);
const SERVES_WITHIN: Duration = Duration::from_secs(30);

/// How long to wait for the gateway if the command has failed: another run may have started one.
const SERVES_ALREADY: Duration = Duration::from_secs(2);

const LOOK_EVERY: Duration = Duration::from_millis(50);

/// Starts this site's gateway if none serves commands there; false if the configuration does not say how.
///
/// # Errors
/// The command fails, or no gateway serves after it.
pub fn start_own(control: &Path) -> Result<bool, RunError> {
    let serves = || Ok(UnixStream::connect(control).is_ok());
    let config = causeway_host::user_directories::gateway_config()
        .ok()
        .and_then(|file| Config::load(&file).ok());
    let Some(config) = config.filter(|config| config.control == control) else {
        return Ok(false);
    };
    match config.start.get(&config.site) {
        Some(words) => start(&config.site, words, serves).map(|()| true),
        None => Ok(false),
    }
}

/// Starts the gateways of those of these sites (of all, if none is named) to which there is no tunnel, if the
/// configuration says how; true if it has started one.
///
/// # Errors
/// Those of asking the gateway; a command fails, or there is no tunnel after it.
pub fn start_others(known: &Sites, names: &[String]) -> Result<bool, RunError> {
    if known.start.is_empty() {
        return Ok(false);
    }
    let is_away = |site: &SiteStatus| site.unreachable.is_some();
    let status = questions::status(&control::socket())?;
    let away = status.sites.iter().filter(|site| is_away(site));
    let mut has_started = false;
    for site in away.filter(|site| names.is_empty() || names.contains(&site.name)) {
        let Some(words) = known.start.get(&site.name) else {
            continue;
        };
        start(&site.name, words, || {
            let status = questions::status(&control::socket())?;
            Ok(status
                .sites
                .iter()
                .any(|other| other.name == site.name && !is_away(other)))
        })?;
        has_started = true;
    }
    Ok(has_started)
}

fn start(site: &str, words: &[String], serves: impl Fn() -> Result<bool, RunError>) -> Result<(), RunError> {
    let shown = words.join(" ");
    say::error(format_args!(
        "causeway: no gateway of {site} is there: '{shown}' starts it"
    ));
    let failed = |why: String| RunError::GatewayNotStarted(site.to_owned(), shown.clone(), why);
    let ended = run(words).map_err(&failed)?;
    let until = Instant::now()
        + match ended.success() {
            true => SERVES_WITHIN,
            false => SERVES_ALREADY,
        };
    while !serves()? {
        if Instant::now() > until {
            return Err(failed(match ended.success() {
                true => format!("it is not there {SERVES_WITHIN:?} later"),
                false => format!("{ended}"),
            }));
        }
        std::thread::sleep(LOOK_EVERY);
    }
    Ok(())
}

/// Runs the command to its end. It shares this process's standard error; its output is discarded, as it is
/// not the job's.
fn run(words: &[String]) -> Result<ExitStatus, String> {
    let (word, rest) = words.split_first().ok_or("the command is empty")?;
    let mut command = Command::new(word);
    command.args(rest).stdin(Stdio::null()).stdout(Stdio::null());
    let mut child = command.spawn().map_err(|error| error.to_string())?;
    let until = Instant::now() + STARTS_WITHIN;
    loop {
        if let Some(status) = child.try_wait().map_err(|error| error.to_string())? {
            return Ok(status);
        }
        if Instant::now() > until {
            let _ = child.kill();
            let _ = child.wait();
            return Err(format!("it has not ended within {STARTS_WITHIN:?}"));
        }
        std::thread::sleep(LOOK_EVERY);
    }
}
