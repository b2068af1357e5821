//! What `causeway up` and `causeway down` run on a head node, with the Causeway that they have put there.

use super::accept;
use super::facts::Facts;
use super::reach;
use super::remove;
use causeway_host::say;
use causeway_service::proxy::Proxy;
use clap::Subcommand;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use std::fs;
use std::net::IpAddr;
use std::os::fd::AsFd;
use std::path::{Path, PathBuf};
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
        #[arg(long)]
        proxy: Option<String>,
        #[arg(long)]
        proxy_credentials: Option<PathBuf>,
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

/// Runs one of these parts.
pub fn main(part: &Part) -> ExitCode {
    match part {
        Part::Look => match serde_json::to_string(&Facts::here()) {
            Ok(facts) => say::result(facts),
            Err(error) => failed(&error),
        },
        Part::Listen { word, ports } => {
            let listens = || {
                // If this fails, nobody waits for the word any more.
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
            proxy,
            proxy_credentials,
            addresses,
        } => {
            let proxy = match way_out(proxy.as_deref(), proxy_credentials.as_deref()) {
                Ok(proxy) => proxy,
                Err(why) => return failed(&why),
            };
            let mut first = None;
            for ip in addresses {
                match reach::dial(*ip, *port, word, proxy.as_ref()) {
                    Ok(()) => return say::result(ip),
                    Err(why) => first = first.or(Some(why)),
                }
            }
            match first {
                // The user has to know what the proxy demands.
                Some(why) if proxy.is_some() => failed(&why),
                _ => say::result("none"),
            }
        }
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

/// The web proxy that these words describe.
fn way_out(proxy: Option<&str>, credentials: Option<&Path>) -> Result<Option<Proxy>, String> {
    let Some(text) = proxy else { return Ok(None) };
    let proxy = Proxy::parse(text).map_err(|why| format!("--proxy {text}: {why}"))?;
    let Some(file) = credentials else {
        return Ok(Some(proxy));
    };
    let line = fs::read_to_string(file);
    let line = line.map_err(|error| format!("--proxy-credentials: read {}: {error}", file.display()))?;
    Ok(Some(proxy.with_credentials(line.trim())))
}

fn failed(error: &dyn std::fmt::Display) -> ExitCode {
    say::error(error);
    ExitCode::FAILURE
}

/// Whether the process that started this one is gone.
fn has_ended() -> bool {
    let stdin = std::io::stdin();
    let mut polled = [PollFd::new(stdin.as_fd(), PollFlags::POLLIN)];
    poll(&mut polled, PollTimeout::ZERO).is_ok_and(|ready| ready > 0)
}
