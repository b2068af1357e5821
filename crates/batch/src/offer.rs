//! What a batch system has: partitions, nodes, and what of them is free.

use crate::MAX_NODES;
use serde::{Deserialize, Serialize};

/// Most partitions that are read.
pub const MAX_PARTITIONS: usize = 1000;

/// Most limits that are read.
pub const MAX_LIMITS: usize = 100;

/// What a batch system has, as it tells this user.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Offer {
    /// Its partitions, each once.
    pub partitions: Vec<Partition>,
    /// Its nodes, each once.
    pub nodes: Vec<OfferedNode>,
    /// What it lets this user's accounts have, if it enforces limits.
    pub limits: Vec<Limit>,
}

impl Offer {
    /// Cuts the offer into pieces that each fit into a message. Times become seconds from `now`, because the
    /// clocks of sites differ.
    pub fn pieces(mut self, now: u64) -> Vec<Piece> {
        self.nodes.truncate(MAX_NODES);
        for node in &mut self.nodes {
            node.free_at = node.free_at.map(|at| at.saturating_sub(now));
        }
        let mut chunks = self.nodes.chunks(PIECE).map(<[OfferedNode]>::to_vec);
        let mut pieces = vec![Piece {
            partitions: self.partitions,
            nodes: chunks.next().unwrap_or_default(),
            limits: self.limits,
            is_last: false,
        }];
        pieces.extend(chunks.map(|nodes| Piece {
            nodes,
            ..Piece::default()
        }));
        if let Some(last) = pieces.last_mut() {
            last.is_last = true;
        }
        pieces
    }

    /// Adds a piece of another site's offer, and says whether it contained anything new. Times become those
    /// of this host's clock.
    pub fn add(&mut self, piece: Piece, now: u64) -> bool {
        let before = (self.partitions.len(), self.nodes.len());
        let there = |all: &[usize], count: usize| all.iter().all(|one| *one < count);
        let room = MAX_PARTITIONS.saturating_sub(self.partitions.len());
        self.partitions.extend(piece.partitions.into_iter().take(room));
        let room = MAX_NODES.saturating_sub(self.nodes.len());
        let count = self.partitions.len();
        let limits = MAX_LIMITS.saturating_sub(self.limits.len());
        self.limits.extend(piece.limits.into_iter().take(limits));
        let nodes = piece.nodes.into_iter().take(room);
        self.nodes.extend(
            nodes
                .filter(|node| there(&node.partitions, count))
                .map(|node| OfferedNode {
                    free_at: node.free_at.map(|after| now.saturating_add(after)),
                    ..node
                }),
        );
        before != (self.partitions.len(), self.nodes.len())
    }
}

/// How many nodes are in a piece.
const PIECE: usize = 1000;

/// Longest name, and longest list of features, that another site may send.
const MAX_NAME: usize = 255;
const MAX_FEATURES: usize = 64;

/// A part of what a site's batch system has, as its holder reports it. Times are in seconds from now.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Piece {
    /// Its partitions, in the first piece.
    pub partitions: Vec<Partition>,
    /// Some of its nodes.
    pub nodes: Vec<OfferedNode>,
    /// What it lets the holder's account have, in the first piece.
    #[serde(default)]
    pub limits: Vec<Limit>,
    /// Whether nothing follows.
    pub is_last: bool,
}

impl Piece {
    /// Says whether another site may send this.
    pub fn is_sound(&self) -> bool {
        let is_name = |name: &String| (1..=MAX_NAME).contains(&name.len());
        let is_node = |node: &OfferedNode| {
            is_name(&node.name)
                && node.partitions.len() <= MAX_PARTITIONS
                && node.features.len() <= MAX_FEATURES
                && node.features.iter().all(is_name)
        };
        let is_limit = |limit: &Limit| {
            let mut names = [&limit.account, &limit.qos].into_iter().chain(&limit.partition);
            names.all(is_name)
        };
        self.partitions.len() <= MAX_PARTITIONS
            && self.limits.len() <= MAX_LIMITS
            && self.limits.iter().all(is_limit)
            && self.nodes.len() <= PIECE
            && self.partitions.iter().all(|partition| is_name(&partition.name))
            && self.nodes.iter().all(is_node)
    }
}

