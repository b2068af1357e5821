//! Makes a scenario from what was typed: reads the units, fills in the defaults, and checks that names,
//! networks and links fit together. It adds every mistake that it finds; it never stops at the first.

use std::time::Duration;

use super::mistake::Mistakes;
use super::typed::{At, FIREWALL_KINDS, Keys, TypedFirewall, TypedLink, TypedScenario, TypedSite};
use super::{Batch, Fabric, Firewall, Link, Scenario, Site, Subnet};
use crate::networks::{LAB_NETWORKS, MAX_SITES};
use causeway_units as units;

/// Returns `None` when something that everything else depends on is missing; the reason is in `mistakes`.
pub(super) fn check(typed: &TypedScenario, mistakes: &mut Mistakes) -> Option<Scenario> {
    let name = required(&typed.name, Some(1), "name", &typed.present, mistakes).filter(|name| {
        let good = is_name(&name.value, |c| c.is_ascii_alphanumeric() || "-_.".contains(c));
        complain_unless(
            good,
            name.line,
            "name",
            "must be letters, digits, - _ . and at most 40 long",
            mistakes,
        )
    });
    let routed = typed.routed.as_ref().is_some_and(|routed| routed.value);
    let congestion_control = typed.congestion_control.as_ref().filter(|algorithm| {
        let good = is_name(&algorithm.value, |c| c.is_ascii_alphanumeric() || c == '_');
        let reason = "must be the kernel's name of an algorithm, such as \"cubic\"";
        complain_unless(good, algorithm.line, "congestion_control", reason, mistakes)
    });
    if typed.sites.is_empty() {
        mistakes.add(None, "site", "there must be at least one [[site]]");
    }
    if typed.sites.len() > MAX_SITES {
        mistakes.add(
            None,
            "site",
            format!("at most {MAX_SITES} sites have a WAN address to be given"),
        );
    }
    let sites: Vec<Option<Site>> = typed.sites.iter().map(|typed| site(typed, mistakes)).collect();
    duplicate_sites(typed, mistakes);
    if routed {
        overlapping_sites(typed, mistakes);
    }
    let links: Vec<Option<Link>> = typed.links.iter().map(|typed| link(typed, mistakes)).collect();
    pairs(typed, mistakes);
    Some(Scenario {
        name: name?.value,
        routed,
        congestion_control: congestion_control.map(|algorithm| algorithm.value.clone()),
        slow_start_after_idle: typed.slow_start_after_idle.as_ref().map(|wanted| wanted.value),
        grid: typed.grid.clone(),
        sites: sites.into_iter().collect::<Option<_>>()?,
        links: links.into_iter().collect::<Option<_>>()?,
    })
}

fn site(typed: &TypedSite, mistakes: &mut Mistakes) -> Option<Site> {
    let line = Some(typed.line);
    let name = required(&typed.name, line, "site.name", &typed.present, mistakes).filter(|name| {
        let good = is_name(&name.value, |c| {
            c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-'
        });
        let reason = "must be lower-case letters, digits and - (it becomes a host name), at most 40 long";
        complain_unless(good, name.line, "site.name", reason, mistakes)
    });
    let nodes = required(&typed.nodes, line, "site.nodes", &typed.present, mistakes).filter(|nodes| {
        complain_unless(
            nodes.value > 0,
            nodes.line,
            "site.nodes",
            "must be at least 1",
            mistakes,
        )
    });
    let slots = typed.slots.clone().unwrap_or(At {
        value: DEFAULT_SLOTS,
        line: typed.line,
    });
    complain_unless(
        slots.value > 0,
        slots.line,
        "site.slots",
        "must be at least 1",
        mistakes,
    );
    let subnet_text = required(&typed.subnet, line, "site.subnet", &typed.present, mistakes);
    let subnet = subnet_text
        .as_ref()
        .and_then(|text| read(text, "site.subnet", str::parse::<Subnet>, mistakes));
    if let (Some(subnet), Some(text)) = (subnet, &subnet_text) {
        if let Some(reserved) = LAB_NETWORKS.iter().find(|reserved| reserved.overlaps(&subnet)) {
            let reason = format!("overlaps {reserved}, which the lab needs for itself");
            mistakes.add(Some(text.line), "site.subnet", reason);
        }
        if let Some(reason) = nodes.as_ref().and_then(|nodes| too_small(&subnet, nodes.value)) {
            mistakes.add(Some(text.line), "site.subnet", reason);
        }
    }
    let firewall = match &typed.firewall {
        Some(typed) => firewall(typed, mistakes),
        None => Some(Firewall::Open),
    };
    let lan_rtt = match &typed.lan_rtt {
        Some(text) => read(text, "site.lan_rtt", units::delay, mistakes),
        None => Some(Duration::ZERO),
    };
    let rate = typed.lan_rate.as_ref();
    let rate = rate.map(|text| read(text, "site.lan_rate", units::rate, mistakes));
    let fabric = match &typed.fabric {
        Some(text) => read(text, "site.fabric", fabric, mistakes),
        None => Some(Fabric::default()),
    };
    let batch = match &typed.batch {
        Some(text) => read(text, "site.batch", batch, mistakes),
        None => Some(Batch::default()),
    };
    let root = typed.root.as_ref();
    let root = root.map(|text| read(text, "site.root", root_of, mistakes));
    Some(Site {
        name: name?.value,
        nodes: nodes?.value,
        slots: slots.value,
        subnet: subnet?,
        firewall: firewall?,
        lan_rtt: lan_rtt?,
        lan_rate_bits_per_second: match rate {
            Some(rate) => Some(rate?),
            None => None,
        },
        fabric: fabric?,
        batch: batch?,
        root: match root {
            Some(root) => Some(root?),
            None => None,
        },
    })
}

