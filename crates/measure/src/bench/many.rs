//! Section `many`: the ping-pong of one pair while 8+8 processes are connected, each with each.

use super::pingpong::bars;
use super::pings::in_turn;
use super::{Bench, BenchError, ROUTED};
use crate::results::Part;

/// Ranks at each site; the papers' testbed had as many.
const RANKS: u32 = 8;

/// See the module.
///
/// # Errors
/// A program fails.
pub fn measure(bench: &Bench) -> Result<Part, BenchError> {
    let lab = bench.lab("many", &ROUTED)?;
    let mut part = Part::new(
        "Ping-pong among 8+8 connected processes",
        "Sixteen ranks, four on each of two nodes a site. Every rank has exchanged a message with every other before the clock \
         counts; then the first rank of one site and the last of the other measure, each on a core of its own, and the others \
         sleep. The bars are those of the ping-pong.",
    );
    part.command(&lab.shape());
    let hot = bench.pick(
        "--sizes 1,65536,1048576 --count 5 --connect-all",
        "--most 16777216 --count 20 --connect-all",
    );
    let idle = bench.pick(
        "--sizes 1,65536 --count 3 --idle 300 --connect-all",
        "--sizes 1,16384,65536,262144,1048576,4194304 --count 10 --idle 300 --connect-all",
    );
    let runs = bench.pick(1, 2);
    let mut all = in_turn(bench, &lab, &mut part, "8+8 hot", (RANKS, hot, runs))?;
    all.extend(in_turn(
        bench,
        &lab,
        &mut part,
        "8+8 after 300 ms",
        (RANKS, idle, 1),
    )?);
    for pings in &all {
        part.claims.extend(bars(pings));
        pings.show(&mut part, "many.csv");
    }
    Ok(part)
}
