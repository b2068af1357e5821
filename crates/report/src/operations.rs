//! MPI operations: bars of ratios for a small, a medium and a large message.

use crate::bars::Bars;
use crate::measurement::Measurement;
use crate::page::Page;
use causeway_bench::cell::Cell;
use causeway_bench::interval::Interval;
use causeway_bench::summary::{Entry, Summaries};
use causeway_bench::table::size;
use causeway_bench::verdict::is_comparable;
use std::collections::BTreeSet;

/// Shows bars for each MPI, measure and size.
pub fn show(page: &mut Page, measured: &Measurement) {
    page.text(
        "A bar is the time of an operation as a ratio to the first condition, run by run, with its interval. \"once\" is the last end \
         minus the first start over all ranks; \"loop\" is each rank's own time, as a mean over ranks and rounds. Operations with a root \
         have no bars of \"loop\": their ranks run ahead of each other, which says nothing of the operation.",
    );
    let entries = &measured.summary.entries;
    let measures: BTreeSet<&str> = entries
        .iter()
        .map(|entry| entry.quantity.measure.as_str())
        .collect();
    // The time from an operation's first rank to its last comes first.
    let mut measures: Vec<&str> = measures.into_iter().collect();
    measures.sort_by_key(|measure| *measure != "once");
    let sizes: BTreeSet<u64> = entries
        .iter()
        .filter_map(|entry| entry.quantity.size_bytes)
        .collect();
    let sizes: Vec<u64> = sizes.into_iter().collect();
    let small = sizes.iter().find(|&&bytes| bytes > 0);
    let chosen: BTreeSet<u64> = [small, sizes.get(sizes.len() / 2), sizes.last()]
        .into_iter()
        .flatten()
        .copied()
        .collect();
    let mut shown: Vec<(&str, &str)> = Vec::new();
    for cell in &measured.head.plan.cells {
        if !shown.contains(&(&cell.mpi, &cell.program)) {
            shown.push((&cell.mpi, &cell.program));
        }
    }
    for (mpi, program) in shown {
        for measure in &measures {
            for &bytes in &chosen {
                let is_shown = |entry: &&Entry| {
                    let (cell, quantity) = (&entry.cell, &entry.quantity);
                    let is_own = cell.mpi == mpi && cell.program == program;
                    let is_meant = quantity.measure == *measure && quantity.size_bytes == Some(bytes);
                    is_own && is_meant && is_comparable(quantity)
                };
                let own: Vec<&Entry> = entries.iter().filter(is_shown).collect();
                let title = match program {
                    "" => format!("{}, {measure}, {mpi}", size(bytes)),
                    program => format!("{}, {measure}, {mpi}, {program}", size(bytes)),
                };
                page.html_part(&ratios(title, &own, &measured.head.plan.cells).svg());
            }
        }
    }
}

/// Bars of all conditions relative to their base, one group for each operation.
pub fn ratios(title: String, entries: &[&Entry], cells: &[Cell]) -> Bars {
    let mut conditions: Vec<String> = Vec::new();
    let mut names: Vec<&str> = Vec::new();
    for entry in entries {
        if !conditions.contains(&entry.cell.condition()) {
            conditions.push(entry.cell.condition());
        }
        if !names.contains(&entry.quantity.operation.as_str()) {
            names.push(&entry.quantity.operation);
        }
    }
    let groups = names.iter().map(|&name| {
        let bars = conditions.iter().map(|condition| {
            let mut own = entries.iter().filter(|entry| entry.quantity.operation == name);
            let entry = own.find(|entry| entry.cell.condition() == *condition)?;
            match Summaries::base(cells, &entry.cell) {
                Some(_) => entry.of_base,
                None => Some(relative(&entry.interval)),
            }
        });
        (name.to_owned(), bars.collect())
    });
    Bars {
        title,
        unit: format!(
            "ratio to {}; shorter is better",
            conditions.first().map_or("", String::as_str)
        ),
        groups: groups.collect(),
        series: conditions,
    }
}

/// The base relative to itself: 1, with its uncertainty.
fn relative(interval: &Interval) -> Interval {
    let to_relative = |value: f64| {
        if interval.median == 0.0 {
            1.0
        } else {
            value / interval.median
        }
    };
    Interval {
        median: 1.0,
        low: to_relative(interval.low),
        high: to_relative(interval.high),
    }
}
