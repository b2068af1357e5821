//! `causeway bench worth`: whether a program is worth running over two sites.

use super::wanted::{Common, Worth};
use super::work::Work;
use super::{Failure, INTERRUPTED, filled, mpis, stop_flag};
use crate::cell::{Settings, Traffic, Way};
use crate::limit::Link;
use crate::plan::KnownLink;
use crate::row::Row;
use crate::store;
use crate::table::Table;
use crate::worth::{FAR, Figure, NEAR, Needs, Round, THIN};
use causeway_control as control;
use causeway_control::questions;
use causeway_host::{own_file, say};
use serde::Serialize;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

/// Links that a reader knows: what they join, milliseconds and Gbit/s.
const KNOWN: [(&str, u64, f64); 5] = [
    ("one campus", 1, 10.0),
    ("one region", 5, 1.0),
    ("one country", 12, 1.0),
    ("one continent", 30, 1.0),
    ("over an ocean", 90, 1.0),
];

/// How an earlier file begins.
const MARK: &str = "{\n  \"program\": ";

/// What all runs have shown, in seconds.
#[derive(Debug, Serialize)]
struct Found {
    program: String,
    rounds: u32,
    /// Median at one site.
    one_site: f64,
    /// On how many cores its ranks computed there, if the launcher told.
    cores: Option<u32>,
    needs: Needs,
    /// The link in question.
    link: KnownLink,
    /// The median over that link.
    measured: f64,
}

/// Times of the runs that are done so far.
#[derive(Debug, Default)]
struct Times {
    one_site: Vec<f64>,
    cores: Option<u32>,
    rounds: Vec<Round>,
    target: Vec<f64>,
}

/// The status is 1 if a run failed, and 130 after Ctrl-C.
pub fn main(task: &Worth) -> Result<ExitCode, Failure> {
    let stop = stop_flag().map_err(Failure::new)?;
    let out = std::path::absolute(&task.out).map_err(Failure::new)?;
    std::fs::create_dir_all(&out).map_err(|error| cannot_write(&out, &error))?;
    let link = task.link.clone().unwrap_or_else(own_link);
    let mut times = Times::default();
    for round in 1..=task.rounds {
        if !add_round(task, (round, &out), &link, &mut times, &stop)? {
            say::error(format_args!(
                "causeway bench: stopped; the same command continues in {}",
                out.display()
            ));
            return Ok(ExitCode::from(INTERRUPTED));
        }
    }
    let found = found(task, link, &times).ok_or_else(|| Failure::new("no run ended well"))?;
    let json = serde_json::to_string_pretty(&found).map_err(Failure::new)?;
    let file = out.join("worth.json");
    own_file::write(&file, json.as_bytes(), MARK).map_err(Failure::new)?;
    Ok(say::result(match task.json {
        true => json,
        false => text(&found),
    }))
}

fn cannot_write(path: &Path, error: &std::io::Error) -> Failure {
    Failure::new(format_args!("write {}: {error}", path.display()))
}

/// What this host's gateway knows of the link to the first site that it has a tunnel to; without one, the
/// papers' link.
fn own_link() -> KnownLink {
    let status = questions::status(&control::socket()).ok();
    let seen = status.and_then(|status| status.tunnels.iter().find_map(control::TunnelStatus::link));
    let papers = KnownLink {
        round_trip_us: Link::RENNES_NANCY.round_trip.as_secs_f64() * 1e6,
        rate_bits_per_second: Link::RENNES_NANCY.rate_bits_per_second,
        source: "usual".into(),
    };
    match seen {
        Some(link) if link.rate_bits_per_second > 0 => KnownLink {
            round_trip_us: f64::from(link.rtt_microseconds),
            rate_bits_per_second: link.rate_bits_per_second as f64,
            source: "probed".into(),
        },
        _ => papers,
    }
}

