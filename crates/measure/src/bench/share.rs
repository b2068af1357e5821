//! Section `share`: a job's bulk stream beside foreign TCP flows on the same link.

use super::pings::read;
use super::scenario::two_sites;
use super::{Bench, BenchError, DEADLINE, FAR_HEAD, HEAD, MPIS, ROUTED, Way, numbers};
use crate::checkout::repository;
use crate::checkout::test_program;
use crate::claim::{Bar, Claim};
use crate::results::Part;
use causeway_bench::lab::Lab;
use causeway_bench::limit::Link;
use causeway_bench::program::ProgramError;
use causeway_bench::samples::summary;
use causeway_bench::table::Table;
use nix::time::{ClockId, clock_gettime};
use serde_json::Value;
use std::fmt::Write as _;
use std::path::Path;
use std::time::{Duration, Instant};

/// How long all flows send side by side, after a time in which the foreign flows fill their windows.
const BESIDE: u64 = 10;
const LEAD: u64 = 2;

/// Time around that: for mpirun's start, and for the start of the foreign flows.
const MARGIN: u64 = 10;

const RESERVED_MBIT: f64 = 400.0;

/// The link's queue, in the form of a scenario: a sixth of what is in flight in a round trip, and nearly
/// three times as much.
const QUEUES: [&str; 2] = ["256kB", "4MB"];

/// The queue of the usual two sites.
const USUAL_QUEUE: &str = "2MB";

/// The other flows on the link.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Foreign {
    congestion: &'static str,
    flows: u32,
}

const ONE_CUBIC: Foreign = Foreign {
    congestion: "cubic",
    flows: 1,
};

/// What one run measured, in Mbit/s: the job's rate, and that of each foreign flow.
#[derive(Debug, Clone, PartialEq)]
struct Rates {
    job: f64,
    foreign: Vec<f64>,
}

impl Rates {
    fn all_foreign(&self) -> f64 {
        self.foreign.iter().sum()
    }

    /// What each flow would have if everything that was carried were shared equally.
    fn fair(&self) -> f64 {
        (self.job + self.all_foreign()) / (self.foreign.len() + 1) as f64
    }

    fn least(&self) -> f64 {
        self.foreign.iter().copied().reduce(f64::min).unwrap_or(0.0)
    }
}

/// The runs of one line of the table.
struct Runs {
    queue: &'static str,
    foreign: Foreign,
    way: String,
    rates: Vec<Rates>,
}

/// See the module.
///
/// # Errors
/// A program fails.
pub fn measure(bench: &Bench) -> Result<Part, BenchError> {
    let mut part = Part::new(
        "A job's bulk stream beside other flows",
        "An MPI program streams 1 MB messages from one site to the other while iperf3 sends one, two or four TCP flows (CUBIC or BBR) \
         between the head nodes, over a link with a small or a large queue; rates over the same 10 s. The fair share is what all carried \
         together, divided by how many they are: the job, and each foreign flow. The bar: the job gets at least that; with a rate reserved \
         for it, that rate within 5 %. What a job has beyond its share, the others lack: their columns say how much.",
    );
    let mut all: Vec<Runs> = Vec::new();
    for queue in QUEUES {
        let name = format!("share-{queue}");
        let file = two_sites(&name, &[("queue", queue)], &[], &bench.scratch(&name)?)?;
        let lab = bench.lab(&name, &["--routed", "true", &file.display().to_string()])?;
        part.command(&lab.shape());
        for congestion in ["cubic", "bbr"] {
            for flows in [1, 2, 4] {
                let foreign = Foreign { congestion, flows };
                all.extend(in_turn(bench, &lab, &mut part, (queue, foreign), &Way::BOTH)?);
            }
        }
    }
    match reserved_lab(bench) {
        Ok(lab) => {
            part.command(&lab.shape());
            for mut runs in in_turn(bench, &lab, &mut part, (USUAL_QUEUE, ONE_CUBIC), &[Way::Causeway])? {
                runs.way.push_str("-reserved");
                all.push(runs);
            }
        }
        Err(error) => part
            .text
            .push(format!("Not measured: a reserved rate. {}", first_lines(&error))),
    }
    part.claims = claims(&all);
    part.tables.push(("Medians of all runs".into(), table(&all)));
    part.files.push(("share.csv".into(), rows(&all)));
    Ok(part)
}

