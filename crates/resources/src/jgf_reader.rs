//! Reads the JSON graph format of Flux (see `jgf_writer`), including graphs that Flux has made: a cluster
//! then counts as a site, and its equal nodes are grouped into classes.

use crate::classes::{Described, classes_of};
use crate::jgf_edges::{Edges, Place};
use crate::jgf_vertices::{Vertex, vertices};
use crate::model::{Class, Graph, Limit, Link, Node, Partition, Site, Source};
use crate::notes::Mistakes;
use crate::shown::cut;
use crate::{MAX_BYTES, MAX_LIMITS, MAX_PARTITIONS, MAX_SLOTS};
use causeway_wire::grid::{is_node_name, is_site_name};
use serde_json::Value;
use std::borrow::Cow;
use std::collections::{BTreeMap, HashMap, HashSet};
use std::str::FromStr;

/// A graph, and what parts of the text it does not contain.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Read {
    /// The graph.
    pub graph: Graph,
    /// Warnings, each a line without its end.
    pub warnings: Vec<String>,
}

/// Reads JGF: an object with the key `graph`, or Flux's R, which has the graph under `scheduling`.
///
/// # Errors
/// All mistakes, as far as one reading can find them.
pub fn read_jgf(text: &str) -> Result<Read, Mistakes> {
    let mut mistakes = Mistakes::default();
    if text.len() > MAX_BYTES {
        mistakes.add(format!("is longer than {MAX_BYTES} bytes"));
        return Err(mistakes);
    }
    let value: Value = match serde_json::from_str(text) {
        Ok(value) => value,
        Err(error) => {
            mistakes.add(format!("is not JSON: {error}"));
            return Err(mistakes);
        }
    };
    let graph = value
        .get("graph")
        .or_else(|| value.get("scheduling")?.get("graph"));
    let Some(Value::Object(graph)) = graph else {
        mistakes.add("has no object \"graph\"".to_owned());
        return Err(mistakes);
    };
    let vertices = vertices(graph, &mut mistakes);
    let edges = Edges::read(graph, &vertices, &mut mistakes);
    // After a mistake, later checks would report false ones.
    if !mistakes.is_empty() {
        return Err(mistakes);
    }
    let mut builder = Builder {
        vertices: &vertices,
        edges: &edges,
        places: Vec::new(),
        mistakes,
        sites: HashMap::new(),
        graph: Graph::default(),
    };
    builder.build();
    match builder.mistakes.is_empty() {
        true => Ok(Read {
            graph: builder.graph,
            warnings: warnings(&vertices, &edges),
        }),
        false => Err(builder.mistakes),
    }
}

fn warnings(vertices: &[Vertex<'_>], edges: &Edges) -> Vec<String> {
    let mut odd = BTreeMap::<&str, usize>::new();
    let known = [
        "grid",
        "site",
        "cluster",
        "class",
        "node",
        "core",
        "memory",
        "partition",
        "limit",
        "link",
    ];
    for vertex in vertices.iter().filter(|vertex| !known.contains(&vertex.kind)) {
        *odd.entry(vertex.kind).or_default() += 1;
    }
    let kinds = odd.iter().take(100);
    let mut warnings: Vec<String> = kinds
        .map(|(kind, count)| format!("vertices of type {kind} are left out: {count}"))
        .collect();
    let without = vertices.iter().filter(|vertex| is_without_unit(vertex)).count();
    if without > 0 {
        warnings.push(format!("memory without a unit is left out: {without}"));
    }
    if edges.others > 0 {
        warnings.push(format!(
            "edges of other subsystems are left out: {}",
            edges.others
        ));
    }
    warnings
}

/// A node's cores and memory.
#[derive(Default, Clone, Copy, PartialEq, Eq)]
struct Parts {
    slots: u32,
    memory_bytes: u64,
}

struct Builder<'a> {
    vertices: &'a [Vertex<'a>],
    edges: &'a Edges,
    places: Vec<Place>,
    mistakes: Mistakes,
    /// The number of each site in the graph, by its vertex.
    sites: HashMap<usize, usize>,
    graph: Graph,
}

