//! Writes the JSON graph format (JGF) as Flux uses it: RFC 40 of flux-framework/rfc, and the additional keys
//! that the reader of flux-sched expects (`uniq_id`, `rank`, `exclusive`, `status`, `paths`).
//!
//! The subsystem `containment` is a tree, as Flux requires: grid, site, class, node, and in each node a
//! vertex for its cores and one for its memory. Partitions share classes, so they are a separate subsystem;
//! links are another, and so are limits.

use crate::model::{Class, Graph, Limit, Link, Node, Partition, Site};
use serde_json::{Map, Value, json};
use std::collections::HashMap;

pub(crate) const CONTAINMENT: &str = "containment";
pub(crate) const PARTITION: &str = "partition";
pub(crate) const LINK: &str = "link";
pub(crate) const LIMIT: &str = "limit";
pub(crate) const CONTAINS: &str = "contains";
/// The edge from the site at which a link begins to the link.
const BEGINS: &str = "begins";
/// The edge from a link to the site at which it ends.
const ENDS: &str = "ends";

/// The graph as JGF, with a line for each vertex and each edge, and a newline at the end.
pub fn to_jgf(graph: &Graph) -> String {
    let mut writer = Writer::default();
    writer.grid(graph);
    let list = |lines: &[String]| match lines.is_empty() {
        true => "[]".to_owned(),
        false => format!("[\n{}\n]", lines.join(",\n")),
    };
    format!(
        "{{\"graph\":{{\"nodes\":{},\"edges\":{}}}}}\n",
        list(&writer.vertices),
        list(&writer.edges)
    )
}

/// A vertex that has no number yet.
struct New<'a> {
    kind: &'static str,
    name: &'a str,
    subsystem: &'static str,
    /// The path of the vertex that contains it.
    above: &'a str,
    size: u64,
    unit: &'static str,
    is_down: bool,
    properties: Map<String, Value>,
}

impl<'a> New<'a> {
    fn of(kind: &'static str, name: &'a str, above: &'a str) -> New<'a> {
        New {
            kind,
            name,
            subsystem: CONTAINMENT,
            above,
            size: 1,
            unit: "",
            is_down: false,
            properties: Map::new(),
        }
    }
}

#[derive(Default)]
struct Writer {
    vertices: Vec<String>,
    edges: Vec<String>,
    /// How many vertices of a type there are.
    counts: HashMap<&'static str, usize>,
}

impl Writer {
    fn grid(&mut self, graph: &Graph) {
        let (grid, path) = self.vertex(New::of("grid", &graph.name, ""));
        let mut sites = HashMap::new();
        for site in &graph.sites {
            let (number, path) = self.site(site, &path);
            self.edge(grid, number, CONTAINMENT, CONTAINS);
            sites.insert(site.name.as_str(), (number, path));
        }
        for link in &graph.links {
            if let (Some(from), Some(to)) = (sites.get(&*link.from), sites.get(&*link.to)) {
                self.link(link, (from.0, &from.1), to.0);
            }
        }
    }

    fn site(&mut self, site: &Site, above: &str) -> (usize, String) {
        let why = properties([("why_unreachable", site.why_unreachable.clone())]);
        let (number, path) = self.vertex(New {
            properties: why,
            ..New::of("site", &site.name, above)
        });
        let mut classes = HashMap::new();
        for class in &site.classes {
            let class_number = self.class(class, &path);
            self.edge(number, class_number, CONTAINMENT, CONTAINS);
            classes.insert(class.name.as_str(), class_number);
        }
        for partition in &site.partitions {
            let partition_number = self.partition(partition, &path);
            self.edge(number, partition_number, PARTITION, CONTAINS);
            let parts = partition.classes.iter().filter_map(|name| classes.get(&**name));
            for class in parts {
                self.edge(partition_number, *class, PARTITION, CONTAINS);
            }
        }
        for limit in &site.limits {
            let limit_number = self.limit(limit, &path);
            self.edge(number, limit_number, LIMIT, CONTAINS);
        }
        (number, path)
    }

    fn limit(&mut self, limit: &Limit, above: &str) -> usize {
        let number = |most: Option<u32>| most.map(|most| most.to_string());
        let properties = properties([
            ("account", Some(limit.account.clone())),
            ("partition", limit.partition.clone()),
            ("qos", Some(limit.qos.clone())),
            ("is_default", Some(limit.is_default.to_string())),
            ("max_jobs", number(limit.max_jobs)),
            ("max_nodes", number(limit.max_nodes)),
            ("max_slots", number(limit.max_slots)),
            ("max_seconds", limit.max_seconds.map(|most| most.to_string())),
        ]);
        let name = format!("limit{}", self.counts.get("limit").copied().unwrap_or_default());
        let new = New {
            subsystem: LIMIT,
            properties,
            ..New::of("limit", &name, above)
        };
        self.vertex(new).0
    }

