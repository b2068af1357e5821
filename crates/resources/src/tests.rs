//! The output formats of a graph, and JGF of Flux.

use crate::*;
use fastrand::Rng;
use std::collections::{BTreeSet, HashSet};

fn node(name: &str, free: Option<u32>, free_at: Option<u64>) -> Node {
    Node {
        name: name.into(),
        free_slots: free,
        free_at,
        ..Node::default()
    }
}

fn link(from: &str, to: &str, latency_ns: u64) -> Link {
    Link {
        from: from.into(),
        to: to.into(),
        latency_ns: Some(latency_ns),
        bandwidth_bits_per_second: Some(940_000_000),
        loss_ppb: Some(1_000_000),
        source: Some(Source::Lanes),
        seen_at: Some(1000),
    }
}

/// Two partitions that share a class, a site without partitions, and one that cannot be reached.
fn example() -> Graph {
    let class = |name: &str, slots, nodes| Class {
        name: name.into(),
        slots,
        memory_bytes: Some(32_000_000_000),
        nodes,
        ..Class::default()
    };
    let partition = |name: &str, is_default, classes: &[&str]| Partition {
        name: name.into(),
        is_default,
        is_up: true,
        max_seconds: Some(7200),
        max_nodes: None,
        classes: classes.iter().map(|name| (*name).to_owned()).collect(),
    };
    let small = Class {
        features: vec!["ib".into(), "fast".into()],
        ..class(
            "small",
            4,
            vec![node("r-1", Some(4), None), node("r-2", Some(1), Some(1300))],
        )
    };
    let limit = Limit {
        account: "p7".into(),
        qos: "fast".into(),
        is_default: true,
        max_nodes: Some(2),
        max_seconds: Some(1800),
        ..Limit::default()
    };
    let rennes = Site {
        name: "rennes".into(),
        limits: vec![limit],
        partitions: vec![
            partition("fast", true, &["small"]),
            partition("long", false, &["small", "large"]),
        ],
        classes: vec![small, class("large", 16, vec![node("r-3", Some(0), Some(8200))])],
        ..Site::default()
    };
    let nancy = Site {
        name: "nancy".into(),
        classes: vec![Class {
            cores: Some(2),
            memory_bytes: None,
            speed_thousandths: Some(1760),
            ..class("4-slots", 4, vec![node("n-1", None, None)])
        }],
        ..Site::default()
    };
    let lyon = Site {
        name: "lyon".into(),
        why_unreachable: Some("its gateway does not answer".into()),
        ..Site::default()
    };
    Graph {
        name: "coast".into(),
        sites: vec![rennes, nancy, lyon],
        links: vec![
            link("rennes", "nancy", 5_800_000),
            link("rennes", "lyon", 9_000_000),
            link("nancy", "lyon", 2_000_000),
        ],
    }
}

fn read(text: &str) -> Read {
    read_jgf(text).unwrap_or_else(|mistakes| panic!("{mistakes}\n{text}"))
}

fn mistakes(text: &str) -> Vec<String> {
    read_jgf(text).unwrap_err().lines
}

#[test]
fn a_graph_is_the_same_after_jgf() {
    let graph = example();
    let read = read(&to_jgf(&graph));
    assert_eq!(read.graph, graph);
    assert_eq!(read.warnings, [""; 0]);
}

fn any<T>(random: &mut Rng, some: impl FnOnce(&mut Rng) -> T) -> Option<T> {
    random.bool().then(|| some(random))
}

fn random_class(random: &mut Rng, site: usize, class: usize) -> Class {
    let slots = random.u32(0..9);
    let node = |random: &mut Rng, number: usize| Node {
        name: format!("n{site}-{class}-{number}"),
        address: any(random, |random| std::net::Ipv6Addr::from(random.u128(..)).into()),
        is_down: random.bool(),
        free_slots: any(random, |random| random.u32(0..=slots)),
        free_at: any(random, |random| random.u64(..)),
    };
    Class {
        name: format!("class{class}"),
        slots,
        memory_bytes: any(random, |random| random.u64(1..)),
        cores: any(random, |random| random.u32(..)),
        speed_thousandths: any(random, |random| random.u32(..)),
        features: (0..random.usize(0..3))
            .map(|number| format!("f={number}"))
            .collect(),
        nodes: (0..random.usize(1..5))
            .map(|number| node(random, number))
            .collect(),
    }
}

