//! The grid map: which addresses belong to which site, and where each site's gateway listens.
//!
//! It is one text, the same in every process of a job at every site; a process finds its own site from its
//! node's addresses. The text form (version first, sites separated by `|`, fields by `;`, items by `,`):
//!
//! ```text
//! 1|rennes;10.1.0.0/24;10.1.0.253:7000;20000-32767|nancy;10.2.0.0/24;10.2.0.253:7000;20000-32767
//!    name   subnets     gateway (LAN)   source ports a gateway delivers from
//! ```
//!
//! Two more fields may follow: the addresses of the site's compute nodes, as ranges, and networks of the site
//! itself. Its processes never look for an address in these at another site, whatever that site announces,
//! unless it is the address of a node or gateway there:
//!
//! ```text
//! ...|nancy;10.2.0.0/24;10.2.0.253:7000;20000-32767;10.2.0.1-10.2.0.64,10.2.0.80;10.77.0.0/16
//!                                                    nodes                        local networks
//! ```
//!
//! If another site has the same private addresses, a site is known by virtual ones. Its subnets are then
//! written `virtual=real`, both of the same size, and the version is 2:
//!
//! ```text
//! 2|rennes;100.64.0.0/24=192.168.1.0/24;192.168.1.253:7000;20000-32767|nancy;100.64.1.0/24=192.168.1.0/24;...
//! ```

mod span;

pub use span::Span;
use std::fmt;
use std::net::{IpAddr, SocketAddr};
use std::ops::RangeInclusive;
use std::str::FromStr;

/// Longest map that is read: it has room for a thousand sites with the longest names, and with the variable's
/// name it stays below the kernel's limit on one environment string (MAX_ARG_STRLEN, 128 KiB).
pub const MAX_BYTES: usize = 120 * 1024;

const VERSION: &str = "1";
/// Version of a map with virtual addresses, which a shim of version 1 would mistake for real ones.
const VERSION_VIRTUAL: &str = "2";

/// An address range such as `10.1.0.0/24`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Cidr {
    address: IpAddr,
    prefix: u8,
}

impl Cidr {
    /// The range that begins with this address; `None` if the prefix is longer than the address.
    pub fn new(address: IpAddr, prefix: u8) -> Option<Cidr> {
        let bits = if address.is_ipv4() { 32 } else { 128 };
        (prefix <= bits).then_some(Cidr { address, prefix })
    }

    /// Whether the range contains this address; families never mix, and IPv4-mapped IPv6 counts as IPv4.
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

    /// The first address of the range, as typed.
    pub fn address(&self) -> IpAddr {
        self.address
    }

    /// The number of leading bits that all addresses of the range share.
    pub fn prefix(&self) -> u8 {
        self.prefix
    }

    /// The address at the same place in another range of the same size; `None` for an address outside this
    /// range.
    pub fn translate(&self, address: IpAddr, to: &Cidr) -> Option<IpAddr> {
        let address = address.to_canonical();
        if !self.contains(address) {
            return None;
        }
        match (address, to.address) {
            (IpAddr::V4(address), IpAddr::V4(range)) => {
                let host = u32::MAX.checked_shr(u32::from(to.prefix)).unwrap_or(0);
                Some(IpAddr::V4(
                    (u32::from(range) & !host | u32::from(address) & host).into(),
                ))
            }
            (IpAddr::V6(address), IpAddr::V6(range)) => {
                let host = u128::MAX.checked_shr(u32::from(to.prefix)).unwrap_or(0);
                Some(IpAddr::V6(
                    (u128::from(range) & !host | u128::from(address) & host).into(),
                ))
            }
            _ => None,
        }
    }

    /// Whether the other range has the same number of addresses, of the same family.
    pub fn is_of_size(&self, other: &Cidr) -> bool {
        self.prefix == other.prefix && self.address.is_ipv4() == other.address.is_ipv4()
    }

    /// Whether some address is in both ranges.
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
    /// The site's name, unique in the grid: letters, digits, `-`, `_` and `.`.
    pub name: String,
    /// The addresses of the site's nodes, as the whole grid knows them.
    pub subnets: Vec<Cidr>,
    /// The real ranges of the nodes if `subnets` are virtual: each belongs to the range at the same place in
    /// `subnets`. Empty if `subnets` are real.
    pub real_subnets: Vec<Cidr>,
    /// The real addresses at which the gateway accepts connections from the site's nodes: at most one per
    /// address family.
    pub gateways: Vec<SocketAddr>,
    /// The source ports from which the gateway delivers. They are outside the range of ephemeral ports, so
    /// that a connection of another process on the head node is not mistaken for a delivery.
    pub delivery_ports: RangeInclusive<u16>,
    /// The addresses of the site's compute nodes, as the whole grid knows them.
    pub nodes: Vec<Span>,
    /// Networks that the site's processes reach directly: of the addresses in these, only nodes and gateways
    /// of other sites belong to those sites.
    pub local: Vec<Cidr>,
}

/// All sites of a grid.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Grid {
    /// The sites, in an order that is the same everywhere.
    pub sites: Vec<Site>,
}

