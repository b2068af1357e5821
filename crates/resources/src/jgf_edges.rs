//! Edges of a JGF, and which site, class and node each vertex is in.

use crate::MAX_DEPTH;
use crate::jgf_vertices::{Vertex, list};
use crate::jgf_writer::{CONTAINMENT, CONTAINS, LIMIT, LINK, PARTITION};
use crate::notes::Mistakes;
use serde_json::{Map, Value};
use std::collections::HashMap;

/// The edges, by the numbers of their vertices.
#[derive(Default)]
pub(crate) struct Edges {
    /// The vertex that contains each vertex.
    above: Vec<Option<usize>>,
    /// Edges from sites to partitions, and from partitions to classes.
    pub partitions: Vec<(usize, usize)>,
    /// Edges from sites to links, and from links to sites.
    pub links: Vec<(usize, usize)>,
    /// Edges from sites to limits.
    pub limits: Vec<(usize, usize)>,
    /// How many edges belong to other subsystems.
    pub others: usize,
}

/// The nearest vertex of each kind that contains a vertex.
#[derive(Default, Clone, Copy)]
pub(crate) struct Place {
    pub site: Option<usize>,
    pub class: Option<usize>,
    pub node: Option<usize>,
}

impl Edges {
    pub(crate) fn read(
        graph: &Map<String, Value>,
        vertices: &[Vertex<'_>],
        mistakes: &mut Mistakes,
    ) -> Edges {
        let mut edges = Edges {
            above: vec![None; vertices.len()],
            ..Edges::default()
        };
        let Some(list) = list(graph, "edges", mistakes) else {
            return edges;
        };
        let mut numbers = HashMap::with_capacity(vertices.len());
        for (number, vertex) in vertices.iter().enumerate() {
            if numbers.insert(vertex.id, number).is_some() {
                mistakes.add(format!("graph.nodes: the id {:?} is there twice", vertex.id));
            }
        }
        // If a vertex was not understood, it was dropped, so edges to it are not further mistakes.
        let is_whole = mistakes.is_empty();
        for (at, value) in list.iter().enumerate() {
            let end = |key: &str| match value.get(key).and_then(Value::as_str) {
                Some(id) => numbers
                    .get(id)
                    .copied()
                    .ok_or(Some(format!(".{key}: no vertex has this id"))),
                None => Err(Some(format!(".{key}: is missing, or is not a text"))),
            };
            let added = end("source").and_then(|from| Ok((from, end("target")?)));
            let added = added.and_then(|ends| edges.add(ends, value.get("metadata"), vertices).map_err(Some));
            if let Err(Some(why)) = added
                && is_whole
            {
                mistakes.add(format!("graph.edges[{at}]{why}"));
            }
        }
        edges
    }

    fn add(
        &mut self,
        (from, to): (usize, usize),
        metadata: Option<&Value>,
        vertices: &[Vertex<'_>],
    ) -> Result<(), String> {
        match subsystem(metadata) {
            Some(CONTAINMENT) => {}
            Some(PARTITION) => {
                self.partitions.push((from, to));
                return Ok(());
            }
            Some(LINK) => {
                self.links.push((from, to));
                return Ok(());
            }
            Some(LIMIT) => {
                self.limits.push((from, to));
                return Ok(());
            }
            _ => {
                self.others += 1;
                return Ok(());
            }
        }
        let Some(above) = self.above.get_mut(to) else {
            return Ok(());
        };
        match above {
            Some(other) if *other != from => {
                let [to, other] = [to, *other].map(|number| vertices.get(number).map(Vertex::called));
                Err(format!(
                    ": {} is in {}, too; containment is a tree",
                    to.unwrap_or_default(),
                    other.unwrap_or_default()
                ))
            }
            _ => {
                *above = Some(from);
                Ok(())
            }
        }
    }

    /// What a vertex is in; `None` if it is too deep, or in itself.
    pub(crate) fn place(&self, vertex: usize, vertices: &[Vertex<'_>]) -> Option<Place> {
        let mut place = Place::default();
        let mut above = self.above.get(vertex).copied().flatten();
        for _ in 0..MAX_DEPTH {
            let Some(number) = above else {
                return Some(place);
            };
            match vertices.get(number).map(|vertex| vertex.kind) {
                Some("node") => place.node = place.node.or(Some(number)),
                Some("class") => place.class = place.class.or(Some(number)),
                Some("site" | "cluster") => place.site = place.site.or(Some(number)),
                _ => {}
            }
            above = self.above.get(number).copied().flatten();
        }
        None
    }
}

/// The subsystem of an edge, which is containment by default, as in flux-sched. The older form is `{"name":
/// {"containment": "contains"}}`, and beside each such edge there is one with `in`, which leads upwards.
fn subsystem(metadata: Option<&Value>) -> Option<&str> {
    let Some(metadata) = metadata else {
        return Some(CONTAINMENT);
    };
    let is_downwards = |relationship: Option<&Value>| match relationship {
        Some(word) => word.as_str() == Some(CONTAINS),
        None => true,
    };
    if let Some(older) = metadata.get("name") {
        return { older.get(CONTAINMENT) }
            .filter(|word| is_downwards(Some(word)))
            .map(|_| CONTAINMENT);
    }
    match metadata.get("subsystem").map(Value::as_str) {
        None => Some(CONTAINMENT),
        Some(Some(CONTAINMENT)) => is_downwards(metadata.get("relationship")).then_some(CONTAINMENT),
        Some(other) => other,
    }
}
