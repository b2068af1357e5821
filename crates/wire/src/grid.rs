//! The grid map: which addresses belong to which site and where each site's gateway listens.
//!
//! One text, the same in every process of a job at every site; a process finds its own site by its node's
//! addresses. Text form (version first, sites separated by `|`, fields by `;`, items by `,`):
//!
//! ```text
//! 1|rennes;10.1.0.0/24;10.1.0.253:7000;20000-32767|nancy;10.2.0.0/24;10.2.0.253:7000;20000-32767
//!    name   subnets     gateway (LAN)   source ports a gateway delivers from
//! ```

use std::fmt;
use std::net::{IpAddr, SocketAddr};
use std::ops::RangeInclusive;
use std::str::FromStr;

/// Longest map read: room for hundreds of sites, and far under the kernel's bound on one environment string.
pub const MAX_BYTES: usize = 64 * 1024;

const VERSION: &str = "1";

/// An address range such as `10.1.0.0/24`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Cidr {
    address: IpAddr,
    prefix: u8,
}

impl Cidr {
    /// Whether the range holds this address; families never mix, IPv4-mapped IPv6 counts as IPv4.
    pub fn contains(&self, address: IpAddr) -> bool {
        match (self.address, address.to_canonical()) {
            (IpAddr::V4(range), IpAddr::V4(address)) => {
                let shift = 32 - u32::from(self.prefix);
                (u32::from(range) ^ u32::from(address))
                    .checked_shr(shift)
                    .unwrap_or(0)
                    == 0
            }
            (IpAddr::V6(range), IpAddr::V6(address)) => {
                let shift = 128 - u32::from(self.prefix);
                (u128::from(range) ^ u128::from(address))
                    .checked_shr(shift)
                    .unwrap_or(0)
                    == 0
            }
            _ => false,
        }
    }

    /// First address of the range, as typed.
    pub fn address(&self) -> IpAddr {
        self.address
    }

    /// Number of leading bits that every address of the range shares.
    pub fn prefix(&self) -> u8 {
        self.prefix
    }

    /// Whether some address lies in both ranges.
    pub fn overlaps(&self, other: &Cidr) -> bool {
        if self.prefix <= other.prefix {
            self.contains(other.address)
        } else {
            other.contains(self.address)
        }
    }
}

impl FromStr for Cidr {
    type Err = GridError;

    fn from_str(text: &str) -> Result<Cidr, GridError> {
        let wrong = || GridError::Subnet(text.to_owned());
        let (address, prefix) = text.split_once('/').ok_or_else(wrong)?;
        let address: IpAddr = address.parse().map_err(|_| wrong())?;
        let prefix: u8 = prefix.parse().map_err(|_| wrong())?;
        let bits = if address.is_ipv4() { 32 } else { 128 };
        if prefix > bits {
            Err(wrong())
        } else {
            Ok(Cidr { address, prefix })
        }
    }
}

impl fmt::Display for Cidr {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.address, self.prefix)
    }
}

/// A set of nodes that reach each other directly.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Site {
    /// Unique in the grid; letters, digits, `-`, `_` and `.`.
    pub name: String,
    /// Where the site's nodes have their addresses.
    pub subnets: Vec<Cidr>,
    /// Where the gateway takes connections from the site's nodes: at most one per address family.
    pub gateways: Vec<SocketAddr>,
    /// Source ports the gateway delivers from. Apart from the range of ephemeral ports, so that a connection
    /// of another process of the head node is not taken for a delivery.
    pub delivery_ports: RangeInclusive<u16>,
}

/// All sites of a grid.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Grid {
    /// In an order that is the same everywhere.
    pub sites: Vec<Site>,
}

/// Where an address lies, seen from one site.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Place<'a> {
    /// In the same site, or in none: the connection stays native.
    Native,
    /// In another site: the connection goes through the gateway.
    Remote(&'a Site),
}

impl Grid {
    /// The site one of whose subnets holds one of these addresses: how a process finds where it runs.
    pub fn site_of(&self, addresses: &[IpAddr]) -> Option<&Site> {
        self.sites
            .iter()
            .find(|site| addresses.iter().any(|address| site.contains(*address)))
    }

