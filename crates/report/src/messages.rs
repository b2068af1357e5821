//! Ping-pongs: time and rate over size, compared with the limit.

use crate::measurement::Measurement;
use crate::page::Page;
use crate::plot::{Plot, Series};
use causeway_bench::cell::{Cell, Way};
use causeway_bench::limit::mbit_per_second;
use causeway_bench::summary::Entry;
use causeway_bench::table::Table;

/// Shows curves for each MPI, and what was fitted to them.
pub fn show(page: &mut Page, measured: &Measurement) {
    let cells = &measured.head.plan.cells;
    let mut mpis: Vec<&str> = Vec::new();
    for cell in cells {
        if !mpis.contains(&cell.mpi.as_str()) {
            mpis.push(&cell.mpi);
        }
    }
    for mpi in mpis {
        let own: Vec<&Cell> = cells.iter().filter(|cell| cell.mpi == mpi).collect();
        let time = |_: u64, us: f64| us / 1e3;
        page.plot(&plot(measured, &own, &format!("One-way time, {mpi}"), "ms", time));
        // The times within a site would press all others down to the axis.
        let between: Vec<&Cell> = own.iter().filter(|cell| cell.way != Way::Site).copied().collect();
        let title = format!("Rate between sites, {mpi}");
        page.plot(&plot(measured, &between, &title, "Mbit/s", mbit_per_second));
        page.plot(&beside_limit(measured, &between, mpi));
    }
    fits(page, measured);
}

fn plot(
    measured: &Measurement,
    cells: &[&Cell],
    title: &str,
    unit: &str,
    value: fn(u64, f64) -> f64,
) -> Plot {
    let point = |entry: &Entry| {
        let bytes = entry.quantity.size_bytes.filter(|&bytes| bytes > 0)?;
        Some((bytes as f64, value(bytes, entry.interval.median)))
    };
    let mut series = Vec::new();
    for cell in cells {
        let own = measured
            .summary
            .entries
            .iter()
            .filter(|entry| entry.cell == **cell);
        let own = own.filter(|entry| entry.quantity.measure == "one way");
        series.push(Series::measured(
            cell.condition(),
            own.filter_map(point).collect(),
        ));
    }
    if let Some(link) = &measured.head.link {
        let link = link.link();
        let all = measured
            .summary
            .entries
            .iter()
            .filter_map(|entry| entry.quantity.size_bytes);
        let mut sizes: Vec<u64> = all.filter(|&bytes| bytes > 0).collect();
        sizes.sort_unstable();
        sizes.dedup();
        let limit = |&bytes: &u64| (bytes as f64, value(bytes, link.one_way_us(bytes)));
        series.push(Series::limit(sizes.iter().map(limit).collect()));
    }
    Plot {
        title: title.to_owned(),
        horizontal: "size of a message".into(),
        vertical: unit.to_owned(),
        logarithmic: unit == "ms",
        series,
    }
}

/// Plots the times as ratios to the limit.
fn beside_limit(measured: &Measurement, cells: &[&Cell], mpi: &str) -> Plot {
    let series = cells.iter().map(|cell| {
        let own = measured
            .summary
            .entries
            .iter()
            .filter(|entry| entry.cell == **cell);
        let points =
            own.filter_map(|entry| Some((entry.quantity.size_bytes? as f64, entry.ratio_to_limit()?)));
        Series::measured(
            cell.condition(),
            points.filter(|(bytes, _)| *bytes > 0.0).collect(),
        )
    });
    Plot {
        title: format!("Times as ratios to the limit, {mpi}"),
        horizontal: "size of a message".into(),
        vertical: "of the limit".into(),
        logarithmic: false,
        series: series.collect(),
    }
}

/// Shows a fit to the medians over all sizes: a latency and a rate.
fn fits(page: &mut Page, measured: &Measurement) {
    let fits = &measured.summary.fits;
    if fits.is_empty() {
        return;
    }
    let mut table = Table::new(&["", "latency (ms)", "of limit", "rate (Mbit/s)", "of limit"]);
    for fit in fits {
        let (latency, rate) = fit.of_limit.unzip();
        let ratio = |ratio: Option<f64>| ratio.map_or_else(|| "-".to_owned(), |ratio| format!("{ratio:.3}"));
        table.rows.push(vec![
            fit.cell.to_string(),
            format!("{:.3}", fit.line.latency_us / 1e3),
            ratio(latency),
            format!("{:.0}", fit.line.rate_mbit_per_second),
            ratio(rate),
        ]);
    }
    page.text("Latency and rate are those of the line through the medians of all sizes that errs least.");
    page.table(&table);
}
