//! What a bench has measured, and how it is written down: every row as CSV, a table in README.md, plots in report.html.

use crate::limit::{Link, mbit_per_second};
use crate::page::Page;
use crate::pingpong::{self, NotPingPong, Times};
use crate::plot::{COLOURS, Plot, Series};
use crate::program::{ProgramError, io, repository};
use crate::samples::{Summary, summary};
use crate::table::{Table, size};
use serde_json::Value;
use std::fmt::Write as _;
use std::path::Path;

/// How a program was launched.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Way {
    /// The same launch, no Causeway on the path of its data.
    Direct,
    /// Through shim and gateways.
    Causeway,
}

impl Way {
    /// In the order in which they take turns.
    pub const BOTH: [Way; 2] = [Way::Direct, Way::Causeway];

    /// In tables and file names.
    pub fn name(self) -> &'static str {
        match self {
            Way::Direct => "direct",
            Way::Causeway => "causeway",
        }
    }

    /// For `causeway run`.
    pub fn option(self) -> &'static str {
        match self {
            Way::Direct => "--direct",
            Way::Causeway => "",
        }
    }
}

/// All ping-pongs of one MPI under one pause.
#[derive(Debug, Clone)]
struct Pings {
    mpi: String,
    idle_ms: u32,
    direct: Times,
    causeway: Times,
}

/// Everything measured so far.
#[derive(Debug, Default)]
pub struct Results {
    commands: Vec<String>,
    pings: Vec<Pings>,
    ping_rows: String,
    starts: Vec<(String, Way, u32, f64)>,
    streams: Option<Table>,
    streams_said: String,
}

impl Results {
    /// Notes a command line, once, with paths as seen from the repository.
    pub fn command(&mut self, command: &str) {
        let command = command.replace(&format!("{}/", repository().display()), "");
        if !self.commands.contains(&command) {
            self.commands.push(command);
        }
    }

    /// Adds one run of the ping-pong.
    ///
    /// # Errors
    /// `text` is not what the ping-pong writes.
    pub fn pingpong(
        &mut self,
        mpi: &str,
        way: Way,
        run: u32,
        idle_ms: u32,
        text: &str,
    ) -> Result<(), NotPingPong> {
        let known = self
            .pings
            .iter()
            .position(|pings| pings.mpi == mpi && pings.idle_ms == idle_ms);
        let index = known.unwrap_or_else(|| {
            let (direct, causeway) = (Times::new(), Times::new());
            self.pings.push(Pings {
                mpi: mpi.to_owned(),
                idle_ms,
                direct,
                causeway,
            });
            self.pings.len() - 1
        });
        let pings = &mut self.pings[index];
        let times = if way == Way::Direct {
            &mut pings.direct
        } else {
            &mut pings.causeway
        };
        pingpong::parse(text, times)?;
        for row in text.lines().skip(1) {
            let _ = writeln!(self.ping_rows, "{mpi},{},{run},{idle_ms},{row}", way.name());
        }
        Ok(())
    }

    /// Adds one start of four ranks.
    pub fn start(&mut self, mpi: &str, way: Way, run: u32, seconds: f64) {
        self.starts.push((mpi.to_owned(), way, run, seconds));
    }

    /// Adds what the near gateway said before, while and after the streams were open.
    pub fn streams(&mut self, before: &Value, open: &Value, after: &Value, said: &str) {
        let mut table = Table::new(&[
            "near gateway",
            "streams open",
            "resident memory (MB)",
            "per stream (kB)",
        ]);
        let resident = |status: &Value| status["resident_bytes"].as_u64().unwrap_or(0);
        for (label, status) in [("before", before), ("all open", open), ("after", after)] {
            let streams = status["streams"].as_u64().unwrap_or(0);
            let per_stream = match resident(status)
                .saturating_sub(resident(before))
                .checked_div(streams)
            {
                Some(bytes) => format!("{:.1}", bytes as f64 / 1e3),
                None => "-".to_owned(),
            };
            let resident = format!("{:.1}", resident(status) as f64 / 1e6);
            table
                .rows
                .push(vec![label.to_owned(), streams.to_string(), resident, per_stream]);
        }
        self.streams = Some(table);
        self.streams_said = said.to_owned();
    }

    /// Writes README.md, report.html and the rows into `out`.
    ///
    /// # Errors
    /// A file cannot be written.
    pub fn write(&self, out: &Path, host: &[(String, String)]) -> Result<(), ProgramError> {
        let put = |name: &str, text: &str| {
            std::fs::write(out.join(name), text).map_err(io(format!("write {}", out.join(name).display())))
        };
        put(
            "pingpong.csv",
            &format!(
                "mpi,way,run,pause_ms,size_bytes,iteration,one_way_us\n{}",
                self.ping_rows
            ),
        )?;
        let starts: String = self
            .starts
            .iter()
            .fold(String::new(), |mut text, (mpi, way, run, seconds)| {
                let _ = writeln!(text, "{mpi},{},{run},{seconds:.4}", way.name());
                text
            });
        put("start.csv", &format!("mpi,way,run,seconds\n{starts}"))?;
        put("README.md", &self.readme(host))?;
        put("report.html", &self.page(host).html())
    }

