//! The resources and the request: sites with classes of equal nodes, and groups of ranks.

use std::collections::BTreeSet;

/// Most sites that [`place`](crate::place) takes: a set of sites is one integer.
pub const MAX_SITES: usize = 128;

/// The most that all slots of a node may cost: costs of many nodes are added up.
pub const MAX_NODE_COST: u64 = 1 << 40;

/// The resources that a job may get.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Resources {
    /// The sites; elsewhere, a site is an index into this list.
    pub sites: Vec<Site>,
    /// Links between sites, at most one for each two sites, in either order. Two sites without a link cannot
    /// be in the same job. A link from a site to itself describes the network inside; if a site has none,
    /// every network requirement inside it is assumed to be met, at no cost.
    pub links: Vec<Link>,
}

/// A cluster.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Site {
    /// Its name, for messages.
    pub name: String,
    /// Its nodes by kind.
    pub classes: Vec<Class>,
}

/// Equal nodes of one site.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Class {
    /// Its name, for messages.
    pub name: String,
    /// How many nodes there are.
    pub nodes: u32,
    /// Ranks for which one node has room.
    pub slots: u32,
    /// Memory of one node.
    pub memory_bytes: u64,
    /// The features of its nodes, in the words with which groups ask for them.
    pub features: BTreeSet<String>,
    /// How fast a slot is, in thousandths of the speed for which a group's work is given.
    pub speed: u32,
    /// After how many seconds its nodes can be had.
    pub start_seconds: u64,
    /// What one slot costs, in any unit.
    pub cost: u64,
}

/// The properties of a path between two sites, in both directions.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Link {
    /// Its ends, by index.
    pub sites: (usize, usize),
    /// Latency in one direction.
    pub latency_us: u64,
    /// Its bandwidth.
    pub bytes_per_second: u64,
    /// Packets lost out of a million.
    pub loss_ppm: u32,
}

/// A job.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Job {
    /// Its groups of ranks; elsewhere, a group is an index into this list.
    pub groups: Vec<Group>,
    /// Requirements on the network between two groups.
    pub between: Vec<Between>,
    /// What groups send to each other, from which the time is predicted.
    pub traffic: Vec<Traffic>,
    /// The latest acceptable start.
    pub latest_start_seconds: Option<u64>,
}

/// Ranks with the same requirements.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Group {
    /// Its name, for messages.
    pub name: String,
    /// One of these is chosen, only by the objectives; among equals, the first that is found.
    pub alternatives: Vec<Alternative>,
    /// The requirement on the network between any two of its ranks.
    pub within: Option<Network>,
}

/// One way in which a group can be had.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Alternative {
    /// How many ranks, at least 1.
    pub ranks: u32,
    /// Memory of one rank.
    pub memory_bytes: u64,
    /// What its nodes must have.
    pub features: BTreeSet<String>,
    /// The least speed of its slots, in thousandths.
    pub min_speed: u32,
    /// The only sites that it may use.
    pub sites: Option<BTreeSet<usize>>,
    /// How long each rank computes at speed 1000.
    pub work_us: u64,
}

/// A requirement on a network path; a bound that is `None` requires nothing.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Network {
    /// Longest latency, one way.
    pub max_latency_us: Option<u64>,
    /// Least bandwidth.
    pub min_bytes_per_second: Option<u64>,
    /// Most packets lost out of a million.
    pub max_loss_ppm: Option<u32>,
}

/// A requirement on the network between two groups, in both directions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Between {
    /// The groups, by index.
    pub groups: (usize, usize),
    /// The requirement on every path between a site of the one and a site of the other.
    pub network: Network,
}

/// What two groups, or the ranks of one, wait for during the job.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Traffic {
    /// The groups, by index; twice the same index for traffic within one group.
    pub groups: (usize, usize),
    /// How often one waits for the other.
    pub round_trips: u64,
    /// Bytes that cross the path, one after the other.
    pub bytes: u64,
}