/// Where an address is, as seen from one site.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Place<'a> {
    /// The address is at the same site, or at none: the connection stays native.
    Native,
    /// The address is at another site: the connection passes through the gateway.
    Remote(&'a Site),
}

impl Grid {
    /// The text that processes get.
    ///
    /// # Errors
    /// [`GridError::TooLong`]: no process would read it.
    pub fn text(&self) -> Result<String, GridError> {
        let text = self.to_string();
        if text.len() > MAX_BYTES {
            return Err(GridError::TooLong(text.len()));
        }
        Ok(text)
    }

    /// The sites to which a node with these real addresses may belong: from them, a process finds out where
    /// it runs. There is more than one only if sites have the same private addresses.
    pub fn sites_of(&self, addresses: &[IpAddr]) -> Vec<&Site> {
        let has = |site: &&Site| addresses.iter().any(|address| site.has_node(*address));
        self.sites.iter().filter(has).collect()
    }

    /// Says where `destination` is for a process at `here`, on a node in these networks. If ranges overlap,
    /// the own site takes precedence; so does a local network of the site or the node, except over a node or
    /// gateway of the other site.
    pub fn place(&self, here: &Site, neighbours: &[Cidr], destination: IpAddr) -> Place<'_> {
        let destination = destination.to_canonical();
        if destination.is_loopback() || here.contains(destination) || here.has_node(destination) {
            return Place::Native;
        }
        let mut others = self.sites.iter().filter(|site| site.name != here.name);
        let Some(remote) = others.find(|site| site.contains(destination)) else {
            return Place::Native;
        };
        let mut near = here.local.iter().chain(neighbours);
        if near.any(|network| network.contains(destination)) && !remote.has_host(destination) {
            return Place::Native;
        }
        Place::Remote(remote)
    }
}

impl Site {
    /// Whether a node of the site has, or could have, this real address.
    pub fn has_node(&self, address: IpAddr) -> bool {
        match self.real_subnets.as_slice() {
            [] => self.contains(address),
            real => real.iter().any(|subnet| subnet.contains(address)),
        }
    }

    /// Whether the grid knows the site by other addresses than the site's own.
    pub fn is_virtual(&self) -> bool {
        !self.real_subnets.is_empty()
    }

    /// The address by which the grid knows a real address of this site; any other address is returned
    /// unchanged.
    pub fn in_grid(&self, real: IpAddr) -> IpAddr {
        translate(&self.real_subnets, &self.subnets, real)
    }

    /// The real address of a node of this site, for the one by which the grid knows it; any other address is
    /// returned unchanged.
    pub fn real(&self, in_grid: IpAddr) -> IpAddr {
        translate(&self.subnets, &self.real_subnets, in_grid)
    }

    /// Whether an address, as the grid knows it, belongs to the site.
    pub fn contains(&self, address: IpAddr) -> bool {
        self.subnets.iter().any(|subnet| subnet.contains(address))
    }

    /// Whether an address, as the grid knows it, is that of a compute node or of the gateway.
    pub fn has_host(&self, address: IpAddr) -> bool {
        let mut gateways = self.gateways.iter();
        self.nodes.iter().any(|span| span.contains(address))
            || gateways.any(|gateway| self.in_grid(gateway.ip()) == address)
    }

    /// Whether a connection from this address was made by the site's gateway.
    pub fn delivers_from(&self, peer: SocketAddr) -> bool {
        self.delivery_ports.contains(&peer.port())
            && self
                .gateways
                .iter()
                .any(|gateway| gateway.ip() == peer.ip().to_canonical())
    }
}

fn translate(from: &[Cidr], to: &[Cidr], address: IpAddr) -> IpAddr {
    let mut ranges = from.iter().zip(to);
    ranges
        .find_map(|(from, to)| from.translate(address, to))
        .unwrap_or(address)
}

/// The word for every site in a list of sites; no site has this name.
pub const ALL_SITES: &str = "all";

/// Whether a text can be the name of a site: it must survive the text form and be safe in a file name.
pub fn is_site_name(name: &str) -> bool {
    (1..=63).contains(&name.len())
        && !name.starts_with(['-', '.'])
        && name != ALL_SITES
        && name
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte))
}

/// Longest name of a node: host names have 253 bytes at most (RFC 1035), and hardly any has a hundred.
pub const MAX_NODE_NAME: usize = 200;

/// Whether a text can be the name of a node: it becomes an argument of a remote shell, a line of a host file
/// and part of a log line.
pub fn is_node_name(name: &str) -> bool {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.:@".contains(&byte);
    (1..=MAX_NODE_NAME).contains(&name.len()) && !name.starts_with('-') && name.bytes().all(plain)
}

