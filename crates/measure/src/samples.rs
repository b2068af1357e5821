//! What a set of measured values comes to. No outlier is removed.

/// The figures every table quotes.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Summary {
    /// How many values.
    pub count: usize,
    /// Smallest.
    pub min: f64,
    /// Middle one, or the mean of the two in the middle.
    pub median: f64,
    /// Arithmetic mean.
    pub mean: f64,
}

/// Summary of `values`, in their unit; `None` when there are none.
pub fn summary(values: &[f64]) -> Option<Summary> {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let middle = sorted.len() / 2;
    let upper = *sorted.get(middle)?;
    let lower = sorted[sorted.len().saturating_sub(1) / 2];
    Some(Summary {
        count: sorted.len(),
        min: sorted[0],
        median: (lower + upper) / 2.0,
        mean: sorted.iter().sum::<f64>() / sorted.len() as f64,
    })
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
                mean: 4.25
            }
        );
        assert_eq!(summary(&[5.0, 1.0, 3.0]).unwrap().median, 3.0);
    }

    #[test]
    fn nothing_measured_has_no_summary() {
        assert_eq!(summary(&[]), None);
    }
}