/// A figure to minimise.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Objective {
    /// When the last of the classes used can be had, in seconds.
    Start,
    /// The predicted time in microseconds: the longest work of a rank, plus, one after the other, the cost of
    /// each [`Traffic`] over the worst of the paths that it may take.
    Time,
    /// The price of all ranks; a rank that needs more than a slot's share of a node's memory pays for the
    /// share that it needs.
    Cost,
    /// How many sites are used.
    Sites,
}

/// A mistake in the input.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ModelError {
    /// See [`MAX_SITES`].
    #[error("{0} sites; {MAX_SITES} at most")]
    TooManySites(usize),
    /// An index names no site.
    #[error("there is no site {0}")]
    NoSuchSite(usize),
    /// Two links are for the same two sites.
    #[error("sites {0} and {1} have two links")]
    TwoLinks(usize, usize),
    /// An index names no group.
    #[error("there is no group {0}")]
    NoSuchGroup(usize),
    /// A group has no alternative, or one without ranks.
    #[error("group {0} has no ranks")]
    NoRanks(usize),
    /// All slots of a node of this site cost more than [`MAX_NODE_COST`].
    #[error("a node of site {0} costs more than {MAX_NODE_COST}")]
    TooDear(usize),
}

impl Network {
    /// Says whether a path is good enough.
    pub fn is_met_by(&self, link: &Link) -> bool {
        self.max_latency_us.is_none_or(|most| link.latency_us <= most)
            && { self.min_bytes_per_second }.is_none_or(|least| link.bytes_per_second >= least)
            && self.max_loss_ppm.is_none_or(|most| link.loss_ppm <= most)
    }
}

impl Traffic {
    /// How long this takes over a path, in microseconds, rounded up.
    pub fn time_us(&self, link: &Link) -> u64 {
        let waits = self.round_trips.saturating_mul(2).saturating_mul(link.latency_us);
        let bits = u128::from(self.bytes) * 1_000_000;
        let sends = bits.div_ceil(u128::from(link.bytes_per_second.max(1)));
        waits.saturating_add(u64::try_from(sends).unwrap_or(u64::MAX))
    }
}

impl Class {
    /// How many ranks of this kind fit on one node.
    pub fn ranks_per_node(&self, memory_bytes: u64) -> u32 {
        let by_memory = self.memory_bytes.checked_div(memory_bytes).unwrap_or(u64::MAX);
        self.slots.min(u32::try_from(by_memory).unwrap_or(u32::MAX))
    }
}

/// Finds the first mistake.
pub(crate) fn check(resources: &Resources, job: &Job) -> Result<(), ModelError> {
    let (sites, groups) = (resources.sites.len(), job.groups.len());
    if sites > MAX_SITES {
        return Err(ModelError::TooManySites(sites));
    }
    for (site, row) in resources.sites.iter().enumerate() {
        let dear = |class: &Class| class.cost.saturating_mul(class.slots.into()) > MAX_NODE_COST;
        if row.classes.iter().any(dear) {
            return Err(ModelError::TooDear(site));
        }
    }
    let mut linked = BTreeSet::new();
    for link in &resources.links {
        let (one, other) = link.sites;
        if let Some(site) = [one, other].into_iter().find(|site| *site >= sites) {
            return Err(ModelError::NoSuchSite(site));
        }
        if !linked.insert((one.min(other), one.max(other))) {
            return Err(ModelError::TwoLinks(one, other));
        }
    }
    let pairs = job.between.iter().map(|between| between.groups);
    let pairs = pairs.chain(job.traffic.iter().map(|traffic| traffic.groups));
    if let Some(group) = { pairs.flat_map(|(one, other)| [one, other]) }.find(|group| *group >= groups) {
        return Err(ModelError::NoSuchGroup(group));
    }
    for (group, asked) in job.groups.iter().enumerate() {
        if asked.alternatives.is_empty() || asked.alternatives.iter().any(|one| one.ranks == 0) {
            return Err(ModelError::NoRanks(group));
        }
        let named = asked.alternatives.iter().filter_map(|one| one.sites.as_ref());
        if let Some(site) = named.flatten().find(|site| **site >= sites) {
            return Err(ModelError::NoSuchSite(*site));
        }
    }
    Ok(())
}
