//! The path to the site's gateway from another host of the site, such as the node on which a script of
//! `sbatch` runs: ssh forwards the gateway's control socket.
//!
//! A gateway with a batch system writes the name of its host and the path of its socket to a file beside its
//! configuration, in a home directory that the hosts of the site usually share. So it is the site's own ssh
//! that decides who may ask, as it is on the gateway's host, and one connection serves the run and all agents
//! of its launcher.

use super::directory::RunDirectory;
use super::error::RunError;
use super::sites::own_address;
use crate::batch::allocations;
use causeway_control::questions;
use causeway_control::{self as control, Sites};
use causeway_host::{own_file, say};
use causeway_remote::tree;
use nix::sys::prctl::set_pdeathsig;
use nix::sys::signal::Signal;
use serde::{Deserialize, Serialize};
use std::ffi::OsString;
use std::fs;
use std::io;
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// How long ssh may take to reach the gateway's host.
const REACHES_WITHIN: Duration = Duration::from_secs(30);
const LOOK_EVERY: Duration = Duration::from_millis(20);

/// Options of ssh with which a host that does not answer for a minute counts as lost.
const KEEP_ALIVE: [&str; 4] = ["-o", "ServerAliveInterval=15", "-o", "ServerAliveCountMax=4"];

/// Where a gateway serves commands.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct Whereabouts {
    host: String,
    control: PathBuf,
}

/// The file in which a gateway has written where it serves. Dropping this removes the file.
#[derive(Debug)]
pub struct Announced {
    file: PathBuf,
    text: Vec<u8>,
}

/// Writes where a gateway of this host serves, in a file beside its configuration.
///
/// # Errors
/// Those of the file system.
pub fn announce(config: &Path, control: &Path) -> io::Result<Announced> {
    let here = Whereabouts {
        host: own_host()?,
        control: std::path::absolute(control)?,
    };
    let (file, text) = (file_beside(config), serde_json::to_vec(&here)?);
    own_file::keep(&file, &text)?;
    Ok(Announced { file, text })
}

impl Drop for Announced {
    fn drop(&mut self) {
        // Another gateway with this configuration may have replaced the file since.
        if fs::read(&self.file).is_ok_and(|found| found == self.text) {
            let _ = fs::remove_file(&self.file);
        }
    }
}

/// A forwarded control socket, which exists for as long as this.
#[derive(Debug)]
pub struct Via {
    _ssh: Forwarding,
    /// What the gateway knows, and the name of its host.
    known: Sites,
    host: String,
    _directory: RunDirectory,
}

/// The ssh process that forwards it; it ends when this is dropped.
#[derive(Debug)]
struct Forwarding(Child);

