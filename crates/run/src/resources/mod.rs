//! What the grid has, as this host's gateway knows it. What a graph is, and its output formats, are in
//! crates/resources. `known` is what the gateway says, `offered` is what the batch system of its site has,
//! and `elsewhere` is what those of other sites have. `measure` inspects nodes: each runs `node` to say what
//! it has, and `measured` stores that.

mod elsewhere;
mod known;
mod measure;
pub mod measured;
pub mod node;
mod offered;

use causeway_control::questions;
use causeway_control::{self as control, ControlError, Sites, Status};
use causeway_host::failure::Failure;
use causeway_host::say;
use causeway_resources::Graph;
pub use elsewhere::Offers;
use measured::Measured;
use std::time::{SystemTime, UNIX_EPOCH};

/// What the grid has, as reported by this host's gateway and the batch systems. With `measures`, it first
/// inspects the nodes of all sites, and of these allocations, and stores the results.
///
/// # Errors
/// The gateway cannot be asked, or the results cannot be stored.
pub fn graph(measures: Option<&[String]>, now: u64) -> Result<Graph, Failure> {
    let socket = control::socket();
    let mut sites = questions::sites(&socket).map_err(Failure::new)?;
    let status = questions::status(&socket).map_err(Failure::new)?;
    let mut measured = measured(&status);
    if let Some(allocations) = measures {
        measure::measure(&mut measured, &mut sites, allocations, now)?;
        measured.keep(&grid_name(&status)).map_err(Failure::new)?;
        sites = questions::sites(&socket).map_err(Failure::new)?;
    }
    let mut graph = known::graph(&sites, &status, &measured, now);
    for (name, offer) in offers(&sites, now).map_err(Failure::new)? {
        let site = graph.sites.iter_mut().find(|site| site.name == name);
        match (site, offer) {
            (Some(site), Ok(offer)) => offered::add(site, offer, &measured),
            // The rest is still worth showing.
            (_, Err(why)) => say::error(format_args!("causeway resources: batch system of {name}: {why}")),
            (None, _) => {}
        }
    }
    Ok(graph)
}

/// What was measured on the grid's nodes. Reports it if that cannot be read.
pub fn measured(status: &Status) -> Measured {
    measured::read(&grid_name(status)).unwrap_or_else(|error| {
        say::error(format_args!("causeway: {error}"));
        Measured::default()
    })
}

fn grid_name(status: &Status) -> String {
    { status.grid.as_ref() }.map_or_else(|| "grid".to_owned(), |grid| grid.name.clone())
}

/// What the batch systems have: that of the own site, and those of sites that list no nodes.
///
/// # Errors
/// The gateway cannot be asked.
pub fn offers(sites: &Sites, now: u64) -> Result<Offers, ControlError> {
    let mut offers = elsewhere::ask(&elsewhere::askable(sites), now)?;
    if let Some(access) = &sites.batch {
        offers.insert(sites.site.clone(), offered::ask(access));
    }
    Ok(offers)
}

/// The time of this host's clock, in seconds since 1970.
pub fn now() -> u64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH);
    now.unwrap_or_default().as_secs()
}