/// Whether the directory exists depends on the machine, and is checked when the lab starts.
fn root_of(text: &str) -> Result<String, String> {
    let good = text.contains('/') || is_name(text, |c| c.is_ascii_alphanumeric() || "-_.".contains(c));
    good.then(|| text.to_owned()).ok_or_else(|| {
        format!("\"{text}\" must be a name such as \"bullseye\", or the path of a directory with a slash")
    })
}

fn fabric(text: &str) -> Result<Fabric, String> {
    match text {
        "sockets" => Ok(Fabric::Sockets),
        "shared-memory" => Ok(Fabric::SharedMemory),
        other => Err(format!(
            "\"{other}\" is not a kind of fabric; must be \"sockets\" or \"shared-memory\""
        )),
    }
}

fn batch(text: &str) -> Result<Batch, String> {
    match text {
        "slurm" => Ok(Batch::Slurm),
        "pbs" => Ok(Batch::Pbs),
        "oar" => Ok(Batch::Oar),
        other => Err(format!(
            "\"{other}\" is not a batch system of the lab; must be \"slurm\", \"pbs\" or \"oar\""
        )),
    }
}

fn firewall(typed: &At<TypedFirewall>, mistakes: &mut Mistakes) -> Option<Firewall> {
    match &typed.value {
        TypedFirewall::Named(name) => match name.as_str() {
            "open" => Some(Firewall::Open),
            "outbound-only" => Some(Firewall::OutboundOnly),
            "nat" => Some(Firewall::Nat),
            "nat-symmetric" => Some(Firewall::NatSymmetric),
            other => {
                let reason = format!("\"{other}\" is not a kind of firewall; must be {FIREWALL_KINDS}");
                mistakes.add(Some(typed.line), "site.firewall", reason);
                None
            }
        },
        TypedFirewall::Ports(text) => {
            let ports = At {
                value: text.clone(),
                line: typed.line,
            };
            read(&ports, "site.firewall.ports", port_ranges, mistakes).map(Firewall::Ports)
        }
    }
}

fn port_ranges(text: &str) -> Result<Vec<(u16, u16)>, String> {
    let mut ranges = Vec::new();
    for range in text.split(',').map(str::trim) {
        let (low, high) = range.split_once('-').unwrap_or((range, range));
        let port = |text: &str| text.trim().parse::<u16>().ok().filter(|port| *port > 0);
        match (port(low), port(high)) {
            (Some(low), Some(high)) if low <= high => ranges.push((low, high)),
            _ => {
                return Err(format!(
                    "\"{range}\" is not a port or a range of ports such as \"7000-7100\""
                ));
            }
        }
    }
    Ok(ranges)
}

fn link(typed: &TypedLink, mistakes: &mut Mistakes) -> Option<Link> {
    let line = Some(typed.line);
    let between = required(&typed.between, line, "link.between", &typed.present, mistakes);
    let rtt = required(&typed.rtt, line, "link.rtt", &typed.present, mistakes)
        .and_then(|text| read(&text, "link.rtt", units::delay, mistakes));
    let rate = required(&typed.rate, line, "link.rate", &typed.present, mistakes)
        .and_then(|text| read(&text, "link.rate", units::rate, mistakes));
    let queue = match &typed.queue {
        Some(text) => read(text, "link.queue", units::size, mistakes),
        None => Some(DEFAULT_QUEUE_BYTES),
    };
    let loss = match &typed.loss {
        Some(text) => read(text, "link.loss", units::loss, mistakes),
        None => Some(0.0),
    };
    let link = Link {
        between: between?.value,
        rtt: rtt?,
        rate_bits_per_second: rate?,
        queue_bytes: queue?,
        loss: loss?,
        seed: typed.seed.as_ref().map_or(DEFAULT_SEED, |seed| seed.value),
    };
    match link.spec().check() {
        Ok(()) => Some(link),
        Err(error) => {
            mistakes.add(line, "link", error.to_string());
            None
        }
    }
}

fn duplicate_sites(typed: &TypedScenario, mistakes: &mut Mistakes) {
    let names: Vec<&At<String>> = typed.sites.iter().filter_map(|site| site.name.as_ref()).collect();
    for (index, name) in names.iter().enumerate() {
        if let Some(first) = names[..index].iter().find(|first| first.value == name.value) {
            let reason = format!(
                "\"{}\" is already the name of the site in line {}",
                name.value, first.line
            );
            mistakes.add(Some(name.line), "site.name", reason);
        }
    }
}

