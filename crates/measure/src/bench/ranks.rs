//! Section `ranks`: how long jobs of more and more ranks take to begin and to end, directly and through
//! Causeway in turn.

use super::pings::read;
use super::{Bench, BenchError, DEADLINE, HEAD, MPIS, ROUTED, Way, numbers};
use crate::checkout::test_program;
use crate::claim::{Bar, Claim};
use crate::results::Part;
use causeway_bench::lab::Lab;
use causeway_bench::samples::summary;
use causeway_bench::table::Table;
use serde_json::Value;
use std::collections::BTreeMap;
use std::fmt::Write as _;

/// Ranks of all sites together. On two cores, direct connections take a minute to two with 128.
const RANKS: [u32; 5] = [4, 16, 32, 64, 128];

/// With more, one pair takes minutes.
const MANY: u32 = 64;

/// A job may take so many times as long as the direct one, and so many seconds more.
const TIMES: f64 = 1.2;
const MORE_SECONDS: f64 = 1.0;

/// What one job took.
#[derive(Debug, Clone, Copy)]
struct Begun {
    init: f64,
    all_to_all: f64,
    finalize: f64,
    /// From the command to its end.
    whole: f64,
    /// Streams that it has opened, and the processor time of both gateways.
    streams: u64,
    gateways: f64,
}

type Found = BTreeMap<(u32, Way), Vec<Begun>>;

/// See the module.
///
/// # Errors
/// A program fails.
pub fn measure(bench: &Bench) -> Result<Part, BenchError> {
    let mut part = Part::new(
        "Jobs of many ranks",
        "Open MPI, as many ranks at one site as at the other, two nodes each, all on this machine; ranks that wait yield their core. \
         MPI_Init is the longest of all ranks; then every rank sends eight bytes to every other one (tests/programs/beginning.c). The \
         bar: the whole job takes at most 1.2 times as long as the direct one and a second more, at each number of ranks.",
    );
    let lab = bench.lab("ranks", &ROUTED)?;
    part.command(&lab.shape());
    let mut found = Found::new();
    let mut rows = "way,ranks,run,init_s,all_to_all_s,finalize_s,whole_s,streams,gateways_cpu_s\n".to_owned();
    for ranks in RANKS.into_iter().take(bench.pick(3, RANKS.len())) {
        let runs = if ranks > MANY { 1 } else { 3 };
        for run in 0..bench.pick(1, runs) {
            for way in Way::BOTH {
                println!("bench:   start of {ranks} ranks, {}, run {run}", way.name());
                let one = job(bench, &lab, &mut part, way, (ranks, run))?;
                let _ = writeln!(
                    rows,
                    "{},{ranks},{run},{:.3},{:.3},{:.3},{:.3},{},{:.3}",
                    way.name(),
                    one.init,
                    one.all_to_all,
                    one.finalize,
                    one.whole,
                    one.streams,
                    one.gateways
                );
                found.entry((ranks, way)).or_default().push(one);
            }
        }
    }
    part.claims.extend(claim(&found));
    part.tables.push(("Medians of all runs".into(), table(&found)));
    part.files.push(("ranks.csv".into(), rows));
    Ok(part)
}

fn job(
    bench: &Bench,
    lab: &Lab,
    part: &mut Part,
    way: Way,
    (ranks, run): (u32, u32),
) -> Result<Begun, BenchError> {
    let directory = bench.scratch(&format!("ranks-{}-{ranks}-{run}", way.name()))?;
    let rows = directory.join("rows.csv");
    let _ = std::fs::remove_file(&rows);
    let half = ranks / 2;
    let command = format!(
        "causeway run {}--sites rennes={half},nancy={half} -- {} -n {ranks} --oversubscribe --mca mpi_yield_when_idle 1 {} rows.csv",
        way.option(),
        MPIS[0].launcher(),
        test_program(MPIS[0].programs, "beginning"),
    );
    let before = spent(lab)?;
    let ended = lab.program(HEAD, &command, &directory, DEADLINE)?.succeed()?;
    let after = spent(lab)?;
    part.command(&command);
    let text = read(&rows)?;
    let read = numbers("beginning", &text, "ranks,init_s,all_to_all_s,finalize_s")?;
    let row = read.first();
    let row = row.ok_or_else(|| BenchError::output("beginning", &text, "a row"))?;
    Ok(Begun {
        init: row[1],
        all_to_all: row[2],
        finalize: row[3],
        whole: ended.elapsed.as_secs_f64(),
        streams: after.0.saturating_sub(before.0),
        gateways: after.1 - before.1,
    })
}

