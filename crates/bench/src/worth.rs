//! What a program takes over two sites, whatever link joins them, from its times over three links.
//!
//! A program that runs over two sites computes, waits for round trips, and waits for bytes that cross. So it
//! takes own + trips x R + bytes / B on a link of round trip R and rate B. Waits that overlap with computing
//! cost nothing and are not seen. Times over three links determine the three figures.

use crate::limit::Link;
use crate::samples;
use serde::{Deserialize, Deserializer, Serialize};
use std::time::Duration;

/// Two hosts of one campus.
pub const NEAR: Link = Link {
    round_trip: Duration::from_millis(1),
    rate_bits_per_second: 1e9,
};

/// As fast as [`NEAR`], but further.
pub const FAR: Link = Link {
    round_trip: Duration::from_millis(21),
    rate_bits_per_second: 1e9,
};

/// As near as [`NEAR`], but slower.
pub const THIN: Link = Link {
    round_trip: Duration::from_millis(1),
    rate_bits_per_second: 2e8,
};

/// Run times in seconds, one run over each link.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Round {
    /// Over [`NEAR`].
    pub near: f64,
    /// Over [`FAR`].
    pub far: f64,
    /// Over [`THIN`].
    pub thin: f64,
}

/// A figure from several rounds, with an interval that contains the true value in 95 of 100 measurements if
/// the noise is normal (Student's t). One round has no such interval: its ends are infinite.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Figure {
    /// Median of the rounds; 0 if it is less.
    pub median: f64,
    /// Lower end; null in JSON if there is none.
    #[serde(deserialize_with = "lower_end")]
    pub least: f64,
    /// Upper end; null in JSON if there is none.
    #[serde(deserialize_with = "upper_end")]
    pub most: f64,
}

fn lower_end<'a, D: Deserializer<'a>>(from: D) -> Result<f64, D::Error> {
    Ok(Option::deserialize(from)?.unwrap_or(f64::NEG_INFINITY))
}

fn upper_end<'a, D: Deserializer<'a>>(from: D) -> Result<f64, D::Error> {
    Ok(Option::deserialize(from)?.unwrap_or(f64::INFINITY))
}

/// What a program needs.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Needs {
    /// Seconds that no link shortens: for computing, for starting, and for what crosses inside sites.
    pub own_seconds: f64,
    /// Round trips that it waits for, one after the other. A message one way is half of one.
    pub trips: Figure,
    /// Bytes that it waits for.
    pub bytes: Figure,
}

impl Figure {
    fn of(values: &[f64]) -> Option<Figure> {
        let summary = samples::summary(values)?;
        let half = half_width(values, summary.mean);
        Some(Figure {
            median: summary.median.max(0.0),
            least: summary.mean - half,
            most: summary.mean + half,
        })
    }

    /// Whether its rounds distinguish it from 0. A single round does not show how certain it is, and is
    /// believed.
    pub fn is_told(&self) -> bool {
        self.median > 0.0 && (self.least > 0.0 || !self.has_interval())
    }

    /// Whether there is more than one round.
    pub fn has_interval(&self) -> bool {
        self.most.is_finite()
    }

    /// Returns the value to calculate with: 0 if its rounds do not distinguish it from 0.
    pub fn counted(&self) -> f64 {
        if self.is_told() { self.median } else { 0.0 }
    }
}

/// The 97.5th percentile of Student's t with 1, 2, 3 ... degrees of freedom. With more degrees it is hardly
/// less.
const STUDENT: [f64; 20] = [
    12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228, 2.201, 2.179, 2.160, 2.145, 2.131,
    2.120, 2.110, 2.101, 2.093, 2.086,
];

/// Half of the width of the interval of the mean.
fn half_width(values: &[f64], mean: f64) -> f64 {
    let Some(freedom) = values.len().checked_sub(1).filter(|freedom| *freedom > 0) else {
        return f64::INFINITY;
    };
    let squares: f64 = values.iter().map(|value| (value - mean).powi(2)).sum();
    let deviation = (squares / freedom as f64).sqrt();
    STUDENT[freedom.min(STUDENT.len()) - 1] * deviation / (values.len() as f64).sqrt()
}

impl Needs {
    /// Computes them from rounds of runs; `None` if there are none.
    pub fn of(rounds: &[Round]) -> Option<Needs> {
        let further = (FAR.round_trip - NEAR.round_trip).as_secs_f64();
        let slower = 8.0 / THIN.rate_bits_per_second - 8.0 / NEAR.rate_bits_per_second;
        let each = |of: &dyn Fn(&Round) -> f64| rounds.iter().map(of).collect::<Vec<_>>();
        let trips = Figure::of(&each(&|round| (round.far - round.near) / further))?;
        let bytes = Figure::of(&each(&|round| (round.thin - round.near) / slower))?;
        let near = Figure::of(&each(&|round| round.near))?;
        let needs = Needs {
            own_seconds: 0.0,
            trips,
            bytes,
        };
        let own_seconds = (near.median - needs.waits(NEAR)).max(0.0);
        Some(Needs { own_seconds, ..needs })
    }

    /// Seconds that it waits on such a link.
    pub fn waits(&self, link: Link) -> f64 {
        self.trips.counted() * link.round_trip.as_secs_f64()
            + self.bytes.counted() * 8.0 / link.rate_bits_per_second
    }

