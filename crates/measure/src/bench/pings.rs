//! Ping-pongs of one MPI under one condition, several ways beside each other: the numbers that five sections
//! share.

use super::{Bench, BenchError, Mpi, Way};
use crate::checkout::repository;
use crate::checkout::test_program;
use crate::claim::{Bar, Claim};
use crate::pingpong::{self, NotPingPong, Times};
use crate::results::Part;
use causeway_bench::lab::Lab;
use causeway_bench::limit::{Link, mbit_per_second};
use causeway_bench::program::{Program, io};
use causeway_bench::samples::{Summary, summary};
use causeway_bench::table::{Table, size};
use causeway_report::plot::{Plot, Series};
use std::fmt::Write as _;
use std::ops::RangeInclusive;
use std::path::{Path, PathBuf};

/// Direct alone is allowed to differ; the last way is the one that bars are about.
pub const DIRECT: &str = "direct";

/// Head of every CSV file that [`Pings::csv`] fills.
pub const CSV_HEAD: &str = "mpi,condition,way,run,size_bytes,iteration,one_way_us\n";

/// See the module.
#[derive(Debug, Clone)]
pub struct Pings {
    mpi: String,
    condition: String,
    ways: Vec<(String, Times)>,
    rows: String,
}

impl Pings {
    /// Makes an empty set of times. `condition` has no commas. The other ways are compared with the first
    /// one.
    pub fn new(mpi: &Mpi, condition: &str, ways: &[&str]) -> Pings {
        Pings {
            mpi: mpi.name.to_owned(),
            condition: condition.to_owned(),
            ways: ways.iter().map(|&way| (way.to_owned(), Times::new())).collect(),
            rows: String::new(),
        }
    }

    /// The same of plain TCP.
    pub fn of_no_mpi(condition: &str, ways: &[&str]) -> Pings {
        let none = Mpi {
            name: "plain TCP",
            launcher: "",
            programs: "",
        };
        Pings::new(&none, condition, ways)
    }