/// Streams that the gateway of the launcher's site has opened, and processor seconds of both gateways.
fn spent(lab: &Lab) -> Result<(u64, f64), BenchError> {
    let (here, there) = (lab.status(HEAD)?, lab.status(super::FAR_HEAD)?);
    let seconds = |status: &Value| status["processor_microseconds"].as_f64().unwrap_or(0.0) / 1e6;
    let streams = here["streams_opened"].as_u64().unwrap_or(0);
    Ok((streams, seconds(&here) + seconds(&there)))
}

fn median(begun: &[Begun], value: fn(&Begun) -> f64) -> Option<f64> {
    let values: Vec<f64> = begun.iter().map(value).collect();
    Some(summary(&values)?.median)
}

fn table(found: &Found) -> Table {
    let mut table = Table::new(&[
        "ranks",
        "way",
        "MPI_Init (s)",
        "all to all (s)",
        "MPI_Finalize (s)",
        "whole job (s)",
        "streams",
        "CPU of both gateways (s)",
        "runs",
    ]);
    for ((ranks, way), begun) in found {
        let cell =
            |value: fn(&Begun) -> f64| median(begun, value).map_or("-".into(), |value| format!("{value:.2}"));
        table.rows.push(vec![
            ranks.to_string(),
            way.name().to_owned(),
            cell(|one| one.init),
            cell(|one| one.all_to_all),
            cell(|one| one.finalize),
            cell(|one| one.whole),
            median(begun, |one| one.streams as f64).map_or("-".into(), |value| format!("{value:.0}")),
            cell(|one| one.gateways),
            begun.len().to_string(),
        ]);
    }
    table
}

/// The number of ranks at which Causeway is worst beside what it may take.
fn claim(found: &Found) -> Option<Claim> {
    let whole = |ranks, way| median(found.get(&(ranks, way))?, |one| one.whole);
    let beside = found.keys().filter_map(|(ranks, way)| {
        let direct = whole(*ranks, Way::Direct)?;
        let own = whole(*ranks, Way::Causeway).filter(|_| *way == Way::Causeway)?;
        Some((own / (TIMES * direct + MORE_SECONDS), *ranks, own, direct))
    });
    let (share, ranks, own, direct) = beside.max_by(|one, other| one.0.total_cmp(&other.0))?;
    Some(Claim {
        what: format!(
            "whole job, of 1.2 times direct and a second, worst at {ranks} ranks ({own:.1} s, direct {direct:.1} s)"
        ),
        direct: None,
        figure: share,
        unit: "",
        bar: Bar::AtMost(1.0),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_number_of_ranks_counts_that_comes_nearest_to_what_a_job_may_take() {
        let taking = |whole| {
            vec![Begun {
                init: 1.0,
                all_to_all: 0.1,
                finalize: 0.1,
                whole,
                streams: 3,
                gateways: 0.1,
            }]
        };
        let found = Found::from([
            ((4, Way::Direct), taking(1.0)),
            ((4, Way::Causeway), taking(1.1)),
            ((64, Way::Direct), taking(5.0)),
            ((64, Way::Causeway), taking(7.7)),
        ]);
        let claim = claim(&found).unwrap();
        assert!(
            claim.what.contains("64 ranks") && (claim.figure - 1.1).abs() < 1e-9,
            "{claim:?}"
        );
        assert_eq!(table(&found).rows.len(), 4);
    }
}
