//! Section `ranks`: how long jobs with more and more ranks take to begin and to end, directly and through
//! Causeway in turn.

use super::pings::read;
use super::{Bench, BenchError, DEADLINE, HEAD, MPIS, ROUTED, Way, numbers};
use crate::checkout::test_program;
use crate::claim::{Bar, Claim};
use crate::results::Part;
use causeway_bench::lab::Lab;
use causeway_bench::samples::summary;
use causeway_bench::table::Table;
use causeway_host::quoted;
use serde_json::Value;
use std::collections::BTreeMap;

/// Ranks of all sites together.
const RANKS: [u32; 6] = [4, 16, 32, 64, 128, 256];

/// With more ranks, one run takes minutes on two cores.
const MANY: u32 = 64;

/// A kind of job that is started.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Start {
    OpenMpi,
    Mpich,
    /// Each site has its own Open MPI, by `--at`; directly, there is one Open MPI over both sites.
    World,
}

impl Start {
    const ALL: [Start; 3] = [Start::OpenMpi, Start::Mpich, Start::World];

    fn name(self) -> &'static str {
        match self {
            Start::OpenMpi => MPIS[0].name,
            Start::Mpich => MPIS[1].name,
            Start::World => "two of Open MPI 4.1.4, by --at",
        }
    }

    /// Ranks of MPICH wait busily, and cannot be told to yield: with more than these, only the two cores are
    /// measured.
    fn most(self) -> u32 {
        match self {
            Start::OpenMpi => 256,
            Start::Mpich => 64,
            Start::World => 128,
        }
    }

    /// The command that starts this many ranks.
    fn command(self, way: Way, ranks: u32) -> String {
        let half = ranks / 2;
        let yields = "--oversubscribe --mca mpi_yield_when_idle 1";
        let program = |mpi: usize| format!("{} rows.csv", test_program(MPIS[mpi].programs, "beginning"));
        let over_both = |mpi: usize, options: &str| {
            let (way, launcher, program) = (way.option(), MPIS[mpi].launcher(), program(mpi));
            let sites = format!("--sites rennes={half},nancy={half}");
            format!("causeway run {way}{sites} -- {launcher} -n {ranks} {options}{program}")
        };
        let at = |site: &str| {
            let each = half / 2;
            let hosts = format!("--host {site}-1:{each},{site}-2:{each}");
            let (launcher, program) = (MPIS[0].launcher(), program(0));
            // Variables that the shell at another site, which is root's in the lab, does not have.
            let root = "OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1";
            let command = format!("{root} {launcher} {hosts} -n {half} {yields} {program}");
            format!("--at {site} {}", quoted(&command))
        };
        match (self, way) {
            (Start::OpenMpi, _) | (Start::World, Way::Direct) => over_both(0, &format!("{yields} ")),
            (Start::Mpich, _) => over_both(1, ""),
            (Start::World, Way::Causeway) => format!("causeway run {} {}", at("rennes"), at("nancy")),
        }
    }
}

/// A job may take this many times as long as the direct one, plus this many seconds.
const TIMES: f64 = 1.2;
const MORE_SECONDS: f64 = 1.0;

/// Measurements of one job.
#[derive(Debug, Clone, Copy)]
struct Begun {
    init: f64,
    all_to_all: f64,
    finalize: f64,
    /// Seconds from the start of the command to its end.
    whole: f64,
    /// Streams that it opened, and the processor time of both gateways.
    streams: u64,
    gateways: f64,
    /// The memory of the larger gateway after the job, in kB.
    memory: u64,
}

type Found = BTreeMap<(Start, u32, Way), Vec<Begun>>;