    /// Where `destination` lies for a process at `here`. The own site wins where ranges overlap.
    pub fn place(&self, here: &Site, destination: IpAddr) -> Place<'_> {
        let destination = destination.to_canonical();
        if destination.is_loopback() || here.contains(destination) {
            return Place::Native;
        }
        let remote = self
            .sites
            .iter()
            .find(|site| site.name != here.name && site.contains(destination));
        remote.map_or(Place::Native, Place::Remote)
    }
}

impl Site {
    /// Whether an address belongs to the site.
    pub fn contains(&self, address: IpAddr) -> bool {
        self.subnets.iter().any(|subnet| subnet.contains(address))
    }

    /// Whether a connection that comes from this address was made by the site's gateway.
    pub fn delivers_from(&self, peer: SocketAddr) -> bool {
        self.delivery_ports.contains(&peer.port())
            && self
                .gateways
                .iter()
                .any(|gateway| gateway.ip() == peer.ip().to_canonical())
    }
}

/// Whether a text can name a site: it must survive the text form and be safe in a file name.
pub fn is_site_name(name: &str) -> bool {
    (1..=63).contains(&name.len())
        && !name.starts_with(['-', '.'])
        && name
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte))
}

impl fmt::Display for Grid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(VERSION)?;
        for site in &self.sites {
            let subnets: Vec<String> = site.subnets.iter().map(Cidr::to_string).collect();
            let gateways: Vec<String> = site.gateways.iter().map(SocketAddr::to_string).collect();
            let (first, last) = (site.delivery_ports.start(), site.delivery_ports.end());
            write!(
                f,
                "|{};{};{};{first}-{last}",
                site.name,
                subnets.join(","),
                gateways.join(",")
            )?;
        }
        Ok(())
    }
}

impl FromStr for Grid {
    type Err = GridError;

    fn from_str(text: &str) -> Result<Grid, GridError> {
        if text.len() > MAX_BYTES {
            return Err(GridError::TooLong(text.len()));
        }
        let mut parts = text.split('|');
        let version = parts.next().unwrap_or_default();
        if version != VERSION {
            return Err(GridError::Version(version.to_owned()));
        }
        let sites = parts.map(parse_site).collect::<Result<_, _>>()?;
        Ok(Grid { sites })
    }
}

fn parse_site(text: &str) -> Result<Site, GridError> {
    let mut fields = text.split(';');
    let (Some(name), Some(subnets), Some(gateways), Some(ports), None) = (
        fields.next(),
        fields.next(),
        fields.next(),
        fields.next(),
        fields.next(),
    ) else {
        return Err(GridError::Fields(text.to_owned()));
    };
    if !is_site_name(name) {
        return Err(GridError::Name(name.to_owned()));
    }
    let gateways = gateways
        .split(',')
        .map(|gateway| {
            gateway
                .parse()
                .map_err(|_| GridError::Gateway(gateway.to_owned()))
        })
        .collect::<Result<_, _>>()?;
    Ok(Site {
        name: name.to_owned(),
        subnets: subnets.split(',').map(str::parse).collect::<Result<_, _>>()?,
        gateways,
        delivery_ports: parse_ports(ports)?,
    })
}

/// Reads a port range such as `20000-32767`.
///
/// # Errors
/// [`GridError::Ports`] when an end is not a port or the range is empty.
pub fn parse_ports(text: &str) -> Result<RangeInclusive<u16>, GridError> {
    let wrong = || GridError::Ports(text.to_owned());
    let (first, last) = text.split_once('-').ok_or_else(wrong)?;
    let range = first.parse().map_err(|_| wrong())?..=last.parse().map_err(|_| wrong())?;
    if range.is_empty() { Err(wrong()) } else { Ok(range) }
}

