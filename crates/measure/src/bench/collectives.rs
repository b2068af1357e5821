//! Section `collectives`: what the library of collectives gains over the MPI's own, both through Causeway, and how far from the limit it is.

use super::pings::read;
use super::{Bench, BenchError, DEADLINE, HEAD, ROUTED};
use crate::claim::{Bar, Claim};
use crate::lab::test_program;
use crate::limit::Link;
use crate::program::repository;
use crate::report::Part;
use crate::samples::summary;
use crate::table::{Table, size};
use std::collections::BTreeMap;
use std::fmt::Write as _;

/// Bytes of one rank's part; of a reduced or broadcast vector, of all.
const SIZES: &str = "8,65536,1048576";

/// Bars change above this.
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

/// Ranks at each site, and whether they take turns in the communicator's order.
const PLACEMENTS: [(u64, u64, bool); 3] = [(4, 4, false), (4, 4, true), (4, 3, false)];

/// With the library, and without it.
const WAYS: [(&str, &str); 2] = [("native", "--no-collectives "), ("causeway", "")];

struct Mpi {
    name: &'static str,
    /// As it is called in the repository, with what it needs before it.
    launcher: &'static str,
    programs: &'static str,
}

/// MPICH 4.0.2 and its kin spin in shared memory without giving their core up: four of them on one core measure its time slices (1 s for a
/// reduction of 1 MB on one host). MPICH 5 gives it up where it uses sockets alone.
const MPIS: [Mpi; 2] = [
    Mpi {
        name: "Open MPI 4.1.4",
        launcher: "mpirun.openmpi",
        programs: "debian-openmpi",
    },
    Mpi {
        name: "MPICH 5",
        launcher: "/.cache/mpi/mpich/bin/mpirun",
        programs: "mpich",
    },
];

type Times = BTreeMap<(String, u64), [Vec<f64>; 2]>;

/// See the module.
///
/// # Errors
/// A program fails.
pub fn measure(bench: &Bench) -> Result<Part, BenchError> {
    let lab = bench.lab("collectives", &ROUTED)?;
    let mut part = Part::new(
        "Collectives over two sites",
        "From the last start to the last end over all ranks, which start at one instant of the clock they share; through Causeway both \
         ways, with and without its library of collectives, in turn. Sizes are one rank's part; of bcast, reduce, allreduce and scan the \
         whole. The limit is R/2 + what has to cross / B: of a scan of ranks in turn, one vector for each rank of the other site. \
         Eight ranks that wait busily share the cores of this machine; MPICH uses sockets alone (MPIR_CVAR_NOLOCAL=1), both ways.",
    );
    part.command(&lab.shape());
    let mut rows = "mpi,ranks,placement,way,run,operation,size_bytes,iteration,seconds\n".to_owned();
    for mpi in MPIS.iter().filter(|mpi| is_there(mpi)) {
        for (here, there, in_turn) in PLACEMENTS {
            let name = format!(
                "{}, {here}+{there}{}",
                mpi.name,
                if in_turn { ", in turn" } else { "" }
            );
            let mut times = Times::new();
            for run in 0..bench.pick(1, 2) {
                for (number, (way, option)) in WAYS.into_iter().enumerate() {
                    println!("bench:   collectives, {name}, {way}, run {run}");
                    let directory = bench.scratch(&format!(
                        "collectives-{}-{here}{there}{in_turn}-{way}-{run}",
                        mpi.programs
                    ))?;
                    let command = command(bench, mpi, option, (here, there, in_turn));
                    lab.program(HEAD, &command, &directory, DEADLINE)?.succeed()?;
                    part.command(&command);
                    let text = read(&directory.join("rows.csv"))?;
                    for row in text.lines().skip(1) {
                        let (key, seconds) = parse(row)
                            .ok_or_else(|| BenchError::output("collective_time", row, "4 columns"))?;
                        times.entry(key).or_default()[number].push(seconds);
                        let _ = writeln!(rows, "{},{here}+{there},{in_turn},{way},{run},{row}", mpi.name);
                    }
                }
            }
            show(&mut part, &name, &times, (here, there, in_turn));
        }
    }
    part.files.push(("collectives.csv".into(), rows));
    Ok(part)
}

