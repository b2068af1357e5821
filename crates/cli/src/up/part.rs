//! What `causeway up` and `causeway down` have done on a head node, by the Causeway that they have put there.

use super::accept;
use super::facts::Facts;
use super::reach;
use super::remove;
use crate::say;
use clap::Subcommand;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use std::net::IpAddr;
use std::os::fd::AsFd;
use std::process::ExitCode;

#[derive(Subcommand)]
pub enum Part {
    /// Print what this host is and has.
    Look,
    /// Let other hosts dial this one, for a minute or until standard input ends.
    Listen {
        #[arg(long)]
        word: String,
        ports: Vec<u16>,
    },
    /// Print the first of these addresses at which a host with this word listens.
    Dial {
        #[arg(long)]
        word: String,
        #[arg(long)]
        port: u16,
        addresses: Vec<IpAddr>,
    },
    /// Let jobs of these sites run here, too.
    Accept { sites: Vec<String> },
    /// End this user's gateway and broker.
    Stop {
        /// Even if jobs run.
        #[arg(long)]
        force: bool,
    },
    /// Remove what 'causeway up' has made here, but for the programs.
    Remove,
}

/// Runs one of them.
pub fn main(part: &Part) -> ExitCode {
    match part {
        Part::Look => match serde_json::to_string(&Facts::here()) {
            Ok(facts) => say::result(facts),
            Err(error) => failed(&error),
        },
        Part::Listen { word, ports } => {
            let listens = || {
                // Nobody waits for it any more.
                let _ = say::output("listens");
            };
            match reach::listen(ports, word, listens, has_ended) {
                Ok(()) => ExitCode::SUCCESS,
                Err(error) => failed(&error),
            }
        }
        Part::Dial {
            word,
            port,
            addresses,
        } => match addresses.iter().find(|ip| reach::dial(**ip, *port, word)) {
            Some(ip) => say::result(ip),
            None => say::result("none"),
        },
        Part::Accept { sites } => match accept::accept(sites) {
            Ok(()) => ExitCode::SUCCESS,
            Err(error) => failed(&error),
        },
        Part::Stop { force } => match remove::stop(*force) {
            Ok(done) => say::result(done.join("\n")),
            Err(error) => failed(&error),
        },
        Part::Remove => match remove::remove() {
            Ok(()) => ExitCode::SUCCESS,
            Err(error) => failed(&error),
        },
    }
}

fn failed(error: &dyn std::fmt::Display) -> ExitCode {
    say::error(error);
    ExitCode::FAILURE
}

/// Whether whoever has started this has gone.
fn has_ended() -> bool {
    let stdin = std::io::stdin();
    let mut polled = [PollFd::new(stdin.as_fd(), PollFlags::POLLIN)];
    poll(&mut polled, PollTimeout::ZERO).is_ok_and(|ready| ready > 0)
}
