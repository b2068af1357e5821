//! Summarises a set of measured values. No outlier is removed.

use serde::{Deserialize, Serialize};

/// The figures every table quotes.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Summary {
    /// How many values.
    pub count: usize,
    /// Smallest.
    pub min: f64,
    /// Middle one, or the mean of the two in the middle.
    pub median: f64,
    /// Arithmetic mean.
    pub mean: f64,
    /// 99 of 100 values are at most this: one of the values, by the nearest rank. Of fewer than a hundred,
    /// the largest.
    pub p99: f64,
    /// Largest.
    pub max: f64,
}

/// Summary of `values`, in their unit; `None` when there are none.
pub fn summary(values: &[f64]) -> Option<Summary> {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let middle = sorted.len() / 2;
    let upper = *sorted.get(middle)?;
    let lower = sorted[sorted.len().saturating_sub(1) / 2];
    let p99 = sorted[(sorted.len() * 99).div_ceil(100).saturating_sub(1)];
    Some(Summary {
        count: sorted.len(),
        min: sorted[0],
        median: (lower + upper) / 2.0,
        mean: sorted.iter().sum::<f64>() / sorted.len() as f64,
        p99,
        max: sorted[sorted.len() - 1],
    })
}

/// Median of `values`; `None` when there are none.
pub fn median(values: &[f64]) -> Option<f64> {
    summary(values).map(|found| found.median)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_median_of_an_even_count_is_the_mean_of_the_two_in_the_middle() {
        let found = summary(&[4.0, 1.0, 2.0, 10.0]).unwrap();
        assert_eq!(
            found,
            Summary {
                count: 4,
                min: 1.0,
                median: 3.0,
                mean: 4.25,
                p99: 10.0,
                max: 10.0
            }
        );
        assert_eq!(summary(&[5.0, 1.0, 3.0]).unwrap().median, 3.0);
    }

    #[test]
    fn the_99th_percentile_leaves_one_value_of_a_hundred_above_it() {
        let values: Vec<f64> = (1..=200).map(f64::from).collect();
        let found = summary(&values).unwrap();
        assert_eq!((found.p99, found.max), (198.0, 200.0));
        assert_eq!(summary(&values[..100]).unwrap().p99, 99.0);
        assert_eq!(summary(&values[..30]).unwrap().p99, 30.0);
    }

    #[test]
    fn nothing_measured_has_no_summary() {
        assert_eq!(summary(&[]), None);
    }
}