/// See the module.
///
/// # Errors
/// A program fails.
pub fn measure(bench: &Bench) -> Result<Part, BenchError> {
    let mut part = Part::new(
        "Jobs of many ranks",
        "As many ranks at one site as at the other, two nodes each, all on this machine. Ranks of Open MPI that wait yield their core; \
         those of MPICH cannot. MPI_Init is the longest of all ranks; then every rank sends eight bytes to every other one \
         (tests/programs/beginning.c). The bar: the whole job takes at most 1.2 times as long as the direct one and a second more, at \
         each number of ranks; beside two Open MPIs by --at stands one over both sites, directly.",
    );
    let lab = bench.lab("ranks", &ROUTED)?;
    part.command(&lab.shape());
    let mut found = Found::new();
    let mut rows =
        "mpi,way,ranks,run,init_s,all_to_all_s,finalize_s,whole_s,streams,gateways_cpu_s,gateways_kb\n"
            .to_owned();
    'numbers: for ranks in RANKS.into_iter().take(bench.pick(3, RANKS.len())) {
        let runs = if ranks > MANY { 1 } else { 3 };
        for run in 0..bench.pick(1, runs) {
            let starts = Start::ALL.into_iter().filter(|start| ranks <= start.most());
            for (start, way) in starts.flat_map(|start| Way::BOTH.map(|way| (start, way))) {
                println!(
                    "bench:   start of {ranks} ranks of {}, {}, run {run}",
                    start.name(),
                    way.name()
                );
                let one = match job(bench, &lab, &mut part, (start, way), (ranks, run)) {
                    // What was measured before counts nevertheless.
                    Err(error) if ranks > MANY => {
                        let (name, way) = (start.name(), way.name());
                        eprintln!("bench:   {error}");
                        part.text.push(format!(
                            "{ranks} ranks of {name}, {way}, did not end well. No more ranks were tried."
                        ));
                        break 'numbers;
                    }
                    one => one?,
                };
                rows += &row(start, way, (ranks, run), &one);
                found.entry((start, ranks, way)).or_default().push(one);
            }
        }
    }
    part.claims
        .extend(Start::ALL.into_iter().filter_map(|start| claim(&found, start)));
    part.tables.push(("Medians of all runs".into(), table(&found)));
    part.files.push(("ranks.csv".into(), rows));
    Ok(part)
}

fn row(start: Start, way: Way, (ranks, run): (u32, u32), one: &Begun) -> String {
    format!(
        "\"{}\",{},{ranks},{run},{:.3},{:.3},{:.3},{:.3},{},{:.3},{}\n",
        start.name(),
        way.name(),
        one.init,
        one.all_to_all,
        one.finalize,
        one.whole,
        one.streams,
        one.gateways,
        one.memory
    )
}

fn job(
    bench: &Bench,
    lab: &Lab,
    part: &mut Part,
    (start, way): (Start, Way),
    (ranks, run): (u32, u32),
) -> Result<Begun, BenchError> {
    let directory = bench.scratch(&format!("ranks-{start:?}-{}-{ranks}-{run}", way.name()))?;
    let rows = directory.join("rows.csv");
    let _ = std::fs::remove_file(&rows);
    let command = start.command(way, ranks);
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
        streams: after.streams.saturating_sub(before.streams),
        gateways: after.seconds - before.seconds,
        memory: after.memory,
    })
}

/// What both gateways have used since they began.
struct Spent {
    /// Streams that the gateway of the launcher's site has opened.
    streams: u64,
    /// Processor time.
    seconds: f64,
    /// The memory of the larger one now, in kB.
    memory: u64,
}

fn spent(lab: &Lab) -> Result<Spent, BenchError> {
    let (here, there) = (lab.status(HEAD)?, lab.status(super::FAR_HEAD)?);
    let seconds = |status: &Value| status["processor_microseconds"].as_f64().unwrap_or(0.0) / 1e6;
    let memory = |status: &Value| status["resident_bytes"].as_u64().unwrap_or(0) / 1000;
    Ok(Spent {
        streams: here["streams_opened"].as_u64().unwrap_or(0),
        seconds: seconds(&here) + seconds(&there),
        memory: memory(&here).max(memory(&there)),
    })
}

fn median(begun: &[Begun], value: fn(&Begun) -> f64) -> Option<f64> {
    let values: Vec<f64> = begun.iter().map(value).collect();
    Some(summary(&values)?.median)
}

