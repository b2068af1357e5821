//! Summarises the rows of a measurement: for each cell and quantity a median with its interval, compared with
//! the limit and with the first cell.

use crate::cell::{Cell, Way};
use crate::fit::{Line, line};
use crate::interval::{Interval, around_median};
use crate::plan::Head;
use crate::row::{Network, Quantity, Row};
use crate::samples::median;
use crate::schedule::medians;
use serde::Serialize;
use std::fmt::Write as _;

/// The values of one cell and quantity.
#[derive(Debug, Clone, Serialize)]
pub struct Entry {
    /// See [`Cell`].
    #[serde(flatten)]
    pub cell: Cell,
    /// See [`Quantity`].
    #[serde(flatten)]
    pub quantity: Quantity,
    /// Runs that gave a value.
    pub runs: usize,
    /// The median of the runs' medians.
    #[serde(flatten)]
    pub interval: Interval,
    /// The least value of all runs.
    pub min: f64,
    /// The median of the runs' 99th percentiles.
    pub p99: f64,
    /// The physical limit in the same unit, if the quantity is of a message between sites.
    pub limit: Option<f64>,
    /// The median divided by that of the base, run by run: see [`Summaries::base`].
    pub of_base: Option<Interval>,
}

impl Entry {
    /// The median as a ratio to the limit.
    pub fn ratio_to_limit(&self) -> Option<f64> {
        Some(self.interval.median / self.limit?)
    }

    /// Mbit/s of the median of a message.
    pub fn mbit_per_second(&self) -> Option<f64> {
        let bytes = self.quantity.size_bytes.filter(|&bytes| bytes > 0)?;
        (self.quantity.unit == "us").then(|| crate::limit::mbit_per_second(bytes, self.interval.median))
    }
}

/// A cell's latency and rate.
#[derive(Debug, Clone, Serialize)]
pub struct Fit {
    /// See [`Cell`].
    #[serde(flatten)]
    pub cell: Cell,
    /// See [`Line`].
    #[serde(flatten)]
    pub line: Line,
    /// Latency and rate as shares of the link's.
    pub of_limit: Option<(f64, f64)>,
}

/// What TCP did in the runs of a cell, as means.
#[derive(Debug, Clone, Serialize)]
pub struct Signals {
    /// See [`Cell`].
    #[serde(flatten)]
    pub cell: Cell,
    /// Segments sent.
    pub segments: f64,
    /// Segments sent again.
    pub resent: f64,
    /// Retransmission timeouts.
    pub timeouts: f64,
    /// Segments that arrived out of order.
    pub out_of_order: f64,
    /// Megabytes of the job that crossed; `None` if nobody counts them.
    pub crossed_megabytes: Option<f64>,
    /// Sends after 200 ms or more of silence, likewise.
    pub idle_restarts: Option<f64>,
    /// Processor time of the gateways in seconds; `None` if none took part.
    pub gateways_seconds: Option<f64>,
}

/// Everything that a measurement shows.
#[derive(Debug, Clone, Serialize)]
pub struct Summaries {
    /// All cells and quantities that have a value.
    pub entries: Vec<Entry>,
    /// Cells in whose runs TCP was seen.
    pub network: Vec<Signals>,
    /// One fit for each ping-pong over several sizes.
    pub fits: Vec<Fit>,
    /// Cells with a run that failed: how often, and why the last time.
    pub failures: Vec<(Cell, usize, String)>,
}

impl Summaries {
    /// Summarises the rows of a measurement.
    pub fn of(head: &Head, rows: &[Row]) -> Summaries {
        let cells = &head.plan.cells;
        let mut entries = Vec::new();
        for cell in cells {
            let own: Vec<&Row> = rows.iter().filter(|row| row.cell == *cell).collect();
            let base = Summaries::base(cells, cell).map(|base| rows_of(rows, base));
            for (quantity, values) in medians(own.iter().copied()) {
                entries.extend(entry(head, cell, quantity, &values, &own, base.as_deref()));
            }
        }
        let fits = cells.iter().filter_map(|cell| fit(head, cell, &entries));
        let failures = cells.iter().filter_map(|cell| {
            let own: Vec<&str> = rows_of(rows, cell)
                .iter()
                .filter_map(|row| row.failure())
                .collect();
            Some((cell.clone(), own.len(), (*own.last()?).to_owned()))
        });
        Summaries {
            network: cells.iter().filter_map(|cell| signals(rows, cell)).collect(),
            fits: fits.collect(),
            failures: failures.collect(),
            entries,
        }
    }

