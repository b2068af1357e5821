//! Ends and removes on a head node what `causeway up` has made there.

use super::install::{data, link_path, programs};
use crate::background::systemd;
use crate::{ask, grid, join, user_directories};
use causeway_broker::BrokerConfig;
use causeway_broker::new_grid::CONFIG_FILE;
use causeway_control as control;
use causeway_mpis::quoted;
use nix::sys::signal::{Signal, kill};
use nix::sys::socket::{getsockopt, sockopt::PeerCredentials};
use nix::unistd::Pid;
use std::fs;
use std::io::ErrorKind;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::{Duration, Instant};

/// How long a gateway or broker may take to end.
const ENDS_WITHIN: Duration = Duration::from_secs(20);
const LOOK_EVERY: Duration = Duration::from_millis(50);

/// Ends this user's gateway and broker on this host; what was done, for people.
///
/// # Errors
/// Jobs run, and `force` is not set; one of them does not end.
pub fn stop(force: bool) -> Result<Vec<String>, String> {
    let mut done = Vec::new();
    if let Ok(status) = ask::status(&control::socket()) {
        let names: Vec<&str> = status.jobs.iter().map(|job| job.name.as_str()).collect();
        if !force && !names.is_empty() {
            return Err(format!("jobs run: {}; --force ends them", names.join("; ")));
        }
        end(Pid::from_raw(status.pid.cast_signed()), &control::socket())?;
        done.push(format!("the gateway of {} has ended", status.site));
    }
    let broker = grid::default_directory().map_err(|error| error.to_string())?;
    if let Ok(config) = BrokerConfig::load(&broker.join(CONFIG_FILE))
        && let Ok(stream) = UnixStream::connect(config.socket())
    {
        let peer = getsockopt(&stream, PeerCredentials).map_err(|error| error.to_string())?;
        end(Pid::from_raw(peer.pid()), &config.socket())?;
        done.push(format!("the broker of {} has ended", config.grid));
    }
    Ok(done)
}

fn end(process: Pid, socket: &Path) -> Result<(), String> {
    kill(process, Signal::SIGTERM).map_err(|error| format!("end process {process}: {error}"))?;
    let until = Instant::now() + ENDS_WITHIN;
    while UnixStream::connect(socket).is_ok() || kill(process, None).is_ok() {
        if Instant::now() > until {
            return Err(format!("process {process} has not ended within {ENDS_WITHIN:?}"));
        }
        std::thread::sleep(LOOK_EVERY);
    }
    Ok(())
}

/// Removes what `causeway up` has made on this host, but for the programs and what jobs have printed.
///
/// # Errors
/// Something cannot be removed.
pub fn remove() -> Result<(), String> {
    // What would start them again with the host.
    systemd::remove_all().map_err(|error| error.to_string())?;
    let name = |error: user_directories::NoHome| error.to_string();
    let config = join::default_config().map_err(name)?;
    let directory = config.parent().unwrap_or(Path::new("/")).to_owned();
    let grid = grid::default_directory().map_err(name)?;
    let mut all = vec![
        config.clone(),
        config.with_extension("host"),
        directory.join(join::MEMBERSHIP),
        grid.clone(),
    ];
    let beside = fs::read_dir(&directory).into_iter().flatten().flatten();
    // What the gateway wrote for its batch system: all was given back when it ended.
    all.extend(
        beside
            .map(|entry| entry.path())
            .filter(|path| is_of_allocations(path)),
    );
    all.iter().try_for_each(|path| remove_path(path))?;
    // Where nothing else is in them.
    let _ = fs::remove_dir(&directory);
    Ok(())
}

fn is_of_allocations(path: &Path) -> bool {
    let name = path
        .file_name()
        .unwrap_or_default()
        .to_string_lossy()
        .into_owned();
    // Those of requests that are still to be given back stay.
    name.starts_with("allocations-") && fs::read_dir(path).is_ok_and(|mut entries| entries.next().is_none())
        // What other sites have taken.
        || name.starts_with("spent-") && [".json", ".lock"].iter().any(|end| name.ends_with(end))
}

fn remove_path(path: &Path) -> Result<(), String> {
    let removed = match path.is_dir() && !path.is_symlink() {
        true => fs::remove_dir_all(path),
        false => fs::remove_file(path),
    };
    match removed {
        Err(error) if error.kind() != ErrorKind::NotFound => {
            Err(format!("remove {}: {error}", path.display()))
        }
        _ => Ok(()),
    }
}

/// A line of sh that prints the command that `causeway up` has put there; nothing where it has put none.
pub fn installed_line(home: &str) -> String {
    let [link, programs] = [link_path(home), programs(home)].map(quoted);
    format!("case $(readlink {link}) in {programs}/*) if [ -x {link} ]; then echo {link}; fi ;; esac")
}

/// A line of sh that removes the programs.
pub fn programs_line(home: &str) -> String {
    let [link, programs, data] = [link_path(home), programs(home), data(home)].map(quoted);
    format!(
        "case $(readlink {link}) in {programs}/*) rm -f {link} ;; esac; rm -rf {programs}; rmdir {data} 2>/dev/null; :"
    )
}
