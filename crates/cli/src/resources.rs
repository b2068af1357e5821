//! `causeway resources`: what the grid has, according to this host's gateway or to a file in Flux's JGF.

use causeway_host::failure::Failure;
use causeway_host::{say, text_file};
use causeway_resources::{Graph, MAX_BYTES, merged, picture, read_jgf, table, to_dot, to_jgf};
use causeway_run::resources::{graph, now};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

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

/// The status is 2 if a file has mistakes; 1 if it cannot be read, or no gateway answers.
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
        false => merged({ args.from.iter().map(|file| read(file)) }.collect::<Result<_, _>>()?),
        true => graph(args.measure.then_some(&args.alloc[..]), now)?,
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

fn read(file: &Path) -> Result<Graph, Failure> {
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
