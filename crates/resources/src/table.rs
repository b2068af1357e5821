//! The table for people: what each site has, and its links.

use crate::model::{Class, Graph, Limit, Link, Partition, Site, Source};
use crate::shown::{count, cut, latency, loss, memory, rate, speed, time};

/// Longest line.
const COLUMNS: usize = 100;

/// Longest name that is shown as a whole; the numbers beside two names need room, too.
const NAME: usize = 18;

/// Longest reason that is shown as a whole.
const REASON: usize = 76;

/// The sites and the links as two tables, in lines of at most 100 columns, each with its end. `now` is in
/// seconds since 1970: times are shown relative to it.
pub fn table(graph: &Graph, now: u64) -> String {
    let mut rows = vec![SITES.map(str::to_owned)];
    for site in &graph.sites {
        rows.extend(site_rows(site, now));
    }
    let mut text = laid_out(&rows, &[0, 1, 11]);
    for site in &graph.sites {
        if let Some(why) = &site.why_unreachable {
            let name = cut(&site.name, NAME);
            text += &format!("{name}: {}\n", cut(&one_line(why), REASON));
        }
    }
    let limits = graph.sites.iter();
    let limits = limits.flat_map(|site| site.limits.iter().map(|limit| limit_row(site, limit)));
    let limits: Vec<_> = [LIMITS.map(str::to_owned)].into_iter().chain(limits).collect();
    if limits.len() > 1 {
        text += "\n";
        text += &laid_out(&limits, &[0, 1, 2, 3]);
    }
    if !graph.links.is_empty() {
        let mut rows = vec![LINKS.map(str::to_owned)];
        rows.extend(graph.links.iter().map(|link| link_row(link, now)));
        text += "\n";
        text += &laid_out(&rows, &[0, 1, 5]);
    }
    text
}

/// The features come last, and get the room that is left.
const SITES: [&str; 12] = [
    "site",
    "partition",
    "nodes",
    "slots",
    "cores",
    "memory",
    "speed",
    "free",
    "down",
    "next free",
    "longest",
    "features",
];

const LIMITS: [&str; 8] = [
    "limits at",
    "account",
    "partition",
    "qos",
    "jobs",
    "nodes",
    "slots",
    "longest",
];

const LINKS: [&str; 6] = ["from", "to", "one way", "bandwidth", "loss", "from its"];

/// A row for each partition and each of its classes, and one for each class that is in no partition.
fn site_rows(site: &Site, now: u64) -> Vec<[String; 12]> {
    let mut rows = Vec::new();
    for partition in &site.partitions {
        let classes = partition.classes.iter().filter_map(|name| site.class(name));
        rows.extend(classes.map(|class| class_row(site, Some(partition), class, now)));
    }
    let is_in_one = |class: &Class| {
        site.partitions
            .iter()
            .any(|one| one.classes.contains(&class.name))
    };
    let others = site.classes.iter().filter(|class| !is_in_one(class));
    rows.extend(others.map(|class| class_row(site, None, class, now)));
    if rows.is_empty() {
        let mut row = [(); 12].map(|()| "-".to_owned());
        row[0] = cut(&site.name, NAME);
        rows.push(row);
    }
    rows
}

fn class_row(site: &Site, partition: Option<&Partition>, class: &Class, now: u64) -> [String; 12] {
    let unknown = || "-".to_owned();
    let free: Vec<bool> = class
        .nodes
        .iter()
        .filter_map(|node| class.is_free(node))
        .collect();
    let is_known = class.nodes.iter().any(|node| node.free_slots.is_some());
    let down = class.nodes.iter().filter(|node| node.is_down).count();
    let longest = partition.map(|partition| partition.max_seconds.map_or_else(|| "any".to_owned(), time));
    [
        cut(&site.name, NAME),
        partition.map_or_else(unknown, partition_name),
        class.nodes.len().to_string(),
        class.slots.to_string(),
        class.cores.map_or_else(unknown, |cores| cores.to_string()),
        class.memory_bytes.map_or_else(unknown, memory),
        class.speed_thousandths.map_or_else(unknown, speed),
        match is_known {
            true => free.iter().filter(|free| **free).count().to_string(),
            false => unknown(),
        },
        down.to_string(),
        next_free(class, now).unwrap_or_else(unknown),
        longest.unwrap_or_else(unknown),
        match class.features.is_empty() {
            true => unknown(),
            false => one_line(&class.features.join(",")),
        },
    ]
}

