//! What `causeway bench` starts as ranks of a launcher if no MPI is measured.

use causeway_bench::running::part::{keep_busy, tell_cores, to_and_fro};
use causeway_bench::tcp::Plan;
use causeway_host::say;
use std::process::ExitCode;
use std::time::Duration;

/// What a rank does.
#[derive(Debug, clap::Subcommand)]
pub enum Part {
    /// Send messages to and fro, between rank 0 and rank 1.
    Tcp(TcpPart),
    /// Keep the link busy, from rank 0 to rank 1.
    Flows {
        /// HOST:PORT of rank 1.
        to: String,
        /// Connections.
        flows: usize,
    },
    /// Say on which cores this rank may compute.
    Cores,
}

/// See [`Part::Tcp`].
#[derive(Debug, clap::Args)]
pub struct TcpPart {
    /// HOST:PORT of rank 1.
    to: String,
    #[arg(long, value_delimiter = ',')]
    sizes: Vec<u64>,
    #[arg(long)]
    count: u32,
    #[arg(long)]
    seconds: f64,
    #[arg(long, default_value_t = 0)]
    idle: u64,
    /// Keep each rank to a core of its own.
    #[arg(long)]
    own_cores: bool,
}

impl TcpPart {
    fn plan(&self) -> Plan {
        Plan {
            sizes: self.sizes.clone(),
            count: self.count,
            seconds: self.seconds,
            idle: Duration::from_millis(self.idle),
        }
    }
}

/// The status is 1, with the reason, if it fails.
pub fn main(part: &Part) -> ExitCode {
    let done = match part {
        Part::Tcp(part) => to_and_fro(&part.to, &part.plan(), part.own_cores),
        Part::Flows { to, flows } => keep_busy(to, *flows),
        Part::Cores => tell_cores(),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            say::error(format_args!("causeway bench: {error}"));
            ExitCode::FAILURE
        }
    }
}
