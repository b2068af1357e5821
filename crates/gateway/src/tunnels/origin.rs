//! How a lane came about: who dialled, and through what.

use crate::keys::PeerIndex;
use std::fmt;
use std::net::SocketAddr;
use std::time::Instant;

/// How a lane came about.
pub(crate) struct Came {
    /// Address of the far gateway, or of the relay.
    pub(crate) address: SocketAddr,
    /// Whether this gateway dialled; of two gateways that meet at a relay, the one that asked counts as the
    /// dialler.
    pub(crate) dialled: bool,
    pub(crate) through: Option<Through>,
}

/// The gateway that carries a lane for both of its ends.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Through {
    /// Its place among the configured peers, and its site.
    pub(crate) relay: PeerIndex,
    pub(crate) site: String,
    /// Round-trip time from the relay to the far gateway, as the relay reported it.
    pub(crate) beyond_microseconds: u32,
    /// When it was dialled.
    pub(crate) since: Instant,
}

/// Protocol over which a hole is punched through firewalls and NATs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Way {
    Udp,
    Tcp,
}

impl Way {
    pub(crate) const ALL: [Way; 2] = [Way::Udp, Way::Tcp];
}

impl fmt::Display for Way {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        to.write_str(match self {
            Way::Udp => "UDP",
            Way::Tcp => "TCP",
        })
    }
}