    /// Seconds over two sites with the ranks that were measured.
    pub fn seconds(&self, link: Link) -> f64 {
        self.own_seconds + self.waits(link)
    }

    /// Seconds over two sites with twice the ranks, if each rank then computes half as much and waits as
    /// often.
    pub fn seconds_with_twice_the_ranks(&self, link: Link) -> f64 {
        self.own_seconds / 2.0 + self.waits(link)
    }

    /// The longest round trip in seconds with which twice the ranks over two sites take less than `one_site`
    /// seconds at this rate: `None` if there is none. The three values belong to the median and to either end
    /// of the interval; a value is infinite if, by that one, the program waits for no round trip.
    pub fn longest_round_trip(&self, one_site: f64, rate_bits_per_second: f64) -> Option<Figure> {
        let at_once = Link {
            round_trip: Duration::ZERO,
            rate_bits_per_second,
        };
        let left = one_site - self.seconds_with_twice_the_ranks(at_once);
        let over = |trips: f64| if trips > 0.0 { left / trips } else { f64::INFINITY };
        (left > 0.0).then(|| Figure {
            median: over(self.trips.counted()),
            least: over(self.trips.most),
            most: over(self.trips.least),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// 2 s of its own, 100 round trips, 10 MB.
    fn round(noise: f64) -> Round {
        let time = |link: Link| {
            let trips = 100.0 * link.round_trip.as_secs_f64();
            2.0 + noise + trips + 1e7 * 8.0 / link.rate_bits_per_second
        };
        Round {
            near: time(NEAR),
            far: time(FAR),
            thin: time(THIN),
        }
    }

    fn is_near(one: f64, other: f64) -> bool {
        (one - other).abs() < 1e-6 * other.abs().max(1.0)
    }

    #[test]
    fn three_links_tell_computing_round_trips_and_bytes_apart() {
        let needs = Needs::of(&[round(0.0), round(0.5), round(0.1)]).unwrap();
        assert!(is_near(needs.trips.median, 100.0) && is_near(needs.bytes.median, 1e7));
        assert!(is_near(needs.own_seconds, 2.1), "{needs:?}");
        assert!(is_near(needs.seconds(Link::RENNES_NANCY), 2.1 + 1.16 + 0.08));
        assert_eq!(Needs::of(&[]), None);
    }

    #[test]
    fn no_wait_is_negative_and_one_round_has_no_interval() {
        let disturbed = Round {
            near: 3.0,
            far: 2.0,
            thin: 3.0,
        };
        let needs = Needs::of(&[disturbed]).unwrap();
        assert_eq!((needs.trips.median, needs.bytes.median), (0.0, 0.0));
        assert!(!needs.trips.has_interval() && !needs.trips.is_told());
        assert!(is_near(needs.seconds(FAR), 3.0));
        let one = Needs::of(&[round(0.0)]).unwrap();
        assert!(!one.trips.has_interval() && one.trips.is_told());
        assert!(is_near(one.seconds(FAR), 2.0 + 2.1 + 0.08));
    }

    #[test]
    fn noise_is_no_wait_however_its_median_lies() {
        // Rounds that differ by 0.1 s, with a program that does not wait for bytes.
        let noisy = |noise: f64| Round {
            thin: 2.1 + noise,
            ..Round {
                near: 2.1,
                far: 4.1,
                thin: 0.0,
            }
        };
        let needs = Needs::of(&[noisy(0.14), noisy(0.05), noisy(-0.03)]).unwrap();
        assert!(needs.bytes.median > 1e6 && !needs.bytes.is_told(), "{needs:?}");
        assert!(needs.trips.is_told() && is_near(needs.trips.median, 100.0));
        assert!(is_near(needs.seconds(THIN), needs.seconds(NEAR)), "{needs:?}");
        // The interval of 1, 2 and 3 by Student's t: 2 and 2.48 around it.
        let figure = Figure::of(&[1.0, 2.0, 3.0]).unwrap();
        assert!(
            (figure.least + 0.484).abs() < 1e-3 && (figure.most - 4.484).abs() < 1e-3,
            "{figure:?}"
        );
    }

    #[test]
    fn the_longest_round_trip_is_where_halving_pays_for_the_waits() {
        let needs = Needs::of(&[round(0.0)]).unwrap();
        // One site takes 2 s; two with twice the ranks compute 1 s and wait 0.08 s for bytes.
        let longest = needs.longest_round_trip(2.0, 1e9).unwrap().median;
        assert!(is_near(longest, 0.0092), "{longest}");
        let link = Link {
            round_trip: Duration::from_secs_f64(longest),
            rate_bits_per_second: 1e9,
        };
        assert!(is_near(needs.seconds_with_twice_the_ranks(link), 2.0));
        // At 10 Mbit/s its bytes alone take 8 s.
        assert_eq!(needs.longest_round_trip(2.0, 1e7), None);
        let quiet = Needs {
            trips: Figure {
                median: 1.0,
                least: -1.0,
                most: 100.0,
            },
            ..needs
        };
        let any = quiet.longest_round_trip(2.0, 1e9).unwrap();
        assert!(any.median.is_infinite() && is_near(any.least, 0.0092), "{any:?}");
    }
}
