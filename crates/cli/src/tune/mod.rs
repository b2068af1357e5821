//! `causeway tune`: what a path between sites demands of this host and of its MPIs, what they have, and what
//! changing it gains.
//!
//! `host` reads what there is, `need` is what the path demands, `kernel` and `mpi` make the rows (`item`).
//! `apply` makes the changes that this user may make, and `journal` remembers what was there before. `gain`
//! finds what was measured, and `verify` measures.

mod apply;
mod gain;
pub mod host;
pub mod item;
mod journal;
pub mod kernel;
mod mca_file;
mod mpi;
pub mod need;
mod verify;

pub use apply::who;
pub use item::{Item, Who};

use crate::bench::options::link;
use causeway_bench::plan::KnownLink;
use causeway_bench::running::by_hand::Allowed;
use causeway_bench::running::mpis;
use causeway_control as control;
use causeway_control::questions;
use causeway_host::say;
use causeway_wire::TextError;
use host::{Host, worker_of};
use need::{Carrier, Need};
use std::ffi::OsString;
use std::fmt::Write as _;
use std::path::PathBuf;
use std::process::ExitCode;

/// Show how to tune this host and its MPIs for the path to other sites, and apply it.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// Tune for jobs without Causeway, whose ranks connect to other sites themselves. Run this on every node.
    #[arg(long)]
    direct: bool,
    /// Round-trip time and rate of the path, such as 11.6ms,1Gbit/s [default: as this gateway has seen them].
    #[arg(long, value_name = "TIME,RATE", value_parser = link)]
    link: Option<KnownLink>,
    /// An MPI launcher; may be given several times [default: all in PATH].
    #[arg(long, value_name = "MPIRUN")]
    mpi: Vec<OsString>,
    /// A directory with results of causeway bench, whose gains are shown; may be given several times.
    #[arg(long, value_name = "DIR")]
    bench: Vec<PathBuf>,
    /// Apply the changes that this user may make: all, or only those of these names or groups (kernel, mpi).
    #[arg(long, value_name = "NAME,...", num_args = 0..=1, require_equals = true, value_delimiter = ',',
          default_missing_value = "all", conflicts_with_all = ["undo", "verify"])]
    apply: Vec<String>,
    /// Restore everything to how it was before the first --apply.
    #[arg(long, conflicts_with = "verify")]
    undo: bool,
    /// Measure without and with the changes, in turn, then undo them.
    #[arg(long)]
    verify: bool,
    /// Measure on an emulated grid (with --verify).
    #[arg(long, value_name = "SCENARIO", requires = "verify")]
    lab: Option<String>,
    /// Directory of the results (with --verify) [default: tune-verify].
    #[arg(long, value_name = "DIR", requires = "verify")]
    out: Option<PathBuf>,
    /// Print the table as JSON.
    #[arg(long)]
    json: bool,
}

/// The status is 1 if something that was asked for could not be done, 2 for a wrong command.
pub fn main(args: &Args) -> ExitCode {
    if args.undo {
        return apply::undo();
    }
    if args.verify {
        return verify::main(args);
    }
    match table(args) {
        Ok(items) if args.apply.is_empty() => show(&items, args.json),
        Ok(items) => apply::apply(&items, &args.apply),
        Err(error) => {
            say::error(format_args!("causeway tune: {error}"));
            ExitCode::from(2)
        }
    }
}

/// All rows for this host.
fn table(args: &Args) -> Result<Vec<Item>, TextError> {
    let status = questions::status(&control::socket()).ok();
    let carrier = match args.direct {
        true => Carrier::Ranks,
        false => Carrier::Gateway,
    };
    let need = Need::new(carrier, status.as_ref(), args.link.clone());
    if need.link.is_none() {
        return Err(
            "nothing is known of the path, because no gateway of this user has a tunnel here; describe it with --link 11.6ms,1Gbit/s".into(),
        );
    }
    let host = Host::read(status.as_ref().map(worker_of));
    let mut items = kernel::items(&host, &need);
    let set = mca_file::McaFile::read();
    match mpis::find(&args.mpi) {
        Ok(all) => items.extend(
            all.iter()
                .flat_map(|found| mpi::items(found, &need, Allowed::here(), &set)),
        ),
        Err(error) if args.mpi.is_empty() => say::error(format_args!("causeway tune: {error}")),
        Err(error) => return Err(TextError::of(error)),
    }
    gain::measured(&mut items, carrier, &args.bench)?;
    Ok(items)
}

fn show(items: &[Item], json: bool) -> ExitCode {
    if json {
        let rows: Vec<_> = items
            .iter()
            .map(|item| serde_json::json!({ "item": item, "who": who(item), "command": item.change.command() }))
            .collect();
        return say::result(serde_json::to_string_pretty(&rows).unwrap_or_default());
    }
    let mut text = String::new();
    let mut group = "";
    for item in items {
        if item.group != group {
            group = &item.group;
            let _ = writeln!(text, "{group}");
        }
        let mark = if item.is_enough { "[ok]    " } else { "[change]" };
        let _ = writeln!(text, "  {mark} {}: {}", item.name, item.current);
        let _ = writeln!(text, "           why: {}", item.why);
        if !item.is_enough {
            let _ = writeln!(text, "           wanted: {}", item.wanted);
            let _ = writeln!(text, "           {}: {}", who(item), item.change.command());
        }
        if !item.gain.is_empty() {
            let _ = writeln!(text, "           gain: {}", item.gain);
        }
    }
    let open = items.iter().filter(|item| !item.is_enough);
    let (own, others): (Vec<&Item>, Vec<&Item>) = open.partition(|item| who(item) == Who::You);
    let _ = write!(
        text,
        "\n{} rows, {} to change: {} by you ('causeway tune --apply'), {} by an administrator",
        items.len(),
        own.len() + others.len(),
        own.len(),
        others.len()
    );
    say::result(text)
}
