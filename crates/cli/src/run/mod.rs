//! `causeway run -- mpirun ...`: one job over the sites of the grid. `read` turns the arguments into what the
//! run is meant to do, by the rules of `apart`; crates/run does it.

pub mod apart;
pub mod fetch;
mod read;

use crate::place::WeighingArgs;
use causeway_host::say;
use causeway_run::child::ChildError;
use causeway_run::error::RunError;
use causeway_run::phase::{self, Phase};
use causeway_run::{AWAY, LOST, NO_COMMON_START, WRONG_USE, execute};
use nix::sys::prctl::set_pdeathsig;
use nix::sys::signal::Signal;
pub use read::read;
use std::ffi::OsString;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

/// Run an MPI launcher over the sites of the grid.
#[derive(Debug, Clone, clap::Args)]
// `causeway submit` has arguments of the same name, which take these in.
#[group(skip)]
pub struct Args {
    /// Sites to use, with or without the ranks of each: rennes=2,nancy=2 or rennes,nancy [default: all].
    #[arg(long, value_name = "SITE[=RANKS],...")]
    pub sites: Option<String>,
    /// Use nodes of an allocation that the site's batch system has given: rennes:1234, once for each site.
    /// Without it, an allocation in which causeway run itself runs is used (docs/batch.md).
    #[arg(long, value_name = "SITE:ID")]
    pub alloc: Vec<String>,
    /// Get allocations of the batch systems of all sites of --sites at the same time, each for so long, run,
    /// and give them back (docs/batch.md).
    #[arg(long, value_name = "TIME", value_parser = causeway_units::time, requires = "sites")]
    pub time: Option<Duration>,
    /// Give up if the allocations of --time, or a submitted job, have not begun after so long [default: 6h].
    #[arg(long, value_name = "TIME", value_parser = causeway_units::time)]
    pub wait: Option<Duration>,
    /// Give all nodes back if those of one site have waited for the others for so long, and ask again.
    #[arg(long, value_name = "TIME", value_parser = causeway_units::time, default_value = "5min", requires = "time")]
    pub idle: Duration,
    /// Give a site's batch system options for the allocation, such as rennes:'--partition=fast --account=p7'.
    /// The site says which it allows.
    #[arg(long, value_name = "SITE:OPTIONS", requires = "time")]
    pub batch: Vec<String>,
    /// Start everything the same way, but let ranks connect directly. The sites need a route to each other.
    #[arg(long)]
    pub direct: bool,
    /// Run without the shim, for example for statically linked programs. The routers of all sites must hand
    /// connections to the gateways (docs/transparent.md).
    #[arg(long)]
    pub transparent: bool,
    /// Leave collective operations to the MPI (docs/collectives.md).
    #[arg(long)]
    pub no_collectives: bool,
    /// Profile that names groups of ranks, which the program can query (docs/topology.md, docs/profile.md).
    #[arg(long, value_name = "FILE")]
    pub groups: Option<PathBuf>,
    /// Place the groups of a job's profile on sites, and run the profile's command or program there, for the
    /// profile's time. A command given here takes the place of the profile's (docs/profile.md).
    #[arg(long, value_name = "FILE")]
    pub profile: Option<PathBuf>,
    #[command(flatten)]
    pub weighing: WeighingArgs,
    /// Rules that choose the algorithms of collective operations (docs/collectives.md).
    #[arg(long, value_name = "FILE")]
    pub collectives: Option<PathBuf>,
    /// Combine in rank order in reductions, so that the result has the same bits wherever the ranks run.
    /// Takes longer (docs/collectives.md).
    #[arg(long)]
    pub same_bits: bool,
    /// This job's share of busy tunnels: a job of weight 3 gets three times the bytes of one of weight 1.
    #[arg(long, value_name = "1..100", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=100))]
    pub weight: u32,
    /// Apply all settings of tested MPI versions to one that was not tested with Causeway
    /// (docs/settings.md).
    #[arg(long)]
    pub tune_untested: bool,
    /// Keep the MPI's own limits and collective operations, to see what tuning gains.
    #[arg(long)]
    pub no_tune: bool,
    /// Print which MPI was found, where its ranks run and which environment variables are set.
    #[arg(long, short)]
    pub verbose: bool,
    /// Run COMMAND at SITE, where it starts that site's own MPI. Give this option once for each site, in rank
    /// order (docs/own-mpi.md).
    #[arg(long, num_args = 2, value_names = ["SITE", "COMMAND"])]
    pub at: Vec<String>,
    /// Let each site start a program with its own MPI, with as many ranks as --sites or a placement says:
    /// --own-mpi --sites rennes=32,nancy=16 -- ./app (docs/own-mpi.md).
    #[arg(long)]
    pub own_mpi: bool,
    /// Run a script, or any other program, that starts MPI by itself: each launcher that it finds in PATH
    /// runs over the sites, by these options (docs/scripts.md).
    #[arg(long)]
    pub script: bool,
    /// Copy this file or directory to the nodes of each site, or of SITE alone, and run there, in a directory
    /// of the job's own, where it is NAME (docs/files.md).
    #[arg(long, value_name = "[SITE:]PATH[=NAME]")]
    pub send: Vec<PathBuf>,
    /// Send all files, and leave no copies of large ones at the nodes for later jobs.
    #[arg(long, requires = "send")]
    pub send_anew: bool,
    /// When the job has ended, copy what matches this pattern from the job's directory at each site to the
    /// current directory.
    #[arg(long, value_name = "PATTERN", requires = "send")]
    pub fetch: Vec<String>,
    /// Write to this file how far the run is; causeway carry passes this.
    #[arg(long, hide = true, value_name = "FILE")]
    pub report: Option<PathBuf>,
    /// When a submitted job gives up, in seconds since 1970; causeway carry passes this.
    #[arg(long, hide = true, value_name = "SECONDS")]
    pub wait_until: Option<u64>,
    /// The launcher and its arguments, as you would type them without causeway.
    #[arg(
        trailing_var_arg = true,
        allow_hyphen_values = true,
        value_name = "mpirun ..."
    )]
    pub command: Vec<OsString>,
}

