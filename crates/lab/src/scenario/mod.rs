//! The description of an emulated grid, checked. `typed` holds what is in the file, `check` turns it into
//! what is used and lists every mistake at once; nothing here touches the machine.

mod check;
mod mistake;
mod overrides;
mod typed;

use crate::wan::LinkSpec;
use std::path::Path;
use std::time::Duration;

use serde::{Deserialize, Serialize};

pub use crate::subnet::Subnet;
pub use mistake::{Mistake, Mistakes};
pub use overrides::Overrides;

/// A grid to emulate: sites, and one link between every pair of them.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Scenario {
    /// Names the lab and its state directory: letters, digits, `-`, `_` and `.`.
    pub name: String,
    /// Whether plain IP crosses between the LANs. If not, only head nodes reach other sites.
    pub routed: bool,
    /// Congestion control of every namespace of the lab; by default, the machine's.
    pub congestion_control: Option<String>,
    /// Whether a connection of any namespace restarts with a small window after a pause
    /// (net.ipv4.tcp_slow_start_after_idle); by default, as in a new namespace.
    pub slow_start_after_idle: Option<bool>,
    /// Lines for the grid table of every gateway's configuration, such as `lanes = 1`. The lab itself knows
    /// nothing about gateways.
    #[serde(default)]
    pub grid: Vec<String>,
    /// Sites in the order of the file, at least one. A lab command runs on the first one's head node by
    /// default.
    pub sites: Vec<Site>,
    /// Exactly one for each pair of sites.
    pub links: Vec<Link>,
}

/// A set of nodes on one LAN behind one router.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Site {
    /// Lower-case letters, digits and `-`; nodes are called `<site>-head`, `<site>-1`, `<site>-2`, ...
    pub name: String,
    /// Compute nodes, not counting the head node.
    pub nodes: u32,
    /// Processes that a compute node is meant to run.
    pub slots: u32,
    /// The LAN. The router has its last usable address, the head node the one before, compute nodes the first
    /// ones.
    pub subnet: Subnet,
    /// What the router lets in from the WAN.
    pub firewall: Firewall,
    /// Added round-trip time inside the LAN; zero means a plain bridge of the kernel.
    pub lan_rtt: Duration,
    /// Rate of each node's LAN interface in bits per second; unlimited when not given.
    pub lan_rate_bits_per_second: Option<u64>,
    /// What MPIs find between the nodes besides the LAN.
    pub fabric: Fabric,
    /// The batch system of the site's compute nodes, if any.
    #[serde(default)]
    pub batch: Batch,
    /// The system that its nodes have: a directory with its root, or the name of one; by default, the host's
    /// own.
    #[serde(default)]
    pub root: Option<String>,
}

/// What the compute nodes of a site belong to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Batch {
    /// Nothing: anybody can reach them by ssh.
    #[default]
    None,
    /// Slurm, which alone starts processes on them.
    Slurm,
    /// OpenPBS, besides which ssh starts processes on them.
    Pbs,
    /// OAR, whose oarsh alone starts processes on them.
    Oar,
}

/// What MPIs find between the nodes of a site.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Fabric {
    /// Only the LAN.
    #[default]
    Sockets,
    /// Memory that all nodes share, as if they were one host.
    SharedMemory,
}

/// What a site's router lets in from the WAN. Replies to traffic from inside are always let in.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Firewall {
    /// Lets everything in.
    Open,
    /// Nothing that did not start inside.
    OutboundOnly,
    /// The site is outbound-only, and its head node hides behind the router's public address.
    Nat,
    /// The same as nat, but with a different port for every destination (RFC 4787, section 4.1: address and
    /// port-dependent mapping).
    NatSymmetric,
    /// Only these TCP and UDP ports, both ends included.
    Ports(Vec<(u16, u16)>),
}

impl Firewall {
    /// Whether the head node hides behind the router's address.
    pub fn is_nat(&self) -> bool {
        matches!(self, Firewall::Nat | Firewall::NatSymmetric)
    }

