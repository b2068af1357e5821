//! Intervals of a median by the bootstrap: how far the median might be elsewhere, had we run again.
//!
//! The percentile method (Efron 1979): samples of the same size are drawn with replacement, and the middle 95
//! of 100 of their medians are the interval. It assumes no distribution, and gives the whole range for three
//! values.

use crate::samples::median;
use serde::{Deserialize, Serialize};

/// Samples that are drawn: with this many, the ends of the interval move by less than a percent of its width.
const DRAWN: usize = 2000;

/// Share of the medians that lie below the interval, and above it.
const TAIL: f64 = 0.025;

/// A median and how sure it is.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Interval {
    /// The median of the values.
    pub median: f64,
    /// Lower end.
    pub low: f64,
    /// Upper end.
    pub high: f64,
}

impl Interval {
    /// Half of its width as a share of the median; infinite if the median is 0 and the interval is not.
    pub fn relative_half_width(&self) -> f64 {
        match self.high - self.low {
            0.0 => 0.0,
            width => width / 2.0 / self.median.abs(),
        }
    }
}

/// The interval of the median of `values`; `None` if there are none. The same seed gives the same interval.
pub fn around_median(values: &[f64], seed: u64) -> Option<Interval> {
    let found = median(values)?;
    let mut random = fastrand::Rng::with_seed(seed);
    let mut medians: Vec<f64> = (0..DRAWN)
        .filter_map(|_| {
            let drawn: Vec<f64> = values
                .iter()
                .map(|_| values[random.usize(..values.len())])
                .collect();
            median(&drawn)
        })
        .collect();
    medians.sort_by(f64::total_cmp);
    let at = |share: f64| medians[((DRAWN - 1) as f64 * share).round() as usize];
    Some(Interval {
        median: found,
        low: at(TAIL),
        high: at(1.0 - TAIL),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_interval_holds_the_median_and_narrows_with_more_values() {
        let spread = |count: usize| {
            let values: Vec<f64> = (0..count).map(|i| 100.0 + (i * 7 % 10) as f64).collect();
            let interval = around_median(&values, 1).unwrap();
            assert!(
                interval.low <= interval.median && interval.median <= interval.high,
                "{interval:?}"
            );
            interval.relative_half_width()
        };
        assert!(spread(200) < spread(10), "{} {}", spread(200), spread(10));
    }

    #[test]
    fn three_values_say_no_more_than_their_range() {
        let interval = around_median(&[3.0, 1.0, 2.0], 7).unwrap();
        assert_eq!((interval.low, interval.median, interval.high), (1.0, 2.0, 3.0));
        assert_eq!(around_median(&[], 7), None);
        assert_eq!(around_median(&[5.0], 7).unwrap().relative_half_width(), 0.0);
    }

    /// About 190 of two hundred intervals, each from 15 values of a known distribution, contain its true
    /// median.
    #[test]
    fn nineteen_of_twenty_intervals_hold_the_true_median() {
        let mut random = fastrand::Rng::with_seed(3);
        let held = (0..200).filter(|&trial| {
            let values: Vec<f64> = (0..15).map(|_| random.f64()).collect();
            around_median(&values, trial).is_some_and(|interval| interval.low <= 0.5 && 0.5 <= interval.high)
        });
        let held = held.count();
        assert!((178..=200).contains(&held), "{held} of 200");
    }
}
