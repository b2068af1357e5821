//! Latency and rate from times over sizes: the line a + b s that errs least, measured by relative errors.
//!
//! Absolute errors would let the largest message alone decide.

use crate::limit::Link;
use serde::{Deserialize, Serialize};

/// A fitted line.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Line {
    /// Time of an empty message, in microseconds.
    pub latency_us: f64,
    /// How fast the additional bytes of a longer message go, as a rate.
    pub rate_mbit_per_second: f64,
    /// The largest relative error of a point.
    pub worst_error: f64,
}

/// The line through (size in bytes, time in microseconds); `None` with fewer than two sizes, or if longer
/// messages took no longer, which gives no rate.
pub fn line(points: &[(u64, f64)]) -> Option<Line> {
    let points: Vec<(f64, f64)> = points
        .iter()
        .filter(|(_, us)| *us > 0.0)
        .map(|&(size, us)| (size as f64, us))
        .collect();
    let weight = |us: f64| 1.0 / (us * us);
    let sum = |of: &dyn Fn(f64, f64) -> f64| -> f64 {
        points.iter().map(|&(size, us)| weight(us) * of(size, us)).sum()
    };
    let (w, x, y) = (sum(&|_, _| 1.0), sum(&|size, _| size), sum(&|_, us| us));
    let (xx, xy) = (sum(&|size, _| size * size), sum(&|size, us| size * us));
    let determinant = w * xx - x * x;
    if points.len() < 2 || determinant <= f64::EPSILON * w * xx {
        return None;
    }
    // More than a rounding error.
    let is_there = |slope: &f64| slope * x > y * 1e-9;
    let slope = Some((w * xy - x * y) / determinant).filter(is_there)?;
    let latency_us = (y - slope * x) / w;
    let error = |&(size, us): &(f64, f64)| ((latency_us + slope * size) / us - 1.0).abs();
    Some(Line {
        latency_us,
        rate_mbit_per_second: 8.0 / slope,
        worst_error: points.iter().map(error).fold(0.0, f64::max),
    })
}

impl Line {
    /// Latency and rate as shares of the link's: both 1 for a perfect one.
    pub fn shares_of_limit(&self, link: &Link) -> (f64, f64) {
        let latency = self.latency_us / link.one_way_us(0);
        (
            latency,
            self.rate_mbit_per_second * 1e6 / link.rate_bits_per_second,
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_perfect_link_gives_back_its_own_latency_and_rate() {
        let link = Link::RENNES_NANCY;
        let points: Vec<_> = [0, 1, 1024, 1 << 20, 64 << 20]
            .map(|size| (size, link.one_way_us(size)))
            .into();
        let found = line(&points).unwrap();
        let (latency, rate) = found.shares_of_limit(&link);
        assert!(
            (latency - 1.0).abs() < 1e-9 && (rate - 1.0).abs() < 1e-9,
            "{found:?}"
        );
        assert!(found.worst_error < 1e-9);
    }

    #[test]
    fn one_size_is_no_line_and_neither_are_long_messages_that_take_no_longer() {
        assert_eq!(line(&[(8, 5.0)]), None);
        assert_eq!(line(&[(8, 5.0), (8, 6.0)]), None);
        assert_eq!(line(&[(8, 5.0), (16, 5.0)]), None);
        assert_eq!(line(&[(8, 5.0), (16, 4.0)]), None);
    }
}
