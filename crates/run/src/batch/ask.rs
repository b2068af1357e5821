//! `causeway ask-batch`: asks the site's batch system which nodes an allocation has, and tells them to the
//! gateway that started this process.

use super::commands::Batch;
use causeway_batch::is_id;
use causeway_control::{self as control, Request};
use causeway_host::say;
use std::path::PathBuf;
use std::process::ExitCode;

/// See the module.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// Where the gateway serves commands.
    #[arg(long)]
    control: PathBuf,
    /// The number under which it asks.
    #[arg(long)]
    number: u64,
    #[command(flatten)]
    batch: Batch,
    /// The allocation.
    id: String,
}

/// Asks the batch system, and passes the answer to the gateway.
pub fn main(args: &Args) -> ExitCode {
    super::unblock_signals();
    if let Err(error) = causeway_remote::parent::end_with_parent() {
        say::error(error);
        return ExitCode::FAILURE;
    }
    let found = match is_id(&args.id) {
        true => args.batch.nodes(&args.id, false),
        false => Err(format!("{:?} is not the id of an allocation", args.id)),
    };
    let (nodes, why) = match found {
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
