//! What a grid has: sites, their partitions, classes of equal nodes, and the links between sites
//! (docs/resources.md). Pure: it makes texts from a [`Graph`] and the time, and reads JGF back.
//!
//! ```text
//! grid -+- site -+- class --- node, node ...
//!       |        `- partition: names classes, which others may name, too
//!       `- link: from a site to another
//! ```
//!
//! `model` is the graph, `classes` groups equal nodes, and `merge` combines what several gateways report.
//! `jgf_reader` and `jgf_writer` are for the JSON graph format of Flux, `dot` is for Graphviz. `table` and
//! `picture` are for people. This crate does not find out what exists: `causeway resources` asks gateways.
#![forbid(unsafe_code)]

mod classes;
mod dot;
mod jgf_edges;
mod jgf_reader;
mod jgf_vertices;
mod jgf_writer;
mod merge;
mod model;
mod notes;
mod picture;
mod shown;
mod table;
#[cfg(test)]
mod tests;

pub use classes::{Described, classes_of};
pub use dot::to_dot;
pub use jgf_reader::{Read, read_jgf};
pub use jgf_writer::to_jgf;
pub use merge::merged;
pub use model::{Class, Graph, Limit, Link, Node, Partition, Site, Source};
pub use notes::Mistakes;
pub use picture::picture;
pub use table::table;

/// Longest JGF that is read: some 60 000 vertices, ten times the size of a large cluster. Reading takes ten
/// times as much memory.
pub const MAX_BYTES: usize = 32 << 20;
/// Most vertices, and most edges, of a JGF: [`MAX_BYTES`] have room for this many short ones.
pub const MAX_VERTICES: usize = 400_000;
/// Most levels of a JGF: Flux has seven, from a cluster to a processing unit.
pub const MAX_DEPTH: usize = 16;
/// Longest text that is read of a vertex: a reason, or a list of features.
pub const MAX_TEXT: usize = 1000;
/// Most slots of a node; no node has more hardware threads.
pub const MAX_SLOTS: u32 = 65_536;
/// Most limits of a site.
pub const MAX_LIMITS: usize = 1000;
/// Most partitions of a site. The table has a row for each partition and each of its classes.
pub const MAX_PARTITIONS: usize = 1000;