/// One run at one site, and one over each link. False if it was stopped.
fn add_round(
    task: &Worth,
    (round, out): (u32, &Path),
    link: &KnownLink,
    times: &mut Times,
    stop: &Arc<AtomicBool>,
) -> Result<bool, Failure> {
    let links = [
        ("near", NEAR),
        ("far", FAR),
        ("thin", THIN),
        ("link", link.link()),
    ];
    let mut over = Vec::new();
    for (name, link) in links {
        say::error(format_args!(
            "causeway bench: round {round} of {}: {name}, {}",
            task.rounds,
            words(link)
        ));
        let ways: &[Way] = match name {
            "near" => &[Way::Site, Way::Causeway],
            _ => &[Way::Causeway],
        };
        let directory = out.join(directory_name(round, name, link));
        forget_failed(&directory)?;
        let work = Work::App(task.command.clone());
        let rows = match kept(&directory, &work, ways)? {
            Some(rows) => rows,
            None => {
                let common = common(task, directory, link, ways)?;
                let (store, was_stopped) = filled(&common, work, (&task.command[..1], None), stop, None)?;
                if was_stopped {
                    return Ok(false);
                }
                store.rows().to_vec()
            }
        };
        if name == "near" {
            times.one_site.push(seconds(&rows, Way::Site)?);
            times.cores = times.cores.or_else(|| cores(&rows));
        }
        over.push(seconds(&rows, Way::Causeway)?);
    }
    if let [near, far, thin, target] = over[..] {
        times.rounds.push(Round { near, far, thin });
        times.target.push(target);
    }
    Ok(true)
}

/// Runs over a different link get a different name.
fn directory_name(round: u32, name: &str, link: Link) -> String {
    let (us, rate) = (link.round_trip.as_micros(), link.rate_bits_per_second);
    match name {
        "link" => format!("{round}-{us}us-{rate:.0}bit"),
        _ => format!("{round}-{name}"),
    }
}

/// The rows that an earlier call for the same program and MPI has left, if none is missing: no grid is
/// started then.
fn kept(directory: &Path, work: &Work, ways: &[Way]) -> Result<Option<Vec<Row>>, Failure> {
    let (Ok((head, rows)), Work::App(command)) = (store::read(directory), work) else {
        return Ok(None);
    };
    let mpis = mpis::find(&command[..1])?;
    let is_same = |row: &Row| mpis.iter().any(|mpi| mpi.name == row.cell.mpi);
    let is_there = |way: &Way| {
        rows.iter()
            .any(|row| row.cell.way == *way && row.failure().is_none())
    };
    let is_whole = head.plan.arguments == work.arguments() && ways.iter().all(is_there);
    Ok((is_whole && rows.iter().all(is_same)).then_some(rows))
}

/// Removes what an earlier call has left of a run that failed, so that it is tried again.
fn forget_failed(directory: &Path) -> Result<(), Failure> {
    let Ok((_, rows)) = store::read(directory) else {
        return Ok(());
    };
    match rows.iter().any(|row| row.failure().is_some()) {
        true => std::fs::remove_dir_all(directory).map_err(|error| cannot_write(directory, &error)),
        false => Ok(()),
    }
}

/// What a matrix has in common that runs once on each way, on a grid of two sites joined by this link.
fn common(task: &Worth, out: PathBuf, link: Link, ways: &[Way]) -> Result<Common, Failure> {
    std::fs::create_dir_all(&out).map_err(|error| cannot_write(&out, &error))?;
    let scenario = out.join("grid.toml");
    std::fs::write(&scenario, scenario_of(link)).map_err(|error| cannot_write(&scenario, &error))?;
    Ok(Common {
        out: Some(out),
        lab: vec![scenario.display().to_string()],
        mpi: Vec::new(),
        ways: ways.to_vec(),
        settings: vec![Settings::Tuned],
        traffic: vec![Traffic::Quiet],
        flows: 1,
        sites: Vec::new(),
        ranks: None,
        least: 1,
        most: 1,
        interval: 100.0,
        time_limit: task.time_limit,
        seed: 1,
        link: None,
        json: false,
        version: task.version.clone(),
    })
}

/// Two sites of two nodes each. Queues hold what is in flight, and at least 256 kB.
fn scenario_of(link: Link) -> String {
    let site = |name: &str, net: u8| {
        format!(
            "[[site]]\nname = \"{name}\"\nnodes = 2\nslots = 64\nsubnet = \"10.{net}.0.0/24\"\nfirewall = \"open\"\n\n"
        )
    };
    let on_the_way = link.round_trip.as_secs_f64() * link.rate_bits_per_second / 8.0;
    format!(
        "name = \"worth\"\nrouted = false\ncongestion_control = \"cubic\"\n\n{}{}[[link]]\nbetween = [\"one\", \"two\"]\n\
         rtt = \"{}us\"\nrate = \"{}bit/s\"\nqueue = \"{}kB\"\nloss = \"0%\"\nseed = 1\n",
        site("one", 1),
        site("two", 2),
        link.round_trip.as_micros(),
        link.rate_bits_per_second,
        (on_the_way / 1e3).ceil().max(256.0)
    )
}

