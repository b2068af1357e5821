//! Section `collectives`: what the library of collectives gains over the MPI's own, both through Causeway,
//! and how far the result is from the limit.

use super::pings::read;
use super::{Bench, BenchError, DEADLINE, HEAD, INTEL, MPIS, Mpi, ROUTED};
use crate::checkout::test_program;
use crate::claim::{Bar, Claim};
use crate::results::Part;
use causeway_bench::limit::Link;
use causeway_bench::samples::{Summary, summary};
use causeway_bench::table::{Table, size};
use causeway_wire::TextError;
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::time::Duration;

/// Bytes of one rank's part; for a reduced or broadcast vector, of the whole vector.
const SIZES: &str = "8,4096,65536,1048576,4194304";

/// Above this size, other bars apply.
const SMALL: u64 = 64 << 10;

/// An operation, and its bars up to [`SMALL`] and above.
const OPERATIONS: [(&str, f64, f64); 10] = [
    ("barrier", 1.3, 1.5),
    ("bcast", 1.3, 1.5),
    ("reduce", 1.3, 1.5),
    ("allreduce", 1.3, 1.5),
    ("gather", 1.3, 1.5),
    ("scatter", 1.3, 1.5),
    ("allgather", 1.3, 1.5),
    ("reduce_scatter", 1.5, 1.8),
    ("alltoall", 1.5, 1.8),
    ("scan", 1.5, 1.8),
];

/// The three sites of coti-2011; the site with the root, and the longest path from there.
const THREE_SITES: [&str; 3] = ["--routed", "true", "orsay-rennes-bordeaux"];
const THREE_SITES_HEAD: &str = "orsay-head";
const ORSAY_RENNES: Link = Link {
    round_trip: Duration::from_micros(10_300),
    rate_bits_per_second: 1e9,
};

/// Ranks at each site, and whether ranks of two sites alternate in the communicator's order.
struct Placement {
    sites: &'static [(&'static str, u64)],
    in_turn: bool,
}

const TWO: [Placement; 3] = [
    Placement {
        sites: &[("rennes", 4), ("nancy", 4)],
        in_turn: false,
    },
    Placement {
        sites: &[("rennes", 4), ("nancy", 4)],
        in_turn: true,
    },
    Placement {
        sites: &[("rennes", 4), ("nancy", 3)],
        in_turn: false,
    },
];

const THREE: [Placement; 1] = [Placement {
    sites: &[("orsay", 3), ("rennes", 3), ("bordeaux", 3)],
    in_turn: false,
}];

impl Placement {
    fn name(&self) -> String {
        let ranks: Vec<_> = self.sites.iter().map(|(_, ranks)| ranks.to_string()).collect();
        format!(
            "{}{}",
            ranks.join("+"),
            if self.in_turn { ", in turn" } else { "" }
        )
    }

    /// The sites in the form that `causeway run` wants, and the number of ranks in all.
    fn said(&self) -> (String, u64) {
        let said: Vec<_> = self
            .sites
            .iter()
            .map(|(site, ranks)| format!("{site}={ranks}"))
            .collect();
        (said.join(","), self.sites.iter().map(|(_, ranks)| ranks).sum())
    }

    /// Ranks of the root's site, of the largest other one, and of the smallest.
    fn ranks(&self) -> (u64, u64, u64) {
        let others = || self.sites[1..].iter().map(|(_, ranks)| *ranks);
        (
            self.sites[0].1,
            others().max().unwrap_or(0),
            others().min().unwrap_or(0),
        )
    }
}

/// An operation that is measured, for the command line.
///
/// # Errors
/// The name is not an operation's; the error lists those that are.
pub fn operation(name: &str) -> Result<String, TextError> {
    let names = OPERATIONS.map(|(name, ..)| name);
    match names.contains(&name) {
        true => Ok(name.to_owned()),
        false => Err(format!("measured are: {}", names.join(", ")).into()),
    }
}

/// Ways to run: without the library, and with it.
const WAYS: [(&str, &str); 2] = [("native", "--no-collectives "), ("causeway", "")];

/// The values of each of `WAYS`.
#[derive(Default)]
struct Found {
    seconds: [Vec<f64>; 2],
    /// What a loop of OSU's or Intel's kind reports, once in each run.
    looped: [Vec<f64>; 2],
}

type Times = BTreeMap<(String, u64), Found>;

