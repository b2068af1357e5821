//! The addresses of `[site]`: its nodes, its virtual ranges, and the networks around it.

use super::reader::{Reader, Table};
use crate::sys::addresses::networks_of_this_host;
use causeway_broker::{holds, may_be_virtual};
use causeway_control::{MAX_SUBNETS, NodeInfo};
use causeway_wire::{Cidr, TextError, grid};
use std::collections::HashSet;
use std::net::IpAddr;

/// The networks of this host that are not the site's own, the widest first, and no more than a site may name.
pub(super) fn networks_around(subnets: &[Cidr]) -> Vec<Cidr> {
    let is_own = |network: &Cidr| subnets.iter().any(|subnet| holds(subnet, network));
    let mut networks = networks_of_this_host();
    networks.retain(|network| !is_own(network));
    networks.sort_by_key(Cidr::prefix);
    networks.truncate(MAX_SUBNETS);
    networks
}

/// A virtual range for each of the subnets, of the same size, and disjoint from all of them.
pub(super) fn read_virtual<'a>(reader: &mut Reader<'a>, site: &Table<'a>, subnets: &[Cidr]) -> Vec<Cidr> {
    let parse = |text: &str| text.parse::<Cidr>().map_err(TextError::of);
    let ranges = reader.list(site, "virtual_subnets", parse).unwrap_or_default();
    if ranges.is_empty() || subnets.is_empty() {
        return ranges;
    }
    let mut pairs = subnets.iter().zip(&ranges);
    if ranges.len() != subnets.len() || !pairs.all(|(subnet, range)| subnet.is_of_size(range)) {
        let why = "needs one range for each subnet, in the same order and of the same size";
        reader.mistake_at(site, "virtual_subnets", why);
    }
    let mut earlier = ranges.iter().enumerate();
    if let Some((_, range)) = earlier.find(|(at, one)| ranges[..*at].iter().any(|other| one.overlaps(other)))
    {
        let why = format!("{range} overlaps with an earlier range: an address would belong to two nodes");
        reader.mistake_at(site, "virtual_subnets", &why);
    }
    if let Some(range) = ranges.iter().find(|range| !may_be_virtual(range)) {
        let why = format!(
            "{range} may belong to somebody: virtual ranges are private (RFC 1918), shared (100.64.0.0/10) or unique local (fc00::/7)"
        );
        reader.mistake_at(site, "virtual_subnets", &why);
    }
    let mut clashes = ranges
        .iter()
        .filter(|range| subnets.iter().any(|subnet| range.overlaps(subnet)));
    if let Some(range) = clashes.next() {
        let why = format!("{range} overlaps with the subnets: a virtual address must not be a real one here");
        reader.mistake_at(site, "virtual_subnets", &why);
    }
    ranges
}

/// Most nodes: more would not fit into what gateways tell each other about their sites; see
/// [`causeway_tunnel::messages::MAX_MESSAGE`].
const MAX_NODES: usize = 10_000;

pub(super) fn read_nodes<'a>(reader: &mut Reader<'a>, site: &Table<'a>, subnets: &[Cidr]) -> Vec<NodeInfo> {
    let mut nodes: Vec<NodeInfo> = Vec::new();
    let (mut names, mut addresses) = (HashSet::new(), HashSet::new());
    for table in reader.tables(site, "nodes") {
        if nodes.len() == MAX_NODES {
            reader.mistake_at(&table, "name", &format!("a site has at most {MAX_NODES} nodes"));
            break;
        }
        let name = reader.required_string(&table, "name", |text| match text {
            "" => Err("is empty".into()),
            _ if !grid::is_node_name(text) => Err("is not a host name".into()),
            _ => Ok(text.to_owned()),
        });
        let address = reader.required_string(&table, "address", |text| {
            let address: IpAddr = text.parse().map_err(|_| format!("{text:?} is not an address"))?;
            let inside = subnets.is_empty() || subnets.iter().any(|subnet| subnet.contains(address));
            if inside {
                Ok(address)
            } else {
                Err(format!("{address} is not in the site's subnets").into())
            }
        });
        let slots = reader.integer(&table, "slots", 1..=100_000).unwrap_or(1);
        reader.no_other_keys(&table, &["name", "address", "slots"]);
        if let (Some(name), Some(address)) = (name, address) {
            // Both are inserted, even if the first exists already, so that later nodes are compared with
            // each.
            if !names.insert(name.clone()) | !addresses.insert(address) {
                reader.mistake_at(&table, "name", &format!("{name} or {address} is listed twice"));
            }
            nodes.push(NodeInfo {
                name,
                address,
                slots: slots as u32,
            });
        }
    }
    nodes
}