    /// The cell that another is compared with: the first of its program, MPI, traffic and lab, or the first
    /// over all labs if its own lab has no other; a cell between sites is preferred. `None` for the base
    /// itself.
    pub fn base<'a>(cells: &'a [Cell], cell: &Cell) -> Option<&'a Cell> {
        let like = |other: &&Cell| {
            other.program == cell.program && other.mpi == cell.mpi && other.traffic == cell.traffic
        };
        let first = |own: Vec<&'a Cell>| {
            let between = own.iter().find(|other| other.way != Way::Site);
            between.or(own.first()).copied().filter(|base| *base != cell)
        };
        let all: Vec<&Cell> = cells.iter().filter(like).collect();
        let same_lab = all.iter().copied().filter(|other| other.lab == cell.lab);
        first(same_lab.collect()).or_else(|| first(all))
    }

    /// One line for each entry.
    pub fn csv(&self) -> String {
        let mut text = "program,mpi,lab,way,settings,traffic,operation,measure,size_bytes,unit,runs,median,low,high,min,p99,limit,of_limit,\
                        of_base,of_base_low,of_base_high\n"
            .to_owned();
        let optional = |value: Option<f64>| value.map(|value| format!("{value:.4}")).unwrap_or_default();
        for entry in &self.entries {
            let (cell, quantity, found) = (&entry.cell, &entry.quantity, &entry.interval);
            let bytes = quantity
                .size_bytes
                .map(|bytes| bytes.to_string())
                .unwrap_or_default();
            let _ = write!(
                text,
                "{},{},{},{},{},{},",
                quoted(&cell.program),
                quoted(&cell.mpi),
                quoted(&cell.lab),
                cell.way.name(),
                cell.settings.name(),
                cell.traffic.name()
            );
            let _ = write!(
                text,
                "{},{},{bytes},{},{},{:.3},{:.3},{:.3},{:.3},{:.3},",
                quoted(&quantity.operation),
                quantity.measure,
                quantity.unit,
                entry.runs,
                found.median,
                found.low,
                found.high,
                entry.min,
                entry.p99
            );
            let base = entry.of_base;
            let rest = [
                entry.limit,
                entry.ratio_to_limit(),
                base.map(|base| base.median),
                base.map(|base| base.low),
                base.map(|base| base.high),
            ];
            let _ = writeln!(text, "{}", rest.map(optional).join(","));
        }
        text
    }
}

/// A field of CSV.
fn quoted(text: &str) -> String {
    match text.contains([',', '"', '\n']) {
        true => format!("\"{}\"", text.replace('"', "\"\"")),
        false => text.to_owned(),
    }
}

fn signals(rows: &[Row], cell: &Cell) -> Option<Signals> {
    let all: Vec<Network> = rows_of(rows, cell).iter().filter_map(|row| row.network).collect();
    let sum = all.iter().copied().reduce(Network::and)?;
    let mean = |count: u64| count as f64 / all.len() as f64;
    Some(Signals {
        cell: cell.clone(),
        segments: mean(sum.segments),
        resent: mean(sum.resent),
        timeouts: mean(sum.timeouts),
        out_of_order: mean(sum.out_of_order),
        crossed_megabytes: sum.crossed_bytes.map(|bytes| mean(bytes) / 1e6),
        idle_restarts: sum.idle_restarts.map(mean),
        gateways_seconds: sum.gateways_microseconds.map(|us| mean(us) / 1e6),
    })
}

fn rows_of<'a>(rows: &'a [Row], cell: &Cell) -> Vec<&'a Row> {
    rows.iter().filter(|row| row.cell == *cell).collect()
}

fn entry(
    head: &Head,
    cell: &Cell,
    quantity: Quantity,
    values: &[f64],
    own: &[&Row],
    base: Option<&[&Row]>,
) -> Option<Entry> {
    let seed = head.plan.bounds.seed;
    let summaries = || {
        let values = own.iter().flat_map(|row| row.values());
        values
            .filter(|value| value.quantity == quantity)
            .map(|value| value.summary)
    };
    let p99s: Vec<f64> = summaries().map(|summary| summary.p99).collect();
    let ratios = base.map(|base| ratios(&quantity, own, base));
    Some(Entry {
        cell: cell.clone(),
        runs: values.len(),
        interval: around_median(values, seed)?,
        min: summaries()
            .map(|summary| summary.min)
            .fold(f64::INFINITY, f64::min),
        p99: median(&p99s)?,
        limit: limit(head, cell, &quantity),
        of_base: ratios.and_then(|ratios| around_median(&ratios, seed)),
        quantity,
    })
}

