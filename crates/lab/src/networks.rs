//! Networks that a lab takes for itself, outside its sites.

use crate::subnet::Subnet;
use std::net::Ipv4Addr;

/// RFC 5737: reserved for documentation, so no real network can be meant.
pub(crate) const PUBLIC_NETWORKS: [Subnet; 3] = [
    Subnet::holding(Ipv4Addr::new(198, 51, 100, 0), 24),
    Subnet::holding(Ipv4Addr::new(203, 0, 113, 0), 24),
    Subnet::holding(Ipv4Addr::new(192, 0, 2, 0), 24),
];

/// RFC 6598: what a provider uses behind its own NAT.
pub(crate) const PRIVATE_UPLINKS: Subnet = Subnet::holding(Ipv4Addr::new(100, 64, 0, 0), 10);

/// Networks a site may not use for its LAN.
pub(crate) const LAB_NETWORKS: [Subnet; 5] = [
    PUBLIC_NETWORKS[0],
    PUBLIC_NETWORKS[1],
    PUBLIC_NETWORKS[2],
    PRIVATE_UPLINKS,
    Subnet::holding(Ipv4Addr::new(127, 0, 0, 0), 8),
];

/// A /30 for each site out of a /24.
pub(crate) const SITES_PER_BLOCK: u32 = 64;

/// The most sites: as many as there are public /30s.
pub(crate) const MAX_SITES: usize = PUBLIC_NETWORKS.len() * SITES_PER_BLOCK as usize;
