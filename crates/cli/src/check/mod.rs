//! `causeway check`: checks everything that a job depends on, and says for each what is wrong and what to do.
//!
//! It changes nothing: no file, no setting, and no gateway. `steps` defines a step; each of the other files
//! checks one thing.

mod accept;
mod accounts;
mod data;
mod gateway;
mod limits;
mod listeners;
mod membership;
mod mpi;
mod nodes;
mod peers;
mod program;
pub mod starts;
mod steps;

use causeway_control::questions;
use causeway_control::{self as control, ControlError, Status};
use causeway_gateway::{Config, config::Mistakes};
use causeway_host::say;
use std::ffi::OsString;
use std::path::PathBuf;
use std::process::ExitCode;
use steps::{Group, Report};

/// Check everything that jobs over sites need: this site's gateway, other sites, limits, libraries, MPIs.
#[derive(clap::Args)]
pub struct Args {
    /// The gateway's configuration [default: ~/.config/causeway/gateway.toml, if it exists].
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    /// The MPI launcher to check [default: all in PATH].
    #[arg(long, value_name = "MPIRUN")]
    mpi: Option<OsString>,
    /// Also try the remote shell to each node of this site.
    #[arg(long)]
    nodes: bool,
    /// Run a test job on the nodes of all sites for SECONDS (60) that checks whether the MPI delivers what
    /// was sent. Nothing else should run.
    #[arg(long, value_name = "SECONDS", num_args = 0..=1, require_equals = true, default_missing_value = "60",
          value_parser = clap::value_parser!(u32).range(1..=86_400))]
    data: Option<u32>,
    /// Print the steps as JSON.
    #[arg(long)]
    json: bool,
    /// The program that you want to run over sites.
    program: Option<PathBuf>,
}

/// What the steps check.
pub(super) struct Subject {
    config: Option<Result<Config, Mistakes>>,
    /// Where this host's gateway serves commands.
    socket: PathBuf,
    status: Result<Status, ControlError>,
}

impl Subject {
    fn new(file: Option<&PathBuf>) -> Subject {
        let config = file.map(|file| Config::load(file));
        let socket = match &config {
            Some(Ok(config)) => config.control.clone(),
            _ => control::socket(),
        };
        let status = questions::status(&socket);
        Subject {
            config,
            socket,
            status,
        }
    }

    fn config(&self) -> Option<&Config> {
        self.config.as_ref()?.as_ref().ok()
    }

    fn status(&self) -> Option<&Status> {
        self.status.as_ref().ok()
    }
}

/// Checks and reports; the status is 1 if a step failed.
pub fn main(args: Args) -> ExitCode {
    let usual = causeway_host::user_directories::gateway_config()
        .ok()
        .filter(|file| file.exists());
    let file = args.config.clone().or(usual);
    let subject = Subject::new(file.as_ref());
    let mut groups = vec![
        Group::new("configuration", gateway::configuration(&subject, file.as_deref())),
        Group::new("gateway of this site", gateway::running(&subject)),
        Group::new("membership", membership::look(&subject)),
        Group::new("what others may do here", accept::look(&subject)),
        Group::new("limits of this host", limits::look(&subject)),
    ];
    groups.extend(peers::look(&subject));
    groups.push(Group::new("libraries beside causeway", program::libraries()));
    groups.push(Group::new("MPI", mpi::look(args.mpi.as_deref())));
    groups.push(Group::new(
        "how this site starts programs",
        starts::look(&subject),
    ));
    if let Some(program) = &args.program {
        groups.push(Group::new("program", program::look(program)));
    }
    if args.nodes {
        groups.push(Group::new("nodes of this site", nodes::look(&subject)));
    }
    if let Some(seconds) = args.data {
        let step = data::look(&subject, args.mpi.as_deref(), seconds);
        groups.push(Group::new("data", vec![step]));
    }
    show(&Report::new(groups), args.json)
}

fn show(report: &Report, json: bool) -> ExitCode {
    let shown = match json {
        false => say::output(report),
        true => match serde_json::to_string_pretty(report) {
            Ok(text) => say::output(text),
            Err(error) => {
                say::error(format_args!("causeway check: {error}"));
                return ExitCode::FAILURE;
            }
        },
    };
    match shown {
        Err(code) => code,
        Ok(()) if report.ok => ExitCode::SUCCESS,
        Ok(()) => ExitCode::FAILURE,
    }
}
