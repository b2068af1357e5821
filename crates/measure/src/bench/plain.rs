//! Section `plain`: the same path without an MPI, directly, through two programs that only copy, and through
//! the gateways.

use super::pings::{DIRECT, Pings, read};
use super::{Bench, BenchError, DEADLINE, FAR_HEAD, HEAD, MPIS, ROUTED, Way};
use crate::checkout::repository;
use crate::results::Part;
use causeway_bench::lab::Lab;
use causeway_bench::program::io;
use causeway_host::quoted;

/// The way through a relay at each head node.
const RELAYS: &str = "relays";

/// Sizes in bytes, and round trips of a run.
const SIZES: [(u64, u32); 4] = [(1, 500), (64 << 10, 100), (256 << 10, 100), (1 << 20, 100)];

/// A direct connection that pauses for longer than its retransmission timeout restarts with a small window; a
/// pause that is shorter than that shows only what waking costs.
const PAUSE_MS: u64 = 100;

/// Round trips of a run with pauses.
const PAUSES: u32 = 50;

/// See the module.
///
/// # Errors
/// A program fails.
pub fn measure(bench: &Bench) -> Result<Part, BenchError> {
    let lab = bench.lab("plain", &ROUTED)?;
    let mut part = Part::new(
        "Plain TCP, no MPI",
        "Two programs on cores of their own, started by Open MPI's launcher, send a message over TCP to and fro, waiting busily: directly, \
         through a relay at each head node which only reads and writes, in the gateway's place and at its priority, and through the \
         gateways. What the direct way takes here is what the emulated path gives; no gateway can add less than the relays do, since \
         two programs more have to be woken on cores that the ranks never leave; and what an MPI takes beyond the third is its own.",
    );
    part.command(&lab.shape());
    for idle in [0, PAUSE_MS] {
        let condition = match idle {
            0 => "hot".to_owned(),
            idle => format!("after {idle} ms"),
        };
        let ways = [DIRECT, RELAYS, Way::Causeway.name()];
        let mut pings = Pings::new("plain TCP", &condition, &ways);
        for run in 0..bench.pick(1, 3) {
            for (size, hot) in SIZES {
                let count = bench.pick(10, if idle > 0 { PAUSES } else { hot });
                let options = format!("--size {size} --idle {idle} --count {count}");
                for way in ways {
                    println!("bench:   plain TCP, {way}, {options}, run {run}");
                    let rows = round_trips(bench, &lab, &mut part, (way, &options, run))?;
                    pings.add(way, run, &rows)?;
                }
            }
        }
        pings.show(&mut part, "plain.csv");
    }
    Ok(part)
}

/// Rows of one run.
fn round_trips(
    bench: &Bench,
    lab: &Lab,
    part: &mut Part,
    (way, options, run): (&str, &str, u32),
) -> Result<String, BenchError> {
    let measure = std::env::current_exe().map_err(io("find this program"))?;
    let byte = format!("{} byte", quoted(measure));
    let far = FAR_HEAD.replace("head", "1");
    let label = format!("plain-{way}-{run}{}", options.replace([' ', '-'], ""));
    let mut to = format!("{far}:7100");
    let mut relays = Vec::new();
    if way == RELAYS {
        let hops = [(FAR_HEAD, 7101, to), (HEAD, 7102, format!("{FAR_HEAD}.wan:7101"))];
        for (node, port, next) in hops {
            let directory = bench.scratch(&format!("{label}-{node}"))?;
            let command = format!("chrt --rr 1 {byte} relay {port} {next}");
            relays.push(lab.program(node, &command, &directory, DEADLINE)?.start()?);
        }
        to = format!("{HEAD}:7102");
    }
    let option = if way == Way::Causeway.name() {
        "--no-collectives"
    } else {
        "--direct"
    };
    let own_core = repository().join("tests/programs/own-core.sh");
    let command = format!(
        "causeway run {option} --sites rennes=1,nancy=1 -- {} -n 2 {} {byte} rank 7100 {to} {options} rows.csv",
        MPIS[0].launcher(),
        own_core.display(),
    );
    let directory = bench.scratch(&label)?;
    lab.program(HEAD, &command, &directory, DEADLINE)?.succeed()?;
    for relay in relays {
        relay.succeed()?;
    }
    part.command(&format!("causeway-measure byte rank ... {options} ({way})"));
    read(&directory.join("rows.csv"))
}