/// See the module.
///
/// # Errors
/// A program fails.
pub fn measure(bench: &Bench) -> Result<Part, BenchError> {
    let mut part = Part::new(
        "Collectives over sites",
        "From the last start to the last end over all ranks, which start at one instant of the clock they share; through Causeway both \
         ways, with and without its library of collectives, in turn. Sizes are one rank's part; of bcast, reduce, allreduce and scan the \
         whole. The limit is R/2 + what has to cross one way / B, R that of the longest way from the root: of a scan of ranks in turn, one \
         vector for each rank of the other site. Loop: what the loops of OSU's and Intel's benchmarks report, the mean over all ranks of a \
         rank's own time, a barrier after each round: it counts ranks that leave early, and those that the barrier let go late. Eight or nine ranks share the cores of this machine. So that those that wait let \
         the others run, MPICH uses sockets alone (MPIR_CVAR_NOLOCAL=1) and Intel MPI waits in the kernel (I_MPI_WAIT_MODE=1, I_MPI_THREAD_YIELD=3), \
         both ways.",
    );
    let mut rows = "mpi,ranks,placement,way,run,operation,size_bytes,iteration,seconds\n".to_owned();
    let scenarios: [(&[&str], &str, Link, &[Placement]); 2] = [
        (&ROUTED, HEAD, Link::RENNES_NANCY, &TWO),
        (&THREE_SITES, THREE_SITES_HEAD, ORSAY_RENNES, &THREE),
    ];
    for (scenario, head, link, placements) in scenarios {
        let lab = bench.lab("collectives", scenario)?;
        part.command(&lab.shape());
        for mpi in MPIS.iter().chain([&INTEL]) {
            for placement in placements {
                let name = format!("{}, {}", mpi.name, placement.name());
                let mut times = Times::new();
                for run in 0..bench.pick(1, 2) {
                    for (number, (way, option)) in WAYS.into_iter().enumerate() {
                        println!("bench:   collectives, {name}, {way}, run {run}");
                        let directory = bench.scratch(&format!(
                            "collectives-{}-{}-{way}-{run}",
                            mpi.programs,
                            placement.name().replace(", ", "-")
                        ))?;
                        let command = command(bench, mpi, option, placement);
                        if !bench.has(&directory) {
                            lab.program(head, &command, &directory, DEADLINE)?.succeed()?;
                            Bench::ended(&directory)?;
                        }
                        part.command(&command);
                        let text = read(&directory.join("rows.csv"))?;
                        for row in text.lines().skip(1) {
                            add(&mut times, number, row)?;
                            let (ranks, in_turn) = (placement.name(), placement.in_turn);
                            let ranks = ranks.split(',').next().unwrap_or_default();
                            let _ = writeln!(rows, "{},{ranks},{in_turn},{way},{run},{row}", mpi.name);
                        }
                    }
                }
                show(&mut part, &name, &times, placement, &link);
            }
        }
    }
    part.files.push(("collectives.csv".into(), rows));
    Ok(part)
}

/// Adds a program's row to what was found for a way.
fn add(times: &mut Times, way: usize, row: &str) -> Result<(), BenchError> {
    let (key, is_loop, seconds) =
        parse(row).ok_or_else(|| BenchError::output("collective_time", row, "4 columns"))?;
    let found = times.entry(key).or_default();
    let values = if is_loop {
        &mut found.looped
    } else {
        &mut found.seconds
    };
    values[way].push(seconds);
    Ok(())
}

fn command(bench: &Bench, mpi: &Mpi, option: &str, placement: &Placement) -> String {
    let wanted =
        |name: &str| bench.operations.is_empty() || bench.operations.iter().any(|wanted| wanted == name);
    let operations: Vec<_> = OPERATIONS
        .iter()
        .map(|(name, ..)| *name)
        .filter(|name| wanted(name))
        .collect();
    let launcher = mpi.launcher();
    let turns = match placement.in_turn {
        true => format!(" {}", placement.sites[0].1),
        false => String::new(),
    };
    let (sites, ranks) = placement.said();
    format!(
        "MPIR_CVAR_NOLOCAL=1 I_MPI_WAIT_MODE=1 I_MPI_THREAD_YIELD=3 causeway run {option}--sites {sites} -- {launcher} -n {ranks} {} rows.csv {} {} {SIZES}{turns}",
        test_program(mpi.programs, "collective_time"),
        bench.pick(3, 10),
        operations.join(",")
    )
}

/// Operation and size, whether it is the mean of a loop, and seconds.
fn parse(row: &str) -> Option<((String, u64), bool, f64)> {
    let fields: Vec<&str> = row.split(',').collect();
    let [operation, size, iteration, seconds] = fields[..] else {
        return None;
    };
    let key = (operation.to_owned(), size.parse().ok()?);
    Some((key, iteration == "loop", seconds.parse().ok()?))
}

