//! `causeway connect HOST PORT`: connects standard input and output to a port over the gateways, as a
//! ProxyCommand of ssh.
//!
//! ```text
//! ssh -- connect -- gateway == tunnel == gateway -- HOST:PORT
//! ```

use causeway_host::say;
use causeway_paths::connection::{ConnectError, gateway_status, native, start_job, through};
use causeway_paths::copy;
use causeway_paths::destination::{self, Destination};
use std::process::ExitCode;

/// Connect standard input and output to a port at another site, through the gateways.
#[derive(clap::Args)]
pub struct Args {
    /// A node of the grid, or an address at a site.
    host: String,
    /// The TCP port. The far site must accept connections to it from this site (connect_from under accept).
    #[arg(value_parser = clap::value_parser!(u16).range(1..))]
    port: u16,
    /// If this command is killed, keep the connection until both its ends have closed it. Without this
    /// option it is reset soon after.
    #[arg(long)]
    linger: bool,
}

/// Copies until both directions have ended. The status is 0 then, and 1 if the connection failed.
pub fn main(args: Args) -> ExitCode {
    match run(&args) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            say::error(format_args!("causeway connect: {error}"));
            ExitCode::FAILURE
        }
    }
}

fn run(args: &Args) -> Result<(), ConnectError> {
    // The name is for people, and no longer than a node's may be.
    let host: String = args.host.chars().take(255).collect();
    let status = gateway_status()?;
    let mut _held = None;
    let (destination, stream) = match destination::find(&status, &args.host, args.port)? {
        // Nodes of one site reach each other without Causeway.
        Destination::Here(address) => (address, native(address)?),
        Destination::At {
            site,
            address,
            gateway,
        } => {
            let (job, held) = start_job(format!("connect {host} {}", args.port), &site, args.linger)?;
            _held = Some(held);
            (address, through(job, (&status.site, &site), address, gateway)?)
        }
    };
    copy::both_ways(stream).map_err(|error| ConnectError::Broken(destination, error))
}
