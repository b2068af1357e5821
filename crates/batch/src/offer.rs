//! What a batch system has: partitions, nodes, and what of them is free.

/// Most partitions that are read.
pub const MAX_PARTITIONS: usize = 1000;

/// What a batch system has, as it tells this user.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Offer {
    /// Its partitions, each once.
    pub partitions: Vec<Partition>,
    /// Its nodes, each once.
    pub nodes: Vec<OfferedNode>,
}

/// A queue with limits of its own, and some of the nodes.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Partition {
    /// Its name.
    pub name: String,
    /// Whether jobs that name none go there.
    pub is_default: bool,
    /// Whether jobs start there.
    pub is_up: bool,
    /// Longest time of a job; none where there is no limit.
    pub max_seconds: Option<u64>,
    /// Most nodes of a job; none where there is no limit.
    pub max_nodes: Option<u32>,
}

/// A node.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct OfferedNode {
    /// Its name.
    pub name: String,
    /// The numbers of its partitions in [`Offer::partitions`].
    pub partitions: Vec<usize>,
    /// Whether no usual job of this user gets it: it does not answer, is drained, reserved, or has a state
    /// that is not known.
    pub is_down: bool,
    /// Processors that can be allocated.
    pub cpus: u32,
    /// Those that no job has, and that are promised to none.
    pub free_cpus: u32,
    /// Memory that can be allocated; none where nobody has said how much there is.
    pub memory_bytes: Option<u64>,
    /// What it has, in the site's words.
    pub features: Vec<String>,
    /// When the last of its jobs ends at the latest, in seconds since 1970; none where no job is known.
    pub free_at: Option<u64>,
}

/// Why what a batch system says of its nodes is not understood.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the answer about its nodes is not understood: {0}")]
pub struct OfferError(pub String);
