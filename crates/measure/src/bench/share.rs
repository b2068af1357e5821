//! Section `share`: a job's bulk stream beside one foreign TCP flow on the same link.

use super::pings::read;
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
use serde_json::Value;
use std::fmt::Write as _;
use std::path::Path;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// How long both flow side by side, after a second in which the foreign one fills its window.
const BESIDE: u64 = 10;
const LEAD: u64 = 1;

/// Around that: mpirun's start, and the start of the foreign flow.
const MARGIN: u64 = 3;

const RESERVED_MBIT: f64 = 400.0;

/// See the module.
///
/// # Errors
/// A program fails.
pub fn measure(bench: &Bench) -> Result<Part, BenchError> {
    let mut part = Part::new(
        "Two bulk flows on one link",
        "An MPI program streams 1 MB messages from one site to the other while iperf3 sends one TCP flow (CUBIC) between the head \
         nodes; rates over the same 10 s. The fair share is half of what both carried together. The bar: the job gets at least \
         that; with a rate reserved for it, that rate within 5 %.",
    );
    let mut table = Table::new(&[
        "way of the job",
        "job (Mbit/s)",
        "foreign flow (Mbit/s)",
        "both, of the link",
        "fair share (Mbit/s)",
        "job/fair share",
        "runs",
    ]);
    let mut rows = "way,run,job_mbit_per_second,foreign_mbit_per_second\n".to_owned();
    let lab = bench.lab("share", &ROUTED)?;
    part.command(&lab.shape());
    let mut direct = None;
    for (way, found) in in_turn(bench, &lab, &mut part, &Way::BOTH, ("", &mut rows))? {
        table.rows.extend(row(way.name(), &found));
        match way {
            Way::Direct => direct = of_fair_share(&found),
            Way::Causeway => part.claims.extend(of_fair_share(&found).map(|figure| Claim {
                what: "a job's bulk stream beside a foreign flow, of its fair share".into(),
                direct,
                figure,
                unit: "",
                bar: Bar::AtLeast(1.0),
            })),
        }
    }
    drop(lab);
    match reserved_lab(bench) {
        Ok(lab) => {
            part.command(&lab.shape());
            let ways = [Way::Causeway];
            for (_, found) in in_turn(bench, &lab, &mut part, &ways, ("-reserved", &mut rows))? {
                let way = format!("causeway, {RESERVED_MBIT} Mbit/s reserved");
                table.rows.extend(row(&way, &found));
                let jobs: Vec<_> = found.iter().map(|(job, _)| *job).collect();
                part.claims.extend(summary(&jobs).map(|jobs| Claim {
                    what: "a job's bulk stream beside a foreign flow, reserved rate".into(),
                    direct: None,
                    figure: jobs.median,
                    unit: " Mbit/s",
                    bar: Bar::Near(RESERVED_MBIT, 0.05),
                }));
            }
        }
        Err(error) => part
            .text
            .push(format!("Not measured: a reserved rate. {}", first_lines(&error))),
    }
    part.tables.push(("Medians of all runs".into(), table));
    part.files.push(("share.csv".into(), rows));
    Ok(part)
}

/// A lab whose gateways have a rate reserved for each other. Fails where gateways do not know the key.
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

/// Rates of the job and of the foreign flow, in Mbit/s.
type Rates = (f64, f64);

fn in_turn(
    bench: &Bench,
    lab: &Lab,
    part: &mut Part,
    ways: &[Way],
    (label, rows): (&str, &mut String),
) -> Result<Vec<(Way, Vec<Rates>)>, BenchError> {
    let mut found: Vec<(Way, Vec<Rates>)> = ways.iter().map(|&way| (way, Vec::new())).collect();
    for run in 0..bench.pick(1, 3) {
        for (way, rates) in &mut found {
            let name = format!("{}{label}", way.name());
            println!("bench:   bulk beside a foreign flow, {name}, run {run}");
            let (job, foreign) = side_by_side(bench, lab, part, *way, &format!("share-{name}-{run}"))?;
            let _ = writeln!(rows, "{name},{run},{job:.1},{foreign:.1}");
            rates.push((job, foreign));
        }
    }
    Ok(found)
}

