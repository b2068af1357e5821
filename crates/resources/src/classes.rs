//! Groups equal nodes into classes.

use crate::model::{Class, Node};
use crate::shown::memory;
use std::collections::{BTreeSet, HashMap, HashSet};

/// A node with everything that decides which class it is in.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Described {
    /// The node.
    pub node: Node,
    /// See [`Class::slots`].
    pub slots: u32,
    /// See [`Class::cores`].
    pub cores: Option<u32>,
    /// See [`Class::memory_bytes`].
    pub memory_bytes: Option<u64>,
    /// See [`Class::speed_thousandths`].
    pub speed_thousandths: Option<u32>,
    /// See [`Class::features`]; their order means nothing.
    pub features: BTreeSet<String>,
    /// Names of the partitions that contain the node: all nodes of a class are in the same ones.
    pub partitions: BTreeSet<String>,
}

/// The classes of these nodes, in the order of their first nodes, each with its partitions. A class is named
/// after what its nodes have, such as `4-slots`; none of these names is in `taken` or occurs twice.
pub fn classes_of(nodes: Vec<Described>, taken: &HashSet<String>) -> Vec<(Class, BTreeSet<String>)> {
    let mut found: Vec<(Class, BTreeSet<String>)> = Vec::new();
    let mut index = HashMap::new();
    let mut names = taken.clone();
    for Described {
        node,
        slots,
        cores,
        memory_bytes,
        speed_thousandths,
        features,
        partitions,
    } in nodes
    {
        let key = (
            slots,
            cores,
            memory_bytes,
            speed_thousandths,
            features,
            partitions,
        );
        let at = *index.entry(key).or_insert_with_key(|(.., features, partitions)| {
            let class = Class {
                name: new_name(slots, memory_bytes, &mut names),
                slots,
                cores,
                memory_bytes,
                speed_thousandths,
                features: features.iter().cloned().collect(),
                ..Class::default()
            };
            found.push((class, partitions.clone()));
            found.len() - 1
        });
        found[at].0.nodes.push(node);
    }
    found
}

fn new_name(slots: u32, memory_bytes: Option<u64>, names: &mut HashSet<String>) -> String {
    let memory = memory_bytes.map_or_else(String::new, |bytes| {
        format!("-{}", memory(bytes).replace(' ', ""))
    });
    let name = format!("{slots}-slots{memory}");
    // Each name that is taken costs one attempt at most, and each class is named once.
    let numbered = (2..).map(|number: u64| format!("{name}-{number}"));
    let mut names_like_it = std::iter::once(name.clone()).chain(numbered);
    let new = names_like_it.find(|name| !names.contains(name)).unwrap_or(name);
    names.insert(new.clone());
    new
}