/// Why a text is not a grid map.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum GridError {
    /// Over [`MAX_BYTES`].
    #[error("grid map of {0} bytes is too long")]
    TooLong(usize),
    /// Made by another version of Causeway.
    #[error("grid map version {0:?} is not supported (expected \"1\")")]
    Version(String),
    /// Not four fields.
    #[error("site {0:?} does not have the fields name;subnets;gateways;ports")]
    Fields(String),
    /// See [`is_site_name`].
    #[error("{0:?} cannot name a site (1 to 63 letters, digits, '-', '_', '.')")]
    Name(String),
    /// Not `address/prefix`.
    #[error("{0:?} is not a subnet such as 10.1.0.0/24")]
    Subnet(String),
    /// Not `address:port`.
    #[error("{0:?} is not an address such as 10.1.0.253:7000")]
    Gateway(String),
    /// Not `first-last`.
    #[error("{0:?} is not a port range such as 20000-32767")]
    Ports(String),
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "1|rennes;10.1.0.0/24,fd00:1::/64;10.1.0.253:7000,[fd00:1::253]:7000;20000-32767\
                        |nancy;10.2.0.0/24;10.2.0.253:7000;20000-32767";

    fn ip(text: &str) -> IpAddr {
        text.parse().unwrap()
    }

    #[test]
    fn the_text_form_round_trips() {
        assert_eq!(TEXT.parse::<Grid>().unwrap().to_string(), TEXT);
    }

    #[test]
    fn a_process_finds_its_site_by_any_of_its_addresses() {
        let grid: Grid = TEXT.parse().unwrap();
        assert_eq!(
            grid.site_of(&[ip("127.0.0.1"), ip("10.2.0.7")]).unwrap().name,
            "nancy"
        );
        assert_eq!(grid.site_of(&[ip("fd00:1::5")]).unwrap().name, "rennes");
        assert_eq!(grid.site_of(&[ip("192.0.2.1")]), None);
    }

    #[test]
    fn own_site_loopback_and_unknown_addresses_stay_native() {
        let grid: Grid = TEXT.parse().unwrap();
        let here = &grid.sites[0];
        for native in ["10.1.0.9", "127.0.0.1", "::1", "192.0.2.1", "::ffff:10.1.0.9"] {
            assert_eq!(grid.place(here, ip(native)), Place::Native, "{native}");
        }
        for remote in ["10.2.0.9", "::ffff:10.2.0.9"] {
            assert!(matches!(grid.place(here, ip(remote)), Place::Remote(site) if site.name == "nancy"));
        }
    }

    #[test]
    fn only_the_gateway_in_its_port_range_delivers() {
        let grid: Grid = TEXT.parse().unwrap();
        let nancy = &grid.sites[1];
        assert!(nancy.delivers_from("10.2.0.253:20000".parse().unwrap()));
        assert!(nancy.delivers_from("[::ffff:10.2.0.253]:32767".parse().unwrap()));
        assert!(!nancy.delivers_from("10.2.0.253:40000".parse().unwrap()));
        assert!(!nancy.delivers_from("10.2.0.1:20000".parse().unwrap()));
    }

    #[test]
    fn prefixes_of_any_length_compare_the_leading_bits() {
        assert!("0.0.0.0/0".parse::<Cidr>().unwrap().contains(ip("203.0.113.9")));
        assert!("10.0.0.7/32".parse::<Cidr>().unwrap().contains(ip("10.0.0.7")));
        assert!(!"10.0.0.7/32".parse::<Cidr>().unwrap().contains(ip("10.0.0.6")));
        assert!("::/0".parse::<Cidr>().unwrap().contains(ip("fe80::1")));
        assert!(
            "10.0.0.0/9"
                .parse::<Cidr>()
                .unwrap()
                .overlaps(&"10.1.0.0/24".parse().unwrap())
        );
        assert!(
            !"10.0.0.0/24"
                .parse::<Cidr>()
                .unwrap()
                .overlaps(&"10.1.0.0/24".parse().unwrap())
        );
    }

    #[test]
    fn each_wrong_part_is_named() {
        let wrong = [
            ("2|x", GridError::Version("2".into())),
            ("1|a;b", GridError::Fields("a;b".into())),
            ("1|a/b;10.0.0.0/8;10.0.0.1:1;1-2", GridError::Name("a/b".into())),
            (
                "1|a;10.0.0.0/33;10.0.0.1:1;1-2",
                GridError::Subnet("10.0.0.0/33".into()),
            ),
            (
                "1|a;10.0.0.0/8;10.0.0.1;1-2",
                GridError::Gateway("10.0.0.1".into()),
            ),
            ("1|a;10.0.0.0/8;10.0.0.1:1;2-1", GridError::Ports("2-1".into())),
        ];
        for (text, error) in wrong {
            assert_eq!(text.parse::<Grid>(), Err(error));
        }
    }
}