    /// Whether they are of `mpi`.
    pub fn is_of(&self, mpi: &Mpi) -> bool {
        self.mpi == mpi.name
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

    /// Rows under [`CSV_HEAD`].
    pub fn csv(&self) -> &str {
        &self.rows
    }

    /// All times of one way and size.
    pub fn of(&self, way: &str, bytes: u64) -> Option<Summary> {
        let (_, times) = self.ways.iter().find(|(name, _)| name == way)?;
        summary(times.get(&bytes)?)
    }

    fn first(&self) -> &str {
        self.ways.first().map_or("", |(way, _)| way)
    }

    /// The largest median of `way` as a ratio to that of the first way, and where.
    pub fn worst_beside_first(&self, way: &str) -> Option<(u64, f64)> {
        let ratio = |bytes| Some(self.of(way, bytes)?.median / self.of(self.first(), bytes)?.median);
        let ratios = self
            .sizes()
            .into_iter()
            .filter_map(|bytes| Some((bytes, ratio(bytes)?)));
        ratios.max_by(|a, b| a.1.total_cmp(&b.1))
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

    /// The largest median of `way` as a ratio to the limit, and where.
    pub fn worst(&self, way: &str, sizes: RangeInclusive<u64>) -> Option<(u64, f64)> {
        let measured = self.sizes().into_iter().filter(|bytes| sizes.contains(bytes));
        let ratios =
            measured.filter_map(|bytes| Some((bytes, self.of(way, bytes)?.median / limit_us(bytes))));
        ratios.max_by(|a, b| a.1.total_cmp(&b.1))
    }

    /// The worst size of `way` in `sizes` against `bar`; the direct way's own worst stands beside it.
    pub fn claim(&self, way: &str, sizes: RangeInclusive<u64>, bar: f64) -> Option<Claim> {
        let (bytes, ratio) = self.worst(way, sizes.clone())?;
        let range = format!("{} to {}", size(*sizes.start()), size(*sizes.end()));
        Some(Claim {
            what: format!(
                "{}: of limit, worst of {range} ({} for {way})",
                self.title(),
                size(bytes)
            ),
            direct: self.worst(self.first(), sizes).map(|(_, ratio)| ratio),
            figure: ratio,
            unit: "",
            bar: Bar::AtMost(bar),
        })
    }

    /// Sizes down, ways beside each other.
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

    /// Time and throughput over size, with the limit.
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

/// How the ping-pong is started.
#[derive(Debug, Clone, Copy)]
pub struct Start<'a> {
    /// The MPI that is measured.
    pub mpi: &'a Mpi,
    /// Directly or not.
    pub way: Way,
    /// Ranks at each of the two sites. The first of one and the last of the other measure.
    pub ranks: u32,
    /// Arguments of tests/programs/pingpong.
    pub options: &'a str,
}

impl Start<'_> {
    /// The program, its command as typed, and the file it will write, in a directory named `label`.
    ///
    /// # Errors
    /// The directory cannot be made.
    pub fn program(
        &self,
        bench: &Bench,
        lab: &Lab,
        label: &str,
    ) -> Result<(Program, String, PathBuf), BenchError> {
        let directory = bench.scratch(label)?;
        let command = format!(
            "causeway run {}--sites rennes={ranks},nancy={ranks} -- {} -n {} {} {} rows.csv {}",
            self.way.option(),
            self.mpi.launcher(),
            2 * self.ranks,
            repository().join("tests/programs/own-core.sh").display(),
            test_program(self.mpi.programs, "pingpong"),
            self.options,
            ranks = self.ranks,
        );
        let program = lab.program(super::HEAD, &command, &directory, super::DEADLINE)?;
        Ok((program, command, directory.join("rows.csv")))
    }

    /// Runs it to its end and returns its rows.
    ///
    /// # Errors
    /// It fails, or leaves no rows.
    pub fn run(&self, bench: &Bench, lab: &Lab, part: &mut Part, label: &str) -> Result<String, BenchError> {
        println!(
            "bench:   ping-pong, {}, {}, {} ranks, {}",
            self.mpi.name,
            self.way.name(),
            2 * self.ranks,
            self.options
        );
        let (program, command, rows) = self.program(bench, lab, label)?;
        program.succeed()?;
        part.command(&command);
        read(&rows)
    }
}

/// Reads what a program left in `rows`.
///
/// # Errors
/// The file cannot be read.
pub fn read(rows: &Path) -> Result<String, BenchError> {
    Ok(std::fs::read_to_string(rows).map_err(io(format!("read {}", rows.display())))?)
}

/// `runs` times direct and Causeway in turn, every MPI: one [`Pings`] each.
///
/// # Errors
/// A run fails.
pub fn in_turn(
    bench: &Bench,
    lab: &Lab,
    part: &mut Part,
    condition: &str,
    (ranks, options, runs): (u32, &str, u32),
) -> Result<Vec<Pings>, BenchError> {
    let mut all = Vec::new();
    for mpi in &super::MPIS {
        let mut pings = Pings::new(mpi, condition, &Way::BOTH.map(Way::name));
        for run in 0..runs {
            for way in Way::BOTH {
                let start = Start {
                    mpi,
                    way,
                    ranks,
                    options,
                };
                let label = format!("{condition}-{}-{}-{run}", mpi.programs, way.name()).replace(' ', "-");
                pings.add(way.name(), run, &start.run(bench, lab, part, &label)?)?;
            }
        }
        all.push(pings);
    }
    Ok(all)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bench::MPIS;

    fn rows(times: &[(u64, f64)]) -> String {
        let rows: String = times
            .iter()
            .map(|(bytes, us)| format!("{bytes},0,{us}\n"))
            .collect();
        format!("size_bytes,iteration,one_way_us\n{rows}")
    }

    fn pings() -> Pings {
        let mut pings = Pings::new(&MPIS[0], "hot", &[DIRECT, "causeway"]);
        let limit = limit_us;
        pings
            .add(
                DIRECT,
                0,
                &rows(&[(1, limit(1) * 2.0), (1 << 20, limit(1 << 20) * 3.0)]),
            )
            .unwrap();
        for (run, factor) in [(0, 1.0), (1, 1.02)] {
            let text = rows(&[(1, limit(1) * factor), (1 << 20, limit(1 << 20) * 1.5)]);
            pings.add("causeway", run, &text).unwrap();
        }
        pings
    }

    #[test]
    fn the_claim_takes_the_worst_size_and_the_medians_of_all_runs() {
        let pings = pings();
        let small = pings.claim("causeway", 1..=1024, 1.07).unwrap();
        assert!((small.figure - 1.01).abs() < 1e-4, "{small:?}");
        let all = pings.claim("causeway", 1..=1 << 20, 1.07).unwrap();
        assert!(
            (all.figure - 1.5).abs() < 1e-4 && all.what.contains("1 MB"),
            "{all:?}"
        );
        assert!((all.direct.unwrap() - 3.0).abs() < 1e-4);
        assert_eq!(pings.claim("causeway", 2 << 20..=4 << 20, 1.1), None);
        let (bytes, ratio) = pings.worst_beside_first("causeway").unwrap();
        assert!(bytes == 1 && (ratio - 1.01 / 2.0).abs() < 1e-4, "{ratio}");
    }

    #[test]
    fn a_size_one_way_lacks_leaves_a_gap_in_the_table() {
        let mut pings = pings();
        pings.add("causeway", 2, &rows(&[(4, 6000.0)])).unwrap();
        let table = pings.table();
        assert_eq!(table.rows.len(), 3);
        assert!(table.rows.iter().all(|row| row.len() == table.head.len()));
        assert_eq!(table.rows[1][2], "-");
        assert_eq!(pings.csv().lines().count(), 7);
    }
}
