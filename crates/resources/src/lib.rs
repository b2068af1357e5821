//! What a grid has: sites, their partitions, classes of equal nodes, and the links between sites
//! (docs/resources.md). Pure: a [`Graph`] and the time in, texts out, and from JGF the way back.
//!
//! ```text
//! grid -+- site -+- class --- node, node ...
//!       |        `- partition: names classes, which others may name, too
//!       `- link: from a site to another
//! ```
//!
//! `model` is the graph, `classes` puts equal nodes together, and `merge` what several gateways say.
//! `jgf_reader` and `jgf_writer` are the JSON graph format of Flux, `dot` is Graphviz's. `table` and
//! `picture` are for people. It does not find out what there is: `causeway resources` asks gateways.
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

/// Longest JGF that is read: some 60 000 vertices, ten times a large cluster. It takes ten times as much
/// memory while it is read.
pub const MAX_BYTES: usize = 32 << 20;
/// Most vertices of a JGF, and most edges, as shorter ones fit into [`MAX_BYTES`].
pub const MAX_VERTICES: usize = 400_000;
/// Most levels of a JGF: Flux has seven, from a cluster to a processing unit.
pub const MAX_DEPTH: usize = 16;
/// Longest text that is read of a vertex: a reason, or a list of features.
pub const MAX_TEXT: usize = 1000;
/// Most slots of a node; no node has more hardware threads.
pub const MAX_SLOTS: u32 = 65_536;
/// Most limits of a site.
pub const MAX_LIMITS: usize = 1000;
/// Most partitions of a site. A partition and a class of it are a row of the table.
pub const MAX_PARTITIONS: usize = 1000;
