//! What a gateway says of its site, its nodes and its links.

use causeway_wire::grid::{self, GridError};
use causeway_wire::{Cidr, Site};
use serde::{Deserialize, Serialize};

/// Sites of a grid up to which all links are told: as many as collectives weigh (mpi/src/select/links.c), and
/// few enough for an answer's line and a process's environment.
pub const LINKED_SITES: usize = 64;

/// One link of a site.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Link {
    /// The site at the other end.
    pub to: String,
    /// See [`crate::TunnelStatus::rtt_microseconds`]; never 0.
    pub rtt_microseconds: u32,
    /// See [`crate::TunnelStatus::rate_bits_per_second`].
    pub rate_bits_per_second: u64,
}

/// A site as its gateway announces it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SiteInfo {
    /// Unique in the grid.
    pub name: String,
    /// Address ranges of its nodes as the grid knows them, such as `10.1.0.0/24`.
    pub subnets: Vec<String>,
    /// Where those are virtual, the real ones, in the same order.
    #[serde(default)]
    pub real_subnets: Vec<String>,
    /// Where its gateway takes connections of its own nodes. Real addresses.
    pub gateways: Vec<std::net::SocketAddr>,
    /// Source ports its gateway delivers from, `first-last`.
    pub delivery_ports: String,
    /// Its compute nodes, in the order in which they are to be used.
    pub nodes: Vec<NodeInfo>,
    /// Its gateway carries connections of others.
    #[serde(default)]
    pub relays: bool,
    /// Its gateway takes connections from the site's router, and delivers them from their true sources.
    #[serde(default)]
    pub transparent: bool,
}

impl SiteInfo {
    /// The site as it stands in a grid map.
    ///
    /// # Errors
    /// What of it cannot be, in one sentence.
    pub fn site(&self) -> Result<Site, String> {
        let read = |texts: &[String]| -> Result<Vec<Cidr>, String> {
            let subnets = texts.iter().map(|text| text.parse());
            subnets
                .collect::<Result<_, _>>()
                .map_err(|error: GridError| error.to_string())
        };
        let (subnets, real_subnets) = (read(&self.subnets)?, read(&self.real_subnets)?);
        if subnets.is_empty() || self.gateways.is_empty() {
            return Err("announces no subnet or no gateway".to_owned());
        }
        let mut pairs = subnets.iter().zip(&real_subnets);
        let fits = real_subnets.is_empty() || real_subnets.len() == subnets.len();
        if !fits || !pairs.all(|(subnet, real)| subnet.is_of_size(real)) {
            return Err("announces virtual subnets that are not of its real ones' size".to_owned());
        }
        let mut earlier = subnets.iter().enumerate();
        if !real_subnets.is_empty()
            && earlier.any(|(at, one)| subnets[..at].iter().any(|other| one.overlaps(other)))
        {
            return Err("announces virtual subnets that overlap with each other".to_owned());
        }
        Ok(Site {
            name: self.name.clone(),
            subnets,
            real_subnets,
            gateways: self.gateways.clone(),
            delivery_ports: grid::parse_ports(&self.delivery_ports).map_err(|error| error.to_string())?,
        })
    }
}

/// A compute node.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct NodeInfo {
    /// The name its site's remote shell knows.
    pub name: String,
    /// Its address, as the grid knows it; in a configuration, its real one.
    pub address: std::net::IpAddr,
    /// Processes it takes.
    pub slots: u32,
}
