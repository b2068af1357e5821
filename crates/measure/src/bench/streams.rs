//! Section `streams`: ten thousand streams at once, how much memory each takes, and how fast they open.

use super::{Bench, BenchError, DEADLINE, FAR_HEAD, HEAD, ROUTED, Way};
use crate::checkout::test_program;
use crate::claim::{Bar, Claim};
use crate::results::Part;
use causeway_bench::lab::Lab;
use causeway_bench::program::io;
use causeway_bench::table::Table;
use serde_json::Value;
use std::fmt::Write as _;
use std::path::Path;
use std::time::{Duration, Instant};

/// Connections that are opened: as many as two hundred ranks open, half of them at each site, if all talk to
/// all.
const STREAMS: u64 = 10_000;

/// A node's ports stay bound to the address they last spoke to for this long (TIME_WAIT). All streams of a
/// node go to its gateway's one address, so another ten thousand within this time have to search for free
/// ports, which allows only 300 streams a second.
const PORTS_REST: Duration = Duration::from_secs(61);

/// How long streams are idle before the gateways are asked for their memory.
const IDLE: Duration = Duration::from_secs(5);

/// See the module.
///
/// # Errors
/// A program fails.
pub fn measure(bench: &Bench) -> Result<Part, BenchError> {
    let count = bench.pick(STREAMS / 5, STREAMS);
    let lab = bench.lab("streams", &ROUTED)?;
    let mut part = Part::new(
        &format!("{count} streams at once"),
        "A plain-socket program opens them, sends 512 B on each, checks the echo and keeps them open and idle. After five \
         seconds both gateways are asked for their memory. At most 512 are being opened at a time; the time counts from the first connect to \
         the last answer. What the streams add is the least a stream costs: it may use memory that the training of the tunnel has \
         left; all of the gateway's memory, shared out among them, is the most. Bars: of the latter at most 16 kB at either \
         gateway; at least 2000 streams opened in a second. A minute's rest \
         between runs: a node's ports stay bound to its gateway's address for so long.",
    );
    part.command(&lab.shape());
    let mut rates = Vec::new();
    let mut rows = "way,run,streams,seconds\n".to_owned();
    let mut memory = None;
    for run in 0..bench.pick(1, 2) {
        if run > 0 {
            std::thread::sleep(PORTS_REST);
        }
        for way in Way::BOTH {
            let (seconds, seen) = open(bench, &lab, &mut part, (way, run, count))?;
            let _ = writeln!(rows, "{},{run},{count},{seconds:.3}", way.name());
            rates.push((way, count as f64 / seconds));
            if way == Way::Causeway && memory.is_none() {
                memory = Some(seen);
            }
        }
    }
    show_rates(&mut part, &rates);
    // The first run is taken, because later ones find memory that an earlier one has left free.
    for (node, [before, open, after]) in memory.into_iter().flatten() {
        let (table, kilobytes) = resident(&before, &open, &after);
        part.tables
            .push((format!("Memory of the gateway at {node}"), table));
        part.claims.extend(kilobytes.map(|kilobytes| Claim {
            what: format!("memory of an idle stream, {node}, all shared out"),
            direct: None,
            figure: kilobytes,
            unit: " kB",
            bar: Bar::AtMost(16.0),
        }));
    }
    part.files.push(("streams.csv".into(), rows));
    Ok(part)
}

/// Streams opened per second, for each way.
fn show_rates(part: &mut Part, rates: &[(Way, f64)]) {
    let found = |of| {
        let rates = rates.iter().filter(|(way, _)| *way == of);
        causeway_bench::samples::summary(&rates.map(|(_, rate)| *rate).collect::<Vec<_>>())
    };
    let mut opened = Table::new(&["way", "opened per second, median", "min", "max", "runs"]);
    for way in Way::BOTH {
        let row = found(way).map(|found| {
            let mut row = vec![way.name().to_owned()];
            row.extend([found.median, found.min, found.max].map(|rate| format!("{rate:.0}")));
            row.push(found.count.to_string());
            row
        });
        opened.rows.extend(row);
    }
    if let Some(causeway) = found(Way::Causeway) {
        part.claims.push(Claim {
            what: "streams opened, median".into(),
            direct: found(Way::Direct).map(|direct| direct.median),
            figure: causeway.median,
            unit: "/s",
            bar: Bar::AtLeast(2000.0),
        });
    }
    part.tables.push(("Opening".into(), opened));
}