impl<'a> Builder<'a> {
    fn build(&mut self) {
        for number in 0..self.vertices.len() {
            let place = self.edges.place(number, self.vertices).unwrap_or_else(|| {
                let called = self.vertices[number].called();
                self.mistakes
                    .add(format!("{called}: is in too many others, or in itself"));
                Place::default()
            });
            self.places.push(place);
        }
        self.read_grid();
        self.read_sites();
        let classes = self.read_classes();
        self.read_nodes(&classes);
        self.refuse_empty_classes();
        self.read_partitions(&classes);
        self.read_limits();
        self.read_links();
    }

    fn vertices_of_kind(
        &self,
        kind: &'static str,
    ) -> impl Iterator<Item = (usize, &'a Vertex<'a>)> + use<'a> {
        let all = self.vertices.iter().enumerate();
        all.filter(move |(_, vertex)| vertex.kind == kind)
    }

    fn mistake(&mut self, vertex: &Vertex<'_>, reason: &str) {
        self.mistakes.add(format!("{}: {reason}", vertex.called()));
    }

    fn read_grid(&mut self) {
        let grids: Vec<_> = self.vertices_of_kind("grid").collect();
        if let [_, (_, second), ..] = grids[..] {
            self.mistake(second, "there is another grid");
        }
        let name = grids.first().map_or("grid", |(_, grid)| &grid.name);
        self.graph.name = name.to_owned();
    }

    fn read_sites(&mut self) {
        let mut names = HashSet::new();
        let all = self.vertices.iter().enumerate();
        for (number, vertex) in all.filter(|(_, vertex)| ["site", "cluster"].contains(&vertex.kind)) {
            if self.places[number].site.is_some() {
                self.mistake(vertex, "is in another site");
            } else if !is_site_name(&vertex.name) {
                self.mistake(vertex, "is no name of a site");
            } else if !names.insert(&vertex.name) {
                self.mistake(vertex, "another site has this name");
            }
            self.sites.insert(number, self.graph.sites.len());
            let why = vertex.property("why_unreachable").map(Cow::into_owned);
            self.graph.sites.push(Site {
                name: vertex.name.to_string(),
                why_unreachable: why,
                ..Site::default()
            });
        }
        if names.is_empty() && self.mistakes.is_empty() {
            self.mistakes
                .add("has no vertex of type site or cluster".to_owned());
        }
    }

    /// Reads the classes; returns the site of each and its number there, by its vertex. A class has no slots
    /// until it has a node.
    fn read_classes(&mut self) -> HashMap<usize, (usize, usize)> {
        let mut classes = HashMap::new();
        let mut names = HashSet::new();
        for (number, vertex) in self.vertices_of_kind("class") {
            let Some(site) = self.site(number, vertex) else {
                continue;
            };
            self.check_name(vertex, names.insert((site, &vertex.name)));
            let features = vertex.property("features").unwrap_or_default();
            let features = features.split(',').filter(|feature| !feature.is_empty());
            let class = Class {
                name: vertex.name.to_string(),
                cores: self.number(vertex, "cores"),
                speed_thousandths: self.number(vertex, "speed_thousandths"),
                features: features.map(str::to_owned).collect(),
                ..Class::default()
            };
            let list = &mut self.graph.sites[site].classes;
            classes.insert(number, (site, list.len()));
            list.push(class);
        }
        classes
    }

    fn read_nodes(&mut self, classes: &HashMap<usize, (usize, usize)>) {
        let parts = self.read_parts();
        let mut names = HashSet::new();
        let mut others: Vec<Vec<Described>> = vec![Vec::new(); self.graph.sites.len()];
        for (number, vertex) in self.vertices_of_kind("node") {
            let Some(site) = self.site(number, vertex) else {
                continue;
            };
            self.check_name(vertex, names.insert((site, &vertex.name)));
            let parts = parts.get(&number).copied().unwrap_or_default();
            let memory_bytes = (parts.memory_bytes > 0).then_some(parts.memory_bytes);
            let node = self.node(vertex, parts);
            let Some((site, class)) = self.places[number].class.and_then(|class| classes.get(&class)) else {
                others[site].push(Described {
                    node,
                    slots: parts.slots,
                    memory_bytes,
                    features: vertex.features().map(str::to_owned).collect(),
                    ..Described::default()
                });
                continue;
            };
            let class = &mut self.graph.sites[*site].classes[*class];
            if class.nodes.is_empty() {
                (class.slots, class.memory_bytes) = (parts.slots, memory_bytes);
            }
            let is_equal = (class.slots, class.memory_bytes) == (parts.slots, memory_bytes);
            class.nodes.push(node);
            if !is_equal {
                self.mistake(
                    vertex,
                    "has not the cores and memory of the first node of its class",
                );
            }
        }
        for (site, nodes) in self.graph.sites.iter_mut().zip(others) {
            let taken = site.classes.iter().map(|class| class.name.clone()).collect();
            let classes = classes_of(nodes, &taken);
            site.classes.extend(classes.into_iter().map(|(class, _)| class));
        }
    }

    /// Reads the cores and memory of each node: Flux may have a vertex for each core.
    fn read_parts(&mut self) -> HashMap<usize, Parts> {
        let mut parts = HashMap::<usize, Parts>::new();
        let all = self.vertices.iter().enumerate();
        for (number, vertex) in all.filter(|(_, vertex)| ["core", "memory"].contains(&vertex.kind)) {
            let Some(node) = self.places[number].node.filter(|_| !is_without_unit(vertex)) else {
                continue;
            };
            let sum = parts.entry(node).or_default();
            let added = match vertex.kind {
                "core" => u32::try_from(vertex.size)
                    .ok()
                    .and_then(|size| sum.slots.checked_add(size))
                    .filter(|slots| *slots <= MAX_SLOTS)
                    .map(|slots| sum.slots = slots)
                    .ok_or("its node has more cores than are allowed"),
                _ => bytes(vertex)
                    .and_then(|bytes| sum.memory_bytes.checked_add(bytes))
                    .map(|bytes| sum.memory_bytes = bytes)
                    .ok_or("is no amount of memory in B, kB, MB, GB, TB, KiB, MiB, GiB or TiB"),
            };
            if let Err(why) = added {
                self.mistake(vertex, why);
            }
        }
        parts
    }

    fn node(&mut self, vertex: &Vertex<'_>, parts: Parts) -> Node {
        let free_slots = self.number(vertex, "free_slots");
        if free_slots.is_some_and(|free| free > parts.slots) {
            self.mistake(vertex, "properties.free_slots: more than the node's cores");
        }
        Node {
            name: vertex.name.to_string(),
            address: self.number(vertex, "address"),
            is_down: vertex.is_down,
            free_slots,
            free_at: self.number(vertex, "free_at"),
        }
    }

    fn refuse_empty_classes(&mut self) {
        let classes = self.graph.sites.iter().flat_map(|site| &site.classes);
        let empty = classes.filter(|class| class.nodes.is_empty());
        for class in empty {
            self.mistakes.add(format!("class {}: has no node", class.name));
        }
    }

    fn read_partitions(&mut self, classes: &HashMap<usize, (usize, usize)>) {
        let mut sites = HashMap::new();
        let mut parts = HashMap::<usize, Vec<usize>>::new();
        for (from, to) in &self.edges.partitions {
            match self.sites.get(from) {
                Some(site) => drop(sites.insert(*to, *site)),
                None => parts.entry(*from).or_default().push(*to),
            }
        }
        let mut names = HashSet::new();
        for (number, vertex) in self.vertices_of_kind("partition") {
            let Some(site) = sites.get(&number).copied() else {
                self.mistake(vertex, "no edge leads to it from a site");
                continue;
            };
            self.check_name(vertex, names.insert((site, &vertex.name)));
            let mut names_of_classes = Vec::new();
            for part in parts.get(&number).into_iter().flatten() {
                match classes.get(part) {
                    Some((of, class)) if *of == site => {
                        names_of_classes.push(self.graph.sites[site].classes[*class].name.clone());
                    }
                    _ => self.mistake(vertex, "an edge leads from it to what is no class of its site"),
                }
            }
            let partition = Partition {
                name: vertex.name.to_string(),
                is_default: self.number(vertex, "is_default").unwrap_or(false),
                is_up: self.number(vertex, "is_up").unwrap_or(true),
                max_seconds: self.number(vertex, "max_seconds"),
                max_nodes: self.number(vertex, "max_nodes"),
                classes: names_of_classes,
            };
            let list = &mut self.graph.sites[site].partitions;
            list.push(partition);
            if list.len() > MAX_PARTITIONS {
                self.mistake(vertex, "its site has more partitions than are allowed");
            }
        }
    }

    fn read_limits(&mut self) {
        let edges = self.edges.limits.iter();
        let sites = edges.filter_map(|(from, to)| Some((*to, *self.sites.get(from)?)));
        let sites: HashMap<usize, usize> = sites.collect();
        for (number, vertex) in self.vertices_of_kind("limit") {
            let Some(site) = sites.get(&number).copied() else {
                self.mistake(vertex, "no edge leads to it from a site");
                continue;
            };
            let text = |key: &str| vertex.property(key).map(Cow::into_owned);
            let limit = Limit {
                account: text("account").unwrap_or_default(),
                partition: text("partition"),
                qos: text("qos").unwrap_or_default(),
                is_default: self.number(vertex, "is_default").unwrap_or(false),
                max_jobs: self.number(vertex, "max_jobs"),
                max_nodes: self.number(vertex, "max_nodes"),
                max_slots: self.number(vertex, "max_slots"),
                max_seconds: self.number(vertex, "max_seconds"),
            };
            let list = &mut self.graph.sites[site].limits;
            list.push(limit);
            if list.len() > MAX_LIMITS {
                self.mistake(vertex, "its site has more limits than are allowed");
            }
        }
    }

    fn read_links(&mut self) {
        let (mut begins, mut ends) = (HashMap::new(), HashMap::new());
        for (from, to) in &self.edges.links {
            if let Some(site) = self.sites.get(from) {
                begins.insert(*to, *site);
            } else if let Some(site) = self.sites.get(to) {
                ends.insert(*from, *site);
            }
        }
        let mut pairs = HashSet::new();
        for (number, vertex) in self.vertices_of_kind("link") {
            let (Some(from), Some(to)) = (begins.get(&number), ends.get(&number)) else {
                self.mistake(vertex, "no edges lead over it from a site to another");
                continue;
            };
            if from == to || !pairs.insert((*from, *to)) {
                self.mistake(vertex, "leads to its own site, or is there twice");
            }
            let [from, to] = [from, to].map(|site| self.graph.sites[*site].name.clone());
            let source = vertex.property("source");
            let link = Link {
                from,
                to,
                latency_ns: self.number(vertex, "latency_ns"),
                bandwidth_bits_per_second: (vertex.unit == "bit/s").then_some(vertex.size),
                loss_ppb: self.number(vertex, "loss_ppb"),
                source: source.and_then(|word| Source::from_word(&word)),
                seen_at: self.number(vertex, "seen_at"),
            };
            if link.loss_ppb.is_some_and(|loss| loss > 1_000_000_000) {
                self.mistake(vertex, "properties.loss_ppb: more than all packets");
            }
            self.graph.links.push(link);
        }
    }

    /// The site that contains a vertex.
    fn site(&mut self, number: usize, vertex: &Vertex<'_>) -> Option<usize> {
        let site = self.places[number].site;
        let site = site.and_then(|site| self.sites.get(&site).copied());
        if site.is_none() {
            self.mistake(vertex, "is in no site");
        }
        site
    }

    fn check_name(&mut self, vertex: &Vertex<'_>, is_new: bool) {
        if !is_node_name(&vertex.name) {
            self.mistake(
                vertex,
                "its name has other characters than letters, digits and -_.:@, or too many",
            );
        } else if !is_new {
            self.mistake(vertex, "another of its site has this name");
        }
    }

    /// A property that is a number, or has another form that can be parsed.
    fn number<T: FromStr>(&mut self, vertex: &Vertex<'_>, key: &str) -> Option<T> {
        let text = vertex.property(key)?;
        let read = text.parse().ok();
        if read.is_none() {
            let text = cut(&text, 40);
            self.mistake(vertex, &format!("properties.{key}: {text:?} is no value of it"));
        }
        read
    }
}

fn is_without_unit(vertex: &Vertex<'_>) -> bool {
    vertex.kind == "memory" && vertex.unit.is_empty()
}

/// The memory of a vertex with a unit.
fn bytes(vertex: &Vertex<'_>) -> Option<u64> {
    let factor = match vertex.unit {
        "B" => 1,
        "kB" => 1000,
        "MB" => 1_000_000,
        "GB" => 1_000_000_000,
        "TB" => 1_000_000_000_000,
        "KiB" => 1 << 10,
        "MiB" => 1 << 20,
        "GiB" => 1 << 30,
        "TiB" => 1 << 40,
        _ => return None,
    };
    vertex.size.checked_mul(factor)
}
