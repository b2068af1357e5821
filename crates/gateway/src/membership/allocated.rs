//! Nodes at a site that are a job's own, beside those that the site lists.

use crate::membership::directory::{Directory, Whereabouts};
use causeway_control::name::means;
use causeway_control::{MAX_NODES, NodeInfo};
use causeway_wire::TextError;
use causeway_wire::grid::is_node_name;
use std::net::IpAddr;

impl Directory {
    /// The name of one of these nodes, given by name or address. Nodes of this site may be listed by their
    /// real addresses or by those that the grid knows.
    pub(crate) fn name_among(&self, nodes: &[NodeInfo], node: &str) -> Option<String> {
        let address = node.parse::<IpAddr>().ok();
        let in_grid = |address| self.own_site().in_grid(address);
        let is_at = |known: &NodeInfo| {
            address
                .is_some_and(|address| known.address == address || in_grid(known.address) == in_grid(address))
        };
        let listed = nodes.iter().find(|known| is_at(known) || known.name == node);
        let listed = listed.or_else(|| {
            let mut meant = nodes.iter().filter(|known| means(node, &known.name));
            meant.next().filter(|_| meant.next().is_none())
        });
        listed.map(|known| known.name.clone())
    }

    /// Whether a site may say that it has these nodes for a job: they must be at its addresses.
    pub(crate) fn may_have(&self, site: &str, nodes: &[NodeInfo]) -> Result<(), TextError> {
        if nodes.is_empty() || nodes.len() > MAX_NODES {
            return Err(format!("names {} nodes; 1 to {MAX_NODES} are allowed", nodes.len()).into());
        }
        let is_there = |node: &&NodeInfo| self.site_of(node.address) == Whereabouts::At(site.to_owned());
        match nodes
            .iter()
            .find(|node| !is_node_name(&node.name) || node.slots == 0 || !is_there(node))
        {
            Some(node) => {
                let name: String = node.name.chars().take(64).collect();
                Err(format!(
                    "names node {name:?} at {}, which is not at its site",
                    node.address
                )
                .into())
            }
            None => Ok(()),
        }
    }
}