fn random_site(random: &mut Rng, number: usize) -> Site {
    let classes: Vec<Class> = (0..random.usize(0..4))
        .map(|class| random_class(random, number, class))
        .collect();
    let partition = |random: &mut Rng, number: usize| Partition {
        name: format!("part{number}"),
        is_default: random.bool(),
        is_up: random.bool(),
        max_seconds: any(random, |random| random.u64(..)),
        max_nodes: any(random, |random| random.u32(..)),
        classes: { classes.iter() }
            .filter(|_| random.bool())
            .map(|class| class.name.clone())
            .collect(),
    };
    let limit = |random: &mut Rng| Limit {
        account: format!("\"\u{1b}{}", random.char(..)),
        partition: any(random, |random| random.char(..).to_string()),
        qos: "normal".repeat(random.usize(0..9)),
        is_default: random.bool(),
        max_jobs: any(random, |random| random.u32(..)),
        max_nodes: any(random, |random| random.u32(..)),
        max_slots: any(random, |random| random.u32(..)),
        max_seconds: any(random, |random| random.u64(..)),
    };
    Site {
        name: format!("site{number}"),
        limits: (0..random.usize(0..3)).map(|_| limit(random)).collect(),
        why_unreachable: any(random, |random| format!("\"why\"\n\\{}", random.char(..))),
        partitions: (0..random.usize(0..3))
            .map(|number| partition(random, number))
            .collect(),
        classes,
    }
}

fn random_graph(random: &mut Rng) -> Graph {
    let sites: Vec<Site> = (0..random.usize(1..6))
        .map(|number| random_site(random, number))
        .collect();
    let mut links = Vec::new();
    for from in &sites {
        for to in &sites {
            if from.name == to.name || random.bool() {
                continue;
            }
            links.push(Link {
                from: from.name.clone(),
                to: to.name.clone(),
                latency_ns: any(random, |random| random.u64(..)),
                bandwidth_bits_per_second: any(random, |random| random.u64(..)),
                loss_ppb: any(random, |random| random.u32(0..=1_000_000_000)),
                source: any(random, |random| {
                    if random.bool() {
                        Source::Told
                    } else {
                        Source::Lanes
                    }
                }),
                seen_at: any(random, |random| random.u64(..)),
            });
        }
    }
    Graph {
        name: format!("grid \"{}\"", random.char(..)),
        sites,
        links,
    }
}

#[test]
fn any_graph_is_the_same_after_jgf_and_people_get_lines_of_100_columns() {
    let seed = fastrand::u64(..);
    println!("seed {seed}");
    let mut random = Rng::with_seed(seed);
    for _ in 0..300 {
        let graph = random_graph(&mut random);
        let text = to_jgf(&graph);
        assert_eq!(read(&text).graph, graph, "{text}");
        let shown = table(&graph, random.u64(..)) + &picture(&graph);
        for line in shown.lines() {
            assert!(line.chars().count() <= 100, "{line}");
        }
        assert!(to_dot(&graph).ends_with("}\n"));
    }
}

#[test]
fn a_damaged_jgf_is_refused_or_read_and_nothing_else() {
    let seed = fastrand::u64(..);
    println!("seed {seed}");
    let mut random = Rng::with_seed(seed);
    let text = to_jgf(&example());
    for _ in 0..2000 {
        let mut bytes = text.as_bytes().to_vec();
        for _ in 0..random.usize(1..4) {
            let at = random.usize(0..bytes.len());
            match random.u8(0..3) {
                0 => bytes[at] = random.u8(..),
                1 => drop(bytes.drain(at..(at + random.usize(1..20)).min(bytes.len()))),
                _ => bytes.insert(at, b"\"0:{}[],-1"[random.usize(0..10)]),
            }
        }
        if let Ok(read) = read_jgf(&String::from_utf8_lossy(&bytes)) {
            assert_eq!(read_jgf(&to_jgf(&read.graph)).unwrap().graph, read.graph);
            picture(&read.graph);
            table(&read.graph, 0);
        }
    }
}

