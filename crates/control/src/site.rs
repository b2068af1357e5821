//! The messages by which a gateway describes its site, its nodes and its links.

use causeway_wire::TextError;
use causeway_wire::grid::{self, GridError, Span};
use causeway_wire::{Cidr, Site};
use serde::{Deserialize, Serialize};

/// The number of sites up to which all links are reported. Collectives consider that many
/// (mpi/collectives/select/links.c), and they fit into an answer's line and a process's environment.
pub const LINKED_SITES: usize = 64;

/// The most subnets that a site may announce, as the broker records them.
pub const MAX_SUBNETS: usize = 64;
/// See [`MAX_SUBNETS`].
pub const MAX_NODES: usize = 16_384;

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
    /// Its name, unique in the grid.
    pub name: String,
    /// Address ranges of its nodes as the grid knows them, such as `10.1.0.0/24`.
    pub subnets: Vec<String>,
    /// If those are virtual, the real ones, in the same order.
    #[serde(default)]
    pub real_subnets: Vec<String>,
    /// Where its gateway accepts connections from its own nodes. Real addresses.
    pub gateways: Vec<std::net::SocketAddr>,
    /// Source ports its gateway delivers from, `first-last`.
    pub delivery_ports: String,
    /// Its compute nodes, in the order in which they are to be used.
    pub nodes: Vec<NodeInfo>,
    /// Whether its gateway carries connections of other sites.
    #[serde(default)]
    pub relays: bool,
    /// Whether its gateway accepts connections from the site's router, and delivers connections from their
    /// true sources.
    #[serde(default)]
    pub transparent: bool,
    /// Networks that its processes reach directly, whatever other sites announce: `[site] local`.
    #[serde(default)]
    pub local: Vec<String>,
}

impl SiteInfo {
    /// Checks the bounds, before anything else is read from the record.
    fn check_bounds(&self) -> Result<(), TextError> {
        let counts = [
            ("subnets", self.subnets.len(), MAX_SUBNETS),
            ("real subnets", self.real_subnets.len(), MAX_SUBNETS),
            ("nodes", self.nodes.len(), MAX_NODES),
            ("local networks", self.local.len(), MAX_SUBNETS),
        ];
        if let Some((what, count, most)) = counts.iter().find(|(_, count, most)| count > most) {
            return Err(format!("announces {count} {what}; {most} are allowed").into());
        }
        if !grid::is_site_name(&self.name) {
            return Err("announces itself by what is no name of a site".into());
        }
        let of_v4 = self.gateways.iter().filter(|gateway| gateway.is_ipv4()).count();
        if of_v4 > 1 || self.gateways.len() - of_v4 > 1 {
            return Err("announces more than one gateway of an address family".into());
        }
        if let Some(node) = self.nodes.iter().find(|node| !grid::is_node_name(&node.name)) {
            let name: String = node.name.chars().take(64).collect();
            return Err(format!("announces {name:?}, which is no name of a node").into());
        }
        Ok(())
    }

    /// The site in the form that a grid map has it in.
    ///
    /// # Errors
    /// Something in it is impossible; the error is a sentence.
    pub fn site(&self) -> Result<Site, TextError> {
        self.check_bounds()?;
        let read = |texts: &[String]| -> Result<Vec<Cidr>, TextError> {
            let subnets = texts.iter().map(|text| text.parse());
            subnets
                .collect::<Result<_, _>>()
                .map_err(|error: GridError| TextError::of(error))
        };
        let (subnets, real_subnets) = (read(&self.subnets)?, read(&self.real_subnets)?);
        if subnets.is_empty() || self.gateways.is_empty() {
            return Err("announces no subnet or no gateway".into());
        }
        let mut pairs = subnets.iter().zip(&real_subnets);
        let fits = real_subnets.is_empty() || real_subnets.len() == subnets.len();
        if !fits || !pairs.all(|(subnet, real)| subnet.is_of_size(real)) {
            return Err("announces virtual subnets that are not of its real ones' size".into());
        }
        let mut earlier = subnets.iter().enumerate();
        if !real_subnets.is_empty()
            && earlier.any(|(at, one)| subnets[..at].iter().any(|other| one.overlaps(other)))
        {
            return Err("announces virtual subnets that overlap with each other".into());
        }
        Ok(Site {
            name: self.name.clone(),
            subnets,
            real_subnets,
            gateways: self.gateways.clone(),
            delivery_ports: grid::parse_ports(&self.delivery_ports).map_err(|error| error.to_string())?,
            nodes: Span::of(self.nodes.iter().map(|node| node.address)),
            local: read(&self.local)?,
        })
    }
}

/// A compute node.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct NodeInfo {
    /// The name by which its site's remote shell knows it.
    pub name: String,
    /// Its address, as the grid knows it; in a configuration, its real one.
    pub address: std::net::IpAddr,
    /// How many processes the node runs.
    pub slots: u32,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn info() -> SiteInfo {
        SiteInfo {
            name: "nancy".into(),
            subnets: vec!["10.2.0.0/24".into()],
            real_subnets: vec![],
            gateways: vec!["10.2.0.253:7000".parse().unwrap()],
            delivery_ports: "20000-32767".into(),
            nodes: vec![NodeInfo {
                name: "nancy-1".into(),
                address: [10, 2, 0, 1].into(),
                slots: 4,
            }],
            relays: false,
            transparent: false,
            local: vec![],
        }
    }

    #[test]
    fn what_is_too_much_or_has_no_plain_name_is_refused_before_anything_is_made_of_it() {
        info().site().unwrap();
        let refused = |spoil: fn(&mut SiteInfo)| {
            let mut info = info();
            spoil(&mut info);
            info.site().unwrap_err()
        };
        let why = refused(|info| info.subnets = vec!["10.2.0.0/24".into(); 65]);
        assert!(why.contains("65 subnets; 64 are allowed"), "{why}");
        let why = refused(|info| info.nodes = vec![info.nodes[0].clone(); MAX_NODES + 1]);
        assert!(why.contains("16385 nodes"), "{why}");
        for name in ["", "a b", "-oProxyCommand=id", "a\n", &"n".repeat(201)] {
            let mut info = info();
            info.nodes[0].name = name.into();
            let why = info.site().unwrap_err();
            assert!(why.contains("no name of a node") && why.len() < 120, "{why}");
        }
        let why = refused(|info| info.gateways.push("10.2.0.252:7000".parse().unwrap()));
        assert!(why.contains("more than one gateway"), "{why}");
        let why = refused(|info| info.name = "a|b".into());
        assert!(why.contains("no name of a site"), "{why}");
    }
}
