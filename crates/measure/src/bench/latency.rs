//! Section `latency`: what both gateways together add to the way of one byte.

use super::pings::{DIRECT, Pings, in_turn};
use super::{Bench, BenchError, ROUTED, Way};
use crate::claim::{Bar, Claim};
use crate::results::Part;
use causeway_bench::samples::Summary;
use causeway_bench::table::Table;

/// See the module.
///
/// # Errors
/// A program fails.
pub fn measure(bench: &Bench) -> Result<Part, BenchError> {
    let lab = bench.lab("latency", &ROUTED)?;
    let mut part = Part::new(
        "Latency of 1 B",
        "One rank at each site, each on a core of its own, 1000 round trips a run. What is added is the difference of the two \
         ways in one lab; the emulator's own error is in both. The bar: at most 40 us. Section `plain` has what relays add that \
         only copy.",
    );
    part.command(&lab.shape());
    let options = bench.pick("--sizes 1 --count 50", "--sizes 1 --count 1000");
    let all = in_turn(bench, &lab, &mut part, "1 B", (1, options, bench.pick(1, 2)))?;
    let mut table = Table::new(&[
        "MPI",
        "one way of 1 B",
        "median (us)",
        "p99 (us)",
        "min (us)",
        "n",
    ]);
    let mut rows = super::pings::CSV_HEAD.to_owned();
    for pings in &all {
        if let Some((direct, causeway)) = pings.of(DIRECT, 1).zip(pings.of(Way::Causeway.name(), 1)) {
            table
                .rows
                .extend(compared(&pings.title(), Way::Causeway.name(), &direct, &causeway));
            part.claims.push(claim(pings, &direct, &causeway));
        }
        rows.push_str(pings.csv());
    }
    part.tables
        .push(("One way of 1 B, and what the gateways add".into(), table));
    part.files.push(("latency.csv".into(), rows));
    Ok(part)
}

fn claim(pings: &Pings, direct: &Summary, causeway: &Summary) -> Claim {
    Claim {
        what: format!("{}: one way, median, added", pings.title()),
        direct: None,
        figure: causeway.median - direct.median,
        unit: " us",
        bar: Bar::AtMost(40.0),
    }
}

fn compared(title: &str, way: &str, direct: &Summary, causeway: &Summary) -> [Vec<String>; 3] {
    let row = |what: &str, values: [f64; 3], count: String| {
        let mut row = vec![title.to_owned(), what.to_owned()];
        row.extend(values.map(|us| format!("{us:.1}")));
        row.push(count);
        row
    };
    let of = |found: &Summary| [found.median, found.p99, found.min];
    let (a, b) = (of(direct), of(causeway));
    [
        row("direct", a, direct.count.to_string()),
        row(way, b, causeway.count.to_string()),
        row("added", [b[0] - a[0], b[1] - a[1], b[2] - a[2]], "-".to_owned()),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;
    use causeway_bench::samples::summary;

    #[test]
    fn what_is_added_is_the_difference_of_the_medians_and_of_the_percentiles() {
        let (direct, causeway) = (summary(&[10.0, 20.0, 30.0]), summary(&[15.0, 45.0, 90.0]));
        let rows = compared("MPI", "causeway", &direct.unwrap(), &causeway.unwrap());
        assert_eq!(rows[2], ["MPI", "added", "25.0", "60.0", "5.0", "-"]);
    }
}
