//! Section `loopback`: what the gateways themselves cost if no link limits them: two of them on this host,
//! with one stream through both, compared with a perfect copy.

use super::relay;
use super::twin::Twin;
use super::{Bench, BenchError};
use crate::claim::{Bar, Claim};
use crate::results::Part;
use causeway_bench::program::{ProgramError, io};
use causeway_bench::samples::summary;
use causeway_bench::table::Table;
use std::fmt::Write as _;
use std::io::{Error, Read, Write};
use std::net::{Shutdown, TcpStream};
use std::time::Instant;

/// The rows that are measured: each has its name, the `[grid]` settings of its gateways, and how many lanes
/// to wait for.
const TWINS: [(&str, &str, usize); 4] = [
    ("plain, 1 lane", "lanes = 1\ninsecure = true", 1),
    ("plain, 4 lanes", "lanes = 4\ninsecure = true", 4),
    ("TLS, 1 lane", "lanes = 1", 1),
    ("QUIC, 1 lane", "lanes = 1\ntransport = \"quic\"", 1),
];

/// Gbit/s that one core must carry.
const BARS: [(&str, f64); 3] = [
    ("plain, 1 lane", 10.0),
    ("plain, 4 lanes", 10.0),
    ("TLS, 1 lane", 5.0),
];

/// No gateway, no relay.
const NOTHING_BETWEEN: &str = "nothing between";

/// The row that has a bar, and how many microseconds it may add to the one-way time of one byte.
const LATENCY_BAR: (&str, f64) = ("plain, 1 lane", 40.0);

/// Bytes of the bulk transfer. It takes a few seconds at 10 Gbit/s, which are many ticks of the CPU clock,
/// because that counts hundredths of a second.
const BULK_BYTES: u64 = 4_000_000_000;

/// Bytes that are carried before the clock counts, so that windows and buffers have grown.
const WARM_UP_BYTES: u64 = 400_000_000;

/// A program's usual large write.
const CHUNK_BYTES: usize = 1 << 20;

/// One bulk transfer and one ping-pong.
#[derive(Debug, Clone, Copy)]
struct Carried {
    gbit_per_second: f64,
    /// Processor time of everything between the two ends.
    cpu_seconds: f64,
    bytes: u64,
    one_way_us: f64,
}

impl Carried {
    fn gbit_per_core_second(&self) -> f64 {
        self.bytes as f64 * 8.0 / 1e9 / self.cpu_seconds
    }
}

/// See the module.
///
/// # Errors
/// The gateways cannot be started, or break off.
pub fn measure(bench: &Bench) -> Result<Part, BenchError> {
    let mut part = Part::new(
        "Loopback: one stream through two gateways, no emulator",
        "Two gateway processes of this host, one thread that writes, one that reads. CPU is that of both gateways, from \
         /proc/PID/stat; a core that is spent fully for a second is a CPU second. The perfect copy is two relays in a row that \
         only read and write, CPU of both; their ends share the same cores. The bar: at least 10 Gbit/s for each core spent in \
         both gateways together, 5 under TLS. One byte goes to and fro through them once more, its ends asleep while they wait: what \
         both gateways add to its way where nothing else runs is to be at most 40 us.",
    );
    let bytes = bench.pick(BULK_BYTES / 8, BULK_BYTES);
    let mut found: Vec<(String, Vec<Carried>)> = Vec::new();
    let mut twins = Vec::new();
    for ((name, settings, lanes), net) in TWINS.into_iter().zip(201..) {
        part.command(&format!(
            "causeway gateway, twice, with '{}' ({name})",
            settings.replace('\n', ", ")
        ));
        let outputs = bench.scratch(&format!("loopback-{net}"))?;
        twins.push(Twin::start(net, settings, lanes, &outputs)?);
        found.push((name.to_owned(), Vec::new()));
    }
    found.push((NOTHING_BETWEEN.to_owned(), Vec::new()));
    found.push(("perfect copy, 2 relays".to_owned(), Vec::new()));
    let rounds = bench.pick(2_000, 20_000);
    for run in 0..bench.pick(1, 3) {
        println!(
            "bench:   {} MB through two gateways of this host, run {run}",
            bytes / 1_000_000
        );
        for (twin, (_, carried)) in twins.iter().zip(&mut found) {
            carried.push(through(twin, bytes, rounds)?);
        }
        for ((_, carried), relays) in found.iter_mut().skip(twins.len()).zip([0, 2]) {
            carried.push(copied(relays, bytes, rounds).map_err(io("copy between loopback sockets"))?);
        }
    }
    let mut rows = "what,run,bytes,gbit_per_second,cpu_seconds,one_way_us\n".to_owned();
    for (name, carried) in &found {
        for (run, one) in carried.iter().enumerate() {
            let name = name.replace(',', "");
            let _ = writeln!(
                rows,
                "{name},{run},{},{:.3},{:.3},{:.2}",
                one.bytes, one.gbit_per_second, one.cpu_seconds, one.one_way_us
            );
        }
    }
    part.claims.extend(claims(&found));
    part.tables.push(("Medians of all runs".into(), table(&found)));
    part.files.push(("loopback.csv".into(), rows));
    Ok(part)
}

