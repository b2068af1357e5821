//! Whole programs: relative times with intervals, and what a gain is worth.

use crate::cost;
use crate::measurement::Measurement;
use crate::operations::ratios;
use crate::page::Page;
use causeway_bench::cell::{Cell, Way};
use causeway_bench::summary::Entry;
use std::collections::BTreeMap;

/// Shows bars for each MPI; then compares all MPIs and conditions with the best.
pub fn show(page: &mut Page, measured: &Measurement) {
    let entries = &measured.summary.entries;
    let mut mpis: Vec<&str> = Vec::new();
    for entry in entries {
        if !mpis.contains(&entry.cell.mpi.as_str()) {
            mpis.push(&entry.cell.mpi);
        }
    }
    for mpi in mpis {
        let own: Vec<&Entry> = entries.iter().filter(|entry| entry.cell.mpi == mpi).collect();
        let bars = ratios(format!("Relative times, {mpi}"), &own, &measured.head.plan.cells);
        page.html_part(&bars.svg());
    }
    let gains = gains(entries);
    if !gains.is_empty() {
        cost::show(page, &gains);
    }
}

/// By how much each MPI and condition between sites is slower than the best, as a share of its own time: the
/// mean of the logarithms over the programs that all of them have run.
fn gains(entries: &[Entry]) -> Vec<(String, f64)> {
    let mut suites: BTreeMap<(String, String), BTreeMap<&str, f64>> = BTreeMap::new();
    let between = entries.iter().filter(|entry| entry.cell.way != Way::Site);
    for entry in between {
        let Cell { mpi, .. } = &entry.cell;
        let suite = suites.entry((mpi.clone(), entry.cell.condition())).or_default();
        suite.insert(&entry.quantity.operation, entry.interval.median);
    }
    let names: Vec<&str> = suites.values().flat_map(|suite| suite.keys().copied()).collect();
    let common = |name: &&str| suites.values().all(|suite| suite.contains_key(name));
    let mut common: Vec<&str> = names.into_iter().filter(common).collect();
    common.sort_unstable();
    common.dedup();
    if common.is_empty() || suites.len() < 2 {
        return Vec::new();
    }
    let mean = |suite: &BTreeMap<&str, f64>| {
        let sum: f64 = common
            .iter()
            .filter_map(|name| suite.get(name))
            .map(|time| time.ln())
            .sum();
        (sum / common.len() as f64).exp()
    };
    let means: Vec<(String, f64)> = suites
        .iter()
        .map(|((mpi, condition), suite)| (format!("{mpi}, {condition}"), mean(suite)))
        .collect();
    let best = means.iter().map(|(_, time)| *time).fold(f64::INFINITY, f64::min);
    means
        .into_iter()
        .map(|(name, time)| (name, time / best - 1.0))
        .collect()
}
