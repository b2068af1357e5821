//! Runs the matrix: one cell after the other, every row kept, until every cell is done or somebody stops it.

use crate::cell::Cell;
use crate::row::{Network, Outcome, Row};
use crate::schedule::{next, to_come};
use crate::store::{Store, StoreError};
use std::time::{Duration, Instant};

/// The result of one run.
#[derive(Debug)]
pub struct Ran {
    /// How it ended.
    pub outcome: Outcome,
    /// What TCP did meanwhile, if that can be seen.
    pub network: Option<Network>,
    /// On how many cores its ranks may compute together, if that was checked.
    pub cores: Option<u32>,
}

/// Runs one cell once.
pub trait Runner {
    /// Runs `cell` to its end; `run` counts its runs from 0.
    fn run(&mut self, cell: &Cell, run: u32) -> Ran;
}

/// How far the matrix is.
#[derive(Debug, Clone, Copy)]
pub struct Progress<'a> {
    /// The row that was added last in this sitting.
    pub last: Option<&'a Row>,
    /// The cell that runs now; `None` at the end.
    pub cell: Option<&'a Cell>,
    /// Runs that have ended.
    pub done: u64,
    /// Runs that are still to come, at least.
    pub to_come: u64,
    /// How long the runs to come take, as far as is known; `None` before anything has run.
    pub left: Option<Duration>,
}

/// Runs everything that has not run yet. `stopped` says whether to stop; `watch` is told about each step.
///
/// # Errors
/// A row cannot be written.
pub fn measure(
    store: &mut Store,
    runner: &mut dyn Runner,
    stopped: &dyn Fn() -> bool,
    watch: &mut dyn FnMut(Progress<'_>),
) -> Result<(), StoreError> {
    let (cells, bounds) = (store.head().plan.cells.clone(), store.head().plan.bounds);
    let before = store.rows().len();
    while let Some((at, run)) = next(&cells, store.rows(), &bounds) {
        let cell = &cells[at];
        watch(progress(store, before, Some(cell)));
        if stopped() {
            return Ok(());
        }
        let began = Instant::now();
        let Ran {
            outcome,
            network,
            cores,
        } = runner.run(cell, run);
        // A run that was stopped gives no row: it did not fail by itself.
        if stopped() {
            return Ok(());
        }
        store.add(Row {
            cell: cell.clone(),
            run,
            seconds: began.elapsed().as_secs_f64(),
            network,
            cores,
            outcome,
        })?;
    }
    watch(progress(store, before, None));
    Ok(())
}

fn progress<'a>(store: &'a Store, before: usize, cell: Option<&'a Cell>) -> Progress<'a> {
    let (rows, cells) = (store.rows(), &store.head().plan.cells);
    let come = to_come(cells, rows, &store.head().plan.bounds);
    let mean = |rows: &[&Row]| {
        let sum: f64 = rows.iter().map(|row| row.seconds).sum();
        (!rows.is_empty()).then(|| sum / rows.len() as f64)
    };
    let overall = mean(&rows.iter().collect::<Vec<_>>());
    let seconds = |(cell, &runs): (&Cell, &u32)| {
        let own: Vec<&Row> = rows.iter().filter(|row| row.cell == *cell).collect();
        Some(f64::from(runs) * mean(&own).or(overall)?)
    };
    let left: Option<f64> = cells.iter().zip(&come).map(seconds).sum();
    Progress {
        last: rows.get(before..).and_then(<[Row]>::last),
        cell,
        done: rows.len() as u64,
        to_come: come.iter().map(|&runs| u64::from(runs)).sum(),
        left: left.map(Duration::from_secs_f64),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::tests::head;
    use crate::row::tests::measured;
    use std::cell::Cell as Counter;

    struct Steady<'a>(&'a Counter<u32>);

    impl Runner for Steady<'_> {
        fn run(&mut self, cell: &Cell, run: u32) -> Ran {
            self.0.set(self.0.get() + 1);
            Ran {
                outcome: measured(cell.way, run, &[(1, 5900.0)]).outcome,
                network: None,
                cores: None,
            }
        }
    }

    #[test]
    fn a_stopped_matrix_keeps_what_ended_and_goes_on_with_the_rest() {
        let directory = tempfile::tempdir().unwrap();
        let runs = Counter::new(0);
        let mut store = Store::open(directory.path(), head()).unwrap();
        // The measurement is stopped during the third run.
        measure(&mut store, &mut Steady(&runs), &|| runs.get() == 3, &mut |_| {}).unwrap();
        assert_eq!(store.rows().len(), 2);
        drop(store);
        let mut store = Store::open(directory.path(), head()).unwrap();
        let mut seen = Vec::new();
        let mut watch = |progress: Progress<'_>| seen.push((progress.done, progress.to_come));
        measure(&mut store, &mut Steady(&runs), &|| false, &mut watch).unwrap();
        assert_eq!((store.rows().len(), runs.get()), (6, 7));
        assert_eq!(seen, [(2, 4), (3, 3), (4, 2), (5, 1), (6, 0)]);
    }
}
