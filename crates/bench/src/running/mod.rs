//! `causeway bench`: measures this grid and the MPIs on it, or an emulated one.
//!
//! `wanted` is what is asked for. The MPIs (`mpis`), the sites (`grid`), what runs (`work`, `npb`, `part`),
//! where (`runs_on`), how (`runner`, `by_hand`), and how far it is (`progress`). `worth` puts several such
//! measurements together. `messages` measures nothing: it counts.

pub mod by_hand;
mod grid;
mod messages;
pub mod mpis;
mod npb;
pub mod part;
mod progress;
mod runner;
mod runs_on;
pub mod wanted;
mod work;
mod worth;

pub use causeway_host::failure::Failure;

use crate::cell::{Cell, Settings, Way, matrix};
use crate::plan::{Head, Plan};
use crate::schedule::Bounds;
use crate::store::Store;
use crate::summary::Summaries;
use crate::tables::tables;
use crate::verdict::verdicts;
use crate::{host, matrix as run};
use causeway_host::say;
use causeway_service::signals::heeded;
use grid::Grid;
use mpis::NamedMpi;
use nix::sys::signal::Signal;
use npb::Sources;
use progress::Shown;
use runner::{Bed, Runner};
use runs_on::Host;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use wanted::{Common, Messages, Rounds, Task};
use work::{OPERATIONS, Work, message_words};

/// The status that shells report for a program ended by Ctrl-C.
const INTERRUPTED: u8 = 128 + 2;

/// Rounds of one size and the seconds after which fewer suffice: as many as Hablot et al. (2007) made.
const PING_PONG: (u32, f64) = (200, 4.0);

/// The same for operations: fewer, because there are a hundred when all sizes count.
const OPERATION: (u32, f64) = (30, 0.5);

/// More ranks than a job has: IMB then measures only with all of them, and not also with two, four and so on.
const IMB_RANKS: &str = "1000000";

/// The status is 0 if every cell has a value, 1 if one has none, 2 for a wrong command, 130 after Ctrl-C.
pub fn main(task: Task) -> ExitCode {
    measure(task).unwrap_or_else(|failure| {
        say::error(format_args!("causeway bench: {}", failure.text));
        ExitCode::from(failure.code)
    })
}

fn measure(task: Task) -> Result<ExitCode, Failure> {
    if let Task::Npb(npb) = &task
        && !npb.source.exists()
    {
        let source = npb.source.display();
        return Err(Failure::usage(format_args!(
            "{source} does not exist; name your copy of the NAS Parallel Benchmarks with --source"
        )));
    }
    let (common, work, wanted) = match task {
        Task::Worth(task) => return worth::main(&task),
        Task::Messages(task) => return messages::main(&task),
        task => work_of(task)?,
    };
    measure_work(&common, work, &wanted, None)
}

/// Names the command that comes before each run of a cell: `causeway WORDS`.
#[derive(Debug)]
pub struct Step {
    /// Its words.
    pub words: Vec<String>,
    /// Whether it runs on a node of each site, not on this host.
    pub on_nodes: bool,
}

/// Says what is to be done before a run under such conditions.
pub type Before<'a> = &'a dyn Fn(Way, Settings) -> Step;

/// Measures ping-pongs of these sizes, rounds and pauses, with a step before each run. At the very end, the
/// step for default settings is run once more.
pub fn verify(common: Common, (sizes, count, idle): (&[u64], u32, u64), before: Before<'_>) -> ExitCode {
    let rounds = Rounds {
        count: Some(count),
        seconds: None,
    };
    let work = Work::Ours("pingpong", message_words(sizes, &rounds, PING_PONG, idle));
    let wanted = common.mpi.clone();
    measure_work(&common, work, &wanted, Some(before)).unwrap_or_else(|failure| {
        say::error(format_args!("causeway tune: {}", failure.text));
        ExitCode::from(failure.code)
    })
}