fn seconds(rows: &[Row], way: Way) -> Result<f64, Failure> {
    let mut own = rows.iter().filter(|row| row.cell.way == way);
    let row = own.next_back().ok_or_else(|| Failure::new("a run left no row"))?;
    match (row.values().first(), row.failure()) {
        (Some(value), _) => Ok(value.summary.median),
        (None, reason) => Err(Failure::new(format_args!(
            "{}: a run failed: {}",
            row.cell,
            reason.unwrap_or("it printed no time")
        ))),
    }
}

fn cores(rows: &[Row]) -> Option<u32> {
    let mut own = rows.iter().filter(|row| row.cell.way == Way::Site);
    own.find_map(|row| row.cores)
}

fn found(task: &Worth, link: KnownLink, times: &Times) -> Option<Found> {
    let median = |values: &[f64]| crate::samples::summary(values).map(|all| all.median);
    Some(Found {
        program: task
            .command
            .iter()
            .map(|word| word.to_string_lossy())
            .collect::<Vec<_>>()
            .join(" "),
        rounds: task.rounds,
        one_site: median(&times.one_site)?,
        cores: times.cores,
        needs: Needs::of(&times.rounds)?,
        link,
        measured: median(&times.target)?,
    })
}

fn words(link: Link) -> String {
    let (ms, mbit) = (
        link.round_trip.as_secs_f64() * 1e3,
        link.rate_bits_per_second / 1e6,
    );
    format!("{ms:.1} ms, {mbit:.0} Mbit/s")
}

/// A figure and its interval, if its rounds distinguish it from 0.
fn range(figure: Figure, unit: f64, digits: usize, what: &str) -> String {
    let [median, least, most] = [figure.median, figure.least, figure.most].map(|value| value / unit);
    match (figure.is_told(), figure.has_interval()) {
        (true, true) => format!("{median:.digits$} {what} ({least:.digits$} to {most:.digits$})"),
        (true, false) => format!("{median:.digits$} {what} (by one round)"),
        (false, true) => format!("no {what} above the noise ({most:.digits$} at most)"),
        (false, false) => format!("no {what} (by one round)"),
    }
}

fn text(found: &Found) -> String {
    let (needs, link) = (&found.needs, found.link.link());
    let mut table = Table::new(&[
        "link",
        "over two sites (s)",
        "of one site",
        "with twice the ranks (s)",
        "of one site",
    ]);
    let own = (format!("yours: {}", words(link)), link);
    let known = KNOWN.map(|(what, ms, gbit)| {
        let link = Link {
            round_trip: Duration::from_millis(ms),
            rate_bits_per_second: gbit * 1e9,
        };
        (format!("{what}: {}", words(link)), link)
    });
    for (name, link) in [own].into_iter().chain(known) {
        let (same, twice) = (needs.seconds(link), needs.seconds_with_twice_the_ranks(link));
        let cells = |seconds: f64| {
            [
                format!("{seconds:.2}"),
                format!("{:.2}", seconds / found.one_site),
            ]
        };
        let row = [vec![name], cells(same).to_vec(), cells(twice).to_vec()];
        table.rows.push(row.concat());
    }
    let cores = match found.cores {
        Some(1) => ", on 1 core".to_owned(),
        Some(cores) => format!(", on {cores} cores"),
        None => String::new(),
    };
    format!(
        "{}\n\nat one site it takes {:.2} s (median of {} runs{cores})\n\
         over two sites it takes {:.2} s, and waits for {} and {}\n\
         over {} this makes {:.2} s; measured: {:.2} s\n\n{}\n{}",
        found.program,
        found.one_site,
        found.rounds,
        needs.own_seconds,
        range(needs.trips, 1.0, 0, "round trips"),
        range(needs.bytes, 1e6, 1, "MB"),
        words(link),
        needs.seconds(link),
        found.measured,
        table.markdown(),
        verdict(found)
    )
}

