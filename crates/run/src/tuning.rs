//! An MPI's limits for the link, as the gateway measures it.

use causeway_control::Status;
use causeway_gateway::lanes::bandwidth_delay_product;
use causeway_mpis::eager::{Eager, eager_for};

/// The limits for a job of `ranks`; `None` without a tunnel.
pub fn eager(status: &Status, ranks: u32) -> Option<Eager> {
    let tunnels = status.tunnels.iter();
    let products =
        tunnels.map(|tunnel| bandwidth_delay_product(tunnel.rtt_microseconds, tunnel.rate_bits_per_second));
    products.max().map(|largest| eager_for(largest, ranks))
}

#[cfg(test)]
mod tests {
    use super::*;
    use causeway_control::TunnelStatus;
    use causeway_mpis::eager::{HEADER_BYTES, MAX_EAGER_BYTES, MIN_EAGER_BYTES};

    /// A status with these round-trip times in microseconds and rates in bits per second.
    fn status(links: &[(u32, u64)]) -> Status {
        let tunnel = |(rtt, rate): &(u32, u64)| TunnelStatus {
            streams: 0,
            site: "nancy".into(),
            peer: ([198, 51, 100, 5], 7001).into(),
            rtt_microseconds: *rtt,
            rate_bits_per_second: *rate,
            loss: 0.0,
            congestion_control: "bbr".into(),
            sent_bytes: 0,
            received_bytes: 0,
            lanes: Vec::new(),
            lanes_lost: 0,
            down_seconds: None,
            why_no_better_way: String::new(),
            refuses_jobs: None,
        };
        Status {
            site: "rennes".into(),
            pid: 1,
            tunnels: links.iter().map(tunnel).collect(),
            ..Status::default()
        }
    }

    const GIGABIT: u64 = 1_000_000_000;

    #[test]
    fn the_link_that_holds_most_decides_within_the_bounds() {
        let limit =
            |links: &[(u32, u64)]| eager(&status(links), 2).map(|eager| eager.usual_bytes - HEADER_BYTES);
        assert_eq!(limit(&[]), None);
        assert_eq!(limit(&[(10, GIGABIT)]), Some(MIN_EAGER_BYTES));
        assert_eq!(limit(&[(100, GIGABIT), (500, GIGABIT)]), Some(1 << 20));
        assert_eq!(
            limit(&[(11_600, GIGABIT), (8_000, GIGABIT)]),
            Some(MAX_EAGER_BYTES)
        );
        assert_eq!(limit(&[(90_000, GIGABIT)]), Some(MAX_EAGER_BYTES));
        assert_eq!(limit(&[(100, 10 * GIGABIT)]), Some(2 << 20));
    }

    #[test]
    fn a_rate_below_the_assumed_one_is_taken_for_a_lane_that_has_carried_little() {
        let limit = |rate| eager(&status(&[(500, rate)]), 2);
        assert_eq!(limit(GIGABIT / 1000), limit(GIGABIT));
    }

    #[test]
    fn many_ranks_have_less_each_so_that_all_together_stay_within_the_bound() {
        let limit = |ranks| {
            let eager = eager(&status(&[(11_600, GIGABIT)]), ranks).unwrap();
            [eager.usual_bytes, eager.ucx_bytes, eager.rxm_bytes].map(|bytes| bytes - HEADER_BYTES)
        };
        assert_eq!(limit(8), [16 << 20, 64 << 20, 256 << 10]);
        assert_eq!(limit(32), [16 << 20, 16 << 20, 256 << 10]);
        assert_eq!(limit(33), [8 << 20, 8 << 20, 256 << 10]);
        assert_eq!(limit(1000), [512 << 10, 512 << 10, 256 << 10]);
        assert_eq!(limit(1_000_000), [MIN_EAGER_BYTES; 3]);
    }
}