fn measure_work(
    common: &Common,
    work: Work,
    wanted: &[OsString],
    before: Option<Before<'_>>,
) -> Result<ExitCode, Failure> {
    let stop = stop_flag().map_err(Failure::new)?;
    let (store, was_stopped) = filled(common, work, (wanted, before), &stop, Some(Shown::new()))?;
    Ok(tell(&store, common.json, was_stopped))
}

/// Measures until every cell is done, or until `stop` is set; the second value says whether it was.
fn filled(
    common: &Common,
    work: Work,
    (wanted, before): (&[OsString], Option<Before<'_>>),
    stop: &Arc<AtomicBool>,
    shown: Option<Shown>,
) -> Result<(Store, bool), Failure> {
    check(common)?;
    let mpis = mpis::find(wanted)?;
    let out = common.out.clone();
    let out = out.unwrap_or_else(|| PathBuf::from(format!("bench-{}", work.name())));
    let out = std::path::absolute(&out).map_err(Failure::new)?;
    let work = in_directory(work, &out);
    let routed = common.ways.contains(&Way::Direct) || common.traffic.len() > 1;
    let beds = beds(common, routed, &work, &out)?;
    let mut store = Store::open(&out, head(common, &work, &mpis, &beds)?)?;
    let mut runner = Runner {
        beds: &beds,
        work: &work,
        mpis: &mpis,
        outputs: out.join("failed"),
        limit: Duration::from_secs(common.time_limit),
        flows: common.flows,
        before,
        stop: Arc::clone(stop),
        cores: runner::Cores::new(),
    };
    let stopped = || stop.load(Ordering::Relaxed);
    let measured = run::measure(&mut store, &mut runner, &stopped, &mut |progress| {
        if let Some(shown) = &shown {
            shown.show(&progress);
        }
    });
    drop(shown);
    let was_stopped = stopped();
    runner.finish();
    // If nothing failed, the directory is empty.
    let _ = std::fs::remove_dir(&runner.outputs);
    // The rows so far are summed up even if the disk is full now.
    let finished = store.finish();
    measured.and(finished)?;
    Ok((store, was_stopped))
}

fn stop_flag() -> Result<Arc<AtomicBool>, std::io::Error> {
    let stop = Arc::new(AtomicBool::new(false));
    for signal in &heeded(&[Signal::SIGINT, Signal::SIGTERM, Signal::SIGHUP]) {
        signal_hook::flag::register(signal as i32, Arc::clone(&stop))?;
    }
    Ok(stop)
}

/// What the commands have in common, what is to run, and the launchers that are named.
fn work_of(task: Task) -> Result<(Common, Work, Vec<OsString>), Failure> {
    let words =
        |messages: &Messages| message_words(&messages.sizes, &messages.rounds, PING_PONG, messages.idle);
    let (common, work) = match task {
        Task::Tcp { messages, common } => (common, Work::Tcp(words(&messages))),
        Task::Pingpong { messages, common } => (common, Work::Ours("pingpong", words(&messages))),
        Task::Operations(task) => {
            let names = operations(&task.operations)?;
            let work = match task.program.is_empty() {
                true => {
                    let mut words = message_words(&task.sizes, &task.rounds, OPERATION, 0);
                    words.extend(["--operations".into(), names.join(",").to_lowercase()]);
                    Work::Ours("operations", words)
                }
                false => {
                    let rounds = task.rounds;
                    let words = [
                        [
                            "-iter".to_owned(),
                            rounds.count.unwrap_or(OPERATION.0).to_string(),
                        ],
                        [
                            "-time".to_owned(),
                            rounds.seconds.unwrap_or(OPERATION.1).to_string(),
                        ],
                        ["-npmin".to_owned(), IMB_RANKS.to_owned()],
                    ];
                    let words = words.into_iter().flatten().chain(names).collect();
                    Work::Others(absolute(&task.program)?, words)
                }
            };
            (task.common, work)
        }
        Task::App { common, command } => {
            let wanted = match common.mpi.is_empty() {
                true => command.first().cloned().into_iter().collect(),
                false => common.mpi.clone(),
            };
            return Ok((common, Work::App(command), wanted));
        }
        Task::Npb(npb) => {
            let sources = Sources {
                source: npb.source,
                class: npb.class,
                fflags: npb.fflags,
                directory: PathBuf::new(),
            };
            (npb.common, Work::Npb(sources, npb.benchmarks))
        }
        Task::Worth(_) | Task::Messages(_) => return Err(Failure::usage("it has no matrix")),
    };
    let wanted = common.mpi.clone();
    Ok((common, work, wanted))
}

/// The names in their proper spelling; all of them if none is asked for.
fn operations(wanted: &[String]) -> Result<Vec<String>, Failure> {
    if wanted.is_empty() {
        return Ok(OPERATIONS.map(str::to_owned).into());
    }
    let known = |name: &String| {
        let found = OPERATIONS.iter().find(|known| known.eq_ignore_ascii_case(name));
        found.map(|known| (*known).to_owned()).ok_or_else(|| {
            let all = OPERATIONS.join(", ");
            Failure::usage(format_args!("there is no operation {name:?}; there are {all}"))
        })
    };
    wanted.iter().map(known).collect()
}

fn absolute(paths: &[PathBuf]) -> Result<Vec<PathBuf>, Failure> {
    let all = paths.iter().map(|path| match path.is_file() {
        true => std::path::absolute(path).map_err(Failure::new),
        false => Err(Failure::usage(format_args!("{} is not a file", path.display()))),
    });
    all.collect()
}

fn in_directory(work: Work, out: &Path) -> Work {
    match work {
        Work::Npb(sources, names) => {
            let directory = out.join("npb");
            Work::Npb(Sources { directory, ..sources }, names)
        }
        other => other,
    }
}

fn check(common: &Common) -> Result<(), Failure> {
    if common.most < common.least {
        let (least, most) = (common.least, common.most);
        return Err(Failure::usage(format_args!(
            "--most {most} is less than --least {least}"
        )));
    }
    match common.interval.is_finite() && common.interval >= 0.0 {
        true => Ok(()),
        false => Err(Failure::usage("--interval must be a percentage, 0 or more")),
    }
}

/// This host's grid, or each lab that is asked for.
fn beds(common: &Common, routed: bool, work: &Work, out: &Path) -> Result<Vec<Bed>, Failure> {
    let names: Vec<String> = common.lab.iter().map(|lab| lab_name(lab)).collect();
    let twice = names
        .iter()
        .enumerate()
        .find(|(at, name)| names[..*at].contains(name));
    if let Some((_, name)) = twice {
        return Err(Failure::usage(format_args!(
            "two of --lab have the name {name:?}"
        )));
    }
    let bed = |lab: Option<&String>| {
        let name = lab
            .filter(|_| names.len() > 1)
            .map(|lab| lab_name(lab))
            .unwrap_or_default();
        let host = Host::start(lab.map(String::as_str), routed, &out.join("lab").join(&name))?;
        let grid = grid_of(common, &host, work)?;
        Ok(Bed {
            lab: name,
            host,
            grid,
        })
    };
    match common.lab.is_empty() {
        true => Ok(vec![bed(None)?]),
        false => common.lab.iter().map(|lab| bed(Some(lab))).collect(),
    }
}

/// What cells call a lab: the name of its file, without directory and extension.
fn lab_name(scenario: &str) -> String {
    let stem = Path::new(scenario).file_stem();
    stem.map_or_else(|| scenario.to_owned(), |stem| stem.to_string_lossy().into_owned())
}

fn grid_of(common: &Common, host: &Host, work: &Work) -> Result<Grid, Failure> {
    let status = host.status()?;
    let sites = grid::sites(&status, &common.sites)?;
    let link = common.link.clone();
    Ok(Grid {
        causeway: std::env::current_exe().map_err(Failure::new)?,
        link: link.or_else(|| host.link(&status, &sites[0].name, &sites[1].name)),
        shares_cores: host.is_lab(),
        seed: common.seed,
        sites,
        ranks_each: common.ranks.unwrap_or(work.ranks()),
        named: !common.sites.is_empty(),
    })
}

fn head(common: &Common, work: &Work, mpis: &[NamedMpi], beds: &[Bed]) -> Result<Head, Failure> {
    let grid = &beds[0].grid;
    let labs: Vec<String> = beds.iter().map(|bed| bed.lab.clone()).collect();
    let has_mpi = !matches!(work, Work::Tcp(_));
    let names = match has_mpi {
        true => mpis.iter().map(|mpi| mpi.name.clone()).collect(),
        false => vec!["TCP".to_owned()],
    };
    let settings: &[Settings] = match has_mpi {
        true => &common.settings,
        // There is no MPI to tune.
        false => &[Settings::Default],
    };
    let cells: Vec<Cell> = matrix(
        &work.programs(),
        &names,
        &labs,
        (&common.ways, settings, &common.traffic),
    );
    if cells.is_empty() {
        return Err(Failure::usage(
            "nothing is left to measure: with one site there is no traffic between sites",
        ));
    }
    let bounds = Bounds {
        least: common.least,
        most: common.most,
        narrow: common.interval / 100.0,
        seed: common.seed,
    };
    let mut plan = Plan::new(work.name(), cells, bounds);
    plan.sites = grid.sites_option(Way::Causeway, matches!(work, Work::App(_)));
    plan.lab = common.lab.join(" ");
    plan.arguments = work.arguments();
    let mut host = host::describe();
    let launchers = mpis
        .iter()
        .map(|mpi| (mpi.name.clone(), mpi.launcher.path.display().to_string()));
    host.extend(launchers);
    Ok(Head {
        plan,
        command: said_command(),
        version: common.version.clone(),
        host,
        link: grid.link.clone(),
    })
}

/// This command, as shown to people.
fn said_command() -> String {
    let words = std::env::args_os().map(|word| word.to_string_lossy().into_owned());
    words.collect::<Vec<_>>().join(" ")
}

/// Prints what the rows show.
fn tell(store: &Store, json: bool, stopped: bool) -> ExitCode {
    let summary = Summaries::of(store.head(), store.rows());
    let text = match json {
        true => serde_json::to_string_pretty(&summary).unwrap_or_default(),
        false => text(store, &summary),
    };
    let status = say::result(text);
    let out = store.directory().display();
    if stopped {
        say::error(format_args!(
            "causeway bench: stopped; {} rows are in {out}, and the same command continues there",
            store.rows().len()
        ));
        return ExitCode::from(INTERRUPTED);
    }
    say::error(format_args!("causeway bench: rows and summaries are in {out}"));
    let cells = &store.head().plan.cells;
    let has_value = |cell: &&Cell| summary.entries.iter().any(|entry| entry.cell == **cell);
    match cells.iter().all(|cell| has_value(&cell)) {
        true => status,
        false => ExitCode::FAILURE,
    }
}

fn text(store: &Store, summary: &Summaries) -> String {
    let mut parts: Vec<String> = Vec::new();
    if let Some(link) = &store.head().link {
        parts.push(format!(
            "link: round trip {:.2} ms, {:.0} Mbit/s ({})",
            link.round_trip_us / 1e3,
            link.rate_bits_per_second / 1e6,
            link.source
        ));
    }
    parts.extend(verdicts(&store.head().plan.cells, summary));
    for (title, table) in tables(summary) {
        parts.push(format!("{title}\n\n{}", table.markdown().trim_end()));
    }
    for fit in &summary.fits {
        let (latency, rate) = (fit.line.latency_us / 1e3, fit.line.rate_mbit_per_second);
        let times_limit = fit.of_limit.map_or_else(String::new, |(latency, rate)| {
            format!(" ({latency:.3} and {rate:.3} of the limit)")
        });
        parts.push(format!(
            "{}: latency {latency:.3} ms, rate {rate:.0} Mbit/s{times_limit}",
            fit.cell
        ));
    }
    for (cell, count, reason) in &summary.failures {
        parts.push(format!("{cell}: failed {count} times; the last time: {reason}"));
    }
    parts.join("\n\n")
}