/// The name of a partition; the default one has a star, as in sinfo(1).
fn partition_name(partition: &Partition) -> String {
    let star = if partition.is_default { "*" } else { "" };
    let down = if partition.is_up { "" } else { " down" };
    format!(
        "{}{star}{down}",
        cut(&partition.name, NAME - down.len() - star.len())
    )
}

/// `2 in 4 min`: how many nodes become free next, all at the same time.
fn next_free(class: &Class, now: u64) -> Option<String> {
    let busy = class
        .nodes
        .iter()
        .filter(|node| class.is_free(node) == Some(false));
    let times: Vec<u64> = busy.filter_map(|node| node.free_at).collect();
    let first = *times.iter().min()?;
    let together = times.iter().filter(|at| **at == first).count();
    Some(format!("{together} in {}", time(first.saturating_sub(now))))
}

/// The row of a limit; the account of jobs that name none has a star.
fn limit_row(site: &Site, limit: &Limit) -> [String; 8] {
    let number = |most: Option<u32>| most.map_or_else(|| "any".to_owned(), |most| most.to_string());
    let star = if limit.is_default { "*" } else { "" };
    let name = |name: &str| cut(&one_line(name), NAME - 1);
    [
        cut(&site.name, NAME),
        format!("{}{star}", name(&limit.account)),
        limit.partition.as_deref().map_or_else(|| "any".to_owned(), name),
        name(&limit.qos),
        number(limit.max_jobs),
        number(limit.max_nodes),
        number(limit.max_slots),
        limit.max_seconds.map_or_else(|| "any".to_owned(), time),
    ]
}

fn link_row(link: &Link, now: u64) -> [String; 6] {
    let unknown = || "-".to_owned();
    let age = link
        .seen_at
        .map(|at| now.saturating_sub(at))
        .filter(|age| *age > 0);
    let age = age.map_or_else(String::new, |age| format!(", {} ago", time(age)));
    let source = match link.source {
        Some(Source::Lanes) => "lanes",
        Some(Source::Told) => "gateway",
        None => "-",
    };
    [
        cut(&link.from, NAME),
        cut(&link.to, NAME),
        link.latency_ns.map_or_else(unknown, latency),
        link.bandwidth_bits_per_second.map_or_else(unknown, rate),
        link.loss_ppb.map_or_else(unknown, loss),
        format!("{source}{age}"),
    ]
}

/// Formats rows as lines. Columns with names are aligned left, those with numbers right.
fn laid_out<const N: usize>(rows: &[[String; N]], names: &[usize]) -> String {
    let width = |column: usize| {
        rows.iter()
            .map(|row| row[column].chars().count())
            .max()
            .unwrap_or(0)
    };
    let widths: Vec<usize> = (0..N).map(width).collect();
    let line = |row: &[String; N]| {
        let cells = row.iter().zip(&widths).enumerate();
        let cells = cells.map(|(column, (cell, width))| match names.contains(&column) {
            true => format!("{cell:<width$}"),
            false => format!("{cell:>width$}"),
        });
        let line = cells.collect::<Vec<_>>().join("  ");
        format!("{}\n", cut(line.trim_end(), COLUMNS))
    };
    rows.iter().map(line).collect()
}

fn one_line(text: &str) -> String {
    text.replace(['\n', '\r', '\t'], " ")
}

/// `3 sites, 12 nodes, 48 slots`.
pub(crate) fn summary(sites: &[Site]) -> String {
    let nodes: usize = sites.iter().map(Site::node_count).sum();
    let slots: u64 = sites.iter().map(Site::slot_count).sum();
    let parts = [
        count(sites.len() as u64, "site"),
        count(nodes as u64, "node"),
        count(slots, "slot"),
    ];
    parts.join(", ")
}
