//! Ping-pongs under one condition, with several ways side by side.

use super::BenchError;
use crate::pingpong::{self, NotPingPong, Times};
use crate::results::Part;
use causeway_bench::limit::{Link, mbit_per_second};
use causeway_bench::program::io;
use causeway_bench::samples::{Summary, summary};
use causeway_bench::table::{Table, size};
use causeway_report::plot::{Plot, Series};
use std::fmt::Write as _;
use std::path::Path;

/// Only the direct way may differ; bars are about the last way.
pub const DIRECT: &str = "direct";

/// Head of the CSV file that [`Pings::show`] fills.
const CSV_HEAD: &str = "mpi,condition,way,run,size_bytes,iteration,one_way_us\n";

/// See the module.
#[derive(Debug, Clone)]
pub struct Pings {
    mpi: String,
    condition: String,
    ways: Vec<(String, Times)>,
    rows: String,
}

impl Pings {
    /// Makes an empty set of times. Neither text contains commas. The other ways are compared with the first
    /// one.
    pub fn new(mpi: &str, condition: &str, ways: &[&str]) -> Pings {
        Pings {
            mpi: mpi.to_owned(),
            condition: condition.to_owned(),
            ways: ways.iter().map(|&way| (way.to_owned(), Times::new())).collect(),
            rows: String::new(),
        }
    }

    /// MPI and condition.
    pub fn title(&self) -> String {
        format!("{}, {}", self.mpi, self.condition)
    }

    /// Adds what one run of the ping-pong wrote.
    ///
    /// # Errors
    /// `text` is not what the ping-pong writes.
    pub fn add(&mut self, way: &str, run: u32, text: &str) -> Result<(), NotPingPong> {
        for (_, times) in self.ways.iter_mut().filter(|(name, _)| name == way) {
            pingpong::parse(text, times)?;
        }
        for row in text.lines().skip(1) {
            let _ = writeln!(self.rows, "{},{},{way},{run},{row}", self.mpi, self.condition);
        }
        Ok(())
    }

    /// All times of one way and size.
    pub fn of(&self, way: &str, bytes: u64) -> Option<Summary> {
        let (_, times) = self.ways.iter().find(|(name, _)| name == way)?;
        summary(times.get(&bytes)?)
    }

    fn first(&self) -> &str {
        self.ways.first().map_or("", |(way, _)| way)
    }

    fn sizes(&self) -> Vec<u64> {
        let mut sizes: Vec<_> = self
            .ways
            .iter()
            .flat_map(|(_, times)| times.keys().copied())
            .collect();
        sizes.sort_unstable();
        sizes.dedup();
        sizes
    }

    /// A table with a row for each size, and the ways side by side.
    pub fn table(&self) -> Table {
        let mut table = Table::new(&["size", "limit (ms)"]);
        for (way, _) in &self.ways {
            table.head.push(format!("{way}: median (ms)"));
            table
                .head
                .extend(["mean (ms)", "p99 (ms)", "of limit", "n"].map(str::to_owned));
        }
        let first = self.first();
        let others = || self.ways.iter().skip(1);
        table
            .head
            .extend(others().map(|(way, _)| format!("{way}/{first}")));
        for bytes in self.sizes() {
            let limit = limit_us(bytes);
            let mut row = vec![size(bytes), format!("{:.3}", limit / 1e3)];
            for (way, _) in &self.ways {
                match self.of(way, bytes) {
                    Some(found) => {
                        row.extend(
                            [found.median, found.mean, found.p99].map(|us| format!("{:.3}", us / 1e3)),
                        );
                        row.push(format!("{:.3}", found.median / limit));
                        row.push(found.count.to_string());
                    }
                    None => row.extend(["-"; 5].map(str::to_owned)),
                }
            }
            for (way, _) in others() {
                let ratio = self
                    .of(way, bytes)
                    .zip(self.of(first, bytes))
                    .map(|(way, first)| format!("{:.2}", way.median / first.median));
                row.push(ratio.unwrap_or_else(|| "-".to_owned()));
            }
            table.rows.push(row);
        }
        table
    }

    /// Plots of time and throughput over size, with the limit.
    pub fn plots(&self) -> [Plot; 2] {
        [
            self.plot("One-way time, median", "one-way time (ms)", true, |_, us| {
                us / 1e3
            }),
            self.plot("Throughput", "throughput (Mbit/s)", false, mbit_per_second),
        ]
    }

    fn plot(&self, title: &str, vertical: &str, logarithmic: bool, value: fn(u64, f64) -> f64) -> Plot {
        let series = |(way, times): &(String, Times)| {
            let points = times
                .iter()
                .filter_map(|(&bytes, times)| Some((bytes as f64, value(bytes, summary(times)?.median))));
            Series::measured(way, points.collect())
        };
        let mut all: Vec<Series> = self.ways.iter().map(series).collect();
        let limit = |bytes: u64| (bytes as f64, value(bytes, limit_us(bytes)));
        all.push(Series::limit(self.sizes().into_iter().map(limit).collect()));
        Plot {
            title: format!("{title}, {}", self.title()),
            horizontal: "message size".into(),
            vertical: vertical.into(),
            logarithmic,
            series: all,
        }
    }

    /// Puts rows, table and plots into `part`.
    pub fn show(&self, part: &mut Part, file: &str) {
        part.tables.push((self.title(), self.table()));
        part.plots.extend(self.plots());
        match part.files.iter_mut().find(|(name, _)| name == file) {
            Some((_, rows)) => rows.push_str(&self.rows),
            None => part
                .files
                .push((file.to_owned(), format!("{CSV_HEAD}{}", self.rows))),
        }
    }
}

fn limit_us(bytes: u64) -> f64 {
    Link::RENNES_NANCY.one_way_us(bytes)
}

/// Reads what a program left in `rows`.
///
/// # Errors
/// The file cannot be read.
pub fn read(rows: &Path) -> Result<String, BenchError> {
    Ok(std::fs::read_to_string(rows).map_err(io(format!("read {}", rows.display())))?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_size_one_way_lacks_leaves_a_gap_in_the_table() {
        let rows = |sizes: &[u64]| {
            let rows: String = sizes.iter().map(|size| format!("{size},0,6000.0\n")).collect();
            format!("size_bytes,iteration,one_way_us\n{rows}")
        };
        let mut pings = Pings::new("plain TCP", "hot", &[DIRECT, "causeway"]);
        pings.add(DIRECT, 0, &rows(&[1, 1 << 20])).unwrap();
        pings.add("causeway", 0, &rows(&[1, 4, 1 << 20])).unwrap();
        let table = pings.table();
        assert_eq!(table.rows.len(), 3);
        assert!(table.rows.iter().all(|row| row.len() == table.head.len()));
        assert_eq!(table.rows[1][2], "-");
        assert_eq!(pings.rows.lines().count(), 5);
    }
}
