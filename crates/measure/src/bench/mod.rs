//! `make bench`: direct and Causeway in turn (A B A B), in labs whose sites have a route, so that both are
//! possible; results/DATE-NAME/ gets every row, the commands, versions and host, tables and an HTML page.
//!
//! Each section is a module with one function that measures and returns a [`Part`]; docs/benchmarks.md
//! says what each does.

pub mod byte;
mod collectives;
mod disturbed;
mod loopback;
mod peers;
mod pings;
mod plain;
mod plans;
mod ranks;
mod relay;
mod scenario;
mod share;
mod streams;
mod twin;

use crate::checkout::repository;
use crate::pingpong::NotPingPong;
use crate::results::{Part, Report};
use causeway_bench::host;
use causeway_bench::lab::Lab;
use causeway_bench::program::{ProgramError, io};
use causeway_bench::store::StoreError;
use causeway_host::quoted;
use clap::ValueEnum;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

/// `causeway-measure bench`.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// Directory of the results [default: results/DATE-rennes-nancy].
    #[arg(long)]
    out: Option<PathBuf>,
    /// Send fewer and smaller messages, to see whether the bench works, not to measure.
    #[arg(long)]
    quick: bool,
    /// Run only these sections [default: all].
    #[arg(long, value_delimiter = ',', value_name = "SECTION,...")]
    only: Vec<Section>,
    /// Measure only these collectives [default: all].
    #[arg(long, value_delimiter = ',', value_name = "OPERATION,...", value_parser = collectives::operation)]
    operations: Vec<String>,
    /// Continue where an earlier bench broke off: the collectives, and what 'causeway bench' measures, keep
    /// the runs that ended well.
    #[arg(long, requires = "out")]
    resume: bool,
}

/// Parts of the bench, in the order in which they run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Section {
    /// What the gateways add to one byte.
    Latency,
    /// The same path without an MPI: directly, through relays that only copy, and through the gateways.
    Plain,
    /// One-way times over size, one message after the other.
    Pingpong,
    /// The same after pauses.
    Idle,
    /// The same while 8+8 processes are connected.
    Many,
    /// The same while the link loses packets.
    Loss,
    /// Times under TLS 1.3 beside those in clear text.
    Encryption,
    /// The same messages through tunnels that people make by hand.
    Peers,
    /// A bulk stream beside foreign TCP flows.
    Share,
    /// All-to-all of 2 MB.
    Alltoall,
    /// Collectives with and without the library for them.
    Collectives,
    /// Ten thousand streams at once.
    Streams,
    /// How long a job takes to start.
    Start,
    /// How long jobs of many ranks take to begin.
    Ranks,
    /// Messages right after a kill, a hand-over, a cut and a lane's loss.
    Disturbed,
    /// Two gateways on one host, no emulator.
    Loopback,
}

impl Section {
    fn name(self) -> String {
        self.to_possible_value()
            .map_or_else(String::new, |value| value.get_name().to_owned())
    }

    fn measure(self, bench: &Bench) -> Result<Part, BenchError> {
        match self {
            Section::Plain => plain::measure(bench),
            Section::Peers => peers::measure(bench),
            Section::Share => share::measure(bench),
            Section::Collectives => collectives::measure(bench),
            Section::Streams => streams::measure(bench),
            Section::Ranks => ranks::measure(bench),
            Section::Disturbed => disturbed::measure(bench),
            Section::Loopback => loopback::measure(bench),
            Section::Latency => plans::LATENCY.measure(&self.name(), bench),
            Section::Pingpong => plans::PINGPONG.measure(&self.name(), bench),
            Section::Idle => plans::IDLE.measure(&self.name(), bench),
            Section::Many => plans::MANY.measure(&self.name(), bench),
            Section::Loss => plans::LOSS.measure(&self.name(), bench),
            Section::Encryption => plans::ENCRYPTION.measure(&self.name(), bench),
            Section::Alltoall => plans::ALLTOALL.measure(&self.name(), bench),
            Section::Start => plans::START.measure(&self.name(), bench),
        }
    }
}

