//! Writes Graphviz's DOT: `causeway resources --dot | dot -Tsvg`. A site is a box with its classes and
//! partitions, and links are arrows between sites.

use crate::model::{Class, Graph, Link, Partition, Site};
use crate::shown::{count, latency, loss, memory, rate, time};
use std::fmt::Write as _;

/// The graph as DOT, with a newline at the end. Nodes are counted, not drawn.
pub fn to_dot(graph: &Graph) -> String {
    let mut text = format!("digraph {} {{\n", quoted(&graph.name));
    text += "  node [shape=box, fontname=\"sans-serif\"];\n  edge [fontname=\"sans-serif\"];\n";
    for (number, site) in graph.sites.iter().enumerate() {
        text += &site_lines(number, site);
    }
    for link in &graph.links {
        let label = quoted(&link_label(link));
        let (from, to) = (quoted(&link.from), quoted(&link.to));
        // Writing to a text does not fail.
        let _ = writeln!(text, "  {from} -> {to} [label={label}];");
    }
    text + "}\n"
}

/// Says in one line what is known about a link.
pub(crate) fn link_label(link: &Link) -> String {
    let known = [
        link.latency_ns.map(latency),
        link.bandwidth_bits_per_second.map(rate),
        link.loss_ppb.map(|ppb| format!("loss {}", loss(ppb))),
    ];
    known.into_iter().flatten().collect::<Vec<_>>().join(", ")
}

fn site_lines(number: usize, site: &Site) -> String {
    let name = quoted(&site.name);
    let mut text = format!("  subgraph cluster_{number} {{\n    label=\"\";\n");
    let nodes = count(site.node_count() as u64, "node");
    let label = quoted(&format!(
        "{}\n{nodes}, {}",
        site.name,
        count(site.slot_count(), "slot")
    ));
    let style = if site.why_unreachable.is_some() {
        ", style=dashed"
    } else {
        ""
    };
    let _ = writeln!(text, "    {name} [label={label}{style}];");
    let part = |kind: &str, part: &str| quoted(&format!("{}/{kind}/{part}", site.name));
    for class in &site.classes {
        let class_name = part("class", &class.name);
        let label = quoted(&class_label(class));
        let _ = writeln!(text, "    {class_name} [label={label}];");
        let has_partition = site
            .partitions
            .iter()
            .any(|one| one.classes.contains(&class.name));
        if !has_partition {
            let _ = writeln!(text, "    {name} -> {class_name} [arrowhead=none];");
        }
    }
    for partition in &site.partitions {
        let partition_name = part("partition", &partition.name);
        let label = quoted(&partition_label(partition));
        let _ = writeln!(text, "    {partition_name} [label={label}, shape=folder];");
        let _ = writeln!(text, "    {name} -> {partition_name} [arrowhead=none];");
        for class in &partition.classes {
            let class_name = part("class", class);
            let _ = writeln!(text, "    {partition_name} -> {class_name} [arrowhead=none];");
        }
    }
    text + "  }\n"
}

fn class_label(class: &Class) -> String {
    let has = class
        .memory_bytes
        .map_or_else(String::new, |bytes| format!(", {}", memory(bytes)));
    let nodes = count(class.nodes.len() as u64, "node");
    format!("{nodes} of {}{has}", count(class.slots.into(), "slot"))
}

fn partition_label(partition: &Partition) -> String {
    let most = partition
        .max_seconds
        .map_or_else(String::new, |most| format!("\nup to {}", time(most)));
    format!("{}{most}", partition.name)
}

/// A text in quotes for DOT. Graphviz reads a backslash in a label as an escape.
fn quoted(text: &str) -> String {
    let escaped = text.replace('\\', "\\\\").replace('"', "\\\"");
    let lines: Vec<String> = { escaped.lines() }
        .map(|line| line.replace(|letter: char| letter.is_control(), " "))
        .collect();
    format!("\"{}\"", lines.join("\\n"))
}
