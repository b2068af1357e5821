//! `causeway gateway`.

use crate::say;
use causeway_gateway::{Config, Gateway, ports};
use clap::Args;
use std::path::PathBuf;
use std::process::ExitCode;

/// Serve this site: run on its head node.
#[derive(Args)]
pub struct GatewayArgs {
    /// Configuration; configs/gateway.toml in the sources shows every key.
    #[arg(long, value_name = "FILE")]
    config: PathBuf,
}

/// Runs a gateway until it is told to stop.
pub fn gateway(args: GatewayArgs) -> ExitCode {
    let config = match Config::load(&args.config) {
        Ok(config) => config,
        Err(mistakes) => {
            say::error(mistakes);
            return ExitCode::from(2);
        }
    };
    if let Err(error) = ports::check(&config.delivery_ports) {
        say::error(format_args!("causeway gateway: {error}"));
        return ExitCode::from(2);
    }
    match Gateway::new(config).and_then(|mut gateway| gateway.run()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            say::error(format_args!("causeway gateway: {error}"));
            ExitCode::FAILURE
        }
    }
}