/// Earliest end, in seconds.
fn limit(operation: &str, bytes: u64, placement: &Placement, link: &Link) -> f64 {
    let (here, most_there, least_there) = placement.ranks();
    let crossing = match operation {
        "barrier" => 0,
        // The root is at the first site: this is what the ranks of one other site send or receive, because
        // each site has its own path.
        "gather" | "scatter" => bytes * most_there,
        "allgather" | "reduce_scatter" => bytes * here.max(most_there),
        "alltoall" => bytes * here * most_there,
        "scan" if placement.in_turn => bytes * here.min(least_there),
        _ => bytes,
    };
    link.one_way_us(crossing) / 1e6
}

fn show(part: &mut Part, name: &str, times: &Times, placement: &Placement, link: &Link) {
    let mut table = Table::new(&[
        "operation",
        "size",
        "limit (ms)",
        "native: median (ms)",
        "of limit",
        "causeway: median (ms)",
        "of limit",
        "n",
        "native/causeway",
        "native, loop (ms)",
        "causeway, loop (ms)",
    ]);
    // The slowest so far: operation, size, ratio.
    let mut slowest = (0.0, String::new());
    for (operation, small, large) in OPERATIONS {
        let mut worst = [0.0_f64; 2];
        for ((_, bytes), found) in times.iter().filter(|((name, _), _)| name == operation) {
            let [Some(native), Some(causeway)] = found.seconds.each_ref().map(|seconds| summary(seconds))
            else {
                continue;
            };
            let limit = limit(operation, *bytes, placement, link);
            let times_limit = causeway.median / limit;
            let class = usize::from(*bytes > SMALL);
            worst[class] = worst[class].max(times_limit);
            let times_native = causeway.median / native.median;
            if times_native > slowest.0 {
                slowest = (times_native, format!("{operation}, {}", size(*bytes)));
            }
            table
                .rows
                .push(row(operation, *bytes, limit, &native, &causeway, &found.looped));
        }
        for (figure, bar, sizes) in [(worst[0], small, "up to 64 kB"), (worst[1], large, "above")] {
            if figure > 0.0 {
                part.claims.push(claim(
                    format!("{name}: {operation} of limit, {sizes}"),
                    figure,
                    bar,
                ));
            }
        }
    }
    part.claims.push(claim(
        format!("{name}: of native, worst ({})", slowest.1),
        slowest.0,
        1.05,
    ));
    part.tables.push((name.to_owned(), table));
}

fn row(
    operation: &str,
    bytes: u64,
    limit: f64,
    native: &Summary,
    causeway: &Summary,
    looped: &[Vec<f64>; 2],
) -> Vec<String> {
    [
        operation.to_owned(),
        size(bytes),
        format!("{:.2}", limit * 1e3),
        format!("{:.2}", native.median * 1e3),
        format!("{:.2}", native.median / limit),
        format!("{:.2}", causeway.median * 1e3),
        format!("{:.2}", causeway.median / limit),
        causeway.count.to_string(),
        format!("{:.2}", native.median / causeway.median),
    ]
    .into_iter()
    .chain(looped.each_ref().map(|seconds| mean_ms(seconds)))
    .collect()
}

fn mean_ms(seconds: &[f64]) -> String {
    summary(seconds).map_or_else(|| "-".to_owned(), |found| format!("{:.2}", found.mean * 1e3))
}

fn claim(what: String, figure: f64, bar: f64) -> Claim {
    Claim {
        what,
        direct: None,
        figure,
        unit: "",
        bar: Bar::AtMost(bar),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limits_count_what_has_to_cross() {
        let two = |operation, placement: &Placement| {
            (limit(operation, 125_000, placement, &Link::RENNES_NANCY) * 1e3 - 5.8).round()
        };
        let [even, in_turn, odd] = &TWO;
        assert_eq!(two("barrier", even), 0.0);
        assert_eq!(two("allreduce", even), 1.0);
        assert_eq!(two("gather", odd), 3.0);
        assert_eq!(two("allgather", odd), 4.0);
        assert_eq!(two("alltoall", odd), 12.0);
        assert_eq!([two("scan", even), two("scan", in_turn)], [1.0, 4.0]);
        let three = |operation| (limit(operation, 125_000, &THREE[0], &ORSAY_RENNES) * 1e3 - 5.15).round();
        assert_eq!(
            [three("bcast"), three("gather"), three("alltoall")],
            [1.0, 3.0, 9.0]
        );
    }

    #[test]
    fn rows_have_an_operation_a_size_and_a_time() {
        assert_eq!(parse("bcast,8,0,0.5"), Some((("bcast".into(), 8), false, 0.5)));
        assert_eq!(parse("bcast,8,loop,0.5"), Some((("bcast".into(), 8), true, 0.5)));
        assert_eq!(parse("bcast,8,0.5"), None);
    }
}