/// Divides runs of the same number, which followed each other: the ratio is free of the machine's drift.
fn ratios(quantity: &Quantity, own: &[&Row], base: &[&Row]) -> Vec<f64> {
    let median = |row: &Row| {
        let mut values = row.values().iter();
        let found = values.find(|value| value.quantity == *quantity)?;
        Some(found.summary.median)
    };
    let pairs = own.iter().filter_map(|row| {
        let twin = base.iter().find(|twin| twin.run == row.run)?;
        Some(median(row)? / median(twin)?)
    });
    pairs.filter(|ratio| ratio.is_finite()).collect()
}

/// The limit of a message that crosses once, in microseconds.
fn limit(head: &Head, cell: &Cell, quantity: &Quantity) -> Option<f64> {
    let link = head.link.as_ref().filter(|_| cell.way != Way::Site)?.link();
    let crosses_once = matches!(
        quantity.operation.as_str(),
        "pingpong" | "pingping" | "tcp" | "bcast" | "allreduce"
    );
    let bytes = quantity
        .size_bytes
        .filter(|_| crosses_once && quantity.unit == "us")?;
    (quantity.measure != "loop").then(|| link.one_way_us(bytes))
}

fn fit(head: &Head, cell: &Cell, entries: &[Entry]) -> Option<Fit> {
    let points: Vec<(u64, f64)> = entries
        .iter()
        .filter(|entry| entry.cell == *cell && entry.quantity.measure == "one way")
        .filter_map(|entry| Some((entry.quantity.size_bytes?, entry.interval.median)))
        .collect();
    let line = line(&points)?;
    let link = head.link.as_ref().filter(|_| cell.way != Way::Site);
    Some(Fit {
        cell: cell.clone(),
        line,
        of_limit: link.map(|known| line.shares_of_limit(&known.link())),
    })
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::plan::tests::head;
    use crate::row::tests::{failed, measured};

    pub(crate) fn rows() -> Vec<Row> {
        let times = |factor: f64| [(1, 5800.0 * factor), (1 << 20, 14_189.0 * factor)];
        let mut rows = Vec::new();
        for run in 0..3 {
            // The machine drifts: both ways are affected.
            let drift = 1.0 + f64::from(run) / 10.0;
            rows.push(measured(Way::Direct, run, &times(2.0 * drift)));
            rows.push(measured(Way::Causeway, run, &times(1.05 * drift)));
        }
        rows.push(failed(Way::Causeway, 3));
        rows
    }

    #[test]
    fn a_ratio_of_runs_in_turn_does_not_have_the_drift() {
        let found = Summaries::of(&head(), &rows());
        let entry = found
            .entries
            .iter()
            .find(|entry| entry.cell.way == Way::Causeway)
            .unwrap();
        let ratio = entry.of_base.unwrap();
        assert!((ratio.median - 0.525).abs() < 1e-9 && ratio.relative_half_width() < 1e-9);
        assert!(entry.interval.relative_half_width() > 0.05);
        assert!((entry.ratio_to_limit().unwrap() - 1.05 * 1.1).abs() < 1e-3);
        let direct = &found.entries[0];
        assert!(direct.cell.way == Way::Direct && direct.of_base.is_none());
    }

    #[test]
    fn a_condition_is_compared_in_its_own_lab_and_the_first_of_it_with_the_first_lab() {
        use crate::row::tests::cell;
        let cell_in = |lab: &str, way| Cell {
            lab: lab.into(),
            ..cell(way)
        };
        let cells = [
            cell_in("a", Way::Site),
            cell_in("a", Way::Direct),
            cell_in("a", Way::Causeway),
            cell_in("b", Way::Direct),
            cell_in("b", Way::Causeway),
        ];
        let bases = cells.each_ref().map(|cell| Summaries::base(&cells, cell));
        assert_eq!(
            bases,
            [
                Some(&cells[1]),
                None,
                Some(&cells[1]),
                Some(&cells[1]),
                Some(&cells[3])
            ]
        );
    }

    #[test]
    fn failures_and_fits_are_told_by_cell() {
        let found = Summaries::of(&head(), &rows());
        assert_eq!(found.failures.len(), 1);
        assert!(found.failures[0].2.contains("badly"));
        let direct = &found.fits[0];
        let (latency, rate) = direct.of_limit.unwrap();
        assert!(
            (latency - 2.2).abs() < 0.01 && (rate - 1.0 / 2.2).abs() < 0.01,
            "{direct:?}"
        );
    }

    #[test]
    fn csv_has_a_line_for_every_value() {
        let found = Summaries::of(&head(), &rows());
        let text = found.csv();
        let mut reader = csv::Reader::from_reader(text.as_bytes());
        assert_eq!(reader.records().filter_map(Result::ok).count(), 4);
    }
}
