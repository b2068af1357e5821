//! Measures with the present settings and with those that the table wants, in turn.

use super::Args;
use crate::version::VERSION;
use causeway_bench::cell::{Settings, Traffic, Way};
use causeway_bench::running::wanted::Common;
use causeway_bench::running::{self as bench, Step};
use causeway_host::say;
use std::process::ExitCode;

/// A short, a medium and a long message, each after a pause in which windows shrink.
const SIZES: [u64; 3] = [1, 64 << 10, 1 << 20];
const PAUSE_MILLISECONDS: u64 = 300;
const ROUNDS: u32 = 20;

/// The status is that of the measurement.
pub fn main(args: &Args) -> ExitCode {
    let way = match args.direct {
        true => Way::Direct,
        false => Way::Causeway,
    };
    let common = Common {
        out: Some(args.out.clone().unwrap_or_else(|| "tune-verify".into())),
        lab: args.lab.iter().cloned().collect(),
        mpi: args.mpi.clone(),
        ways: vec![way],
        settings: vec![Settings::Default, Settings::Tuned],
        traffic: vec![Traffic::Quiet],
        flows: 1,
        sites: vec![],
        ranks: None,
        least: 3,
        most: 3,
        interval: 2.0,
        time_limit: 120,
        seed: 1,
        link: args.link.clone(),
        json: args.json,
        version: VERSION.to_owned(),
    };
    say::error(
        "causeway tune: measuring without and with the changes, in turn; everything is restored at the end",
    );
    bench::verify(common, (&SIZES, ROUNDS, PAUSE_MILLISECONDS), &step)
}

/// The step that precedes a run.
fn step(way: Way, settings: Settings) -> Step {
    let words: &[&str] = match settings {
        Settings::Default => &["tune", "--undo"],
        Settings::Tuned => &["tune", "--apply=kernel"],
    };
    let direct = (way == Way::Direct && settings == Settings::Tuned).then_some("--direct");
    Step {
        words: words.iter().copied().chain(direct).map(str::to_owned).collect(),
        // The kernels that matter are those of the hosts that have connections between sites.
        on_nodes: way == Way::Direct,
    }
}
