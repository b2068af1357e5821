//! Section `disturbed`: messages of a job right after something has happened to a gateway or to its lanes,
//! compared with the same job's messages right before.

use super::pings::read;
use super::share::{seconds_now, wait};
use super::{Bench, BenchError, DEADLINE, FAR_HEAD, HEAD, MPIS, ROUTED, numbers};
use crate::checkout::{repository, test_program};
use crate::claim::{Bar, Claim};
use crate::results::Part;
use causeway_bench::lab::Lab;
use causeway_bench::limit::Link;
use causeway_bench::samples::summary;
use causeway_bench::table::{Table, size};
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::thread::sleep;
use std::time::Duration;

/// Seconds of a job: all sizes from its start to [`SMALL_FROM`], then single bytes, from which a new lane
/// learns nothing about its path, then all sizes again. The event is over a second before these.
const SECONDS: f64 = 13.0;
const SMALL_FROM: f64 = 4.0;
const SMALL_UNTIL: f64 = 9.0;
const EVENT_AT: f64 = 6.0;

/// Messages count from a second after the start of the job, and from a second after the event.
const SETTLED: f64 = 1.0;

const CUT: Duration = Duration::from_secs(1);

/// What happens under a job.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Event {
    /// Nothing, which shows how far two halves of a job differ by themselves.
    Nothing,
    Kill,
    HandOver,
    Cut,
    LaneLost,
}

impl Event {
    const ALL: [Event; 5] = [
        Event::Nothing,
        Event::Kill,
        Event::HandOver,
        Event::Cut,
        Event::LaneLost,
    ];

    fn name(self) -> &'static str {
        match self {
            Event::Nothing => "nothing",
            Event::Kill => "worker killed",
            Event::HandOver => "hand-over",
            Event::Cut => "cut of 1 s",
            Event::LaneLost => "lane reset",
        }
    }

    /// Makes it happen, and returns the time at which it was over.
    fn happen(self, bench: &Bench, lab: &Lab) -> Result<f64, BenchError> {
        let run = |node: &str, command: &str| -> Result<(), BenchError> {
            let directory = bench.scratch("disturbed-events")?;
            lab.program(node, command, &directory, DEADLINE)?.succeed()?;
            Ok(())
        };
        match self {
            Event::Nothing => {}
            Event::Kill => {
                let status = lab.status(HEAD)?;
                run(HEAD, &format!("kill -9 {}", status["worker"]))?;
            }
            Event::HandOver => run(
                HEAD,
                "causeway gateway --config /run/causeway-lab/gateway/rennes.toml --drain",
            )?,
            Event::Cut => {
                lab.link("--down")?;
                sleep(CUT);
                lab.link("--up")?;
            }
            Event::LaneLost => {
                // The port of the dialling end is the lane's own, and is never used again here.
                let status = lab.status(FAR_HEAD)?;
                let peer = status["tunnels"][0]["lanes"][0]["peer"].as_str().unwrap_or("");
                let port = peer.rsplit(':').next().unwrap_or("");
                let rules = ["sport", "dport"].map(|end| {
                    format!("add rule inet resets forward tcp {end} {port} reject with tcp reset")
                });
                run("rennes-router", &format!("nft '{RESETS}; {}'", rules.join("; ")))?;
            }
        }
        Ok(seconds_now())
    }
}

const RESETS: &str = "add table inet resets; \
    add chain inet resets forward { type filter hook forward priority -10; policy accept; }";

/// See the module.
///
/// # Errors
/// A program fails.
pub fn measure(bench: &Bench) -> Result<Part, BenchError> {
    let mut part = Part::new(
        "Messages right after an event",
        "Two ranks send each other one message of each size in turn (tests/programs/steady.c). Then they send single bytes for five \
         seconds, in which rennes' worker is killed, its gateway is handed over to another program, the link is cut, or the lane is \
         reset on its way; then one of each size in turn again. 'before' are the messages of the three seconds before the single \
         bytes, 'after' those of the four seconds behind them, at least one second after the event: medians over all runs, and \
         their ratio. The bar: at most 1.05 at every size.",
    );
    let shape: Vec<&str> = ["--grid", "transport = \"tcp\""]
        .into_iter()
        .chain(ROUTED)
        .collect();
    let lab = bench.lab("disturbed", &shape)?;
    part.command(&lab.shape());
    let mut found: BTreeMap<(Event, u64), [Vec<f64>; 2]> = BTreeMap::new();
    let mut rows = "event,run,when,size_bytes,seconds,one_way_us\n".to_owned();
    for run in 0..bench.pick(1, 5) {
        for event in Event::ALL {
            println!("bench:   messages before and after: {}, run {run}", event.name());
            let (began, happened, times) = under_a_job(bench, &lab, &mut part, event, run)?;
            for row in times {
                let (since, bytes, one_way_us) = (row[0] - began, row[1] as u64, row[2]);
                let Some(place) = place(since, happened - began) else {
                    continue;
                };
                let when = ["before", "after"][place];
                let _ = writeln!(
                    rows,
                    "{},{run},{when},{bytes},{since:.3},{one_way_us:.1}",
                    event.name()
                );
                found.entry((event, bytes)).or_default()[place].push(one_way_us);
            }
        }
    }
    part.tables.push(("Medians of all runs".into(), table(&found)));
    part.files.push(("disturbed.csv".into(), rows));
    part.claims.extend(claims(&found));
    Ok(part)
}

