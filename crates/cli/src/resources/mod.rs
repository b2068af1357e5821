//! `causeway resources`: what the grid has, as this host's gateway knows it, or as a file in Flux's JGF says.
//! What a graph is, and its forms, is in crates/resources. `known` is what the gateway says, `offered` what
//! the batch system of its site has, `elsewhere` what those of other sites have. `measure` looks at nodes,
//! each of which says what it has by `node`; `measured` keeps it.

mod elsewhere;
mod known;
mod measure;
pub mod measured;
pub mod node;
mod offered;

use crate::failure::Failure;
use crate::{ask, say, text_file};
use causeway_control::{self as control, ControlError, Sites, Status};
use causeway_resources::{Graph, MAX_BYTES, merged, picture, read_jgf, table, to_dot, to_jgf};
pub use elsewhere::Offers;
use measured::Measured;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::{SystemTime, UNIX_EPOCH};

/// Show what the grid has: sites, nodes and links, as a picture and a table, or in another form
/// (docs/resources.md).
#[derive(Debug, clap::Args)]
pub struct Args {
    /// Print JSON.
    #[arg(long, conflicts_with_all = ["dot", "jgf"])]
    json: bool,
    /// Print a graph for Graphviz: `causeway resources --dot | dot -Tsvg`.
    #[arg(long, conflicts_with = "jgf")]
    dot: bool,
    /// Print Flux's JSON graph format.
    #[arg(long)]
    jgf: bool,
    /// Show what FILE says, in Flux's JSON graph format, and ask no gateway; may be given for each site.
    #[arg(long, value_name = "FILE")]
    from: Vec<PathBuf>,
    /// First look at the nodes of all sites: their cores and memory, and for five seconds the speed of one of
    /// each kind. It is kept for later commands.
    #[arg(long, conflicts_with = "from")]
    measure: bool,
    /// Look at the nodes of an allocation in place of those that its site lists: rennes:1234, once for each
    /// site.
    #[arg(long, value_name = "SITE:ID", requires = "measure")]
    alloc: Vec<String>,
}

/// The status is 2 where a file has mistakes; 1 where it cannot be read, or no gateway answers.
pub fn main(args: &Args) -> ExitCode {
    match shown(args) {
        Ok(text) => say::result(text.trim_end()),
        Err(failure) => {
            say::error(format_args!("causeway resources: {failure}"));
            ExitCode::from(failure.code)
        }
    }
}

fn shown(args: &Args) -> Result<String, Failure> {
    let now = now();
    let graph = match args.from.is_empty() {
        false => merged({ args.from.iter().map(|file| of_file(file)) }.collect::<Result<_, _>>()?),
        true => of_gateway(args, now)?,
    };
    if args.json {
        return serde_json::to_string_pretty(&graph).map_err(Failure::new);
    }
    Ok(match (args.dot, args.jgf) {
        (true, _) => to_dot(&graph),
        (_, true) => to_jgf(&graph),
        _ => format!("{}\n{}", picture(&graph), table(&graph, now)),
    })
}

fn of_file(file: &Path) -> Result<Graph, Failure> {
    let text = text_file::read(file, MAX_BYTES).map_err(Failure::new)?;
    let name = file.display();
    let read = read_jgf(&text).map_err(|mistakes| {
        let lines = mistakes.to_string().replace('\n', &format!("\n{name}: "));
        Failure::usage(format_args!("{name}: {lines}"))
    })?;
    for warning in read.warnings {
        say::error(format_args!("causeway resources: {name}: {warning}"));
    }
    Ok(read.graph)
}

fn of_gateway(args: &Args, now: u64) -> Result<Graph, Failure> {
    let socket = control::socket();
    let mut sites = ask::sites(&socket).map_err(Failure::new)?;
    let status = ask::status(&socket).map_err(Failure::new)?;
    let mut measured = measured(&status);
    if args.measure {
        measure::measure(&mut measured, &mut sites, &args.alloc, now)?;
        measured.keep(&grid_name(&status)).map_err(Failure::new)?;
        sites = ask::sites(&socket).map_err(Failure::new)?;
    }
    let mut graph = known::graph(&sites, &status, &measured, now);
    for (name, offer) in offers(&sites, now).map_err(Failure::new)? {
        let site = graph.sites.iter_mut().find(|site| site.name == name);
        match (site, offer) {
            (Some(site), Ok(offer)) => offered::add(site, offer, &measured),
            // What else is known is worth showing.
            (_, Err(why)) => say::error(format_args!("causeway resources: batch system of {name}: {why}")),
            (None, _) => {}
        }
    }
    Ok(graph)
}

/// What was measured of the grid's nodes. Says so where that cannot be read.
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

/// This host's clock, in seconds since 1970.
pub fn now() -> u64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH);
    now.unwrap_or_default().as_secs()
}
