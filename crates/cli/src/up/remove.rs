//! Ends and removes what `causeway up` has made on a head node.

use super::install::{data, link_path, programs};
use crate::{grid, join};
use causeway_broker::BrokerConfig;
use causeway_broker::new_grid::CONFIG_FILE;
use causeway_control::questions;
use causeway_control::{self as control, Status};
use causeway_host::background::systemd;
use causeway_host::processes::{self, Process};
use causeway_host::{quoted, user_directories};
use nix::errno::Errno;
use nix::sys::signal::{Signal, kill};
use nix::sys::socket::{getsockopt, sockopt::PeerCredentials};
use nix::unistd::Pid;
use std::fs;
use std::io::ErrorKind;
use std::os::unix::fs::MetadataExt;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::{Duration, Instant};

/// How long a gateway or broker may take to end.
const ENDS_WITHIN: Duration = Duration::from_secs(20);
/// How long a gateway's socket may be missing: the gateway checks it more often than that.
const AWAY_FOR: Duration = Duration::from_secs(20);
const LOOK_EVERY: Duration = Duration::from_millis(50);

/// Ends this user's gateway and broker on this host; returns what was done, for people.
///
/// # Errors
/// Jobs run and `force` is not set, or one of the processes does not end.
pub fn stop(force: bool) -> Result<Vec<String>, String> {
    let mut done = Vec::new();
    if let Some(status) = gateway() {
        let names: Vec<&str> = status.jobs.iter().map(|job| job.name.as_str()).collect();
        if !force && !names.is_empty() {
            return Err(format!("jobs run: {}; --force ends them", names.join("; ")));
        }
        end(Pid::from_raw(status.pid.cast_signed()), Some(&control::socket()))?;
        done.push(format!("the gateway of {} has ended", status.site));
    }
    for process in installed("gateway") {
        // If a gateway was ended above, this is a process of it that is about to end, too.
        if !force && done.is_empty() {
            return Err(format!(
                "a gateway of this user's runs, process {}, and does not answer at its socket; --force ends it, and its jobs",
                process.pid
            ));
        }
        end(process.pid, None)?;
        done.push(format!("a gateway has ended, process {}", process.pid));
    }
    let broker = grid::default_directory().map_err(|error| error.to_string())?;
    if let Ok(config) = BrokerConfig::load(&broker.join(CONFIG_FILE))
        && let Ok(stream) = UnixStream::connect(config.socket())
    {
        let peer = getsockopt(&stream, PeerCredentials).map_err(|error| error.to_string())?;
        end(Pid::from_raw(peer.pid()), Some(&config.socket()))?;
        done.push(format!("the broker of {} has ended", config.grid));
    }
    for process in installed("broker") {
        end(process.pid, None)?;
        done.push(format!("a broker has ended, process {}", process.pid));
    }
    Ok(done)
}

/// The status of this user's gateway. If somebody removes the socket of a running gateway, as systemd does
/// when a user logs out for the last time, the gateway soon makes it anew.
fn gateway() -> Option<Status> {
    let until = Instant::now() + AWAY_FOR;
    loop {
        if let Ok(status) = questions::status(&control::socket()) {
            return Some(status);
        }
        if Instant::now() > until || installed("gateway").is_empty() {
            return None;
        }
        std::thread::sleep(LOOK_EVERY);
    }
}

/// Processes of this user on this host that `causeway up` has started with this word, without their own
/// children.
fn installed(word: &str) -> Vec<Process> {
    let home = user_directories::home().unwrap_or_default();
    let programs = programs(&home.display().to_string());
    let Ok(programs) = fs::canonicalize(programs) else {
        return Vec::new();
    };
    let is_one = |process: &Process| is_installed(process.pid, word, &programs);
    let all: Vec<Process> = processes::all().filter(is_one).collect();
    let is_first = |process: &&Process| all.iter().all(|other| other.pid != process.parent);
    all.iter().filter(is_first).copied().collect()
}

fn is_installed(pid: Pid, word: &str, programs: &Path) -> bool {
    let place = Path::new("/proc").join(pid.to_string());
    let is_own = fs::metadata(&place).is_ok_and(|of| of.uid() == nix::unistd::geteuid().as_raw());
    let is_ours = || fs::read_link(place.join("exe")).is_ok_and(|program| program.starts_with(programs));
    let words = || fs::read(place.join("cmdline")).unwrap_or_default();
    is_own && is_ours() && words().split(|byte| *byte == 0).nth(1) == Some(word.as_bytes())
}

/// Ends a process, and waits for its end; if it serves a socket, also until nobody serves it.
fn end(pid: Pid, socket: Option<&Path>) -> Result<(), String> {
    let process = Process::of(pid);
    match kill(pid, Signal::SIGTERM) {
        // The process has ended by itself.
        Ok(()) | Err(Errno::ESRCH) => {}
        Err(error) => return Err(format!("end process {pid}: {error}")),
    }
    let until = Instant::now() + ENDS_WITHIN;
    let serves = || socket.is_some_and(|socket| UnixStream::connect(socket).is_ok());
    while serves() || process.is_some_and(Process::runs) {
        if Instant::now() > until {
            return Err(format!("process {pid} has not ended within {ENDS_WITHIN:?}"));
        }
        std::thread::sleep(LOOK_EVERY);
    }
    Ok(())
}

/// Removes what `causeway up` has made on this host, except the programs and what jobs have printed.
///
/// # Errors
/// Something cannot be removed.
pub fn remove() -> Result<(), String> {
    // These units would start the gateway and the broker again together with the host.
    systemd::remove_all().map_err(|error| error.to_string())?;
    let name = |error: user_directories::NoHome| error.to_string();
    let config = causeway_host::user_directories::gateway_config().map_err(name)?;
    let directory = config.parent().unwrap_or(Path::new("/")).to_owned();
    let grid = grid::default_directory().map_err(name)?;
    let mut all = vec![
        config.clone(),
        config.with_extension("host"),
        directory.join(join::MEMBERSHIP),
        grid.clone(),
        // Copies of what jobs have sent (run/files/sending.rs). Results that could not be fetched are beside
        // them, and stay there for a day.
        user_directories::home()
            .map_err(name)?
            .join(".cache/causeway/sent"),
    ];
    let beside = fs::read_dir(&directory).into_iter().flatten().flatten();
    // What the gateway wrote for its batch system: all allocations were given back when it ended.
    all.extend(
        beside
            .map(|entry| entry.path())
            .filter(|path| is_of_allocations(path)),
    );
    all.iter().try_for_each(|path| remove_path(path))?;
    // The directories are removed only if they contain nothing else.
    let _ = fs::remove_dir(&directory);
    Ok(())
}

fn is_of_allocations(path: &Path) -> bool {
    let name = path
        .file_name()
        .unwrap_or_default()
        .to_string_lossy()
        .into_owned();
    // Files of requests that still have to be given back stay.
    name.starts_with("allocations-") && fs::read_dir(path).is_ok_and(|mut entries| entries.next().is_none())
        // Notes of what other sites have used.
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

/// A line of sh that prints the command that `causeway up` has installed; nothing if it has installed none.
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
