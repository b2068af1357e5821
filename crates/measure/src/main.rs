//! The causeway-measure command: `make demo` and `make bench`, and the parts of them that run inside the lab.

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
    /// Two emulated sites, real MPI programs over them, a report.
    Demo(demo::Args),
    /// Direct and Causeway in turn, figures into results/.
    Bench(bench::Args),
}

fn main() -> ExitCode {
    let done = match Cli::parse().task {
        Task::Demo(args) => demo::main(&args).map_err(|error| error.to_string()),
        Task::Bench(args) => bench::main(&args).map_err(|error| error.to_string()),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("causeway-measure: {error}");
            ExitCode::FAILURE
        }
    }
}
