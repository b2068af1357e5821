//! `causeway rendezvous`: one rendezvous on this host, without gateways, for tests of the world library.

use causeway_host::say;
use causeway_rendezvous::{Event, FAILURE, Meeting, Server};
use causeway_wire::Token;
use std::io;
use std::net::{SocketAddr, TcpListener};
use std::process::ExitCode;

/// See the module.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// A site, in the order of ranks; given once for each.
    #[arg(long = "site", value_name = "NAME", required = true)]
    sites: Vec<String>,
    /// The job's token.
    #[arg(long, value_name = "HEX", default_value = "00000000000000000000000000000000")]
    token: Token,
    /// Where to listen.
    #[arg(long, value_name = "IP:PORT", default_value = "127.0.0.1:0")]
    listen: SocketAddr,
}

/// Prints the address, serves one world, and ends when all sites are done. The status is 1 if there was no
/// world, or it ended otherwise.
pub fn main(args: &Args) -> ExitCode {
    match serve(args) {
        Ok(None) => ExitCode::SUCCESS,
        Ok(Some(reason)) => {
            say::error(format_args!("causeway: {reason}"));
            ExitCode::FAILURE
        }
        Err(error) => {
            say::error(format_args!("causeway: rendezvous at {}: {error}", args.listen));
            ExitCode::FAILURE
        }
    }
}

fn serve(args: &Args) -> io::Result<Option<String>> {
    let listener = TcpListener::bind(args.listen)?;
    let address = listener.local_addr()?;
    let mut number = [0; 8];
    getrandom::fill(&mut number).map_err(io::Error::other)?;
    let meeting = Meeting::new(&args.sites, u64::from_le_bytes(number));
    let mut server = Server::new(listener, meeting, args.token, None)?;
    if say::output(address).is_err() {
        return Ok(Some("nobody reads the address".to_owned()));
    }
    while !server.is_over() {
        for event in server.turn(None)? {
            if let Some((code, reason)) = why_over(&event, &args.sites) {
                server.end(code, &reason)?;
                return Ok(Some(reason));
            }
        }
    }
    Ok(None)
}

/// Code and reason, for an event that ends the world.
fn why_over(event: &Event, sites: &[String]) -> Option<(u32, String)> {
    match event {
        Event::Refused { reason, .. } => Some((FAILURE, reason.clone())),
        Event::Aborted { site, code, text } => Some((*code, format!("site {}: {text}", sites[*site]))),
        Event::Lost { site } => {
            let site = &sites[*site];
            Some((
                FAILURE,
                format!("site {site}: rank 0 was gone before all ranks had finished"),
            ))
        }
        Event::Joined { .. } | Event::Made { .. } | Event::Done { .. } => None,
    }
}