impl Drop for Forwarding {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Lets commands of this process look for the gateway not only in the usual places, but also where it has
/// announced itself.
pub fn know() {
    control::know(control::Known {
        here: || noted(|is_here| is_here).map(|there| there.control),
        elsewhere: || noted(|is_here| !is_here).map(|there| there.host),
    });
}

/// If no gateway serves on this host, makes commands of this process ask the one that has announced itself on
/// another. `None` if there is none there, either.
///
/// # Errors
/// ssh does not reach the gateway.
pub fn open() -> Result<Option<Via>, RunError> {
    if control::socket().exists() {
        return Ok(None);
    }
    let Some(there) = noted(|is_here| !is_here) else {
        return Ok(None);
    };
    let own = std::env::current_exe().map_err(RunError::Own)?;
    let directory = RunDirectory::create(&own).map_err(RunError::Directory)?;
    let socket = directory.path().join(control::FORWARDED);
    let failed = |why: String| RunError::Via(there.host.clone(), there.control.display().to_string(), why);
    let mut ssh = Command::new("ssh");
    ssh.args(words(&there, &socket).map_err(&failed)?);
    // ssh's messages are for the user, and Ctrl-C at a terminal must not reach it.
    ssh.stdin(Stdio::null()).stdout(Stdio::null()).process_group(0);
    // SAFETY: prctl is one system call, and so may be made between fork and exec.
    unsafe {
        ssh.pre_exec(|| Ok(set_pdeathsig(Signal::SIGTERM)?));
    }
    let ssh = { ssh.spawn() }.map_err(|error| failed(format!("ssh: {error}")))?;
    tree::spare(&ssh);
    let mut forwarding = Forwarding(ssh);
    wait_for(&mut forwarding.0, &socket).map_err(&failed)?;
    // ssh listens whether or not there is a gateway.
    let known = questions::sites(&socket).map_err(|error| failed(error.to_string()))?;
    control::use_socket(socket);
    Ok(Some(Via {
        _ssh: forwarding,
        known,
        host: there.host,
        _directory: directory,
    }))
}

impl Via {
    /// Warns if, as far as is known, processes of other sites cannot connect to a launcher on this host:
    /// gateways let them connect to nodes, and to launchers on the gateways' own hosts.
    pub fn warn_of_launcher(&self) {
        let known = &self.known;
        let is_allocated = allocations::own(known).is_some();
        let own = known.sites.iter().find(|site| site.name == known.site);
        let nodes = own.and_then(|own| own.info.as_ref()).map(|info| &info.nodes);
        let is_node = |address| nodes.is_some_and(|nodes| nodes.iter().any(|node| node.address == address));
        if !is_allocated && !own_address(known, true).is_some_and(|(_, address)| is_node(address)) {
            say::error(format_args!(
                "causeway: this host is no node of {}: processes of other sites reach a launcher here only if addresses in \
                 [accept] of its gateway names this host; on {}, the gateway's own, they do",
                known.site, self.host
            ));
        }
    }
}

/// Waits until ssh forwards a socket.
fn wait_for(ssh: &mut Child, socket: &Path) -> Result<(), String> {
    let until = Instant::now() + REACHES_WITHIN;
    // The socket's file exists a moment before ssh listens.
    while UnixStream::connect(socket).is_err() {
        if let Some(status) = ssh.try_wait().map_err(|error| error.to_string())? {
            return Err(format!("ssh ended with {status}"));
        }
        if Instant::now() > until {
            return Err(format!("ssh has not reached it within {REACHES_WITHIN:?}"));
        }
        std::thread::sleep(LOOK_EVERY);
    }
    Ok(())
}
/// What the gateway of this user's configuration has announced, if `wanted` accepts whether its host is this
/// one.
fn noted(wanted: impl Fn(bool) -> bool) -> Option<Whereabouts> {
    let file = file_beside(&causeway_host::user_directories::gateway_config().ok()?);
    let found: Whereabouts = serde_json::from_slice(&fs::read(file).ok()?).ok()?;
    wanted(found.host == own_host().ok()?).then_some(found)
}

fn words(there: &Whereabouts, socket: &Path) -> Result<Vec<OsString>, String> {
    let mut forward = OsString::from(socket);
    forward.push(":");
    forward.push(&there.control);
    // A colon would end a path there.
    if forward
        .as_encoded_bytes()
        .iter()
        .filter(|byte| **byte == b':')
        .count()
        > 1
    {
        return Err("ssh forwards no socket with a colon in its path".to_owned());
    }
    let mut words: Vec<OsString> = ["-nNT", "-o", "BatchMode=yes"].map(OsString::from).into();
    words.extend(KEEP_ALIVE.map(OsString::from));
    // The run needs a connection of its own: a shared one would not end with the run.
    words.extend(["-S", "none", "-L"].map(OsString::from));
    words.push(forward);
    words.extend(["--", there.host.as_str()].map(OsString::from));
    Ok(words)
}

fn file_beside(config: &Path) -> PathBuf {
    config.with_extension("host")
}

fn own_host() -> io::Result<String> {
    Ok(nix::unistd::gethostname()?.to_string_lossy().into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_gateway_that_ends_takes_back_its_own_whereabouts_and_nobody_elses() {
        let dir = tempfile::tempdir().unwrap();
        let config = dir.path().join("gateway.toml");
        let socket = Path::new("/run/user/7/causeway/gateway.sock");
        let file = dir.path().join("gateway.host");
        drop(announce(&config, socket).unwrap());
        assert!(!file.exists());
        let announced = announce(&config, socket).unwrap();
        let read: Whereabouts = serde_json::from_slice(&fs::read(&file).unwrap()).unwrap();
        assert_eq!(read.control, socket);
        fs::write(&file, "another").unwrap();
        drop(announced);
        assert_eq!(fs::read(&file).unwrap(), b"another");
    }

    #[test]
    fn a_host_is_no_option_of_ssh_and_a_path_is_forwarded_whole_or_not_at_all() {
        let there = |control: &str| Whereabouts {
            host: "-oProxyCommand=id".to_owned(),
            control: control.into(),
        };
        let found = words(&there("/run/g.sock"), Path::new("/tmp/s")).unwrap();
        assert_eq!(found[found.len() - 2..], ["--", "-oProxyCommand=id"]);
        assert_eq!(found[found.len() - 3], "/tmp/s:/run/g.sock");
        assert!(words(&there("/run/a:b"), Path::new("/tmp/s")).is_err());
    }
}
