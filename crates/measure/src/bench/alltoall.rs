//! Section `alltoall`: MPI_Alltoall of 2 MB for each pair of 4+4 ranks.

use super::pings::read;
use super::{Bench, BenchError, DEADLINE, HEAD, MPIS, ROUTED, Way, numbers};
use crate::checkout::test_program;
use crate::claim::{Bar, Claim};
use crate::results::Part;
use causeway_bench::limit::Link;
use causeway_bench::samples::summary;
use causeway_bench::table::{Table, size};
use std::fmt::Write as _;

/// Bytes that each rank sends to each other one.
const BYTES: u64 = 2 << 20;

/// Ranks at each site.
const RANKS: u64 = 4;

/// See the module.
///
/// # Errors
/// A program fails.
pub fn measure(bench: &Bench) -> Result<Part, BenchError> {
    let lab = bench.lab("alltoall", &ROUTED)?;
    let mut part = Part::new(
        "All-to-all of 2 MB over 4+4 ranks",
        "From the last start to the last end over all ranks, which start at one instant of the clock they share. The limit is \
         R/2 + s x ranks here x ranks there / B. The contents of the first round are checked, outside the clock. Eight ranks \
         that busy-wait share the cores of this machine, both ways alike. The bar: Causeway takes at most as long as direct.",
    );
    part.command(&lab.shape());
    let mut table = Table::new(&[
        "MPI",
        "way",
        "median (ms)",
        "mean (ms)",
        "min (ms)",
        "max (ms)",
        "of limit",
        "n",
    ]);
    let mut rows = "mpi,way,run,size_bytes,iteration,seconds\n".to_owned();
    let limit = Link::RENNES_NANCY.all_to_all_us(BYTES, RANKS, RANKS) / 1e6;
    let count = bench.pick(3, 10);
    for mpi in &MPIS {
        let mut seconds = [Vec::new(), Vec::new()];
        for run in 0..bench.pick(1, 2) {
            for (way, seconds) in Way::BOTH.into_iter().zip(&mut seconds) {
                println!("bench:   all-to-all, {}, {}, run {run}", mpi.name, way.name());
                let directory = bench.scratch(&format!("alltoall-{}-{}-{run}", mpi.programs, way.name()))?;
                let command = format!(
                    "causeway run {}--sites rennes={RANKS},nancy={RANKS} -- {} -n {} {} rows.csv {BYTES} {count}",
                    way.option(),
                    mpi.launcher(),
                    2 * RANKS,
                    test_program(mpi.programs, "alltoall_time"),
                );
                lab.program(HEAD, &command, &directory, DEADLINE)?.succeed()?;
                part.command(&command);
                let text = read(&directory.join("rows.csv"))?;
                let found = numbers("alltoall_time", &text, "size_bytes,iteration,seconds")?;
                seconds.extend(found.iter().filter_map(|row| row.last()));
                for row in text.lines().skip(1) {
                    let _ = writeln!(rows, "{},{},{run},{row}", mpi.name, way.name());
                }
            }
        }
        show(&mut part, &mut table, mpi.name, limit, seconds);
    }
    part.tables.push((
        format!("{} for each pair, limit {:.1} ms", size(BYTES), limit * 1e3),
        table,
    ));
    part.files.push(("alltoall.csv".into(), rows));
    Ok(part)
}

/// Writes one MPI's times into the table, those of each way in seconds.
fn show(part: &mut Part, table: &mut Table, mpi: &str, limit: f64, seconds: [Vec<f64>; 2]) {
    let found = seconds.map(|seconds| summary(&seconds));
    for (way, found) in Way::BOTH.into_iter().zip(&found) {
        let Some(found) = found else { continue };
        let mut row = vec![mpi.to_owned(), way.name().to_owned()];
        row.extend(
            [found.median, found.mean, found.min, found.max].map(|seconds| format!("{:.1}", seconds * 1e3)),
        );
        row.extend([format!("{:.2}", found.median / limit), found.count.to_string()]);
        table.rows.push(row);
    }
    if let [Some(direct), Some(causeway)] = found {
        part.claims.push(Claim {
            what: format!("{}: all-to-all, median, of direct", mpi),
            direct: Some(1.0),
            figure: causeway.median / direct.median,
            unit: "",
            bar: Bar::AtMost(1.0),
        });
    }
}
