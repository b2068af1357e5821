//! The physical limit: no message of s bytes over a round-trip time R and a rate B ends before R/2 + s/B.

use std::time::Duration;

/// A path as the scenario asks for it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Link {
    /// The round-trip time R.
    pub round_trip: Duration,
    /// The rate B, in bits per second.
    pub rate_bits_per_second: f64,
}

impl Link {
    /// rennes-nancy of the scenario of that name and of hablot-2007: 11.6 ms, 1 Gbit/s.
    pub const RENNES_NANCY: Link = Link {
        round_trip: Duration::from_micros(11_600),
        rate_bits_per_second: 1e9,
    };

    /// Earliest arrival of the last byte of a message of `size_bytes`, in microseconds.
    pub fn one_way_us(&self, size_bytes: u64) -> f64 {
        self.round_trip.as_secs_f64() * 1e6 / 2.0 + size_bytes as f64 * 8.0 * 1e6 / self.rate_bits_per_second
    }

    /// Earliest end of an all-to-all of `size_bytes` for each pair, in microseconds: all that goes one way
    /// shares the link.
    pub fn all_to_all_us(&self, size_bytes: u64, ranks_here: u64, ranks_there: u64) -> f64 {
        self.one_way_us(size_bytes * ranks_here * ranks_there)
    }
}

/// Mbit/s of `size_bytes` that took `one_way_us`.
pub fn mbit_per_second(size_bytes: u64, one_way_us: f64) -> f64 {
    size_bytes as f64 * 8.0 / one_way_us
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limit_is_half_the_round_trip_plus_the_time_on_the_wire() {
        assert!((Link::RENNES_NANCY.one_way_us(1) - 5800.008).abs() < 1e-6);
        // FACTS of the papers: 1 MB takes 14.2 ms.
        assert!((Link::RENNES_NANCY.one_way_us(1 << 20) - 14_188.608).abs() < 1e-6);
    }

    #[test]
    fn an_all_to_all_carries_every_pair_between_the_sites() {
        // 16 pairs of 2 MB one way: 33.6 MB at 125 MB/s, and half a round trip.
        let limit = Link::RENNES_NANCY.all_to_all_us(2 << 20, 4, 4);
        assert!((limit - (5800.0 + 268_435.456)).abs() < 1e-6);
    }

    #[test]
    fn a_megabit_in_a_second_is_one_megabit_per_second() {
        assert!((mbit_per_second(125_000, 1e6) - 1.0).abs() < 1e-9);
    }
}
