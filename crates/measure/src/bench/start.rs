//! Section `start`: how long a job takes that does nothing.

use super::{Bench, BenchError, DEADLINE, HEAD, MPIS, Mpi, ROUTED, Way};
use crate::claim::{Bar, Claim};
use crate::results::Part;
use causeway_bench::samples::{Summary, summary};
use causeway_bench::table::Table;
use std::fmt::Write as _;

/// See the module.
///
/// # Errors
/// A program fails.
pub fn measure(bench: &Bench) -> Result<Part, BenchError> {
    let lab = bench.lab("start", &ROUTED)?;
    let mut part = Part::new(
        "Start of 4 ranks on 4 nodes",
        "`mpirun -n 4 hostname` from start to end, both ways in turn, the median of five. The bar: Causeway takes at most 1 s \
         longer.",
    );
    part.command(&lab.shape());
    let mut table = Table::new(&["MPI", "way", "starts", "median (s)", "mean (s)", "min (s)"]);
    let mut rows = "mpi,way,run,seconds\n".to_owned();
    for mpi in &MPIS {
        let mut seconds = [Vec::new(), Vec::new()];
        for run in 0..bench.pick(2, 5) {
            for (way, seconds) in Way::BOTH.into_iter().zip(&mut seconds) {
                let directory = bench.scratch(&format!("start-{}-{}-{run}", mpi.programs, way.name()))?;
                let command = format!("causeway run {}-- {} -n 4 hostname", way.option(), mpi.launcher());
                let ended = lab.program(HEAD, &command, &directory, DEADLINE)?.succeed()?;
                part.command(&command);
                let elapsed = ended.elapsed.as_secs_f64();
                let _ = writeln!(rows, "{},{},{run},{elapsed:.4}", mpi.name, way.name());
                seconds.push(elapsed);
            }
        }
        let found = seconds.map(|seconds| summary(&seconds));
        for (way, found) in Way::BOTH.into_iter().zip(&found) {
            table.rows.extend(found.map(|found| row(mpi, way, &found)));
        }
        if let [Some(direct), Some(causeway)] = found {
            part.claims.push(Claim {
                what: format!("{}: start of 4 ranks, median, added", mpi.name),
                direct: None,
                figure: causeway.median - direct.median,
                unit: " s",
                bar: Bar::AtMost(1.0),
            });
        }
    }
    part.tables.push(("Start to end".into(), table));
    part.files.push(("start.csv".into(), rows));
    Ok(part)
}

fn row(mpi: &Mpi, way: Way, found: &Summary) -> Vec<String> {
    let mut row = vec![
        mpi.name.to_owned(),
        way.name().to_owned(),
        found.count.to_string(),
    ];
    row.extend([found.median, found.mean, found.min].map(|seconds| format!("{seconds:.2}")));
    row
}
