//! Section `loss`: the ping-pong while the link loses packets, and small messages sent twice.

use super::pings::{DIRECT, Pings, Start};
use super::{Bench, BenchError, MPIS, Mpi, ROUTED, Way};
use crate::claim::{Bar, Claim};
use crate::results::Part;
use causeway_bench::lab::Lab;
use causeway_bench::limit::Link;
use std::ops::RangeInclusive;

/// What the link loses, and how near to the limit the bars want every size from 64 kB.
const LOSSES: [(&str, f64); 2] = [("0.1%", 1.3), ("1%", 2.0)];

const SIZES: RangeInclusive<u64> = 64 << 10..=16 << 20;

/// TCP's losses do not depend on the MPI above it; one is measured.
const MPI: &Mpi = &MPIS[0];

/// Small messages and the loss they are measured under; the second lab sends each of them on two lanes.
const SMALL_BYTES: u64 = 1024;
const SMALL_LOSS: &str = "1%";
const DUPLICATED: &str = "causeway twice";
const TWICE: [&str; 4] = ["--grid", "lanes = 2", "--grid", "duplicate_small = true"];

/// See the module.
///
/// # Errors
/// A program fails.
pub fn measure(bench: &Bench) -> Result<Part, BenchError> {
    let mut part = Part::new(
        "Loss",
        "The link loses packets at random in both directions. Direct is CUBIC; its large messages take seconds and are few. \
         Bars: at most 1.3 times the limit from 64 kB under 0.1 % loss, 2 under 1 %; 1 kB under 1 % with duplicate_small, 99th \
         percentile, at most 1.5. A value is half a round trip: it suffers the losses of two messages.",
    );
    let lab = bench.lab("loss", &ROUTED)?;
    part.command(&lab.shape());
    for (loss, bar) in LOSSES {
        part.command(&format!("causeway lab link rennes nancy --loss {loss}"));
        lab.link(&format!("--loss {loss}"))?;
        let pings = sizes(bench, &lab, &mut part, loss)?;
        part.claims.extend(pings.claim(Way::Causeway.name(), SIZES, bar));
        pings.show(&mut part, "loss.csv");
    }
    let pings = small(bench, &lab, &mut part)?;
    part.claims.extend(tail(&pings));
    pings.show(&mut part, "loss.csv");
    Ok(part)
}

fn sizes(bench: &Bench, lab: &Lab, part: &mut Part, loss: &str) -> Result<Pings, BenchError> {
    let mut pings = Pings::new(MPI, &format!("{loss} loss"), &Way::BOTH.map(Way::name));
    let medium = bench.pick(
        "--sizes 65536,262144 --count 4",
        "--sizes 65536,262144,1048576 --count 10",
    );
    let large = |way| match (bench.quick, way) {
        (true, _) => "--sizes 1048576 --count 3 --warm-up 1",
        // 16 MB under 1 % loss cross in ten seconds.
        (false, Way::Direct) => "--sizes 4194304,16777216 --count 2 --warm-up 1",
        (false, Way::Causeway) => "--sizes 4194304,16777216 --count 10",
    };
    for run in 0..bench.pick(1, 2) {
        for way in Way::BOTH {
            for (name, options) in [("medium", medium), ("large", large(way))] {
                let start = Start {
                    mpi: MPI,
                    way,
                    ranks: 1,
                    options,
                };
                let label = format!("loss-{loss}-{name}-{}-{run}", way.name());
                pings.add(way.name(), run, &start.run(bench, lab, part, &label)?)?;
            }
        }
    }
    Ok(pings)
}

fn small(bench: &Bench, lab: &Lab, part: &mut Part) -> Result<Pings, BenchError> {
    let shape: Vec<&str> = TWICE.iter().chain(&ROUTED).copied().collect();
    let twice = bench.lab("loss-twice", &shape)?;
    for lab in [lab, &twice] {
        lab.link(&format!("--loss {SMALL_LOSS}"))?;
    }
    part.command(&format!("{} ('{DUPLICATED}')", twice.shape()));
    let ways = [
        (DIRECT, Way::Direct, lab),
        (Way::Causeway.name(), Way::Causeway, lab),
        (DUPLICATED, Way::Causeway, &twice),
    ];
    let mut pings = Pings::new(
        MPI,
        &format!("1 kB and {SMALL_LOSS} loss"),
        &ways.map(|(name, ..)| name),
    );
    let options = format!("--sizes {SMALL_BYTES} --count {}", bench.pick(50, 1000));
    for (name, way, lab) in ways {
        let start = Start {
            mpi: MPI,
            way,
            ranks: 1,
            options: &options,
        };
        let label = format!("loss-small-{}", name.replace(' ', "-"));
        pings.add(name, 0, &start.run(bench, lab, part, &label)?)?;
    }
    Ok(pings)
}

fn tail(pings: &Pings) -> Option<Claim> {
    let limit = Link::RENNES_NANCY.one_way_us(SMALL_BYTES);
    let of_limit = |way| Some(pings.of(way, SMALL_BYTES)?.p99 / limit);
    Some(Claim {
        what: format!("{}: of limit, 99th percentile, sent twice", pings.title()),
        direct: of_limit(DIRECT),
        figure: of_limit(DUPLICATED)?,
        unit: "",
        bar: Bar::AtMost(1.5),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_tail_of_small_messages_is_that_of_those_sent_twice() {
        let mut pings = Pings::new(MPI, "x", &[DIRECT, DUPLICATED]);
        let limit = Link::RENNES_NANCY.one_way_us(SMALL_BYTES);
        let rows = |factor: f64| {
            format!(
                "size_bytes,iteration,one_way_us\n{SMALL_BYTES},0,{}\n",
                limit * factor
            )
        };
        pings.add(DIRECT, 0, &rows(20.0)).unwrap();
        assert_eq!(tail(&pings), None);
        pings.add(DUPLICATED, 0, &rows(1.25)).unwrap();
        let claim = tail(&pings).unwrap();
        assert!((claim.figure - 1.25).abs() < 1e-6 && (claim.direct.unwrap() - 20.0).abs() < 1e-6);
    }
}