fn is_there(mpi: &Mpi) -> bool {
    let program = format!("target/mpi/{}/collective_time", mpi.programs);
    repository().join(program).is_file()
}

fn command(bench: &Bench, mpi: &Mpi, option: &str, (here, there, in_turn): (u64, u64, bool)) -> String {
    let operations: Vec<_> = OPERATIONS.iter().map(|(name, ..)| *name).collect();
    let root = repository();
    let launcher = match mpi.launcher.starts_with('/') {
        true => format!("{}{}", root.display(), mpi.launcher),
        false => mpi.launcher.to_owned(),
    };
    let turns = if in_turn {
        format!(" {here}")
    } else {
        String::new()
    };
    format!(
        "MPIR_CVAR_NOLOCAL=1 causeway run {option}--sites rennes={here},nancy={there} -- {launcher} -n {} {} rows.csv {} {} {SIZES}{turns}",
        here + there,
        test_program(mpi.programs, "collective_time"),
        bench.pick(3, 10),
        operations.join(",")
    )
}

fn parse(row: &str) -> Option<((String, u64), f64)> {
    let fields: Vec<&str> = row.split(',').collect();
    let [operation, size, _, seconds] = fields[..] else {
        return None;
    };
    Some(((operation.to_owned(), size.parse().ok()?), seconds.parse().ok()?))
}

/// Earliest end, in seconds.
fn limit(operation: &str, bytes: u64, (here, there, in_turn): (u64, u64, bool)) -> f64 {
    let crossing = match operation {
        "barrier" => 0,
        // The first site's root: what the other one's ranks send or get.
        "gather" | "scatter" => bytes * there,
        "allgather" | "reduce_scatter" => bytes * here.max(there),
        "alltoall" => bytes * here * there,
        "scan" if in_turn => bytes * here.min(there),
        _ => bytes,
    };
    Link::RENNES_NANCY.one_way_us(crossing) / 1e6
}

fn show(part: &mut Part, name: &str, times: &Times, placement: (u64, u64, bool)) {
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
    ]);
    // Of the worst: operation, size, ratio.
    let mut slowest = (0.0, String::new());
    for (operation, small, large) in OPERATIONS {
        let mut worst = [0.0_f64; 2];
        for ((_, bytes), found) in times.iter().filter(|((name, _), _)| name == operation) {
            let [Some(native), Some(causeway)] = found.each_ref().map(|seconds| summary(seconds)) else {
                continue;
            };
            let limit = limit(operation, *bytes, placement);
            let of_limit = causeway.median / limit;
            let class = usize::from(*bytes > SMALL);
            worst[class] = worst[class].max(of_limit);
            let of_native = causeway.median / native.median;
            if of_native > slowest.0 {
                slowest = (of_native, format!("{operation}, {}", size(*bytes)));
            }
            table.rows.push(vec![
                operation.to_owned(),
                size(*bytes),
                format!("{:.2}", limit * 1e3),
                format!("{:.2}", native.median * 1e3),
                format!("{:.2}", native.median / limit),
                format!("{:.2}", causeway.median * 1e3),
                format!("{of_limit:.2}"),
                causeway.count.to_string(),
                format!("{:.2}", native.median / causeway.median),
            ]);
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
        let at = |operation, placement| (limit(operation, 125_000, placement) * 1e3 - 5.8).round();
        assert_eq!(at("barrier", (4, 4, false)), 0.0);
        assert_eq!(at("allreduce", (4, 4, false)), 1.0);
        assert_eq!(at("gather", (4, 3, false)), 3.0);
        assert_eq!(at("allgather", (4, 3, false)), 4.0);
        assert_eq!(at("alltoall", (4, 3, false)), 12.0);
        assert_eq!([at("scan", (4, 4, false)), at("scan", (4, 4, true))], [1.0, 4.0]);
    }

    #[test]
    fn rows_have_an_operation_a_size_and_a_time() {
        assert_eq!(parse("bcast,8,0,0.5"), Some((("bcast".into(), 8), 0.5)));
        assert_eq!(parse("bcast,8,0.5"), None);
    }
}
