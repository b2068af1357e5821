//! Two anonymous network namespaces joined by one link, in which the tests and the figures of the emulator
//! are made.
//!
//! A namespace lives as long as its descriptor, so nothing is left behind however the process ends. This is
//! not the lab: it has no nodes, no firewall and no file systems.

use std::fs::File;
use std::io;
use std::net::{IpAddr, Ipv4Addr};
use std::os::fd::OwnedFd;
use std::process::Command;

use nix::sched::{CloneFlags, setns, unshare};
use thiserror::Error;

use super::{Link, LinkSpec, Port, TXQUEUELEN, Wan, WanError, open_tun};

/// The sites of the testbed.
pub(crate) const SITES: [&str; 2] = ["left", "right"];

/// A network namespace that only this value keeps alive.
#[derive(Debug)]
pub struct Namespace {
    netns: OwnedFd,
}

impl Namespace {
    /// The namespace behind a file such as /proc/PID/ns/net or /run/netns/NAME.
    pub fn from_file(netns: File) -> Namespace {
        Namespace { netns: netns.into() }
    }

    /// A new, empty namespace with its loopback down.
    ///
    /// # Errors
    /// The caller may not create namespaces (CAP_SYS_ADMIN in its user namespace).
    pub fn new() -> io::Result<Namespace> {
        in_a_thread(|| {
            unshare(CloneFlags::CLONE_NEWNET)?;
            File::open("/proc/thread-self/ns/net").map(Namespace::from_file)
        })
    }

    /// Runs `work` in a thread that is in this namespace; processes that it starts are in it, too.
    ///
    /// # Errors
    /// The namespace cannot be entered (CAP_SYS_ADMIN); or the error that `work` returns.
    pub fn inside<T: Send>(&self, work: impl FnOnce() -> io::Result<T> + Send) -> io::Result<T> {
        in_a_thread(|| {
            setns(&self.netns, CloneFlags::CLONE_NEWNET)?;
            work()
        })
    }
}

/// Namespaces belong to threads: changing that of a new thread leaves the rest of the process alone.
fn in_a_thread<T: Send>(work: impl FnOnce() -> io::Result<T> + Send) -> io::Result<T> {
    std::thread::scope(|scope| {
        let worker = std::thread::Builder::new()
            .name("causeway-netns".into())
            .spawn_scoped(scope, work)?;
        worker
            .join()
            .unwrap_or_else(|_| Err(io::Error::other("the thread in the namespace panicked")))
    })
}

/// One end of a measured path.
#[derive(Debug)]
pub struct End {
    /// The namespace in which the end is.
    pub namespace: Namespace,
    /// The address at which the other end reaches it.
    pub address: Ipv4Addr,
}

/// Two ends and the WAN between them.
#[derive(Debug)]
pub(crate) struct Testbed {
    pub(crate) ends: [End; 2],
    pub(crate) wan: Wan,
}

/// Opens a TUN device of this name.
pub(crate) type OpenTun = fn(&str) -> io::Result<OwnedFd>;

impl Testbed {
    /// Joins two new namespaces by a link.
    pub(crate) fn start(spec: &LinkSpec) -> Result<Testbed, TestbedError> {
        Self::with_devices(spec, [open_tun, open_tun])
    }

    /// The same with these functions for opening the two devices.
    pub(crate) fn with_devices(spec: &LinkSpec, open: [OpenTun; 2]) -> Result<Testbed, TestbedError> {
        let left = Self::site(0, open[0])?;
        let right = Self::site(1, open[1])?;
        let between = SITES.map(str::to_owned);
        let wan = Wan::start(
            vec![left.1, right.1],
            vec![Link {
                between,
                spec: spec.clone(),
            }],
        )?;
        Ok(Testbed {
            ends: [left.0, right.0],
            wan,
        })
    }

    fn site(number: u8, open: OpenTun) -> Result<(End, Port), TestbedError> {
        let namespace = Namespace::new().map_err(|source| TestbedError::Namespace { source })?;
        let address = Ipv4Addr::new(198, 18, number, 1);
        let tun = namespace
            .inside(|| {
                without_ipv6()?;
                let tun = open("wan0")?;
                for arguments in [
                    "link set lo up".to_owned(),
                    format!("link set wan0 mtu 1500 txqueuelen {TXQUEUELEN} up"),
                    format!("address add {address}/15 dev wan0"),
                ] {
                    ip(&arguments)?;
                }
                Ok(tun)
            })
            .map_err(|source| TestbedError::Device { source })?;
        let prefixes = vec![(IpAddr::from(address), 24)];
        Ok((
            End { namespace, address },
            Port {
                site: SITES[usize::from(number)].into(),
                tun,
                prefixes,
            },
        ))
    }
}

/// Why the testbed could not be set up.
#[derive(Debug, Error)]
pub enum TestbedError {
    /// No namespace could be made.
    #[error("make a network namespace: needs root, or an own user namespace (unshare -Ur)")]
    Namespace {
        /// The kernel's answer.
        source: io::Error,
    },
    /// The TUN device could not be opened or configured.
    #[error("open and configure wan0: needs read and write permission on /dev/net/tun")]
    Device {
        /// The kernel's or ip's answer.
        source: io::Error,
    },
    /// The WAN did not start.
    #[error("start the WAN of the testbed")]
    Wan(#[from] WanError),
}

/// Keeps the kernel's own IPv6 messages off the link, which the tests count packet by packet.
fn without_ipv6() -> io::Result<()> {
    match std::fs::write("/proc/sys/net/ipv6/conf/default/disable_ipv6", "1") {
        // A kernel without IPv6 sends none.
        Err(failure) if failure.kind() != io::ErrorKind::NotFound => Err(failure),
        _ => Ok(()),
    }
}

/// Runs `ip` in the namespace of the calling thread.
pub(crate) fn ip(arguments: &str) -> io::Result<()> {
    let output = Command::new("ip").args(arguments.split(' ')).output()?;
    if output.status.success() {
        return Ok(());
    }
    let said = String::from_utf8_lossy(&output.stderr);
    Err(io::Error::other(format!(
        "ip {arguments}: {}: {}",
        output.status,
        said.trim()
    )))
}

/// A namespace with a TAP device in 198.18.0.0/24, for the tests of the switch.
#[cfg(test)]
pub(crate) fn tap_station(number: u8) -> Result<(End, OwnedFd), TestbedError> {
    let namespace = Namespace::new().map_err(|source| TestbedError::Namespace { source })?;
    let address = Ipv4Addr::new(198, 18, 0, number);
    let tap = namespace
        .inside(|| {
            without_ipv6()?;
            let tap = super::open_tap("lan0")?;
            ip("link set lan0 up")?;
            ip(&format!("address add {address}/24 dev lan0"))?;
            Ok(tap)
        })
        .map_err(|source| TestbedError::Device { source })?;
    Ok((End { namespace, address }, tap))
}