/// Whether a second site with the same number of ranks is worth it.
fn verdict(found: &Found) -> String {
    let link = found.link.link();
    let twice = found.needs.seconds_with_twice_the_ranks(link);
    let rate = link.rate_bits_per_second;
    let pays = twice < found.one_site;
    let (is, does) = match pays {
        true => ("pays", "and does so"),
        false => ("does not pay", "but would"),
    };
    let bound = match found.needs.longest_round_trip(found.one_site, rate) {
        None => format!("and never does at {:.0} Mbit/s", rate / 1e6),
        Some(longest) if longest.least > 1.0 => "and does so with any round trip".to_owned(),
        Some(longest) if !found.needs.trips.has_interval() => format!(
            "{does} up to a round trip of {:.1} ms, by one round; more rounds (--rounds) show how certain that is",
            longest.median * 1e3
        ),
        // The waiting time is lost among the differences between runs: only the lower bound is known.
        Some(longest) if longest.most > 1.0 => format!(
            "{does} at least up to a round trip of {:.1} ms; the rounds differ by more than the program waits, and more \
             rounds (--rounds) show more",
            longest.least * 1e3
        ),
        Some(longest) => {
            let [median, least, most] =
                [longest.median, longest.least, longest.most].map(|value| value * 1e3);
            format!("{does} up to a round trip of {median:.1} ms ({least:.1} to {most:.1})")
        }
    };
    format!(
        "A second site with as many ranks again {is}: {twice:.2} s instead of {:.2} s, {bound}.\n\
         This assumes that twice the ranks halve the work, and that there are as many messages as now.",
        found.one_site
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use causeway_lab::Scenario;

    fn found(own: f64, trips: f64, bytes: f64) -> Found {
        let figure = |value: f64| Figure {
            median: value,
            least: value - 1.0,
            most: value + 1.0,
        };
        Found {
            program: "mpirun -n 4 ./heat".into(),
            rounds: 3,
            one_site: 2.0,
            cores: Some(2),
            needs: Needs {
                own_seconds: own,
                trips: figure(trips),
                bytes: figure(bytes),
            },
            link: own_link(),
            measured: 3.0,
        }
    }

    #[test]
    fn the_verdict_names_the_longest_round_trip_that_pays() {
        let pays = verdict(&found(2.0, 50.0, 1e6));
        assert!(
            pays.contains("ranks again pays: 1.59 s instead of 2.00 s"),
            "{pays}"
        );
        assert!(
            pays.contains("up to a round trip of 19.8 ms (19.5 to 20.2)"),
            "{pays}"
        );
        let far = verdict(&found(2.0, 500.0, 1e6));
        assert!(
            far.contains("does not pay") && far.contains("up to a round trip of 2.0 ms (2.0 to 2.0)"),
            "{far}"
        );
        let thin = verdict(&found(2.0, 1.0, 1e9));
        assert!(
            thin.contains("does not pay") && thin.contains("never does"),
            "{thin}"
        );
        let unclear = verdict(&found(2.0, 0.0, 0.0));
        assert!(
            unclear.contains("at least up to a round trip of 1000.0 ms") && unclear.contains("--rounds"),
            "{unclear}"
        );
        let never = verdict(&found(2.0, -2.0, 0.0));
        assert!(never.contains("with any round trip"), "{never}");
    }

    #[test]
    fn a_table_has_the_link_in_question_and_those_that_a_reader_knows() {
        let text = text(&found(2.0, 50.0, 1e6));
        assert!(
            text.contains("waits for 50 round trips (49 to 51) and 1.0 MB (1.0 to 1.0)"),
            "{text}"
        );
        assert_eq!(
            text.lines().filter(|line| line.starts_with('|')).count(),
            2 + 1 + KNOWN.len()
        );
    }

    #[test]
    fn runs_over_another_link_are_not_taken_for_those_over_this_one() {
        let name = |link| directory_name(2, "link", link);
        assert_eq!(name(Link::RENNES_NANCY), "2-11600us-1000000000bit");
        assert_ne!(name(Link::RENNES_NANCY), name(FAR));
        assert_eq!(directory_name(2, "far", FAR), "2-far");
    }

    #[test]
    fn every_link_makes_a_grid() {
        for link in [NEAR, FAR, THIN, Link::RENNES_NANCY] {
            let text = scenario_of(link);
            let scenario = Scenario::parse(&text, "grid.toml").unwrap();
            let made = scenario.link("one", "two").unwrap();
            assert_eq!(
                (made.rtt, made.rate_bits_per_second as f64),
                (link.round_trip, link.rate_bits_per_second)
            );
        }
    }
}