fn median(carried: &[Carried], value: fn(&Carried) -> f64) -> Option<f64> {
    let values: Vec<_> = carried.iter().map(value).collect();
    Some(summary(&values)?.median)
}

/// The claims of the rows that have a bar.
fn claims(found: &[(String, Vec<Carried>)]) -> Vec<Claim> {
    let claim = |(name, carried): &(String, Vec<Carried>)| {
        let (_, bar) = BARS.iter().find(|(what, _)| what == name)?;
        Some(Claim {
            what: format!("one tunnel on loopback, {name}, for each core spent"),
            direct: None,
            figure: median(carried, Carried::gbit_per_core_second)?,
            unit: " Gbit/s",
            bar: Bar::AtLeast(*bar),
        })
    };
    found.iter().filter_map(claim).chain(added(found)).collect()
}

/// Computes what both gateways add to the one-way time of one byte.
fn added(found: &[(String, Vec<Carried>)]) -> Option<Claim> {
    let one_way = |name: &str| {
        let (_, carried) = found.iter().find(|(what, _)| what == name)?;
        median(carried, |one| one.one_way_us)
    };
    let (name, bar) = LATENCY_BAR;
    Some(Claim {
        what: "1 B, one way, median, added by both gateways where nothing else runs".into(),
        direct: None,
        figure: one_way(name)? - one_way(NOTHING_BETWEEN)?,
        unit: " us",
        bar: Bar::AtMost(bar),
    })
}

fn table(found: &[(String, Vec<Carried>)]) -> Table {
    let mut table = Table::new(&[
        "what",
        "Gbit/s",
        "CPU of both (s/GB)",
        "Gbit/s per core spent",
        "of a perfect copy",
        "1 B one way (us)",
        "runs",
    ]);
    let perfect = found
        .last()
        .and_then(|(_, carried)| median(carried, Carried::gbit_per_core_second));
    for (name, carried) in found {
        let cell = |value, digits: usize| {
            median(carried, value).map_or_else(|| "-".to_owned(), |value| format!("{value:.digits$}"))
        };
        let per_core = median(carried, Carried::gbit_per_core_second).filter(|_| name != NOTHING_BETWEEN);
        let share_of_perfect = per_core
            .zip(perfect)
            .map(|(own, perfect)| format!("{:.2}", own / perfect));
        table.rows.push(vec![
            name.clone(),
            cell(|one| one.gbit_per_second, 2),
            cell(|one| one.cpu_seconds / (one.bytes as f64 / 1e9), 2),
            per_core.map_or_else(|| "-".to_owned(), |value| format!("{value:.2}")),
            share_of_perfect.unwrap_or_else(|| "-".to_owned()),
            cell(|one| one.one_way_us, 1),
            carried.len().to_string(),
        ]);
    }
    table
}

fn through(twin: &Twin, bytes: u64, rounds: usize) -> Result<Carried, ProgramError> {
    let (near, far) = twin.stream()?;
    let failed = || io("carry bytes through two gateways");
    bulk(&near, &far, WARM_UP_BYTES).map_err(failed())?;
    let before = twin.cpu_seconds()?;
    let seconds = bulk(&near, &far, bytes).map_err(failed())?;
    let cpu_seconds = twin.cpu_seconds()? - before;
    Ok(Carried {
        gbit_per_second: bytes as f64 * 8.0 / 1e9 / seconds,
        cpu_seconds,
        bytes,
        one_way_us: pingpong_us((&near, &far), (&far, &near), rounds).map_err(failed())?,
    })
}

