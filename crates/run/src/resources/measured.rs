//! What was measured on nodes before; it is kept in a file of this user.

use super::node::Seen;
use causeway_bench::node::Node;
use causeway_host::{own_file, text_file, user_directories};
use causeway_wire::TextError;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;

/// Longest file that is read: some 100 000 nodes.
const MAX_BYTES: usize = 32 << 20;

/// The nodes of a grid that were inspected, by site and name.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Measured(BTreeMap<String, BTreeMap<String, Known>>);

/// A node as it was found.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Known {
    /// What the node has.
    pub node: Node,
    /// How fast the node's cores are, if a node of its kind was measured.
    pub speed_thousandths: Option<u32>,
    /// When this was found, in seconds since 1970.
    pub at: u64,
}

/// What was measured in each of this user's grids, by name.
type Grids = BTreeMap<String, Measured>;

fn file() -> Result<PathBuf, TextError> {
    Ok(user_directories::state()
        .map_err(TextError::of)?
        .join("nodes.json"))
}

/// What was measured in a grid; empty if nothing was.
///
/// # Errors
/// The file exists, but cannot be read or is damaged.
pub fn read(grid: &str) -> Result<Measured, TextError> {
    Ok(grids()?.remove(grid).unwrap_or_default())
}

fn grids() -> Result<Grids, TextError> {
    let file = file()?;
    if !file.exists() {
        return Ok(Grids::new());
    }
    let text = text_file::read(&file, MAX_BYTES).map_err(TextError::of)?;
    let damaged = |error| format!("read {}: {error}; remove it and measure again", file.display());
    Ok(serde_json::from_str(&text).map_err(damaged)?)
}

impl Measured {
    /// Returns a node as it was found.
    pub fn of(&self, site: &str, node: &str) -> Option<&Known> {
        self.0.get(site)?.get(node)
    }

    /// Adds what was found on nodes of a site now. Of the other nodes, it keeps those that the site still
    /// has, for which `has` returns true.
    pub fn add(&mut self, site: &str, seen: Vec<(String, Seen)>, has: impl Fn(&str) -> bool, at: u64) {
        let nodes = self.0.entry(site.to_owned()).or_default();
        nodes.retain(|name, _| has(name));
        nodes.extend(seen.into_iter().map(|(name, seen)| {
            let known = Known {
                node: seen.node,
                speed_thousandths: seen.speed_thousandths,
                at,
            };
            (name, known)
        }));
    }

    /// Saves this for later commands.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn keep(&self, grid: &str) -> Result<(), TextError> {
        let file = file()?;
        // A file that cannot be read is useless, and is replaced.
        let mut grids = grids().unwrap_or_default();
        grids.insert(grid.to_owned(), self.clone());
        let write = || {
            if let Some(directory) = file.parent() {
                fs::create_dir_all(directory)?;
            }
            own_file::keep(&file, &serde_json::to_vec(&grids)?)
        };
        Ok(write().map_err(|error: std::io::Error| format!("write {}: {error}", file.display()))?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nodes_that_a_site_no_longer_lists_are_forgotten_and_those_that_do_not_answer_are_not() {
        let seen = |name: &str| {
            let node = Node {
                cores: 2,
                memory_bytes: None,
                processor: "p".into(),
                load_thousandths: 0,
            };
            let seen = Seen {
                node,
                speed_thousandths: Some(1500),
            };
            (name.to_owned(), seen)
        };
        let mut measured = Measured::default();
        measured.add("rennes", vec![seen("a"), seen("b"), seen("c")], |_| true, 1);
        measured.add("rennes", vec![seen("b")], |name| name != "a", 2);
        measured.add("nancy", vec![seen("d")], |_| false, 3);
        let at = |site: &str, name: &str| measured.of(site, name).map(|known| known.at);
        let rennes = ["a", "b", "c"].map(|name| at("rennes", name));
        assert_eq!(rennes, [None, Some(2), Some(1)]);
        assert_eq!(measured.of("nancy", "d").unwrap().speed_thousandths, Some(1500));
    }
}