fn side_by_side(
    bench: &Bench,
    lab: &Lab,
    part: &mut Part,
    way: Way,
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
    let client =
        format!("iperf3 --client {address} --congestion cubic --time {seconds} --omit {LEAD} --json");
    let began = unix_seconds();
    let foreign = lab.program(HEAD, &client, &sent, DEADLINE)?.succeed()?.stdout;
    job.succeed()?;
    server.end()?;
    for command in ["iperf3 --server --one-off (on nancy-head)", &command, &client] {
        part.command(command);
    }
    let text = read(&rows)?;
    let carried = numbers("bulk", &text, "unix_seconds,bytes")?;
    let from = began + LEAD as f64;
    let job = mbit_per_second_between(&carried, from, from + seconds as f64)
        .ok_or_else(|| BenchError::output("bulk", &text, "rows over the whole time"))?;
    let foreign = received_mbit_per_second(&foreign)
        .ok_or_else(|| BenchError::output("iperf3", &foreign, "end.sum_received.bits_per_second"))?;
    Ok((job, foreign))
}

/// Waits until a file says what is waited for; what uses it tells what is wrong if it never does.
///
/// # Errors
/// None.
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

/// The time, as rows have it.
pub fn unix_seconds() -> f64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    since.map_or(0.0, |since| since.as_secs_f64())
}

/// Rows: when, and how many bytes had come by then. `None` where they do not reach over the whole time.
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

fn received_mbit_per_second(json: &str) -> Option<f64> {
    let value: Value = serde_json::from_str(json).ok()?;
    Some(value["end"]["sum_received"]["bits_per_second"].as_f64()? / 1e6)
}

/// Median of job over fair share.
fn of_fair_share(found: &[Rates]) -> Option<f64> {
    let shares: Vec<_> = found
        .iter()
        .map(|(job, foreign)| job / ((job + foreign) / 2.0))
        .collect();
    Some(summary(&shares)?.median)
}

fn row(way: &str, found: &[Rates]) -> Option<Vec<String>> {
    let median = |value: fn(&Rates) -> f64| {
        let values: Vec<_> = found.iter().map(value).collect();
        Some(summary(&values)?.median)
    };
    let both = median(|(job, foreign)| job + foreign)?;
    Some(vec![
        way.to_owned(),
        format!("{:.0}", median(|(job, _)| *job)?),
        format!("{:.0}", median(|(_, foreign)| *foreign)?),
        format!("{:.2}", both * 1e6 / Link::RENNES_NANCY.rate_bits_per_second),
        format!("{:.0}", both / 2.0),
        format!("{:.2}", of_fair_share(found)?),
        found.len().to_string(),
    ])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rate_is_taken_between_two_times_and_not_outside_the_rows() {
        let rows = [vec![10.0, 0.0], vec![11.0, 1e6], vec![13.0, 5e6]];
        let between = |from, to| mbit_per_second_between(&rows, from, to);
        // 0.5 MB by 10.5, 3 MB by 12.
        assert!((between(10.5, 12.0).unwrap() - 2.5 * 8.0 / 1.5).abs() < 1e-9);
        assert_eq!((between(9.0, 12.0), between(11.0, 13.5)), (None, None));
    }

    #[test]
    fn the_fair_share_is_half_of_what_both_carried() {
        assert!((of_fair_share(&[(600.0, 200.0)]).unwrap() - 1.5).abs() < 1e-9);
        let cells = row("x", &[(600.0, 200.0)]).unwrap();
        assert_eq!(cells[1..], ["600", "200", "0.80", "400", "1.50", "1"]);
        assert_eq!(of_fair_share(&[]), None);
    }

    #[test]
    fn iperf_says_what_was_received() {
        let json = r#"{"end": {"sum_received": {"bits_per_second": 4.7e8}}}"#;
        assert!((received_mbit_per_second(json).unwrap() - 470.0).abs() < 1e-9);
        assert_eq!(received_mbit_per_second("{}"), None);
    }
}