fn table(found: &Found) -> Table {
    let mut table = Table::new(&[
        "MPI",
        "ranks",
        "way",
        "MPI_Init (s)",
        "all to all (s)",
        "MPI_Finalize (s)",
        "whole job (s)",
        "streams",
        "CPU of both gateways (s)",
        "a gateway's memory (MB)",
        "runs",
    ]);
    for ((start, ranks, way), begun) in found {
        let cell =
            |value: fn(&Begun) -> f64| median(begun, value).map_or("-".into(), |value| format!("{value:.2}"));
        table.rows.push(vec![
            start.name().to_owned(),
            ranks.to_string(),
            way.name().to_owned(),
            cell(|one| one.init),
            cell(|one| one.all_to_all),
            cell(|one| one.finalize),
            cell(|one| one.whole),
            median(begun, |one| one.streams as f64).map_or("-".into(), |value| format!("{value:.0}")),
            cell(|one| one.gateways),
            median(begun, |one| one.memory as f64 / 1e3).map_or("-".into(), |value| format!("{value:.0}")),
            begun.len().to_string(),
        ]);
    }
    table
}

/// The number of ranks at which Causeway is worst compared with what it may take.
fn claim(found: &Found, start: Start) -> Option<Claim> {
    let whole = |start, ranks, way| median(found.get(&(start, ranks, way))?, |one| one.whole);
    let beside = RANKS.into_iter().filter_map(|ranks| {
        let direct = whole(start, ranks, Way::Direct)?;
        let own = whole(start, ranks, Way::Causeway)?;
        Some((own / (TIMES * direct + MORE_SECONDS), ranks, own, direct))
    });
    let (share, ranks, own, direct) = beside.max_by(|one, other| one.0.total_cmp(&other.0))?;
    Some(Claim {
        what: format!(
            "{}: whole job, of 1.2 times direct and a second, worst at {ranks} ranks ({own:.1} s, direct {direct:.1} s)",
            start.name()
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

    fn taking(whole: f64) -> Vec<Begun> {
        vec![Begun {
            init: 1.0,
            all_to_all: 0.1,
            finalize: 0.1,
            whole,
            streams: 3,
            gateways: 0.1,
            memory: 9000,
        }]
    }

    #[test]
    fn the_number_of_ranks_counts_that_comes_nearest_to_what_a_job_may_take() {
        let found = Found::from([
            ((Start::OpenMpi, 4, Way::Direct), taking(1.0)),
            ((Start::OpenMpi, 4, Way::Causeway), taking(1.1)),
            ((Start::OpenMpi, 64, Way::Direct), taking(5.0)),
            ((Start::OpenMpi, 64, Way::Causeway), taking(7.7)),
            ((Start::World, 64, Way::Direct), taking(5.0)),
            ((Start::World, 64, Way::Causeway), taking(14.0)),
        ]);
        let worst = claim(&found, Start::OpenMpi).unwrap();
        assert!(
            worst.what.contains("64 ranks") && (worst.figure - 1.1).abs() < 1e-9,
            "{worst:?}"
        );
        let world = claim(&found, Start::World).unwrap();
        assert!(
            (world.figure - 2.0).abs() < 1e-9,
            "beside one Open MPI: {world:?}"
        );
        assert!(claim(&found, Start::Mpich).is_none(), "nothing was measured");
        assert_eq!(table(&found).rows.len(), 6);
    }

    #[test]
    fn each_site_starts_half_of_the_ranks_on_two_nodes_of_its_own() {
        let command = Start::World.command(Way::Causeway, 64);
        for part in [
            "--at rennes",
            "--at nancy",
            "--host nancy-1:16,nancy-2:16",
            "-n 32",
        ] {
            assert!(command.contains(part), "{part}: {command}");
        }
        let one = Start::OpenMpi.command(Way::Direct, 64);
        assert!(
            one.contains("--direct --sites rennes=32,nancy=32") && one.contains("-n 64"),
            "{one}"
        );
    }
}