    /// Whether another site may open a connection to this port of the head node.
    pub fn lets_in(&self, port: u16) -> bool {
        match self {
            Firewall::Open => true,
            Firewall::OutboundOnly | Firewall::Nat | Firewall::NatSymmetric => false,
            Firewall::Ports(ranges) => ranges.iter().any(|(low, high)| (*low..=*high).contains(&port)),
        }
    }
}

/// The path between two sites, the same in both directions.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Link {
    /// Names of the two sites.
    pub between: [String; 2],
    /// Round-trip time of an empty link.
    pub rtt: Duration,
    /// Rate of each direction in bits per second.
    pub rate_bits_per_second: u64,
    /// Bytes that may wait in front of each direction; more are dropped.
    pub queue_bytes: u64,
    /// Fraction of the packets that is lost, 0..=1.
    pub loss: f64,
    /// Seed of the random numbers that decide losses.
    pub seed: u64,
}

impl Link {
    /// Returns it in the form that the emulator takes.
    pub(crate) fn spec(&self) -> LinkSpec {
        LinkSpec {
            rtt: self.rtt,
            rate_bits_per_second: self.rate_bits_per_second,
            queue_bytes: self.queue_bytes,
            loss: self.loss,
            seed: self.seed,
            up: true,
        }
    }
}

impl Scenario {
    /// Finds a scenario that comes with Causeway by its name, or reads the file at that path.
    ///
    /// # Errors
    /// Every mistake in the file; or that there is neither a scenario nor a file with this name.
    pub fn find(name_or_path: &str) -> Result<Scenario, Mistakes> {
        if let Some((name, text)) = SHIPPED.iter().find(|(name, _)| *name == name_or_path) {
            return Scenario::parse(text, &format!("scenarios/{name}.toml"));
        }
        let path = Path::new(name_or_path);
        if !path.exists() && !name_or_path.contains(['/', '.']) {
            let reason = format!(
                "no scenario of this name; there are {} (or give a file)",
                Scenario::names().join(", ")
            );
            return Err(Mistake::whole_file(name_or_path, reason).into());
        }
        Scenario::load(path)
    }

    /// Reads a scenario file.
    ///
    /// # Errors
    /// Every mistake in it, or why it cannot be read.
    pub fn load(path: &Path) -> Result<Scenario, Mistakes> {
        let file = path.display().to_string();
        let text = std::fs::read_to_string(path)
            .map_err(|error| Mistake::whole_file(&file, format!("cannot be read: {error}")))?;
        Scenario::parse(&text, &file)
    }

    /// Reads a scenario from text; `file` only names it in mistakes.
    ///
    /// # Errors
    /// Every mistake in the text.
    pub fn parse(text: &str, file: &str) -> Result<Scenario, Mistakes> {
        let mut mistakes = Mistakes::in_file(file);
        let scenario = typed::read(text, &mut mistakes).and_then(|typed| check::check(&typed, &mut mistakes));
        match scenario {
            Some(scenario) if mistakes.is_empty() => Ok(scenario),
            _ => Err(mistakes.sorted()),
        }
    }

    /// Names of the scenarios that come with Causeway.
    pub fn names() -> Vec<&'static str> {
        SHIPPED.iter().map(|(name, _)| *name).collect()
    }

    /// The link between two sites, in either order.
    pub fn link(&self, a: &str, b: &str) -> Option<&Link> {
        self.links
            .iter()
            .find(|link| link.between == [a, b] || link.between == [b, a])
    }
}

/// Embedded, so that a bare name works in any directory.
const SHIPPED: &[(&str, &str)] = &[
    ("slurm", include_str!("../../../../scenarios/slurm.toml")),
    (
        "rennes-nancy",
        include_str!("../../../../scenarios/rennes-nancy.toml"),
    ),
    (
        "orsay-rennes-bordeaux",
        include_str!("../../../../scenarios/orsay-rennes-bordeaux.toml"),
    ),
    (
        "nine-sites",
        include_str!("../../../../scenarios/nine-sites.toml"),
    ),
    ("overlap", include_str!("../../../../scenarios/overlap.toml")),
    ("closed", include_str!("../../../../scenarios/closed.toml")),
    ("lossy", include_str!("../../../../scenarios/lossy.toml")),
    (
        "transatlantic",
        include_str!("../../../../scenarios/transatlantic.toml"),
    ),
];