impl fmt::Display for Grid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.sites.iter().any(Site::is_virtual) {
            VERSION_VIRTUAL
        } else {
            VERSION
        })?;
        for site in &self.sites {
            let mut subnets: Vec<String> = site.subnets.iter().map(Cidr::to_string).collect();
            for (subnet, real) in subnets.iter_mut().zip(&site.real_subnets) {
                *subnet = format!("{subnet}={real}");
            }
            let gateways: Vec<String> = site.gateways.iter().map(SocketAddr::to_string).collect();
            let (first, last) = (site.delivery_ports.start(), site.delivery_ports.end());
            write!(
                f,
                "|{};{};{};{first}-{last}",
                site.name,
                subnets.join(","),
                gateways.join(",")
            )?;
            if !(site.nodes.is_empty() && site.local.is_empty()) {
                write!(f, ";{}", listed(&site.nodes))?;
            }
            if !site.local.is_empty() {
                write!(f, ";{}", listed(&site.local))?;
            }
        }
        Ok(())
    }
}

fn listed(items: &[impl fmt::Display]) -> String {
    let items: Vec<String> = items.iter().map(ToString::to_string).collect();
    items.join(",")
}

impl FromStr for Grid {
    type Err = GridError;

    fn from_str(text: &str) -> Result<Grid, GridError> {
        if text.len() > MAX_BYTES {
            return Err(GridError::TooLong(text.len()));
        }
        let mut parts = text.split('|');
        let version = parts.next().unwrap_or_default();
        if version != VERSION && version != VERSION_VIRTUAL {
            return Err(GridError::Version(version.to_owned()));
        }
        let sites = parts.map(parse_site).collect::<Result<_, _>>()?;
        Ok(Grid { sites })
    }
}

fn parse_site(text: &str) -> Result<Site, GridError> {
    let fields: Vec<&str> = text.split(';').collect();
    let (&[name, subnets, gateways, ports], more) = fields
        .split_first_chunk()
        .filter(|(_, more)| more.len() <= 2)
        .ok_or_else(|| GridError::Fields(text.to_owned()))?;
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
    let (subnets, real_subnets) = parse_subnets(subnets)?;
    Ok(Site {
        name: name.to_owned(),
        subnets,
        real_subnets,
        gateways,
        delivery_ports: parse_ports(ports)?,
        nodes: parse_list(more.first())?,
        local: parse_list(more.get(1))?,
    })
}

/// Reads the items of a field that may be missing or empty.
fn parse_list<T: FromStr<Err = GridError>>(field: Option<&&str>) -> Result<Vec<T>, GridError> {
    let items = field.into_iter().flat_map(|field| field.split(','));
    items.filter(|item| !item.is_empty()).map(str::parse).collect()
}

/// Reads a site's subnets. Either all of them are virtual or none is: otherwise some addresses would mean two
/// things.
fn parse_subnets(text: &str) -> Result<(Vec<Cidr>, Vec<Cidr>), GridError> {
    let (mut subnets, mut real): (Vec<Cidr>, Vec<Cidr>) = Default::default();
    for item in text.split(',') {
        let wrong = || GridError::Subnet(item.to_owned());
        let (subnet, behind) = match item.split_once('=') {
            Some((subnet, behind)) => (subnet.parse()?, Some(behind.parse()?)),
            None => (item.parse()?, None),
        };
        if behind.is_some_and(|behind: Cidr| !behind.is_of_size(&subnet)) {
            return Err(wrong());
        }
        subnets.push(subnet);
        real.extend(behind);
    }
    if real.is_empty() || real.len() == subnets.len() {
        Ok((subnets, real))
    } else {
        Err(GridError::Subnet(text.to_owned()))
    }
}

/// Reads a port range such as `20000-32767`.
///
/// # Errors
/// [`GridError::Ports`] if an end is not a port or the range is empty.
pub fn parse_ports(text: &str) -> Result<RangeInclusive<u16>, GridError> {
    let wrong = || GridError::Ports(text.to_owned());
    let (first, last) = text.split_once('-').ok_or_else(wrong)?;
    let range = first.parse().map_err(|_| wrong())?..=last.parse().map_err(|_| wrong())?;
    if range.is_empty() { Err(wrong()) } else { Ok(range) }
}

/// Why a text is not a grid map.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum GridError {
    /// The map is longer than [`MAX_BYTES`].
    #[error("grid map of {0} bytes is too long: a process reads {MAX_BYTES}")]
    TooLong(usize),
    /// The map comes from another version of Causeway.
    #[error("grid map version {0:?} is not supported (expected \"1\" or \"2\")")]
    Version(String),
    /// A site does not have four to six fields.
    #[error("site {0:?} does not have the fields name;subnets;gateways;ports and perhaps nodes;local")]
    Fields(String),
    /// See [`is_site_name`].
    #[error("{0:?} cannot name a site (1 to 63 letters, digits, '-', '_', '.')")]
    Name(String),
    /// A subnet is not `address/prefix`.
    #[error("{0:?} is not a subnet such as 10.1.0.0/24")]
    Subnet(String),
    /// A range of nodes does not consist of one or two addresses.
    #[error("{0:?} is not an address or a range of them such as 10.1.0.1-10.1.0.64")]
    Span(String),
    /// A gateway is not `address:port`.
    #[error("{0:?} is not an address such as 10.1.0.253:7000")]
    Gateway(String),
    /// The ports are not `first-last`.
    #[error("{0:?} is not a port range such as 20000-32767")]
    Ports(String),
}

#[cfg(test)]
mod tests;