/// Why there are no results.
#[derive(Debug, thiserror::Error)]
pub enum BenchError {
    /// A program of the bench failed.
    #[error("{0}")]
    Program(#[from] ProgramError),
    /// The rows of the ping-pong are wrong.
    #[error("{0}")]
    PingPong(#[from] NotPingPong),
    /// The rows of `causeway bench` are wrong.
    #[error("{0}")]
    Store(#[from] StoreError),
    /// Another program left something different from what was expected.
    #[error("{program} left {text:?}, expected {expected}")]
    Output {
        /// The program.
        program: &'static str,
        /// The beginning of the file's text.
        text: String,
        /// What the file should have contained.
        expected: &'static str,
    },
    /// Sections that broke off; the others have been written.
    #[error("broke off: {0}")]
    Sections(String),
}

impl BenchError {
    fn output(program: &'static str, text: &str, expected: &'static str) -> BenchError {
        BenchError::Output {
            program,
            text: text.chars().take(200).collect(),
            expected,
        }
    }
}

/// An MPI that is measured.
#[derive(Debug)]
pub struct Mpi {
    name: &'static str,
    /// A command; or a path in the repository, which begins with a slash.
    launcher: &'static str,
    /// Directory of its programs in target/mpi.
    programs: &'static str,
}

impl Mpi {
    fn path(&self) -> String {
        match self.launcher.starts_with('/') {
            true => format!("{}{}", repository().display(), self.launcher),
            false => self.launcher.to_owned(),
        }
    }

    /// The launcher's path, quoted for a shell.
    fn launcher(&self) -> String {
        quoted(self.path())
    }
}

const MPIS: [Mpi; 2] = [
    Mpi {
        name: "Open MPI 4.1.4",
        launcher: "mpirun.openmpi",
        programs: "debian-openmpi",
    },
    Mpi {
        name: "MPICH 5.0.2",
        launcher: "/.cache/mpi/mpich/bin/mpirun",
        programs: "mpich",
    },
];

/// Only its collectives are measured.
const INTEL: Mpi = Mpi {
    name: "Intel MPI 2021.18",
    launcher: "/.cache/mpi/intel/bin/mpirun",
    programs: "intel",
};

/// How a program is launched.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Way {
    /// The same launch, without Causeway on the path of its data.
    Direct,
    /// The path through shim and gateways.
    Causeway,
}

impl Way {
    /// Both ways, in the order in which they take turns.
    const BOTH: [Way; 2] = [Way::Direct, Way::Causeway];

    /// Its name in tables and file names.
    fn name(self) -> &'static str {
        match self {
            Way::Direct => pings::DIRECT,
            Way::Causeway => "causeway",
        }
    }

    /// The option for `causeway run`, followed by a blank.
    fn option(self) -> &'static str {
        match self {
            Way::Direct => "--direct ",
            Way::Causeway => "",
        }
    }
}

/// Two sites with a route between them, so that both ways are possible.
const ROUTED: [&str; 3] = ["--routed", "true", "rennes-nancy"];

/// The node on which jobs are started, and its counterpart.
const HEAD: &str = "rennes-head";
const FAR_HEAD: &str = "nancy-head";

/// A file beside the outputs of a run, written if it ended well.
const ENDED: &str = "ended";

/// The longest run, with sixty pauses of 5 s, takes 300 s; one that takes twice as long hangs.
const DEADLINE: Duration = Duration::from_secs(640);

/// What sections need to know.
#[derive(Debug)]
pub struct Bench {
    out: PathBuf,
    quick: bool,
    resume: bool,
    operations: Vec<String>,
}

impl Bench {
    /// A directory for the outputs of one program.
    fn scratch(&self, name: &str) -> Result<PathBuf, ProgramError> {
        let directory = self.out.join("raw").join(name);
        std::fs::create_dir_all(&directory).map_err(io(format!("create {}", directory.display())))?;
        Ok(directory)
    }

    /// A lab for one section.
    fn lab(&self, section: &str, shape: &[&str]) -> Result<Lab, ProgramError> {
        Lab::start(shape, &self.scratch(&format!("lab-{section}"))?)
    }

    /// Whether a run with outputs in this directory has ended well, so that it counts again.
    fn has(&self, directory: &Path) -> bool {
        self.resume && directory.join(ENDED).exists()
    }

    /// A run has ended well.
    fn ended(directory: &Path) -> Result<(), ProgramError> {
        let mark = directory.join(ENDED);
        std::fs::write(&mark, "").map_err(io(format!("write {}", mark.display())))
    }

    fn pick<T>(&self, quick: T, full: T) -> T {
        if self.quick { quick } else { full }
    }
}

/// Runs the bench.
///
/// # Errors
/// Results cannot be written, or a section broke off; the others are measured nevertheless.
pub fn main(args: &Args) -> Result<(), BenchError> {
    let out = match &args.out {
        Some(out) => out.clone(),
        None => PathBuf::from("results").join(format!("{}-rennes-nancy", today()?)),
    };
    std::fs::create_dir_all(&out).map_err(io(format!("create {}", out.display())))?;
    let out = out
        .canonicalize()
        .map_err(io(format!("find {}", out.display())))?;
    let bench = Bench {
        out,
        quick: args.quick,
        resume: args.resume,
        operations: args.operations.clone(),
    };
    let mut host = host::describe();
    host.insert(1, ("causeway".to_owned(), host::commit()));
    let launchers = [&MPIS[0], &MPIS[1], &INTEL];
    host.extend(launchers.map(|mpi| (mpi.name.to_owned(), mpi_version(&mpi.launcher()))));
    let mut report = Report::new(host, made_by(args));
    for &section in Section::value_variants() {
        if args.only.is_empty() || args.only.contains(&section) {
            run(&bench, section, &mut report)?;
        }
    }
    println!("bench: {}", bench.out.join("README.md").display());
    match report.failed() {
        failed if failed.is_empty() => Ok(()),
        failed => Err(BenchError::Sections(failed.join(", "))),
    }
}

