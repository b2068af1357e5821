//! `causeway place`: which sites get the groups of a job's profile.

use causeway_host::say;
use causeway_run::place::{SECONDS, Weighing, place, price};
use std::path::PathBuf;
use std::process::ExitCode;

/// Show which sites the groups of a job's profile get (docs/profile.md).
#[derive(Debug, clap::Args)]
pub struct Args {
    /// The profile, in TOML or QCG's XML.
    #[arg(value_name = "PROFILE")]
    file: PathBuf,
    /// Look for so long for a placement and for a proof that there is no better one, in seconds.
    #[arg(long, value_name = "SECONDS", default_value_t = SECONDS, value_parser = clap::value_parser!(u32).range(1..=3600))]
    seconds: u32,
    #[command(flatten)]
    weighing: WeighingArgs,
}

/// What makes one placement better than another.
#[derive(Debug, Clone, Default, clap::Args)]
pub struct WeighingArgs {
    /// Choose a placement that starts as soon as can be; among these one in which the program takes the least
    /// time, by the figures that causeway bench worth has left in FILE (worth.json).
    #[arg(long, value_name = "FILE")]
    worth: Option<PathBuf>,
    /// Choose a placement that starts as soon as can be; among these one that costs the least, with a price
    /// for a core at each site: rennes=0.04,nancy=0.02.
    #[arg(long, value_name = "SITE=PRICE,...", value_delimiter = ',', value_parser = price)]
    price: Vec<(String, u64)>,
    /// Let time or cost come before the start.
    #[arg(long)]
    start_later: bool,
}

impl WeighingArgs {
    /// The weighing that the options ask for.
    pub fn read(&self) -> Weighing {
        Weighing {
            worth: self.worth.clone(),
            price: self.price.clone(),
            start_later: self.start_later,
        }
    }
}

/// Prints a line for each group, and the option that runs the job this way. The status is 2 if the profile
/// has mistakes or cannot be placed.
pub fn main(args: &Args) -> ExitCode {
    match place(&args.file, &args.weighing.read(), args.seconds) {
        Ok((_, placed)) => say::result(placed.lines().join("\n")),
        Err(failure) => {
            say::error(format_args!("causeway place: {failure}"));
            ExitCode::from(failure.code)
        }
    }
}
