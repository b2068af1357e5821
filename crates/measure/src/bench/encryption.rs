//! Section `encryption`: the ping-pong through lanes in plain and through encrypted ones, in turn.

use super::pings::{Pings, Start};
use super::{Bench, BenchError, MPIS, ROUTED, Way};
use crate::claim::{Bar, Claim};
use crate::results::Part;
use causeway_bench::lab::Lab;
use causeway_bench::table::size;

const PLAIN: &str = "plain";
const ENCRYPTED: &str = "encrypted";

/// Otherwise a lab has TLS 1.3, as every grid; what handshakes cost is over before a job starts.
const IN_CLEAR: [&str; 2] = ["--grid", "insecure = true"];

/// How much longer a message may take.
const BAR: f64 = 1.05;

/// See the module.
///
/// # Errors
/// A program fails.
pub fn measure(bench: &Bench) -> Result<Part, BenchError> {
    let mut part = Part::new(
        "Encryption",
        "Two labs side by side, whose gateways speak in plain and under TLS 1.3; the same ping-pong in each in turn. The bar: at \
         most 1.05 times the time in plain, at every size. Both gateways and both ranks share two cores: on hosts of their own \
         encryption would run beside the copying.",
    );
    let in_clear: Vec<&str> = IN_CLEAR.iter().chain(&ROUTED).copied().collect();
    let labs = [
        (PLAIN, bench.lab("plain", &in_clear)?),
        (ENCRYPTED, bench.lab("encrypted", &ROUTED)?),
    ];
    for (_, lab) in &labs {
        part.command(&lab.shape());
    }
    let options = bench.pick("--most 1048576 --count 5", "--most 16777216 --count 20");
    for mpi in &MPIS {
        let mut pings = Pings::new(mpi, "hot", &[PLAIN, ENCRYPTED]);
        for run in 0..bench.pick(1, 3) {
            for (name, lab) in &labs {
                let rows = ping_pong(bench, lab, &mut part, (mpi, options), &format!("{name}-{run}"))?;
                pings.add(name, run, &rows)?;
            }
        }
        part.claims.extend(claim(&pings));
        pings.show(&mut part, "encryption.csv");
    }
    Ok(part)
}

fn ping_pong(
    bench: &Bench,
    lab: &Lab,
    part: &mut Part,
    (mpi, options): (&super::Mpi, &str),
    run: &str,
) -> Result<String, BenchError> {
    let start = Start {
        mpi,
        way: Way::Causeway,
        ranks: 1,
        options,
    };
    start.run(bench, lab, part, &format!("encryption-{}-{run}", mpi.programs))
}

fn claim(pings: &Pings) -> Option<Claim> {
    let (bytes, ratio) = pings.worst_beside_first(ENCRYPTED)?;
    Some(Claim {
        what: format!(
            "{}: encrypted, of plain, worst size ({})",
            pings.title(),
            size(bytes)
        ),
        direct: None,
        figure: ratio,
        unit: "",
        bar: Bar::AtMost(BAR),
    })
}
