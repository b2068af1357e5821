//! Decides which cell runs next. Pure.
//!
//! Cells take turns, A B A B, so that any drift of the machine affects all of them alike. A cell leaves when
//! its intervals are narrow enough, when it has had its runs, or when it has failed twice and never
//! succeeded.

use crate::cell::Cell;
use crate::interval::around_median;
use crate::row::{Quantity, Row};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// After how many failures a cell that has never succeeded is given up.
const FAILURES: u32 = 2;

/// How long the matrix goes on.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Bounds {
    /// Runs of each cell, at least.
    pub least: u32,
    /// Runs of each cell, at most.
    pub most: u32,
    /// A cell leaves when each of its intervals is at most this share of its median, to either side.
    pub narrow: f64,
    /// The seed of the bootstrap's random numbers.
    pub seed: u64,
}

/// The position of the cell that runs next, and the number of that run; `None` when all have left.
pub fn next(cells: &[Cell], rows: &[Row], bounds: &Bounds) -> Option<(usize, u32)> {
    let open = cells.iter().enumerate().filter_map(|(at, cell)| {
        let (runs, left) = state(cell, rows, bounds);
        (!left).then_some((runs, at))
    });
    // The one with the fewest runs; among equals, the first.
    open.min().map(|(runs, at)| (at, runs))
}

/// Runs that are still to come, at least, for each cell in the order of `cells`.
pub fn to_come(cells: &[Cell], rows: &[Row], bounds: &Bounds) -> Vec<u32> {
    let all = cells.iter().map(|cell| {
        let (runs, left) = state(cell, rows, bounds);
        let open = bounds.least.saturating_sub(runs).max(1);
        if left { 0 } else { open }
    });
    all.collect()
}

/// How often a cell has run, and whether it has left.
fn state(cell: &Cell, rows: &[Row], bounds: &Bounds) -> (u32, bool) {
    let own: Vec<&Row> = rows.iter().filter(|row| row.cell == *cell).collect();
    let runs = own.len() as u32;
    let failures = own.iter().filter(|row| row.failure().is_some()).count() as u32;
    let hopeless = failures == runs && failures >= FAILURES.min(bounds.most);
    let enough = runs >= bounds.least && runs > failures && widest(&own, bounds.seed) <= bounds.narrow;
    (runs, hopeless || enough || runs >= bounds.most)
}

/// The medians of runs, by quantity.
pub fn medians<'a>(rows: impl IntoIterator<Item = &'a Row>) -> BTreeMap<Quantity, Vec<f64>> {
    let mut all: BTreeMap<Quantity, Vec<f64>> = BTreeMap::new();
    for value in rows.into_iter().flat_map(Row::values) {
        let values = all.entry(value.quantity.clone()).or_default();
        values.push(value.summary.median);
    }
    all
}

fn widest(rows: &[&Row], seed: u64) -> f64 {
    let medians = medians(rows.iter().copied());
    let widths = medians
        .values()
        .filter_map(|values| Some(around_median(values, seed)?.relative_half_width()));
    widths.fold(0.0, f64::max)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cell::Way;
    use crate::row::tests::{cell, failed, measured};

    const BOUNDS: Bounds = Bounds {
        least: 3,
        most: 5,
        narrow: 0.02,
        seed: 1,
    };

    /// Runs everything that is to be run; `run` gives each result. Returns the ways in their order.
    fn play(cells: &[Cell], mut run: impl FnMut(Way, u32) -> Row) -> Vec<(Way, u32)> {
        let mut rows = Vec::new();
        let mut order = Vec::new();
        while let Some((at, number)) = next(cells, &rows, &BOUNDS) {
            let way = cells[at].way;
            order.push((way, number));
            rows.push(run(way, number));
        }
        assert!(to_come(cells, &rows, &BOUNDS).iter().all(|&runs| runs == 0));
        order
    }

    #[test]
    fn cells_take_turns_until_their_intervals_are_narrow() {
        let cells = [cell(Way::Direct), cell(Way::Causeway)];
        let steady = |way, run| measured(way, run, &[(1, 100.0 + f64::from(run))]);
        let order = play(&cells, steady);
        let (a, b) = (Way::Direct, Way::Causeway);
        assert_eq!(order, [(a, 0), (b, 0), (a, 1), (b, 1), (a, 2), (b, 2)]);
    }

    #[test]
    fn a_cell_that_scatters_goes_on_alone_to_the_most() {
        let cells = [cell(Way::Direct), cell(Way::Causeway)];
        let order = play(&cells, |way, run| {
            let scatter = if way == Way::Direct {
                f64::from(run) * 10.0
            } else {
                0.0
            };
            measured(way, run, &[(1, 100.0 + scatter)])
        });
        assert_eq!(order.iter().filter(|(way, _)| *way == Way::Direct).count(), 5);
        assert_eq!(order.iter().filter(|(way, _)| *way == Way::Causeway).count(), 3);
    }

    #[test]
    fn a_cell_that_fails_twice_is_left_and_the_others_go_on() {
        let cells = [cell(Way::Direct), cell(Way::Causeway)];
        let order = play(&cells, |way, run| match way {
            Way::Direct => failed(way, run),
            _ => measured(way, run, &[(1, 100.0)]),
        });
        assert_eq!(order.iter().filter(|(way, _)| *way == Way::Direct).count(), 2);
        assert_eq!(order.iter().filter(|(way, _)| *way == Way::Causeway).count(), 3);
    }

    #[test]
    fn one_failure_among_good_runs_ends_nothing() {
        let cells = [cell(Way::Direct)];
        let order = play(&cells, |way, run| match run {
            0 => failed(way, run),
            _ => measured(way, run, &[(1, 100.0)]),
        });
        assert_eq!(order.len(), 3);
    }
}