/// Runs the launcher; the status is the launcher's, 2 when the command line or the grid does not allow it.
pub fn main(args: &Args) -> ExitCode {
    let done = read(args).and_then(|run| {
        let is_of_a_job = run.report.is_some();
        // If the process that carries this job is killed, for whatever reason, the run must end.
        if is_of_a_job {
            let _ = set_pdeathsig(Signal::SIGKILL);
        }
        let waits = run.asks_for_nodes() || run.profile.is_some() || is_of_a_job;
        match run.wait {
            Some(_) if !waits => Err(RunError::WaitWithoutTime),
            _ => execute(run),
        }
    });
    match done {
        Ok(status) => ExitCode::from(status),
        Err(error) => {
            say::error(format_args!("causeway: {error}"));
            if error.may_pass() {
                let line = error.to_string();
                phase::report(args.report.as_deref(), &Phase::Away { line });
            }
            ExitCode::from(match error {
                _ if args.report.is_some() && error.may_pass() => AWAY,
                RunError::NoCommonStart(_) => NO_COMMON_START,
                RunError::HolderGone(_) | RunError::Child(ChildError::Lost(_)) => LOST,
                _ => WRONG_USE,
            })
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Args;
    use clap::Parser;
    use std::ffi::OsStr;

    #[derive(Parser)]
    struct Command {
        #[command(flatten)]
        run: Args,
    }

    impl Args {
        /// What somebody has typed after `causeway run`.
        pub fn typed(words: &[impl AsRef<OsStr>]) -> Args {
            let words = words.iter().map(AsRef::as_ref);
            Command::parse_from([OsStr::new("run")].into_iter().chain(words)).run
        }

        /// The names of all long options.
        pub fn long_options() -> Vec<String> {
            let command = <Command as clap::CommandFactory>::command();
            let long = command.get_arguments().filter_map(|argument| argument.get_long());
            long.map(|long| format!("--{long}")).collect()
        }
    }
}