    fn readme(&self, host: &[(String, String)]) -> String {
        let mut text = String::from("# Direct and Causeway in turn, rennes-nancy with a route\n\n");
        for (what, value) in host {
            let _ = writeln!(text, "- {what}: {value}");
        }
        let _ = writeln!(text, "\n{INTRODUCTION}\n");
        for (title, table) in self.tables() {
            let _ = writeln!(text, "## {title}\n\n{}", table.markdown());
        }
        let _ = writeln!(text, "{}\n\n## Commands\n", self.streams_said);
        let _ = writeln!(
            text,
            "In `causeway lab run --routed true rennes-nancy -- ...`, made by `make bench`:\n"
        );
        for command in &self.commands {
            let _ = writeln!(text, "    {command}");
        }
        text
    }

    fn page(&self, host: &[(String, String)]) -> Page {
        let mut page = Page::new("Direct and Causeway in turn, rennes-nancy with a route");
        let mut machine = Table::new(&["what", "value"]);
        machine.rows = host
            .iter()
            .map(|(what, value)| vec![what.clone(), value.clone()])
            .collect();
        page.table(&machine);
        page.text(INTRODUCTION);
        for (title, table) in self.tables() {
            page.heading(&title);
            page.table(&table);
        }
        for pings in &self.pings {
            page.heading(&format!("{}, {}", pings.mpi, pause(pings.idle_ms)));
            page.plot(
                &pings.plot("One-way time, median", "one-way time (ms)", true, |_, us| {
                    us / 1e3
                }),
            );
            page.plot(&pings.plot("Throughput", "throughput (Mbit/s)", false, mbit_per_second));
        }
        page
    }

    fn tables(&self) -> Vec<(String, Table)> {
        let mut tables = vec![("What the issue asks".to_owned(), self.asked())];
        for pings in &self.pings {
            tables.push((
                format!("One-way time, {}, {}", pings.mpi, pause(pings.idle_ms)),
                pings.table(),
            ));
        }
        tables.push((
            "Start of 4 ranks on 4 nodes (mpirun -n 4 hostname)".to_owned(),
            self.start_table(),
        ));
        tables.extend(
            self.streams
                .clone()
                .map(|table| ("10 000 streams open at once".to_owned(), table)),
        );
        tables
    }

    /// The few figures with a bound, beside it.
    fn asked(&self) -> Table {
        let mut table = Table::new(&[
            "MPI",
            "figure",
            "direct",
            "Causeway",
            "difference or ratio",
            "asked",
        ]);
        for pings in self.pings.iter().filter(|pings| pings.idle_ms == 0) {
            if let (Some(direct), Some(causeway)) = (pings.of(Way::Direct, 1), pings.of(Way::Causeway, 1)) {
                table.rows.push(vec![
                    pings.mpi.clone(),
                    "1 B one way, median (us)".into(),
                    format!("{:.0}", direct.median),
                    format!("{:.0}", causeway.median),
                    format!("{:+.0} us", causeway.median - direct.median),
                    "at most +150 us".into(),
                ]);
            }
            let large = 64 << 20;
            if let (Some(direct), Some(causeway)) =
                (pings.of(Way::Direct, large), pings.of(Way::Causeway, large))
            {
                table.rows.push(vec![
                    pings.mpi.clone(),
                    "64 MB, median (Mbit/s)".into(),
                    format!("{:.0}", mbit_per_second(large, direct.median)),
                    format!("{:.0}", mbit_per_second(large, causeway.median)),
                    format!("{:.2}", direct.median / causeway.median),
                    "at least 0.85".into(),
                ]);
            }
        }
        for (mpi, direct, causeway) in self.start_medians() {
            table.rows.push(vec![
                mpi,
                "start of 4 ranks, median (s)".into(),
                format!("{direct:.2}"),
                format!("{causeway:.2}"),
                format!("{:+.2} s", causeway - direct),
                "at most +1 s".into(),
            ]);
        }
        table
    }

    fn start_medians(&self) -> Vec<(String, f64, f64)> {
        let mut mpis: Vec<_> = self.starts.iter().map(|(mpi, ..)| mpi.clone()).collect();
        mpis.dedup();
        let median = |mpi: &str, way: Way| summary(&self.seconds(mpi, way)).map(|found| found.median);
        mpis.into_iter()
            .filter_map(|mpi| {
                Some((
                    mpi.clone(),
                    median(&mpi, Way::Direct)?,
                    median(&mpi, Way::Causeway)?,
                ))
            })
            .collect()
    }

    fn seconds(&self, mpi: &str, way: Way) -> Vec<f64> {
        let of = |entry: &&(String, Way, u32, f64)| entry.0 == mpi && entry.1 == way;
        self.starts.iter().filter(of).map(|entry| entry.3).collect()
    }