/// A lab whose gateways have a rate reserved for each other. It fails if gateways do not know the key.
fn reserved_lab(bench: &Bench) -> Result<Lab, ProgramError> {
    let line = format!("rate = \"{RESERVED_MBIT}Mbit/s\"");
    let shape: Vec<&str> = ["--grid", line.as_str()].into_iter().chain(ROUTED).collect();
    bench.lab("share-reserved", &shape)
}

fn first_lines(error: &ProgramError) -> String {
    let text = error.to_string();
    let said = text
        .split_once("stderr:\n")
        .map_or(text.as_str(), |(_, said)| said);
    said.lines().take(2).collect::<Vec<_>>().join(" ")
}

fn in_turn(
    bench: &Bench,
    lab: &Lab,
    part: &mut Part,
    (queue, foreign): (&'static str, Foreign),
    ways: &[Way],
) -> Result<Vec<Runs>, BenchError> {
    let runs = |way: &Way| Runs {
        queue,
        foreign,
        way: way.name().to_owned(),
        rates: Vec::new(),
    };
    let mut found: Vec<Runs> = ways.iter().map(runs).collect();
    let Foreign { congestion, flows } = foreign;
    for run in 0..bench.pick(1, 3) {
        for (way, runs) in ways.iter().zip(&mut found) {
            let name = format!("{}-{queue}-{congestion}-{flows}-{run}", way.name());
            println!("bench:   bulk beside foreign flows, {name}");
            let rates = side_by_side(bench, lab, part, (*way, foreign), &format!("share-{name}"))?;
            runs.rates.push(rates);
        }
    }
    Ok(found)
}

fn side_by_side(
    bench: &Bench,
    lab: &Lab,
    part: &mut Part,
    (way, foreign): (Way, Foreign),
    label: &str,
) -> Result<Rates, BenchError> {
    let directory = bench.scratch(label)?;
    let (served, sent) = (
        bench.scratch(&format!("{label}-server"))?,
        bench.scratch(&format!("{label}-client"))?,
    );
    let rows = directory.join("rows.csv");
    for left in [&rows, &served.join("stdout")] {
        let _ = std::fs::remove_file(left);
    }
    let seconds = bench.pick(2, BESIDE);
    let address = lab.wan_address(FAR_HEAD)?;
    let server = lab
        .program(
            FAR_HEAD,
            "iperf3 --server --one-off --forceflush",
            &served,
            DEADLINE,
        )?
        .start()?;
    wait(&served.join("stdout"), |said| said.contains("listening"))?;
    let command = format!(
        "causeway run {}--sites rennes=1,nancy=1 -- {} -n 2 {} {} rows.csv {}",
        way.option(),
        MPIS[0].launcher(),
        repository().join("tests/programs/own-core.sh").display(),
        test_program(MPIS[0].programs, "bulk"),
        seconds + LEAD + MARGIN
    );
    let job = lab.program(HEAD, &command, &directory, DEADLINE)?.start()?;
    wait(&rows, |text| text.lines().count() > 2)?;
    let Foreign { congestion, flows } = foreign;
    let client = format!(
        "iperf3 --client {address} --congestion {congestion} --parallel {flows} --time {seconds} --omit {LEAD} --json"
    );
    let began = seconds_now();
    let said = lab.program(HEAD, &client, &sent, DEADLINE)?.succeed()?.stdout;
    job.succeed()?;
    server.end()?;
    for command in ["iperf3 --server --one-off (on nancy-head)", &command, &client] {
        part.command(command);
    }
    let text = read(&rows)?;
    let carried = numbers("bulk", &text, "seconds,bytes")?;
    let from = began + LEAD as f64;
    let job = mbit_per_second_between(&carried, from, from + seconds as f64)
        .ok_or_else(|| BenchError::output("bulk", &text, "rows over the whole time"))?;
    let foreign = received_mbit_per_second(&said)
        .filter(|rates| rates.len() == flows as usize)
        .ok_or_else(|| BenchError::output("iperf3", &said, "end.streams[].receiver.bits_per_second"))?;
    Ok(Rates { job, foreign })
}

/// Waits until a file contains what is awaited; if it never does, whatever uses it reports what is wrong.
///
/// # Errors
/// There are none.
pub fn wait(file: &Path, is_there: impl Fn(&str) -> bool) -> Result<(), BenchError> {
    let end = Instant::now() + Duration::from_secs(20);
    while Instant::now() < end {
        if std::fs::read_to_string(file).is_ok_and(|text| is_there(&text)) {
            return Ok(());
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    Ok(())
}

/// The time that programs on the lab's nodes have in their rows: by a clock that nobody sets meanwhile.
pub fn seconds_now() -> f64 {
    let since = clock_gettime(ClockId::CLOCK_MONOTONIC).map(Duration::from);
    since.map_or(0.0, |since| since.as_secs_f64())
}

/// The rate from rows with a time and the bytes that had arrived by then. `None` if they do not cover the
/// whole time.
fn mbit_per_second_between(rows: &[Vec<f64>], from: f64, to: f64) -> Option<f64> {
    let bytes_at = |time: f64| {
        let pair = rows
            .windows(2)
            .find(|pair| pair[0][0] <= time && time <= pair[1][0])?;
        let part = (time - pair[0][0]) / (pair[1][0] - pair[0][0]).max(f64::MIN_POSITIVE);
        Some(pair[0][1] + part * (pair[1][1] - pair[0][1]))
    };
    Some((bytes_at(to)? - bytes_at(from)?) * 8.0 / 1e6 / (to - from))
}

/// How much of each flow arrived.
fn received_mbit_per_second(json: &str) -> Option<Vec<f64>> {
    let value: Value = serde_json::from_str(json).ok()?;
    let streams = value["end"]["streams"].as_array()?;
    let rates = streams
        .iter()
        .map(|stream| Some(stream["receiver"]["bits_per_second"].as_f64()? / 1e6));
    rates.collect()
}

/// The median over runs.
fn median(runs: &Runs, value: impl Fn(&Rates) -> f64) -> Option<f64> {
    let values: Vec<_> = runs.rates.iter().map(value).collect();
    Some(summary(&values)?.median)
}

fn claims(all: &[Runs]) -> Vec<Claim> {
    let least = |way: Way| {
        let runs_of_way = all.iter().filter(|runs| runs.way == way.name());
        let shares = runs_of_way.filter_map(|runs| median(runs, |rates| rates.job / rates.fair()));
        shares.reduce(f64::min)
    };
    let share = least(Way::Causeway);
    let share = share.map(|figure| Claim {
        what: "a job's bulk stream beside foreign flows, of its fair share, the least".into(),
        direct: least(Way::Direct),
        figure,
        unit: "",
        bar: Bar::AtLeast(1.0),
    });
    let reserved = all.iter().find(|runs| runs.way.ends_with("-reserved"));
    let reserved = reserved.and_then(|runs| median(runs, |rates| rates.job));
    let reserved = reserved.map(|figure| Claim {
        what: "a job's bulk stream beside a foreign flow, reserved rate".into(),
        direct: None,
        figure,
        unit: " Mbit/s",
        bar: Bar::Near(RESERVED_MBIT, 0.05),
    });
    share.into_iter().chain(reserved).collect()
}

fn table(all: &[Runs]) -> Table {
    let mut table = Table::new(&[
        "queue",
        "foreign flows",
        "way of the job",
        "job (Mbit/s)",
        "each foreign flow (Mbit/s)",
        "the least of them (Mbit/s)",
        "all, of the link",
        "job/fair share",
        "each foreign flow/fair share",
        "runs",
    ]);
    table.rows.extend(all.iter().filter_map(line));
    table
}

fn line(runs: &Runs) -> Option<Vec<String>> {
    let Foreign { congestion, flows } = runs.foreign;
    let each = |rates: &Rates| rates.all_foreign() / f64::from(flows);
    let link = Link::RENNES_NANCY.rate_bits_per_second / 1e6;
    Some(vec![
        runs.queue.to_owned(),
        format!("{flows} {}", congestion.to_uppercase()),
        runs.way.clone(),
        format!("{:.0}", median(runs, |rates| rates.job)?),
        format!("{:.0}", median(runs, each)?),
        format!("{:.0}", median(runs, Rates::least)?),
        format!(
            "{:.2}",
            median(runs, |rates| (rates.job + rates.all_foreign()) / link)?
        ),
        format!("{:.2}", median(runs, |rates| rates.job / rates.fair())?),
        format!("{:.2}", median(runs, |rates| each(rates) / rates.fair())?),
        runs.rates.len().to_string(),
    ])
}

fn rows(all: &[Runs]) -> String {
    let mut text = "queue,congestion,flows,way,run,job_mbit_per_second,foreign_mbit_per_second,least_foreign_mbit_per_second\n".to_owned();
    for runs in all {
        let Foreign { congestion, flows } = runs.foreign;
        for (run, rates) in runs.rates.iter().enumerate() {
            let (queue, way, job) = (runs.queue, &runs.way, rates.job);
            let (foreign, least) = (rates.all_foreign(), rates.least());
            let _ = writeln!(
                text,
                "{queue},{congestion},{flows},{way},{run},{job:.1},{foreign:.1},{least:.1}"
            );
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn runs(rates: Vec<Rates>) -> Runs {
        Runs {
            queue: "4MB",
            foreign: Foreign {
                congestion: "bbr",
                flows: 2,
            },
            way: "causeway".into(),
            rates,
        }
    }

    #[test]
    fn a_rate_is_taken_between_two_times_and_not_outside_the_rows() {
        let rows = [vec![10.0, 0.0], vec![11.0, 1e6], vec![13.0, 5e6]];
        let between = |from, to| mbit_per_second_between(&rows, from, to);
        // 0.5 MB by 10.5 s, 3 MB by 12 s.
        assert!((between(10.5, 12.0).unwrap() - 2.5 * 8.0 / 1.5).abs() < 1e-9);
        assert_eq!((between(9.0, 12.0), between(11.0, 13.5)), (None, None));
    }

    #[test]
    fn the_fair_share_is_an_equal_part_for_the_job_and_each_foreign_flow() {
        let rates = Rates {
            job: 600.0,
            foreign: vec![200.0, 100.0],
        };
        let all = [runs(vec![rates])];
        let cells = table(&all).rows.remove(0);
        let wanted = [
            "4MB", "2 BBR", "causeway", "600", "150", "100", "0.90", "2.00", "0.50", "1",
        ];
        assert_eq!(cells, wanted);
        assert!((claims(&all)[0].figure - 2.0).abs() < 1e-9);
        assert!(rows(&all).ends_with("\n4MB,bbr,2,causeway,0,600.0,300.0,100.0\n"));
        assert!(table(&[runs(Vec::new())]).rows.is_empty());
    }

    #[test]
    fn iperf_says_what_was_received_of_each_flow() {
        let json = r#"{"end": {"streams": [{"receiver": {"bits_per_second": 4.7e8}}, {"receiver": {"bits_per_second": 1e8}}]}}"#;
        assert_eq!(received_mbit_per_second(json), Some(vec![470.0, 100.0]));
        assert_eq!(received_mbit_per_second("{}"), None);
    }
}
