//! Section `pingpong`: one-way times from 1 B to 64 MB, one message after the other.

use super::pings::{Pings, in_turn};
use super::{Bench, BenchError, ROUTED, Way};
use crate::claim::Claim;
use crate::results::Part;

/// Sizes up to which the first bar holds, and from where the second.
const SMALL: std::ops::RangeInclusive<u64> = 1..=1 << 20;
const LARGE: std::ops::RangeInclusive<u64> = (1 << 20) + 1..=64 << 20;

/// Bars of issue 3 for a link without loss, hot or idle, few or many processes.
pub fn bars(pings: &Pings) -> impl Iterator<Item = Claim> {
    let way = Way::Causeway.name();
    let claims = [pings.claim(way, SMALL, 1.07), pings.claim(way, LARGE, 1.10)];
    claims.into_iter().flatten()
}

/// See the module.
///
/// # Errors
/// A program fails.
pub fn measure(bench: &Bench) -> Result<Part, BenchError> {
    let lab = bench.lab("pingpong", &ROUTED)?;
    let mut part = Part::new(
        "Ping-pong, hot",
        "One rank at each site, each on a core of its own; one message after the other, 1 B to 64 MB. The bar: at most 1.07 \
         times the limit up to 1 MB, 1.10 times above.",
    );
    part.command(&lab.shape());
    let options = bench.pick("--most 1048576 --count 5", "--most 67108864 --count 20");
    let all = in_turn(bench, &lab, &mut part, "hot", (1, options, bench.pick(1, 2)))?;
    for pings in &all {
        part.claims.extend(bars(pings));
        pings.show(&mut part, "pingpong.csv");
    }
    Ok(part)
}