    fn start_table(&self) -> Table {
        let mut table = Table::new(&["MPI", "way", "starts", "median (s)", "mean (s)", "min (s)"]);
        for (mpi, ..) in self.start_medians() {
            for way in Way::BOTH {
                if let Some(found) = summary(&self.seconds(&mpi, way)) {
                    table.rows.push(vec![
                        mpi.clone(),
                        way.name().to_owned(),
                        found.count.to_string(),
                        format!("{:.2}", found.median),
                        format!("{:.2}", found.mean),
                        format!("{:.2}", found.min),
                    ]);
                }
            }
        }
        table
    }
}

const INTRODUCTION: &str = "Link: 11.6 ms round trip, 1 Gbit/s, 2 MB drop-tail queue, no loss, CUBIC in every node. One way is \
    half of a round trip between rank 0 at rennes and rank 1 at nancy. 'of limit' is the median divided by the physical limit \
    R/2 + s/B. Direct and Causeway ran in turn in one lab; every row is in pingpong.csv and start.csv.";

fn pause(idle_ms: u32) -> String {
    if idle_ms == 0 {
        "hot".to_owned()
    } else {
        format!("after {idle_ms} ms of silence")
    }
}

impl Pings {
    fn times(&self, way: Way) -> &Times {
        if way == Way::Direct {
            &self.direct
        } else {
            &self.causeway
        }
    }

    fn of(&self, way: Way, bytes: u64) -> Option<Summary> {
        summary(self.times(way).get(&bytes)?)
    }

    fn table(&self) -> Table {
        let mut table = Table::new(&[
            "size",
            "limit (ms)",
            "direct median (ms)",
            "mean (ms)",
            "min (ms)",
            "of limit",
            "Causeway median (ms)",
            "mean (ms)",
            "min (ms)",
            "of limit",
            "Causeway/direct",
            "n direct, Causeway",
        ]);
        for &bytes in self.direct.keys() {
            let (Some(direct), Some(causeway)) = (self.of(Way::Direct, bytes), self.of(Way::Causeway, bytes))
            else {
                continue;
            };
            let limit = Link::RENNES_NANCY.one_way_us(bytes);
            let mut row = vec![size(bytes), format!("{:.3}", limit / 1e3)];
            for found in [direct, causeway] {
                row.extend([found.median, found.mean, found.min].map(|us| format!("{:.3}", us / 1e3)));
                row.push(format!("{:.2}", found.median / limit));
            }
            row.push(format!("{:.2}", causeway.median / direct.median));
            row.push(format!("{}, {}", direct.count, causeway.count));
            table.rows.push(row);
        }
        table
    }

    fn plot(&self, title: &str, vertical: &str, logarithmic: bool, value: fn(u64, f64) -> f64) -> Plot {
        let mut series: Vec<Series> = Way::BOTH
            .into_iter()
            .zip(COLOURS)
            .map(|(way, colour)| {
                let medians = self
                    .times(way)
                    .iter()
                    .filter_map(|(&bytes, times)| Some((bytes, summary(times)?.median)));
                let points = medians
                    .map(|(bytes, us)| (bytes as f64, value(bytes, us)))
                    .collect();
                Series {
                    name: way.name().to_owned(),
                    colour,
                    dashed: false,
                    points,
                }
            })
            .collect();
        let limit = |&bytes: &u64| (bytes as f64, value(bytes, Link::RENNES_NANCY.one_way_us(bytes)));
        let points = self.direct.keys().map(limit).collect();
        series.push(Series {
            name: "limit R/2 + s/B".into(),
            colour: "#555",
            dashed: true,
            points,
        });
        let title = format!("{title}, {}, {}", self.mpi, pause(self.idle_ms));
        Plot {
            title,
            horizontal: "message size".into(),
            vertical: vertical.into(),
            logarithmic,
            series,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_figures_asked_for_come_from_the_medians_of_all_runs() {
        let mut results = Results::default();
        let rows = |us: f64| {
            format!(
                "size_bytes,iteration,one_way_us\n1,0,{us}\n67108864,0,{}\n",
                us * 100.0
            )
        };
        for (way, us) in [
            (Way::Direct, 5900.0),
            (Way::Causeway, 5980.0),
            (Way::Direct, 5920.0),
            (Way::Causeway, 6000.0),
        ] {
            results.pingpong("MPI", way, 0, 0, &rows(us)).unwrap();
        }
        for (way, seconds) in [(Way::Direct, 1.0), (Way::Causeway, 1.25)] {
            results.start("MPI", way, 0, seconds);
        }
        let asked = results.asked();
        let difference: Vec<_> = asked.rows.iter().map(|row| row[4].as_str()).collect();
        assert_eq!(difference, ["+80 us", "0.99", "+0.25 s"]);
    }

    #[test]
    fn memory_per_stream_is_what_the_streams_added() {
        let mut results = Results::default();
        let status =
            |streams: u64, resident: u64| serde_json::json!({"streams": streams, "resident_bytes": resident});
        results.streams(
            &status(0, 4_000_000),
            &status(1000, 14_000_000),
            &status(0, 5_000_000),
            "",
        );
        let table = results.streams.unwrap();
        assert_eq!(table.rows[1], ["all open", "1000", "14.0", "10.0"]);
        assert_eq!(table.rows[2][3], "-");
    }
}
