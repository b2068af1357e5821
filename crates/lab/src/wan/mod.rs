//! The WAN in user space: IP packets between the sites' TUN devices, with delay, rate, queue, loss and cuts.
//!
//! It knows nothing about namespaces, firewalls or scenarios; it is given descriptors, and carries what they
//! contain. Read `link` first (the arithmetic), then `pump` (the loop), then `grid` and `switch` (who is
//! joined to whom).
//!
//! ```text
//!  site A's router             thread "causeway-wan"                site B's router
//!   [wan0 TUN] -- read --> route -> Direction A->B -- write --> [wan0 TUN]
//!   [wan0 TUN] <-- write -- Direction B->A <- route <-- read -- [wan0 TUN]
//! ```
//!
//! The owner of the namespaces has to do this: `ip link set wan0 mtu 1500 txqueuelen 10000 up` (see
//! [`TXQUEUELEN`]), addresses and routes. Nothing else is needed. If the kernel hands over super-segments
//! (`packet`), the links carry, count and lose the packets that they represent.

use std::net::IpAddr;
use std::os::fd::OwnedFd;
use std::time::Duration;
use std::{fmt, io};

use thiserror::Error;

pub mod bench;
mod ethernet;
mod grid;
mod link;
mod pace;
mod packet;
mod ping;
mod pool;
pub(crate) mod priority;
mod pump;
mod route;
mod spec;
mod stats;
mod switch;
mod testbed;
mod tun;

pub use priority::Priority;
pub use spec::{
    FRAMING_BYTES, LinkChange, LinkSpec, LinkStats, MAX_RTT, MIN_RATE_BITS_PER_SECOND, SpecError,
};
pub use switch::{LAN_QUEUE_BYTES, LanSpec, Switch, SwitchError};
pub use testbed::{End, Namespace, TestbedError};
pub use tun::{TXQUEUELEN, open_tap, open_tun};

use grid::{Grid, GridRequest};
use pump::Pump;
use route::{Routes, is_prefix_length};

/// One site's end of the WAN.
#[derive(Debug)]
pub struct Port {
    /// Name of the site.
    pub site: String,
    /// A TUN device without packet information (IFF_TUN | IFF_NO_PI), non-blocking: see [`open_tun`]. Offload
    /// headers (IFF_VNET_HDR) are optional.
    pub tun: OwnedFd,
    /// The networks behind it, with their prefix lengths.
    pub prefixes: Vec<(IpAddr, u8)>,
}

/// A link between two sites.
#[derive(Debug, Clone)]
pub struct Link {
    /// The two sites, in any order. The first one's packets use `spec.seed` itself, the second one's a seed
    /// derived from it.
    pub between: [String; 2],
    /// The values that the link is given.
    pub spec: LinkSpec,
}

/// What the emulator as a whole has done.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WanTotals {
    /// CPU time of the emulator thread. This includes the kernel's forwarding of what the thread writes.
    pub cpu: Duration,
    /// How often the thread woke up.
    pub wakeups: u64,
    /// Packets that were dropped because their address is behind no port.
    pub no_route_packets: u64,
    /// Packets that were dropped because the two sites have no link.
    pub no_link_packets: u64,
    /// Ports whose device vanished while the WAN ran.
    pub lost_ports: u64,
    /// How the kernel schedules the thread.
    pub priority: Priority,
}

/// A running WAN. Dropping it stops and joins its thread, and closes the devices.
pub struct Wan {
    pump: Pump<GridRequest>,
}

impl Wan {
    /// Starts carrying packets in a thread named "causeway-wan".
    ///
    /// # Errors
    /// A site, prefix or pair is named twice, a link is to an unknown site, the values of a link are
    /// impossible, or the thread cannot be started. Then the devices are closed.
    pub fn start(ports: Vec<Port>, links: Vec<Link>) -> Result<Wan, WanError> {
        let mut routes = Routes::default();
        for (number, port) in ports.iter().enumerate() {
            if ports[..number].iter().any(|other| other.site == port.site) {
                return Err(WanError::SiteTwice {
                    site: port.site.clone(),
                });
            }
            for &(network, bits) in &port.prefixes {
                let site = port.site.clone();
                if !is_prefix_length(network, bits) {
                    return Err(WanError::PrefixLength { site, network, bits });
                }
                let held = |other: usize| ports[other].site.clone();
                routes
                    .add(network, bits, number)
                    .map_err(|other| WanError::PrefixTwice {
                        network,
                        bits,
                        site,
                        other: held(other),
                    })?;
            }
        }
        let (sites, tuns): (Vec<_>, Vec<_>) = ports.into_iter().map(|port| (port.site, port.tun)).unzip();
        let mut grid = Grid::new(sites, routes);
        for link in links {
            grid.join(&link.between, link.spec)?;
        }
        let pump = Pump::start("causeway-wan", grid, tuns).map_err(|source| WanError::Start { source })?;
        Ok(Wan { pump })
    }

