//! `causeway ask-batch`: asks the site's batch system which nodes an allocation has, and tells the gateway
//! that started this. The commands' words and what their answers mean are in `causeway_batch`.

use crate::say;
use causeway_batch::{Node, System, is_id};
use causeway_control::{self as control, NodeInfo, Request};
use causeway_wire::Cidr;
use nix::sys::signal::{SigSet, SigmaskHow, sigprocmask};
use std::net::{IpAddr, ToSocketAddrs};
use std::path::PathBuf;
use std::process::{Command, ExitCode, Stdio};

/// Characters of a command's complaint that are passed on.
const COMPLAINT: usize = 300;

/// See the module.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// Where the gateway serves commands.
    #[arg(long)]
    control: PathBuf,
    /// The number under which it asks.
    #[arg(long)]
    number: u64,
    /// The batch system.
    #[arg(long)]
    system: System,
    /// Its configuration.
    #[arg(long)]
    conf: Option<PathBuf>,
    /// Ranges in which the site's nodes have addresses.
    #[arg(long = "subnet")]
    subnets: Vec<Cidr>,
    /// The allocation.
    id: String,
}

/// Asks and tells.
pub fn main(args: &Args) -> ExitCode {
    // As for start-node: the gateway's signals are blocked.
    let _ = sigprocmask(SigmaskHow::SIG_SETMASK, Some(&SigSet::empty()), None);
    if let Err(error) = crate::remote::parent::end_with_parent() {
        say::error(error);
        return ExitCode::FAILURE;
    }
    let (nodes, why) = match find(args) {
        Ok(nodes) => (nodes, None),
        Err(why) => (Vec::new(), Some(why)),
    };
    let number = args.number;
    match control::ask(&args.control, &Request::Looked { number, nodes, why }) {
        Ok(_) => ExitCode::SUCCESS,
        Err(error) => {
            say::error(error);
            ExitCode::FAILURE
        }
    }
}

fn find(args: &Args) -> Result<Vec<NodeInfo>, String> {
    if !is_id(&args.id) {
        return Err(format!(
            "{:?} is not the id of an allocation, which is a number",
            args.id
        ));
    }
    let listed = run(args, &args.system.list_words())?;
    let list = args
        .system
        .running(&args.id, &listed)
        .map_err(|error| error.to_string())?;
    let [job, described] = args.system.describe_words(&args.id, &list);
    let (job, described) = (run(args, &job)?, run(args, &described)?);
    let nodes = args.system.nodes(&args.id, &list, [&job, &described]);
    let nodes = nodes.map_err(|error| error.to_string())?;
    nodes.into_iter().map(|node| info(args, node)).collect()
}

/// A node by its address in the site.
fn info(args: &Args, node: Node) -> Result<NodeInfo, String> {
    let resolved: Vec<IpAddr> = match node.address.parse() {
        Ok(address) => vec![address],
        Err(_) => { (node.address.as_str(), 0).to_socket_addrs() }
            .map_err(|error| format!("address {} of node {}: {error}", node.address, node.name))?
            .map(|address| address.ip())
            .collect(),
    };
    let is_inside = |address: &&IpAddr| args.subnets.iter().any(|subnet| subnet.contains(**address));
    let address = resolved.iter().find(is_inside).copied().ok_or_else(|| {
        format!(
            "node {} of allocation {} is at {}, which is not in the site's subnets; add its network to subnets in [site]",
            node.name, args.id, node.address
        )
    })?;
    Ok(NodeInfo {
        name: node.name,
        address,
        slots: node.slots,
    })
}

/// Runs one of the batch system's commands, and returns what it printed.
fn run(args: &Args, words: &[String]) -> Result<String, String> {
    let (program, arguments) = words.split_first().ok_or("no command")?;
    let mut command = Command::new(program);
    command.args(arguments).stdin(Stdio::null());
    command.envs(args.system.answers().iter().copied());
    if let Some(conf) = &args.conf {
        command.env(args.system.configuration(), conf);
    }
    let output = command
        .output()
        .map_err(|error| format!("run {program}: {error}"))?;
    if output.status.success() {
        return Ok(String::from_utf8_lossy(&output.stdout).into_owned());
    }
    let said = String::from_utf8_lossy(&output.stderr);
    let last = said.lines().map(str::trim).rfind(|line| !line.is_empty());
    let last: String = last
        .unwrap_or("it printed nothing")
        .chars()
        .take(COMPLAINT)
        .collect();
    Err(format!("{}: {} ({last})", words.join(" "), output.status))
}