/// What a gateway reported before, during and after the time when the streams were open.
type Seen = Vec<(&'static str, [Value; 3])>;

fn open(
    bench: &Bench,
    lab: &Lab,
    part: &mut Part,
    (way, run, count): (Way, u32, u64),
) -> Result<(f64, Seen), BenchError> {
    println!("bench:   {count} streams, {}, run {run}", way.name());
    let directory = bench.scratch(&format!("streams-{}-{run}", way.name()))?;
    for left in ["address", "open", "release"] {
        let _ = std::fs::remove_file(directory.join(left));
    }
    let gateways =
        || -> Result<Vec<Value>, BenchError> { Ok([lab.status(HEAD)?, lab.status(FAR_HEAD)?].into()) };
    let before = gateways()?;
    let command = format!(
        "causeway run {}--sites rennes=1,nancy=1 -- mpirun.mpich -n 2 {} $PWD {count} --hold",
        way.option(),
        test_program("debian-mpich", "streams")
    );
    part.command(&command);
    let mut running = lab.program(HEAD, &command, &directory, DEADLINE)?.start()?;
    wait_for(&directory.join("open"), &mut || Ok(running.ended()?.is_some()))?;
    std::thread::sleep(IDLE);
    let open = gateways()?;
    std::fs::write(directory.join("release"), "").map_err(io("let the streams go"))?;
    let said = running.succeed()?.stdout;
    let after = gateways()?;
    let states = before.into_iter().zip(open).zip(after);
    let seen = states.map(|((before, open), after)| [before, open, after]);
    let seconds = seconds(&said)
        .ok_or_else(|| BenchError::output("streams", &said, "'... all answered after SECONDS s, ...'"))?;
    Ok((seconds, [HEAD, FAR_HEAD].into_iter().zip(seen).collect()))
}

fn wait_for(file: &Path, ended: &mut dyn FnMut() -> Result<bool, BenchError>) -> Result<(), BenchError> {
    let end = Instant::now() + DEADLINE;
    while !file.exists() && !ended()? && Instant::now() < end {
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
    Ok(())
}

fn seconds(said: &str) -> Option<f64> {
    let (_, behind) = said.split_once("all answered after ")?;
    let seconds: f64 = behind.split_whitespace().next()?.parse().ok()?;
    (seconds > 0.0).then_some(seconds)
}

/// The table; and, while the streams were open, all of the memory for each stream, in kB.
fn resident(before: &Value, open: &Value, after: &Value) -> (Table, Option<f64>) {
    let mut table = Table::new(&[
        "when",
        "streams open",
        "resident memory (MB)",
        "added per stream (kB)",
        "all per stream (kB)",
    ]);
    let bytes = |status: &Value| status["resident_bytes"].as_u64().unwrap_or(0);
    let mut per_stream = None;
    for (label, status) in [("before", before), ("all open", open), ("after", after)] {
        let streams = status["streams"].as_u64().unwrap_or(0);
        let each = |bytes: u64| (streams > 0).then(|| bytes as f64 / 1e3 / streams as f64);
        let (added, all) = (
            each(bytes(status).saturating_sub(bytes(before))),
            each(bytes(status)),
        );
        if label == "all open" {
            per_stream = all;
        }
        let mut row = vec![
            label.to_owned(),
            streams.to_string(),
            format!("{:.1}", bytes(status) as f64 / 1e6),
        ];
        row.extend([added, all].map(|each| each.map_or_else(|| "-".to_owned(), |each| format!("{each:.1}"))));
        table.rows.push(row);
    }
    (table, per_stream)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_per_stream_is_all_there_is_beside_what_the_streams_added() {
        let status =
            |streams: u64, resident: u64| serde_json::json!({"streams": streams, "resident_bytes": resident});
        let (table, each) = resident(
            &status(0, 4_000_000),
            &status(1000, 14_000_000),
            &status(0, 5_000_000),
        );
        assert_eq!(each, Some(14.0));
        assert_eq!(table.rows[1], ["all open", "1000", "14.0", "10.0", "14.0"]);
        assert_eq!(table.rows[2][3], "-");
    }

    #[test]
    fn no_streams_have_no_memory_each() {
        assert_eq!(resident(&Value::Null, &Value::Null, &Value::Null).1, None);
    }

    #[test]
    fn the_time_stands_in_the_programs_only_line() {
        let said = "streams: 10000 open at once, all answered after 1.250 s, all right\n";
        assert_eq!(seconds(said), Some(1.25));
        assert_eq!(seconds("streams: 3 of 9 answered"), None);
    }
}