fn copied(relays: usize, bytes: u64, rounds: usize) -> Result<Carried, Error> {
    // The ping-pong comes first, while nothing else is running, over one chain in each direction.
    let (there, arrived, going) = relay::chain(relays)?;
    let (back, returned, coming) = relay::chain(relays)?;
    let one_way_us = pingpong_us((&there, &arrived), (&back, &returned), rounds)?;
    drop((there, back));
    going.cpu_seconds()?;
    coming.cpu_seconds()?;
    let (entry, exit, chain) = relay::chain(relays)?;
    let seconds = bulk(&entry, &exit, bytes)?;
    entry.shutdown(Shutdown::Write)?;
    Ok(Carried {
        gbit_per_second: bytes as f64 * 8.0 / 1e9 / seconds,
        cpu_seconds: chain.cpu_seconds()?,
        bytes,
        one_way_us,
    })
}

/// Seconds until all of `bytes` have been read.
fn bulk(mut from: &TcpStream, mut to: &TcpStream, bytes: u64) -> Result<f64, Error> {
    let began = Instant::now();
    std::thread::scope(|scope| {
        let sender = scope.spawn(move || {
            let chunk = vec![7; CHUNK_BYTES];
            let mut left = bytes;
            while left > 0 {
                let some = usize::try_from(left).map_or(CHUNK_BYTES, |left| left.min(CHUNK_BYTES));
                from.write_all(&chunk[..some])?;
                left -= some as u64;
            }
            Ok::<(), Error>(())
        });
        let mut buffer = vec![0; CHUNK_BYTES];
        let mut left = bytes;
        while left > 0 {
            match to.read(&mut buffer)? {
                0 => return Err(Error::other("the stream ended too early")),
                count => left = left.saturating_sub(count as u64),
            }
        }
        sender.join().map_err(|_| Error::other("the sender panicked"))?
    })?;
    Ok(began.elapsed().as_secs_f64())
}

/// The median of half the round trip of one byte: through the first pair, and back through the second.
fn pingpong_us(
    (mut out, mut arrives): (&TcpStream, &TcpStream),
    (mut back, mut returns): (&TcpStream, &TcpStream),
    rounds: usize,
) -> Result<f64, Error> {
    let mut times = Vec::with_capacity(rounds);
    std::thread::scope(|scope| {
        let echo = scope.spawn(move || {
            let mut byte = [0];
            for _ in 0..rounds {
                arrives.read_exact(&mut byte)?;
                back.write_all(&byte)?;
            }
            Ok::<(), Error>(())
        });
        let mut byte = [1];
        for _ in 0..rounds {
            let began = Instant::now();
            out.write_all(&byte)?;
            returns.read_exact(&mut byte)?;
            times.push(began.elapsed().as_secs_f64() * 1e6 / 2.0);
        }
        echo.join().map_err(|_| Error::other("the echo panicked"))?
    })?;
    summary(&times)
        .map(|found| found.median)
        .ok_or_else(|| Error::other("no rounds"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn carried(gbit_per_second: f64, cpu_seconds: f64) -> Carried {
        Carried {
            gbit_per_second,
            cpu_seconds,
            bytes: 1_000_000_000,
            one_way_us: 30.0,
        }
    }

    #[test]
    fn a_core_is_worth_the_bits_carried_for_each_second_of_it() {
        let found = [
            (
                "plain, 1 lane".to_owned(),
                vec![carried(9.0, 1.0), carried(8.0, 0.5)],
            ),
            ("copy".to_owned(), vec![carried(20.0, 0.4)]),
        ];
        assert_eq!(claims(&found)[0].figure, 12.0);
        assert_eq!(claims(&found).len(), 1);
        let rows = table(&found).rows;
        assert_eq!(rows[0][1..], ["8.50", "0.75", "12.00", "0.60", "30.0", "2"]);
        assert_eq!(rows[1][4], "1.00");
    }

    #[test]
    fn bytes_cross_two_relays_both_ways() {
        let found = copied(2, 5_000_000, 10).unwrap();
        assert!(found.gbit_per_second > 0.0 && found.one_way_us > 0.0, "{found:?}");
    }
}