/// Runs a section. Results are written after each one, so that a section that breaks off later does not lose
/// them.
fn run(bench: &Bench, section: Section, report: &mut Report) -> Result<(), BenchError> {
    let name = section.name();
    println!("bench: {name}");
    let began = Instant::now();
    match section.measure(bench) {
        Ok(mut part) => {
            let seconds = began.elapsed().as_secs();
            part.text
                .push(format!("Section `{name}`, measured in {seconds} s."));
            report.part(part);
        }
        Err(error) => {
            eprintln!("bench: {name} broke off: {error}");
            report.failure(&name, &error.to_string());
        }
    }
    Ok(report.write(&bench.out)?)
}

/// What a launcher says of its version.
fn mpi_version(launcher: &str) -> String {
    let Ok(output) = Command::new(launcher).arg("--version").output() else {
        return host::unknown();
    };
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let version = text
        .lines()
        .map(str::trim)
        .find(|line| line.contains("Version:") || line.contains("Open MPI"));
    version
        .or_else(|| text.lines().next())
        .map_or_else(host::unknown, |line| {
            line.split_whitespace()
                .collect::<Vec<_>>()
                .join(" ")
                .replace("Version:", "MPICH")
        })
}

fn made_by(args: &Args) -> String {
    let names: Vec<_> = args.only.iter().map(|section| section.name()).collect();
    let mut command = "causeway-measure bench".to_owned();
    if args.quick {
        command += " --quick";
    }
    if args.resume {
        command += " --resume";
    }
    for (option, names) in [("only", &names), ("operations", &args.operations)] {
        if !names.is_empty() {
            command += &format!(" --{option} {}", names.join(","));
        }
    }
    command
}

fn today() -> Result<String, ProgramError> {
    let output = Command::new("date")
        .args(["-u", "+%Y-%m-%d"])
        .output()
        .map_err(io("ask for the date"))?;
    Ok(String::from_utf8_lossy(&output.stdout).trim().to_owned())
}

/// Lines `NUMBER,NUMBER,...` of a CSV file under `head`.
fn numbers(program: &'static str, text: &str, head: &'static str) -> Result<Vec<Vec<f64>>, BenchError> {
    let wrong = || BenchError::output(program, text, head);
    let mut lines = text.lines();
    if lines.next() != Some(head) {
        return Err(wrong());
    }
    let columns = head.split(',').count();
    let row = |line: &str| -> Option<Vec<f64>> {
        let fields: Option<Vec<f64>> = line.split(',').map(|field| field.parse().ok()).collect();
        fields.filter(|fields| fields.len() == columns && fields.iter().all(|value| value.is_finite()))
    };
    lines.map(|line| row(line).ok_or_else(wrong)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Parser;

    #[derive(Parser)]
    struct Cli {
        #[command(flatten)]
        args: Args,
    }

    #[test]
    fn sections_are_chosen_by_name_and_a_wrong_name_is_refused() {
        let args = Cli::parse_from(["bench", "--only", "loss,idle", "--quick"]).args;
        assert_eq!(args.only, [Section::Loss, Section::Idle]);
        assert_eq!(made_by(&args), "causeway-measure bench --quick --only loss,idle");
        assert!(Cli::try_parse_from(["bench", "--only", "los"]).is_err());
        let args = Cli::parse_from(["bench", "--operations", "gather,scan"]).args;
        assert_eq!(made_by(&args), "causeway-measure bench --operations gather,scan");
        assert!(Cli::try_parse_from(["bench", "--operations", "gatter"]).is_err());
    }

    #[test]
    fn rows_have_as_many_numbers_as_their_head() {
        assert_eq!(
            numbers("p", "a,b\n1,2.5\n3,4\n", "a,b").unwrap(),
            [[1.0, 2.5], [3.0, 4.0]]
        );
        for wrong in [
            "",
            "a\n1\n",
            "a,b\n1\n",
            "a,b\n1,x\n",
            "a,b\n1,nan\n",
            "a,b\n1,2,3\n",
        ] {
            assert!(numbers("p", wrong, "a,b").is_err(), "{wrong:?}");
        }
    }
}