/// 0 for a message that counts before the event, 1 for one after it; both times are since the job's start.
fn place(since: f64, happened: f64) -> Option<usize> {
    match since {
        _ if (SETTLED..SMALL_FROM).contains(&since) => Some(0),
        _ if since >= SMALL_UNTIL.max(happened + SETTLED) => Some(1),
        _ => None,
    }
}

/// Runs a job under which an event happens; returns when the job began, when the event was over, and the
/// job's rows.
fn under_a_job(
    bench: &Bench,
    lab: &Lab,
    part: &mut Part,
    event: Event,
    run: u32,
) -> Result<(f64, f64, Vec<Vec<f64>>), BenchError> {
    let directory = bench.scratch(&format!("disturbed-{}-{run}", event.name().replace(' ', "-")))?;
    let rows = directory.join("rows.csv");
    let _ = std::fs::remove_file(&rows);
    let command = format!(
        "causeway run --sites rennes=1,nancy=1 -- {} -n 2 {} {} rows.csv {SECONDS} {SMALL_FROM} {SMALL_UNTIL}",
        MPIS[0].launcher(),
        repository().join("tests/programs/own-core.sh").display(),
        test_program(MPIS[0].programs, "steady"),
    );
    let job = lab.program(HEAD, &command, &directory, DEADLINE)?.start()?;
    wait(&rows, |text| text.contains('\n'))?;
    sleep(Duration::from_secs_f64(EVENT_AT));
    let happened = event.happen(bench, lab)?;
    job.succeed()?;
    part.command(&command);
    let times = numbers("steady", &read(&rows)?, "seconds,size_bytes,one_way_us")?;
    let began = times.first().map_or(0.0, |row| row[0]);
    Ok((began, happened, times))
}

type Found = BTreeMap<(Event, u64), [Vec<f64>; 2]>;

fn ratio([before, after]: &[Vec<f64>; 2]) -> Option<(f64, f64)> {
    Some((summary(before)?.median, summary(after)?.median))
}

fn table(found: &Found) -> Table {
    let mut table = Table::new(&[
        "event",
        "size",
        "limit (ms)",
        "before (ms)",
        "after (ms)",
        "after/before",
        "messages before, after",
    ]);
    for ((event, bytes), times) in found {
        let Some((before, after)) = ratio(times) else {
            continue;
        };
        table.rows.push(vec![
            event.name().to_owned(),
            size(*bytes),
            format!("{:.3}", Link::RENNES_NANCY.one_way_us(*bytes) / 1e3),
            format!("{:.3}", before / 1e3),
            format!("{:.3}", after / 1e3),
            format!("{:.3}", after / before),
            format!("{}, {}", times[0].len(), times[1].len()),
        ]);
    }
    table
}

fn claims(found: &Found) -> Vec<Claim> {
    let worst = |event: Event| {
        let sizes = found.iter().filter(|((other, _), _)| *other == event);
        let ratios = sizes.filter_map(|(_, times)| ratio(times).map(|(before, after)| after / before));
        ratios.reduce(f64::max)
    };
    let events = Event::ALL.into_iter().filter(|event| *event != Event::Nothing);
    events
        .filter_map(|event| {
            Some(Claim {
                what: format!(
                    "messages 1 s after: {}, of those before, worst size",
                    event.name()
                ),
                direct: worst(Event::Nothing),
                figure: worst(event)?,
                unit: "",
                bar: Bar::AtMost(1.05),
            })
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_count_before_an_event_and_from_a_second_after_it() {
        let places = [0.5, 2.0, 5.0, 8.9, 9.0, 12.0].map(|since| place(since, 7.0));
        assert_eq!(places, [None, Some(0), None, None, Some(1), Some(1)]);
        assert_eq!((place(9.2, 8.5), place(9.5, 8.5)), (None, Some(1)));
    }

    #[test]
    fn the_worst_size_of_each_event_is_held_to_the_bar() {
        let found = Found::from([
            ((Event::Nothing, 1), [vec![100.0], vec![101.0]]),
            ((Event::Kill, 1), [vec![100.0], vec![104.0]]),
            ((Event::Kill, 4096), [vec![100.0], vec![120.0]]),
        ]);
        let claims = claims(&found);
        assert_eq!(claims.len(), 1);
        assert!((claims[0].figure - 1.2).abs() < 1e-9 && claims[0].direct == Some(1.01));
        assert_eq!(table(&found).rows.len(), 3);
    }
}
