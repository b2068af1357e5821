//! The graph. Numbers are integers, in the units that their names say; those of links and speeds are the
//! finest units of a job's profile (crates/profile), so that both can be compared.

use serde::Serialize;
use std::net::IpAddr;

/// Everything that is known about a grid.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Graph {
    /// Its name.
    pub name: String,
    /// The sites, each name once; the first is the one that was asked.
    pub sites: Vec<Site>,
    /// Links between the sites, one for each direction about which something is known.
    pub links: Vec<Link>,
}

/// A site: a cluster with its own network.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Site {
    /// Its name.
    pub name: String,
    /// Why no job can run there now; `None` if one can.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub why_unreachable: Option<String>,
    /// Partitions of the site's batch system, each name once. They may share classes.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub partitions: Vec<Partition>,
    /// What the site's batch system allows this user's jobs, if it enforces limits.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub limits: Vec<Limit>,
    /// The site's nodes, by classes. Each class has a name that no other class of the site has.
    pub classes: Vec<Class>,
}

/// A partition: nodes for which a batch system has one queue and one set of limits.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Partition {
    /// Its name.
    pub name: String,
    /// Whether jobs that name no partition are put here.
    pub is_default: bool,
    /// Whether jobs can start here now.
    pub is_up: bool,
    /// Longest time of a job; `None` if there is no limit.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_seconds: Option<u64>,
    /// Most nodes of a job; `None` if there is no limit.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_nodes: Option<u32>,
    /// Names of the site's classes whose nodes it contains.
    pub classes: Vec<String>,
}

/// What a batch system allows jobs for which one account pays. A number is `None` if there is no limit.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Limit {
    /// The account.
    pub account: String,
    /// The only partition to which the limit applies.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub partition: Option<String>,
    /// The quality of service of a job that asks for none.
    pub qos: String,
    /// Whether jobs that name no account use this one.
    pub is_default: bool,
    /// Most jobs that run at a time.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_jobs: Option<u32>,
    /// Most nodes of a job.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_nodes: Option<u32>,
    /// Most slots of a job.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_slots: Option<u32>,
    /// Longest time of a job.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_seconds: Option<u64>,
}

/// Nodes of a site that are equal in everything that placement considers.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Class {
    /// Its name.
    pub name: String,
    /// How many processes each node runs; its cores, if a batch system reports them.
    pub slots: u32,
    /// How many cores a process finds on each node, if that was checked.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cores: Option<u32>,
    /// Memory of each node.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub memory_bytes: Option<u64>,
    /// How fast a core is, in thousandths of the reference (docs/resources.md).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub speed_thousandths: Option<u32>,
    /// What each node offers, in the words of the site's batch system.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub features: Vec<String>,
    /// The nodes.
    pub nodes: Vec<Node>,
}

/// A node.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Node {
    /// The name by which the site knows the node.
    pub name: String,
    /// The node's address, as the grid knows it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub address: Option<IpAddr>,
    /// Whether the batch system gives the node to nobody: it does not answer, or is drained.
    pub is_down: bool,
    /// Slots that no job uses now; `None` if that is not known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub free_slots: Option<u32>,
    /// When the last job that uses slots of the node ends at the latest, in seconds since 1970.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub free_at: Option<u64>,
}

/// The link from one site to another.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Link {
    /// The site at which it begins.
    pub from: String,
    /// The site at which it ends.
    pub to: String,
    /// Time that a short message takes in one direction: half of the round trip, without waiting in queues.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub latency_ns: Option<u64>,
    /// The rate that it was seen to carry.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bandwidth_bits_per_second: Option<u64>,
    /// Packets that it loses, of a thousand million.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub loss_ppb: Option<u32>,
    /// Where the numbers come from.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub source: Option<Source>,
    /// When the numbers were true, in seconds since 1970.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub seen_at: Option<u64>,
}

/// Where the numbers of a link come from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Source {
    /// The gateway that was asked has measured them on its own lanes.
    Lanes,
    /// The gateway at the link's beginning has reported them.
    Told,
}

impl Source {
    /// The word for the source in all formats.
    pub fn word(self) -> &'static str {
        match self {
            Source::Lanes => "lanes",
            Source::Told => "told",
        }
    }

    /// The source that a word names; `None` for another word.
    pub fn from_word(word: &str) -> Option<Source> {
        let all = [Source::Lanes, Source::Told];
        all.into_iter().find(|source| source.word() == word)
    }
}

impl Site {
    /// The class of this name.
    pub fn class(&self, name: &str) -> Option<&Class> {
        self.classes.iter().find(|class| class.name == name)
    }

    /// How many nodes there are, including those that are down.
    pub fn node_count(&self) -> usize {
        self.classes.iter().map(|class| class.nodes.len()).sum()
    }

    /// How many processes all its nodes run together.
    pub fn slot_count(&self) -> u64 {
        let slots = |class: &Class| u64::from(class.slots) * class.nodes.len() as u64;
        self.classes.iter().map(slots).sum()
    }
}

impl Class {
    /// Whether a node of this class is free as a whole; `None` if that is not known.
    pub fn is_free(&self, node: &Node) -> Option<bool> {
        let free = node.free_slots.map(|free| free >= self.slots);
        if node.is_down { Some(false) } else { free }
    }
}
