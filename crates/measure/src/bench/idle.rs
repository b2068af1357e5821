//! Section `idle`: the ping-pong after pauses, which shows what an idle connection has forgotten.

use super::pingpong::bars;
use super::pings::{Pings, Start, in_turn, read};
use super::{Bench, BenchError, MPIS, ROUTED, Way};
use crate::results::Part;
use causeway_bench::lab::Lab;
use std::thread::sleep;
use std::time::Duration;

/// Longer than any retransmission timeout, after which TCP forgets its window.
const SHORT: &str = "after 300 ms";

/// Longer than phases of computing between two exchanges in most of the papers' programs.
const LONG: &str = "after 5 s";

/// Between the starts of programs that share their pauses: two MPIs starting at once would slow each other
/// down.
const BETWEEN_STARTS: Duration = Duration::from_millis(300);

/// See the module.
///
/// # Errors
/// A program fails.
pub fn measure(bench: &Bench) -> Result<Part, BenchError> {
    let mut part = Part::new(
        "Ping-pong after pauses",
        "Both ranks sleep before each message. Bars: those of the ping-pong, after a pause as well. The runs with 5 s, one of \
         each MPI and way, go on at once, each MPI in a lab of its own (so that nothing else keeps its tunnel warm), each run \
         at its own quarter of the pause: their messages do not meet.",
    );
    let lab = bench.lab("idle", &ROUTED)?;
    part.command(&lab.shape());
    let options = bench.pick(
        "--sizes 1,65536 --count 3 --idle 300",
        "--sizes 1,16384,65536,262144,1048576,4194304 --count 10 --idle 300",
    );
    let mut all = in_turn(bench, &lab, &mut part, SHORT, (1, options, bench.pick(1, 2)))?;
    let second = bench.lab("idle-second", &ROUTED)?;
    all.extend(long(bench, [&lab, &second], &mut part)?);
    for pings in &all {
        part.claims.extend(bars(pings));
        pings.show(&mut part, "idle.csv");
    }
    Ok(part)
}

fn long(bench: &Bench, labs: [&Lab; 2], part: &mut Part) -> Result<Vec<Pings>, BenchError> {
    let sizes = bench.pick(
        "--sizes 1,65536 --count 2",
        "--sizes 1,16384,65536,262144,1048576,4194304 --count 10",
    );
    println!("bench:   ping-pong, both MPIs, both ways at once, {sizes} --idle 5000");
    let slots = MPIS.len() * Way::BOTH.len();
    let mut running = Vec::new();
    for (mpi, lab) in MPIS.iter().zip(labs) {
        for way in Way::BOTH {
            let slot = running.len();
            let options = format!("{sizes} --idle 5000 --slot {slot}/{slots}");
            let start = Start {
                mpi,
                way,
                ranks: 1,
                options: &options,
            };
            let label = format!("{LONG}-{}-{}", mpi.programs, way.name()).replace(' ', "-");
            let (program, command, rows) = start.program(bench, lab, &label)?;
            part.command(&command);
            running.push((mpi, way, program.start()?, rows));
            sleep(BETWEEN_STARTS);
        }
    }
    let mut all: Vec<Pings> = MPIS
        .iter()
        .map(|mpi| Pings::new(mpi, LONG, &Way::BOTH.map(Way::name)))
        .collect();
    for (mpi, way, program, rows) in running {
        program.succeed()?;
        let text = read(&rows)?;
        for pings in all.iter_mut().filter(|pings| pings.is_of(mpi)) {
            pings.add(way.name(), 0, &text)?;
        }
    }
    Ok(all)
}
