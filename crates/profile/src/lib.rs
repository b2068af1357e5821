//! A job's profile: what the job needs, and what it runs (docs/profile.md). Pure: texts go in, and a
//! [`Profile`] or all mistakes come out; and the other way round.
//!
//! It has two forms, TOML and QCG's XML. `keys` is the one table of what TOML may say: the reader and the
//! JSON schema follow it. `check` holds both forms to the same rules. A run that only wants the groups of its
//! ranks asks [`Reading::groups_for`].
#![forbid(unsafe_code)]

mod check;
mod job;
mod keys;
mod model;
mod notes;
mod reading;
mod schema;
#[cfg(test)]
mod tests;
mod toml_reader;
mod toml_walk;
mod toml_writer;
mod xml_execution;
mod xml_reader;
mod xml_walk;
mod xml_writer;

pub use job::Job;
pub use model::{Alternative, Group, Needs, Network, Profile, Ranks, Speed};
pub use reading::{Mistakes, Read, Reading, is_xml, read};
pub use schema::schema;
pub use toml_writer::to_toml;
pub use xml_writer::{Unsaid, to_xml};

/// Largest text that is read: a thousand times as long as a long profile.
pub const MAX_BYTES: usize = 1 << 20;
/// Most groups, because placement considers each pair of them.
pub const MAX_GROUPS: usize = 64;
/// Most requirements on networks: one within each group, and some between groups.
pub const MAX_NETWORKS: usize = 128;
/// Most alternatives of a group: placement may have to try each with each of the other groups'.
pub const MAX_ALTERNATIVES: usize = 8;
/// Most features or sites that one list names.
pub const MAX_NAMES: usize = 64;
/// Most ranks of a job.
pub const MAX_RANKS: u32 = 1_000_000;
/// Most ranges of ranks in all groups together: a hundred for each group, which takes less than a second to
/// process.
pub const MAX_RANGES: usize = 6_400;
/// Longest value of the variable that tells ranks their groups: Linux allows 128 KiB, including the name.
pub const MAX_VALUE_BYTES: usize = 130_000;
/// Most cores of a rank: no node has more.
pub const MAX_CORES: u32 = 4096;
/// Most words of a command.
pub const MAX_WORDS: usize = 256;
/// Longest word of a command, as long as a path may be.
pub const MAX_WORD_BYTES: usize = 4096;
pub use causeway_units::MAX_SECONDS;