    fn partition(&mut self, partition: &Partition, above: &str) -> usize {
        let properties = properties([
            ("is_default", Some(partition.is_default.to_string())),
            ("is_up", Some(partition.is_up.to_string())),
            ("max_seconds", partition.max_seconds.map(|most| most.to_string())),
            ("max_nodes", partition.max_nodes.map(|most| most.to_string())),
        ]);
        let new = New {
            subsystem: PARTITION,
            properties,
            ..New::of("partition", &partition.name, above)
        };
        self.vertex(new).0
    }

    fn class(&mut self, class: &Class, above: &str) -> usize {
        let speed = class.speed_thousandths.map(|speed| speed.to_string());
        let features = (!class.features.is_empty()).then(|| class.features.join(","));
        let cores = class.cores.map(|cores| cores.to_string());
        let properties = properties([
            ("cores", cores),
            ("speed_thousandths", speed),
            ("features", features),
        ]);
        let (number, path) = self.vertex(New {
            properties,
            ..New::of("class", &class.name, above)
        });
        for node in &class.nodes {
            let node_number = self.node(node, class, &path);
            self.edge(number, node_number, CONTAINMENT, CONTAINS);
        }
        number
    }

    fn node(&mut self, node: &Node, class: &Class, above: &str) -> usize {
        let properties = properties([
            ("address", node.address.map(|address| address.to_string())),
            ("free_slots", node.free_slots.map(|free| free.to_string())),
            ("free_at", node.free_at.map(|at| at.to_string())),
        ]);
        let (number, path) = self.vertex(New {
            is_down: node.is_down,
            properties,
            ..New::of("node", &node.name, above)
        });
        if class.slots > 0 {
            let (cores, _) = self.vertex(New {
                size: u64::from(class.slots),
                ..New::of("core", "core0", &path)
            });
            self.edge(number, cores, CONTAINMENT, CONTAINS);
        }
        if let Some(bytes) = class.memory_bytes {
            let (memory, _) = self.vertex(New {
                size: bytes,
                unit: "B",
                ..New::of("memory", "memory0", &path)
            });
            self.edge(number, memory, CONTAINMENT, CONTAINS);
        }
        number
    }

    /// A link's size is its bandwidth: a scheduler may allot a part of it.
    fn link(&mut self, link: &Link, from: (usize, &str), to: usize) {
        let properties = properties([
            ("latency_ns", link.latency_ns.map(|latency| latency.to_string())),
            ("loss_ppb", link.loss_ppb.map(|loss| loss.to_string())),
            ("source", link.source.map(|source| source.word().to_owned())),
            ("seen_at", link.seen_at.map(|at| at.to_string())),
        ]);
        let name = format!("{}-{}", link.from, link.to);
        let bandwidth = link.bandwidth_bits_per_second;
        let (number, _) = self.vertex(New {
            subsystem: LINK,
            size: bandwidth.unwrap_or(1),
            unit: if bandwidth.is_some() { "bit/s" } else { "" },
            properties,
            ..New::of("link", &name, from.1)
        });
        self.edge(from.0, number, LINK, BEGINS);
        self.edge(number, to, LINK, ENDS);
    }

    /// Adds a vertex; returns its number and path.
    fn vertex(&mut self, new: New<'_>) -> (usize, String) {
        let number = self.vertices.len();
        let count = self.counts.entry(new.kind).or_default();
        let path = format!("{}/{}", new.above, new.name);
        let vertex = json!({
            "id": number.to_string(),
            "metadata": {
                "type": new.kind,
                "basename": new.kind,
                "name": new.name,
                "id": *count,
                "uniq_id": number,
                "rank": -1,
                "status": i32::from(new.is_down),
                "exclusive": false,
                "unit": new.unit,
                "size": new.size,
                "properties": new.properties,
                "paths": { new.subsystem: path },
            },
        });
        *count += 1;
        self.vertices.push(vertex.to_string());
        (number, path)
    }

    fn edge(&mut self, from: usize, to: usize, subsystem: &str, relationship: &str) {
        let edge = json!({
            "source": from.to_string(),
            "target": to.to_string(),
            "metadata": { "subsystem": subsystem, "relationship": relationship },
        });
        self.edges.push(edge.to_string());
    }
}

/// The properties that are known, as texts: Flux accepts no others.
fn properties<const N: usize>(known: [(&str, Option<String>); N]) -> Map<String, Value> {
    let known = known.into_iter();
    let said = known.filter_map(|(key, value)| Some((key.to_owned(), Value::String(value?))));
    said.collect()
}
