//! Section `peers`: the same messages of an MPI directly, through tunnels that people make by hand (WireGuard
//! in user space, an ssh tunnel over BBR), and through Causeway.

use super::{Bench, BenchError, DEADLINE, HEAD, MPIS, ROUTED};
use crate::checkout::repository;
use crate::results::Part;
use causeway_bench::limit::Link;
use causeway_bench::samples::summary;
use causeway_bench::store;
use causeway_bench::table::{Table, size};
use causeway_host::quoted;
use std::collections::BTreeMap;
use std::fmt::Write as _;

/// How packets get to the other site. Causeway comes last, so that the others leave no trace on its path.
const WAYS: [&str; 4] = ["direct", "wireguard", "ssh", "causeway"];

/// Times of one MPI, size and way, in microseconds: a median for each run.
type Found = BTreeMap<(String, u64, &'static str), Vec<f64>>;

/// See the module.
///
/// # Errors
/// A program fails.
pub fn measure(bench: &Bench) -> Result<Part, BenchError> {
    let mut part = Part::new(
        "Beside tunnels that people make by hand",
        "The same ping-pong of one rank at each site, with the settings that each MPI has for such a link by hand or by Causeway: directly; \
         through WireGuard in user space (wireguard-go) between the head nodes; through a tunnel of ssh (-w) there, whose TCP has BBR; and \
         through Causeway. The first three need root at the head nodes, or a route; Causeway needs neither.",
    );
    let lab = bench.lab("peers", &ROUTED)?;
    part.command(&lab.shape());
    let script = repository().join("tests/programs/peer.sh");
    let mut found = Found::new();
    let mut rows = "mpi,way,run,size_bytes,count,median_us,p99_us\n".to_owned();
    for run in 0..bench.pick(1, 3) {
        for way in WAYS {
            println!("bench:   peers: {way}, run {run}");
            let directory = bench.scratch(&format!("peers-{way}-{run}"))?;
            let (route, option) = match way {
                "causeway" => ("direct", "causeway"),
                tunnel => (tunnel, "direct"),
            };
            let set_up = format!("{} {route}", quoted(&script));
            lab.program(HEAD, &set_up, &directory, DEADLINE)?.succeed()?;
            let out = directory.join("bench");
            let _ = std::fs::remove_dir_all(&out);
            let command = command(bench, option, &out.display().to_string());
            lab.program(HEAD, &command, &directory, DEADLINE)?.succeed()?;
            part.command(&format!("tests/programs/peer.sh {route}; {command}"));
            for row in store::read(&out)?.1 {
                let failed = row
                    .failure()
                    .map(|why| format!("{}, {way}, run {run}: {why}", row.cell.mpi));
                part.text.extend(failed);
                for value in row.values() {
                    let Some(bytes) = value.quantity.size_bytes else {
                        continue;
                    };
                    let times = &value.summary;
                    let _ = writeln!(
                        rows,
                        "{},{way},{run},{bytes},{},{:.1},{:.1}",
                        row.cell.mpi, times.count, times.median, times.p99
                    );
                    let key = (row.cell.mpi.clone(), bytes, way);
                    found.entry(key).or_default().push(times.median);
                }
            }
        }
    }
    part.tables
        .push(("Medians of all runs, of the limit".into(), table(&found)));
    part.files.push(("peers.csv".into(), rows));
    Ok(part)
}

fn command(bench: &Bench, way: &str, out: &str) -> String {
    let sizes = bench.pick("1,64k", "1,4k,64k,1M,16M");
    let count = bench.pick("10", "200");
    let mpis = MPIS.iter().map(|mpi| format!(" --mpi {}", mpi.launcher()));
    format!(
        "causeway bench pingpong --ways {way} --sizes {sizes} --count {count} --seconds 5 --least 1 --most 1 \
         --link 11.6ms,1Gbit/s --sites rennes,nancy{} --out {}",
        mpis.collect::<String>(),
        quoted(out)
    )
}

fn table(found: &Found) -> Table {
    let mut head = vec!["MPI", "size", "limit (ms)"];
    head.extend(WAYS);
    head.push("runs");
    let mut table = Table::new(&head);
    let mut cells: Vec<(&str, u64)> = found
        .keys()
        .map(|(mpi, bytes, _)| (mpi.as_str(), *bytes))
        .collect();
    cells.dedup();
    for (mpi, bytes) in cells {
        let limit = Link::RENNES_NANCY.one_way_us(bytes);
        let medians = |way| found.get(&(mpi.to_owned(), bytes, way));
        let mut line = vec![mpi.to_owned(), size(bytes), format!("{:.2}", limit / 1e3)];
        line.extend(WAYS.map(|way| {
            let median = medians(way).and_then(|times| summary(times));
            median.map_or_else(String::new, |times| format!("{:.3}", times.median / limit))
        }));
        let runs = WAYS.map(|way| medians(way).map_or(0, Vec::len));
        line.push(runs.into_iter().min().unwrap_or(0).to_string());
        table.rows.push(line);
    }
    table
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_has_each_way_of_the_limit_and_how_many_runs_a_line_has() {
        let runs = |way, time| (("MPICH".to_owned(), 1, way), vec![time; 3]);
        let mut found = Found::from([
            runs("direct", 5800.0),
            runs("wireguard", 6380.0),
            runs("causeway", 5916.0),
        ]);
        found.insert(("MPICH".into(), 1, "ssh"), vec![8700.0, 8700.0]);
        let wanted = ["MPICH", "1 B", "5.80", "1.000", "1.100", "1.500", "1.020", "2"];
        assert_eq!(table(&found).rows, [wanted.map(str::to_owned).to_vec()]);
    }
}
