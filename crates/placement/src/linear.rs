//! Linear programs with a few dozen variables: whether all rows can be satisfied at once, by the first phase
//! of the simplex method with Bland's rule (Chvatal, Linear Programming, chapters 3 and 8). It computes in
//! floating point: a caller that proves something with the answer must check it in integers.

/// Anything smaller than this counts as zero.
const NOTHING: f64 = 1e-9;

/// Most pivots: Bland's rule terminates by itself, but rounding may prevent that.
const PIVOTS: usize = 2000;

/// A sum of variables, and the bound with which it is compared. No bound is negative.
#[derive(Debug, Clone)]
pub(crate) struct Row {
    /// Variables, each with its factor.
    pub sum: Vec<(usize, f64)>,
    pub bound: f64,
}

/// Whether some sums can be at least, and others at most, their bounds.
#[derive(Debug)]
pub(crate) enum Answer {
    /// The bounds can be kept, with these values of the variables.
    Holds(Vec<f64>),
    /// The bounds cannot be kept. For each of the latter rows, this is what one more unit of its bound would
    /// gain.
    Never(Vec<f64>),
    /// Too many pivots.
    Unknown,
}

/// A tableau: its last column has the bounds, its last row what is left to reach.
struct Tableau {
    rows: Vec<Vec<f64>>,
    /// The variable of each row except the last.
    basis: Vec<usize>,
}

/// Decides for variables that are not negative.
pub(crate) fn decide(variables: usize, at_least: &[Row], at_most: &[Row]) -> Answer {
    let (least, most) = (at_least.len(), at_most.len());
    // Variables, then surplus, slack and artificial variables.
    let surplus = variables;
    let slack = surplus + least;
    let missing = slack + most;
    let columns = missing + least;
    let mut tableau = Tableau {
        rows: Vec::new(),
        basis: Vec::new(),
    };
    let mut left = vec![0.0; columns + 1];
    for (index, row) in at_least.iter().enumerate() {
        let mut cells = cells(row, columns);
        cells[surplus + index] = -1.0;
        for (left, cell) in left.iter_mut().zip(&cells) {
            *left -= cell;
        }
        cells[missing + index] = 1.0;
        tableau.rows.push(cells);
        tableau.basis.push(missing + index);
    }
    for (index, row) in at_most.iter().enumerate() {
        let mut cells = cells(row, columns);
        cells[slack + index] = 1.0;
        tableau.rows.push(cells);
        tableau.basis.push(slack + index);
    }
    tableau.rows.push(left);
    if !tableau.run(missing) {
        return Answer::Unknown;
    }
    let scale = at_least.iter().map(|row| row.bound).fold(1.0, f64::max);
    let left = &tableau.rows[least + most];
    if -left[columns] > NOTHING * scale {
        return Answer::Never(left[slack..missing].to_vec());
    }
    let mut values = vec![0.0; variables];
    for (row, variable) in tableau.rows.iter().zip(&tableau.basis) {
        if *variable < variables {
            values[*variable] = row[columns];
        }
    }
    Answer::Holds(values)
}

fn cells(row: &Row, columns: usize) -> Vec<f64> {
    let mut cells = vec![0.0; columns + 1];
    for (variable, factor) in &row.sum {
        cells[*variable] += factor;
    }
    cells[columns] = row.bound;
    cells
}

impl Tableau {
    /// Pivots until nothing improves. No variable from `end` on enters the basis.
    fn run(&mut self, end: usize) -> bool {
        let last = self.basis.len();
        for _ in 0..PIVOTS {
            let Some(column) = (0..end).find(|column| self.rows[last][*column] < -NOTHING) else {
                return true;
            };
            let bounds = self.rows[last].len() - 1;
            let mut least: Option<(f64, usize)> = None;
            for row in 0..last {
                let cell = self.rows[row][column];
                if cell > NOTHING {
                    let ratio = self.rows[row][bounds] / cell;
                    let is_less = least.is_none_or(|(best, at)| {
                        ratio < best - NOTHING
                            || (ratio <= best + NOTHING && self.basis[row] < self.basis[at])
                    });
                    if is_less {
                        least = Some((ratio, row));
                    }
                }
            }
            // What is missing is never negative, so some row bounds it.
            let Some((_, row)) = least else {
                return false;
            };
            self.pivot(row, column);
        }
        false
    }

    fn pivot(&mut self, row: usize, column: usize) {
        let mut pivot = std::mem::take(&mut self.rows[row]);
        let by = pivot[column];
        pivot.iter_mut().for_each(|cell| *cell /= by);
        for other in &mut self.rows {
            let factor = other.get(column).copied().unwrap_or(0.0);
            if factor != 0.0 {
                for (cell, of_pivot) in other.iter_mut().zip(&pivot) {
                    *cell -= factor * of_pivot;
                }
            }
        }
        self.rows[row] = pivot;
        self.basis[row] = column;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(sum: &[(usize, f64)], bound: f64) -> Row {
        Row {
            sum: sum.to_vec(),
            bound,
        }
    }

    #[test]
    fn rows_that_hold_together_have_values_and_others_a_reason() {
        // Twice the first variable plus the second is at least 8.
        let least = [row(&[(0, 2.0), (1, 1.0)], 8.0)];
        let values = match decide(2, &least, &[row(&[(0, 1.0)], 3.0), row(&[(1, 1.0)], 2.0)]) {
            Answer::Holds(values) => values,
            other => unreachable!("{other:?}"),
        };
        assert!(values[0] <= 3.0 && values[1] <= 2.0 && 2.0 * values[0] + values[1] >= 8.0 - 1e-6);
        match decide(2, &least, &[row(&[(0, 1.0)], 3.0), row(&[(1, 1.0)], 1.0)]) {
            Answer::Never(gains) => assert_eq!(gains, [2.0, 1.0]),
            other => unreachable!("{other:?}"),
        }
    }
}