fn overlapping_sites(typed: &TypedScenario, mistakes: &mut Mistakes) {
    let mut seen: Vec<(Subnet, &str)> = Vec::new();
    for site in &typed.sites {
        let Some(text) = &site.subnet else { continue };
        let Ok(subnet) = text.value.parse::<Subnet>() else {
            continue;
        };
        for (first, name) in seen.iter().filter(|(first, _)| first.overlaps(&subnet)) {
            mistakes.add(
                Some(text.line),
                "site.subnet",
                overlap_reason(&subnet, first, name),
            );
        }
        seen.push((subnet, site.name.as_ref().map_or("", |name| &name.value)));
    }
}

/// Says why two overlapping sites cannot be routed.
pub(super) fn overlap_reason(subnet: &Subnet, first: &Subnet, name: &str) -> String {
    format!("{subnet} overlaps {first} of site \"{name}\", which cannot be routed; set routed = false")
}

/// Checks that every pair has exactly one link, and that every link is between two known sites.
fn pairs(typed: &TypedScenario, mistakes: &mut Mistakes) {
    let mut names: Vec<&str> = typed
        .sites
        .iter()
        .filter_map(|site| site.name.as_ref())
        .map(|name| name.value.as_str())
        .collect();
    let mut seen: Vec<(&str, &str, usize)> = Vec::new();
    for between in typed.links.iter().filter_map(|link| link.between.as_ref()) {
        let [a, b] = &between.value;
        for name in [a, b].into_iter().filter(|name| !names.contains(&name.as_str())) {
            mistakes.add(
                Some(between.line),
                "link.between",
                format!("there is no site \"{name}\""),
            );
        }
        if a == b {
            mistakes.add(
                Some(between.line),
                "link.between",
                format!("links \"{a}\" to itself"),
            );
        }
        let (a, b) = if a < b { (a, b) } else { (b, a) };
        match seen.iter().find(|(x, y, _)| x == a && y == b) {
            Some((.., line)) => {
                let reason = format!("\"{a}\" and \"{b}\" are already linked in line {line}");
                mistakes.add(Some(between.line), "link.between", reason);
            }
            None => seen.push((a, b, between.line)),
        }
    }
    names.sort_unstable();
    names.dedup();
    for (index, a) in names.iter().enumerate() {
        for b in names[index + 1..].iter() {
            if !seen
                .iter()
                .any(|(x, y, _)| (x == a && y == b) || (x == b && y == a))
            {
                mistakes.add(None, "link", format!("no [[link]] between \"{a}\" and \"{b}\""));
            }
        }
    }
}

/// Says why `nodes` compute nodes, a head node and a router do not fit, if they do not.
pub(super) fn too_small(subnet: &Subnet, nodes: u32) -> Option<String> {
    let needed = nodes.saturating_add(HEAD_AND_ROUTER);
    (needed > subnet.usable()).then(|| {
        let usable = subnet.usable();
        format!("{subnet} has {usable} usable addresses; {nodes} nodes, the head node and the router need {needed}")
    })
}

fn required<T: Clone>(
    value: &Option<At<T>>,
    line: Option<usize>,
    key: &str,
    present: &Keys,
    mistakes: &mut Mistakes,
) -> Option<At<T>> {
    let own_name = key.rsplit('.').next().unwrap_or(key);
    if !present.iter().any(|present| present == own_name) {
        mistakes.add(line, key, "is missing");
    }
    value.clone()
}

fn read<T, E: ToString>(
    text: &At<String>,
    key: &str,
    parse: impl Fn(&str) -> Result<T, E>,
    mistakes: &mut Mistakes,
) -> Option<T> {
    parse(&text.value)
        .map_err(|reason| mistakes.add(Some(text.line), key, reason.to_string()))
        .ok()
}

fn complain_unless(good: bool, line: usize, key: &str, reason: &str, mistakes: &mut Mistakes) -> bool {
    if !good {
        mistakes.add(Some(line), key, reason);
    }
    good
}

fn is_name(text: &str, allowed: impl Fn(char) -> bool) -> bool {
    // 40 leaves room for "-head" and a node number in the 63 bytes of a host name; a leading dot or dash
    // would make a hidden directory or an option of it.
    (1..=40).contains(&text.len()) && text.chars().all(allowed) && !text.starts_with(['.', '-'])
}

/// Matches the core count of nodes at the time of the papers, and keeps four ranks on one node.
const DEFAULT_SLOTS: u32 = 4;
/// About 1.4 times the bandwidth-delay product of 1 Gbit/s and 11.6 ms: a router of that rate has about as
/// much.
const DEFAULT_QUEUE_BYTES: u64 = 2_000_000;
const DEFAULT_SEED: u64 = 1;
const HEAD_AND_ROUTER: u32 = 2;