    /// Changes the link between `a` and `b`, in both directions, and returns its present values.
    ///
    /// # Errors
    /// A site is unknown, the two have no link, the values are impossible (then nothing is changed), or the
    /// emulator thread has ended.
    pub fn change(&self, a: &str, b: &str, change: &LinkChange) -> Result<LinkSpec, WanError> {
        let between = [a.to_owned(), b.to_owned()];
        let change = change.clone();
        self.pump
            .ask(|reply| GridRequest::Change {
                between,
                change,
                reply,
            })
            .unwrap_or(Err(WanError::Stopped))
    }

    /// Two entries for each link, one for each direction; empty if the emulator thread has ended.
    pub fn stats(&self) -> Vec<LinkStats> {
        self.pump
            .ask(|reply| GridRequest::Stats { reply })
            .map(|(stats, _)| stats)
            .unwrap_or_default()
    }

    /// Returns the counters that belong to no single link.
    ///
    /// # Errors
    /// The emulator thread has ended.
    pub fn totals(&self) -> Result<WanTotals, WanError> {
        self.pump
            .ask(|reply| GridRequest::Stats { reply })
            .map(|(_, totals)| totals)
            .ok_or(WanError::Stopped)
    }
}

impl fmt::Debug for Wan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Wan").finish_non_exhaustive()
    }
}

/// Why the WAN could not be started or changed. All except `Start` and `Stopped` are mistakes in the
/// configuration.
#[derive(Debug, Error)]
pub enum WanError {
    /// Two ports have the same name.
    #[error("start WAN: site {site} is given twice")]
    SiteTwice {
        /// The site.
        site: String,
    },
    /// A prefix length that the address family does not have.
    #[error("start WAN: site {site}: no prefix {network}/{bits}")]
    PrefixLength {
        /// The site.
        site: String,
        /// The network that was named.
        network: IpAddr,
        /// Its prefix length.
        bits: u8,
    },
    /// Two sites claim the same network.
    #[error("start WAN: {network}/{bits} lies behind both {other} and {site}; route it to one of them")]
    PrefixTwice {
        /// The network.
        network: IpAddr,
        /// Its prefix length.
        bits: u8,
        /// The site that claimed it last.
        site: String,
        /// The site that claimed it first.
        other: String,
    },
    /// A link names a site that has no port.
    #[error("WAN link: no site {site}; there are {known}")]
    UnknownSite {
        /// The name that was given.
        site: String,
        /// The sites that exist.
        known: String,
    },
    /// A pair has two links, or a link joins a site to itself.
    #[error("start WAN: a second link between {a} and {b}")]
    LinkTwice {
        /// One site.
        a: String,
        /// The other.
        b: String,
    },
    /// The two sites are not joined.
    #[error("change WAN link: there is none between {a} and {b}")]
    NoLink {
        /// One site.
        a: String,
        /// The other.
        b: String,
    },
    /// Values that no link can have.
    #[error("WAN link {a} - {b}")]
    Spec {
        /// One site.
        a: String,
        /// The other.
        b: String,
        /// The wrong value.
        source: SpecError,
    },
    /// The thread could not be started.
    #[error("start WAN: no emulator thread")]
    Start {
        /// The kernel's answer.
        source: io::Error,
    },
    /// The thread has ended, which only a defect in it can cause.
    #[error("the WAN emulator thread has ended; its message is on stderr")]
    Stopped,
}

#[cfg(test)]
mod offload_tests;
#[cfg(test)]
mod wan_tests;