/// A queue with limits of its own, and some of the nodes.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Partition {
    /// Its name.
    pub name: String,
    /// Whether jobs that name none go there.
    pub is_default: bool,
    /// Whether jobs start there.
    pub is_up: bool,
    /// Longest time of a job; `None` if there is no limit.
    pub max_seconds: Option<u64>,
    /// Most nodes of a job; `None` if there is no limit.
    pub max_nodes: Option<u32>,
}

/// What a batch system allows to jobs that an account pays for.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Limit {
    /// The account.
    pub account: String,
    /// The only partition that it applies to; `None` if it applies to all that have no limit of their own.
    pub partition: Option<String>,
    /// The quality of service of a job that asks for none.
    pub qos: String,
    /// Whether jobs that name no account get this one.
    pub is_default: bool,
    /// Most jobs that run at a time; `None` if there is no limit, as in all fields that follow.
    pub max_jobs: Option<u32>,
    /// Most nodes of a job.
    pub max_nodes: Option<u32>,
    /// Most processors of a job.
    pub max_cpus: Option<u32>,
    /// Longest time of a job.
    pub max_seconds: Option<u64>,
}

/// A node.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct OfferedNode {
    /// Its name.
    pub name: String,
    /// The numbers of its partitions in [`Offer::partitions`].
    pub partitions: Vec<usize>,
    /// Whether an ordinary job of this user cannot get it: it does not answer, is drained, is reserved, or
    /// its state is not known.
    pub is_down: bool,
    /// Processors that can be allocated.
    pub cpus: u32,
    /// Processors that no job has and that are promised to none.
    pub free_cpus: u32,
    /// Memory that can be allocated; `None` if the amount is not configured.
    pub memory_bytes: Option<u64>,
    /// What it has, in the site's words.
    pub features: Vec<String>,
    /// The latest time at which the last of its jobs ends, in seconds since 1970; `None` if no job is known.
    pub free_at: Option<u64>,
}

/// Why a batch system's answer about its nodes is not understood.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the answer about its nodes is not understood: {0}")]
pub struct OfferError(pub String);

#[cfg(test)]
mod tests {
    use super::*;

    fn limit(account: &str) -> Limit {
        Limit {
            account: account.to_owned(),
            qos: "normal".to_owned(),
            ..Limit::default()
        }
    }

    #[test]
    fn an_offer_of_many_nodes_crosses_in_pieces_between_sites_whose_clocks_differ() {
        let node = |number: usize| OfferedNode {
            name: format!("n{number}"),
            partitions: vec![0],
            free_at: (number == 7).then_some(1060),
            ..OfferedNode::default()
        };
        let partition = Partition {
            name: "all".to_owned(),
            ..Partition::default()
        };
        let offer = Offer {
            partitions: vec![partition],
            nodes: (0..2500).map(node).collect(),
            limits: vec![limit("p7")],
        };
        let pieces = offer.clone().pieces(1000);
        assert_eq!(
            pieces.iter().map(|piece| piece.is_last).collect::<Vec<_>>(),
            [false, false, true]
        );
        let mut told = Offer::default();
        for piece in pieces {
            assert!(piece.is_sound());
            assert!(told.add(piece, 5000));
        }
        assert_eq!(told.nodes[7].free_at, Some(5060));
        assert_eq!((told.nodes.len(), told.limits), (2500, offer.limits));
        assert_eq!(told.partitions, offer.partitions);
        assert!(Offer::default().pieces(0)[0].is_last);
    }

    #[test]
    fn what_another_site_says_is_bounded_and_names_partitions_that_are_there() {
        let node = OfferedNode {
            name: "n".to_owned(),
            partitions: vec![3],
            ..OfferedNode::default()
        };
        let piece = |node: OfferedNode| Piece {
            nodes: vec![node],
            ..Piece::default()
        };
        let mut offer = Offer::default();
        assert!(!offer.add(piece(node.clone()), 0));
        assert!(offer.nodes.is_empty());
        assert!(piece(node.clone()).is_sound());
        let long = OfferedNode {
            features: vec!["f".repeat(300)],
            ..node.clone()
        };
        assert!(!piece(long).is_sound());
        let nameless = Piece {
            limits: vec![limit("")],
            ..Piece::default()
        };
        assert!(!nameless.is_sound());
        let many = Piece {
            nodes: vec![node; 1001],
            ..Piece::default()
        };
        assert!(!many.is_sound());
    }
}