/// A graph of the kind that flux-sched writes: edges without metadata, a rack, a vertex for each core, and R
/// around it.
#[test]
fn a_cluster_of_flux_is_a_site_and_its_equal_nodes_are_a_class() {
    let text = r#"{"version":1, "scheduling": {"graph": {
        "nodes": [
            {"id": "0", "metadata": {"type": "cluster", "basename": "tiny", "name": "tiny0", "size": 1}},
            {"id": "1", "metadata": {"type": "rack", "id": 0}},
            {"id": "2", "metadata": {"type": "node", "name": "n0", "properties": {"fast": ""}}},
            {"id": "3", "metadata": {"type": "node", "name": "n1", "properties": {"fast": ""}, "status": 1}},
            {"id": "4", "metadata": {"type": "core", "id": 0}},
            {"id": "5", "metadata": {"type": "core", "id": 1}},
            {"id": "6", "metadata": {"type": "core", "size": 2}},
            {"id": "7", "metadata": {"type": "memory", "size": 4, "unit": "GB"}},
            {"id": "8", "metadata": {"type": "memory", "size": 4, "unit": "GB"}},
            {"id": "9", "metadata": {"type": "memory"}}
        ],
        "edges": [
            {"source": "0", "target": "1"}, {"source": "1", "target": "2"}, {"source": "1", "target": "3"},
            {"source": "2", "target": "4"}, {"source": "2", "target": "5"}, {"source": "2", "target": "9"},
            {"source": "3", "target": "6", "metadata": {"name": {"containment": "contains"}}},
            {"source": "6", "target": "3", "metadata": {"name": {"containment": "in"}}},
            {"source": "2", "target": "7"}, {"source": "3", "target": "8"},
            {"source": "0", "target": "3", "metadata": {"subsystem": "power", "relationship": "feeds"}}
        ]}}}"#;
    let read = read(text);
    let site = &read.graph.sites[0];
    assert_eq!(
        (site.name.as_str(), site.classes.len(), site.slot_count()),
        ("tiny0", 1, 4)
    );
    let class = &site.classes[0];
    assert_eq!((class.name.as_str(), class.slots), ("2-slots-4GB", 2));
    assert_eq!(class.features, ["fast"]);
    assert_eq!(
        class.nodes.iter().map(|node| node.is_down).collect::<Vec<_>>(),
        [false, true]
    );
    assert_eq!(
        read.warnings,
        [
            "vertices of type rack are left out: 1",
            "memory without a unit is left out: 1",
            "edges of other subsystems are left out: 2"
        ]
    );
    assert_eq!(super::read_jgf(&to_jgf(&read.graph)).unwrap().graph, read.graph);
}

