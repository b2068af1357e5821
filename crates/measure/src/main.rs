//! The causeway-measure command: `make demo` and `make bench`, and the parts of them that run inside the lab.

use causeway_measure::bench::byte;
use causeway_measure::{bench, demo};
use clap::{Parser, Subcommand};
use std::process::ExitCode;

#[derive(Parser)]
#[command(name = "causeway-measure", version)]
struct Cli {
    #[command(subcommand)]
    task: Task,
}

#[derive(Subcommand)]
enum Task {
    /// Run real MPI programs over two emulated sites, and write a report.
    Demo(demo::Args),
    /// Measure direct connections and Causeway in turn, and write the figures into results/.
    Bench(bench::Args),
    /// Run a ping-pong of one byte, or a relay that only copies; the bench starts these inside the lab.
    #[command(subcommand, hide = true)]
    Byte(byte::Byte),
}

fn main() -> ExitCode {
    let done = match Cli::parse().task {
        Task::Demo(args) => demo::main(&args).map_err(|error| error.to_string()),
        Task::Bench(args) => bench::main(&args).map_err(|error| error.to_string()),
        Task::Byte(part) => byte::main(&part).map_err(|error| format!("{part:?}: {error}")),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("causeway-measure: {error}");
            ExitCode::FAILURE
        }
    }
}
