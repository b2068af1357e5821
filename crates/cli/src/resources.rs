//! `causeway resources`: what the grid has, as this host's gateway knows it, or as a file in Flux's JGF says.
//! What a graph is, and its forms, is in crates/resources.

use crate::failure::Failure;
use crate::{ask, say, text_file};
use causeway_control::{self as control, ControlError, Reply, Request, SiteStatus, Sites, Status};
use causeway_resources::{
    Described, Graph, Link, MAX_BYTES, Node, Site, Source, classes_of, picture, read_jgf, table, to_dot,
    to_jgf,
};
use std::collections::HashSet;
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
    /// Show what FILE says, in Flux's JSON graph format, and ask no gateway.
    #[arg(long, value_name = "FILE")]
    from: Option<PathBuf>,
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
    let now = SystemTime::now().duration_since(UNIX_EPOCH);
    let now = now.unwrap_or_default().as_secs();
    let graph = match &args.from {
        Some(file) => of_file(file)?,
        None => of_gateway(now).map_err(Failure::new)?,
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

fn of_gateway(now: u64) -> Result<Graph, ControlError> {
    let socket = control::socket();
    let sites = match control::ask(&socket, &Request::Sites {})? {
        (Reply::Sites(sites), _) => sites,
        (other, _) => return Err(ControlError::Answer(format!("{other:?}"))),
    };
    Ok(graph(&sites, &ask::status(&socket)?, now))
}

/// What a gateway's two answers say. Links of other sites' gateways are as old as their last message, which
/// is not told.
fn graph(sites: &Sites, status: &Status, now: u64) -> Graph {
    let own = status.tunnels.iter().filter_map(|tunnel| {
        let link = tunnel.link()?;
        Some(Link {
            loss_ppb: Some((tunnel.loss.clamp(0.0, 1.0) * 1e9) as u32),
            source: Some(Source::Lanes),
            seen_at: Some(now),
            ..of_link(&sites.site, &link)
        })
    });
    let told = { sites.links.iter() }
        .filter(|(from, _)| **from != sites.site)
        .flat_map(|(from, links)| links.iter().map(|link| of_link(from, link)));
    let names: HashSet<&str> = sites.sites.iter().map(|site| site.name.as_str()).collect();
    let mut pairs = HashSet::new();
    // Another gateway may tell of a site that has gone, or anything else.
    let mut is_new = |link: &Link| {
        let is_known = names.contains(&*link.from) && names.contains(&*link.to);
        is_known && link.from != link.to && pairs.insert((link.from.clone(), link.to.clone()))
    };
    Graph {
        name: { status.grid.as_ref() }.map_or_else(|| "grid".to_owned(), |grid| grid.name.clone()),
        sites: sites.sites.iter().map(of_site).collect(),
        links: own.chain(told).filter(|link| is_new(link)).collect(),
    }
}

fn of_link(from: &str, link: &control::Link) -> Link {
    let rate = link.rate_bits_per_second;
    Link {
        from: from.to_owned(),
        to: link.to.clone(),
        latency_ns: Some(u64::from(link.rtt_microseconds) * 500),
        bandwidth_bits_per_second: (rate > 0).then_some(rate),
        source: Some(Source::Told),
        ..Link::default()
    }
}

fn of_site(site: &SiteStatus) -> Site {
    let nodes = site.info.iter().flat_map(|info| &info.nodes);
    let described = nodes.map(|node| Described {
        node: Node {
            name: node.name.clone(),
            address: Some(node.address),
            ..Node::default()
        },
        slots: node.slots,
        ..Described::default()
    });
    let classes = classes_of(described.collect(), &HashSet::new());
    Site {
        name: site.name.clone(),
        why_unreachable: site.unreachable.clone(),
        classes: classes.into_iter().map(|(class, _)| class).collect(),
        ..Site::default()
    }
}