#[test]
fn mistakes_say_where_they_are_and_are_told_at_once() {
    let whole = to_jgf(&example());
    for (from, to, reason) in [
        (
            "\"type\":\"site\"",
            "\"type\":7",
            "graph.nodes[1].metadata.type: is not a text",
        ),
        (
            "\"source\":\"0\"",
            "\"source\":\"x\"",
            "graph.edges[17].source: no vertex has this id",
        ),
        (
            "\"name\":\"rennes\"",
            "\"name\":\"a b\"",
            "site a b (id \"1\"): is no name of a site",
        ),
        (
            "\"name\":\"nancy\"",
            "\"name\":\"rennes\"",
            "another site has this name",
        ),
        (
            "\"latency_ns\":\"5800000\"",
            "\"latency_ns\":\"5ms\"",
            "properties.latency_ns: \"5ms\" is no value",
        ),
        (
            "\"free_slots\":\"1\"",
            "\"free_slots\":\"9\"",
            "more than the node's cores",
        ),
        ("\"unit\":\"B\"", "\"unit\":\"pages\"", "is no amount of memory"),
        ("\"size\":16", "\"size\":99999", "more cores than are allowed"),
    ] {
        assert!(whole.contains(from), "{from}");
        let told = mistakes(&whole.replace(from, to)).join("\n");
        assert!(told.contains(reason), "{told}");
    }
    let both = whole
        .replace("\"r-1\"", "\"-r\"")
        .replace("\"unit\":\"bit/s\"", "\"unit\":1");
    assert_eq!(mistakes(&both).len(), 3);
    assert!(mistakes("{")[0].contains("line 1"));
    assert_eq!(mistakes("[]"), ["has no object \"graph\""]);
    assert_eq!(
        mistakes(r#"{"graph":{"nodes":{}}}"#),
        ["graph.nodes: is not a list", "graph.edges: is missing"]
    );
    assert_eq!(
        mistakes(r#"{"graph":{"nodes":[],"edges":[]}}"#),
        ["has no vertex of type site or cluster"]
    );
}

#[test]
fn what_is_too_long_too_deep_or_in_itself_is_refused() {
    assert!(mistakes(&" ".repeat(MAX_BYTES + 1))[0].contains("longer than"));
    assert!(mistakes(&"[".repeat(1000))[0].contains("recursion limit"));
    let site = |id: usize| format!(r#"{{"id":"{id}","metadata":{{"type":"rack"}}}}"#);
    let edge = |from: usize, to: usize| format!(r#"{{"source":"{from}","target":"{to}"}}"#);
    let graph = |nodes: usize, edges: &[String]| {
        let nodes: Vec<String> = (0..nodes).map(site).collect();
        format!(
            r#"{{"graph":{{"nodes":[{}],"edges":[{}]}}}}"#,
            nodes.join(","),
            edges.join(",")
        )
    };
    let deep: Vec<String> = (0..MAX_DEPTH).map(|at| edge(at, at + 1)).collect();
    assert!(mistakes(&graph(MAX_DEPTH + 1, &deep))[0].contains("in too many others, or in itself"));
    assert!(mistakes(&graph(1, &[edge(0, 0)]))[0].contains("in itself"));
    let two = graph(3, &[edge(0, 2), edge(1, 2)]);
    assert!(mistakes(&two)[0].contains("containment is a tree"));
}

#[test]
fn the_table_says_what_is_free_now_and_what_next() {
    assert_eq!(
        table(&example(), 1060),
        "\
site    partition  nodes  slots  cores  memory  speed  free  down     next free  longest  features
rennes  fast*          2      4      -   32 GB      -     1     0    1 in 4 min      2 h  ib,fast
rennes  long           2      4      -   32 GB      -     1     0    1 in 4 min      2 h  ib,fast
rennes  long           1     16      -   32 GB      -     0     0  1 in 119 min      2 h  -
nancy   -              1      4      2       -    1.8     -     0             -        -  -
lyon    -              -      -      -       -      -     -     -             -        -  -
lyon: its gateway does not answer

limits at  account  partition  qos   jobs  nodes  slots  longest
rennes     p7*      any        fast   any      2    any   30 min

from    to     one way   bandwidth   loss  from its
rennes  nancy   5.8 ms  940 Mbit/s  0.1 %  lanes, 60 s ago
rennes  lyon      9 ms  940 Mbit/s  0.1 %  lanes, 60 s ago
nancy   lyon      2 ms  940 Mbit/s  0.1 %  lanes, 60 s ago
"
    );
}

#[test]
fn the_picture_hangs_each_site_at_its_nearest() {
    assert_eq!(
        picture(&example()),
        "\
grid coast: 3 sites, 4 nodes, 28 slots
rennes (3 nodes, 24 slots)
  `-- 5.8 ms, 940 Mbit/s, loss 0.1 % -- nancy (1 node, 4 slots)
     `-- 2 ms, 940 Mbit/s, loss 0.1 % -- lyon (not reachable)
"
    );
}

#[test]
fn dot_has_a_node_for_each_site_class_and_partition_and_escapes_what_they_say() {
    let mut graph = example();
    graph.name = "a \"grid\"\\".into();
    let dot = to_dot(&graph);
    assert!(dot.starts_with("digraph \"a \\\"grid\\\"\\\\\" {\n"), "{dot}");
    for line in [
        "\"rennes\" [label=\"rennes\\n3 nodes, 24 slots\"];",
        "\"rennes/partition/long\" -> \"rennes/class/large\" [arrowhead=none];",
        "\"nancy\" -> \"nancy/class/4-slots\" [arrowhead=none];",
        "\"rennes\" -> \"nancy\" [label=\"5.8 ms, 940 Mbit/s, loss 0.1 %\"];",
    ] {
        assert!(dot.contains(line), "{line}\n{dot}");
    }
}

#[test]
fn equal_nodes_are_one_class_and_names_are_new() {
    let described = |name: &str, slots, partition: &str| Described {
        node: node(name, None, None),
        slots,
        partitions: BTreeSet::from([partition.to_owned()]),
        ..Described::default()
    };
    let nodes = vec![
        described("a", 4, "x"),
        described("b", 8, "x"),
        described("c", 4, "x"),
        described("d", 4, "y"),
    ];
    let classes = classes_of(nodes, &HashSet::from(["8-slots".to_owned()]));
    let shown = classes.iter().map(|(class, partitions)| {
        let names: Vec<&str> = class.nodes.iter().map(|node| node.name.as_str()).collect();
        format!("{} {} {partitions:?}", class.name, names.join(","))
    });
    assert_eq!(
        shown.collect::<Vec<_>>(),
        [
            "4-slots a,c {\"x\"}",
            "8-slots-2 b {\"x\"}",
            "4-slots-2 d {\"y\"}"
        ]
    );
}
